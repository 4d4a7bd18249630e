"""Automatic features: many levels, pairs without sample rows, means that no weights reach."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from unskew import CalibrationWeights, FrequencyWeights, Margins, effective_sample_size, estimate
from unskew.errors import OverlapError, OverlapWarning
from unskew.weighters.feature_choice import levels_matter

QUIET = {"overlap": "ignore"}


def share(rows, column, level, weights=None):
    return np.average(rows[column] == level, weights=weights)


@pytest.fixture(scope="module")
def towns():
    """A column of 150 levels, of which some are three times as likely as others."""
    random = np.random.default_rng(0)
    population = pd.DataFrame({"town": [f"t{one:03}" for one in random.integers(0, 150, 20_000)]})
    chance = np.where(population["town"] < "t075", 0.3, 0.1)
    return population[random.uniform(size=20_000) < chance].reset_index(drop=True), population


@pytest.mark.parametrize("features", ["auto", "means", "margins", ["town"]], ids=str)
def test_all_levels_with_sample_rows_are_matched(towns, features):
    sample, population = towns
    weighter = CalibrationWeights(features=features, **QUIET).fit(sample, population=population)
    assert len(weighter.features_) == 150
    cells = FrequencyWeights(**QUIET).fit(sample, population=population)
    assert np.allclose(weighter.weights_, cells.weights_, rtol=1e-8)
    assert np.allclose(weighter.weigh(sample), weighter.weights_, rtol=1e-8)


def test_an_estimate_by_levels_alone_has_the_error_of_cells(towns):
    sample, population = towns
    y = (sample["town"] < "t075") + np.random.default_rng(1).normal(size=len(sample))
    options = {"population": population, "variance": "m_estimator"}
    found = estimate(sample, y, weighter=CalibrationWeights(**QUIET), **options)
    cells = estimate(sample, y, weighter=FrequencyWeights(**QUIET), **options)
    assert found.value == pytest.approx(cells.value, rel=1e-8)
    # Cells are a regression with design weights, which are the slopes where weights are even.
    assert found.standard_error == pytest.approx(cells.standard_error, rel=1e-6)
    assert found.parts["population"] == pytest.approx(cells.parts["population"], rel=1e-6)


def many_levels(random, n_levels=60, strength=0.8, outcome=1.0):
    effects = random.normal(size=n_levels)
    chances = np.exp(strength * effects)
    mine = random.choice(n_levels, 400, p=chances / chances.sum())
    theirs = random.integers(0, n_levels, 4000)
    sample, population = (pd.DataFrame({"c": [f"l{k}" for k in rows]}) for rows in (mine, theirs))
    return sample, outcome * effects[mine] + random.normal(size=400), population, outcome * effects


@pytest.mark.filterwarnings("ignore::unskew.errors.OverlapWarning")
@pytest.mark.filterwarnings("ignore::unskew.errors.EstimateWarning")
def test_selection_and_outcome_by_sixty_levels():
    # Matching twenty of the levels leaves a bias of 0.25, and intervals that hold in 5 %.
    errors, held = [], []
    for seed in range(80):
        sample, y, population, effects = many_levels(np.random.default_rng(seed))
        found = estimate(sample, y, population=population, weighter=CalibrationWeights(**QUIET))
        errors.append(found.value - effects.mean())
        held.append(found.interval[0] <= effects.mean() <= found.interval[1])
    assert np.mean(held) >= 0.88  # 95 %, less three standard errors
    assert np.mean(errors) == pytest.approx(0.0, abs=0.05)
    assert np.sqrt(np.mean(np.square(errors))) < 0.13  # of cells, 0.15


def test_levels_that_tell_nothing_cost_little():
    sizes = []
    for seed in range(20):
        random = np.random.default_rng(seed)
        sample, y, population, _ = many_levels(random, strength=0.0, outcome=0.0)
        weighter = CalibrationWeights(columns="shared", **QUIET)
        found = estimate(sample, y, population=population, weighter=weighter)
        sizes.append(found.effective_sample_size)
    assert np.mean(sizes) > 340  # with all levels, 320


@pytest.mark.parametrize("n_levels", [20, 150])
def test_a_group_of_levels_is_as_noisy_as_permutations_are(n_levels):
    # Levels of few rows: with a χ² distribution the spread would be another.
    random = np.random.default_rng(0)
    rows = random.choice(n_levels, 1300, p=random.dirichlet(np.full(n_levels, 2.0)))
    y, found, by_outcome = random.exponential(size=(300, 1)), [], []
    for _ in range(200):
        random.shuffle(rows)
        masses = np.append(np.bincount(rows[300:], minlength=n_levels), 0.0)
        found.append(levels_matter(rows[:300], np.ones(300), masses, 1000.0, None))
        by_outcome.append(levels_matter(rows[:300], np.ones(300), 1e6 + 0 * masses, 1e9, y))
    assert np.mean(found) == pytest.approx(0.0, abs=0.25)
    assert np.std(found) == pytest.approx(1.0, abs=0.2)


def test_levels_without_sample_rows_are_named_and_rare_ones_stand_for_them():
    sample = pd.DataFrame({"c": ["a"] * 200 + ["b"] * 180 + [f"r{k}" for k in range(20)]})
    levels = ["a"] * 500 + ["b"] * 300 + [f"r{k}" for k in range(20)] * 5 + ["new"] * 100
    population = pd.DataFrame({"c": levels, "x": np.arange(1000.0)})
    sample["x"] = np.linspace(0, 1000, 400)
    weighter = CalibrationWeights(**QUIET).fit(sample, population=population)
    assert "10.0% of the population has a value of 'c' that no sample row has" in weighter.notes_[0]
    assert weighter.uncovered_ == pytest.approx(0.1)
    assert share(sample, "c", "a", weighter.weights_) == pytest.approx(0.5)
    assert share(sample, "c", "r3", weighter.weights_) == pytest.approx(0.2 / 20)
    # The mean of another column is that of all rows, with those of the new level.
    assert np.average(sample["x"], weights=weighter.weights_) == pytest.approx(499.5)


def test_levels_of_as_many_as_rows_are_one_and_named():
    random = np.random.default_rng(0)
    sample = pd.DataFrame({"c": [f"l{k}" for k in random.integers(0, 200, 240)]})
    population = pd.DataFrame({"c": [f"l{k}" for k in random.integers(0, 400, 2000)]})
    weighter = CalibrationWeights(**QUIET)
    with pytest.warns(UserWarning, match="very many categories"):
        weighter.fit(sample, population=population)
    assert "Too many levels to match each one: 'c' (" in weighter.notes_[0]
    assert weighter.uncovered_ > 0.5
    assert effective_sample_size(weighter.weights_) > 200  # nobody stands for half of all


# Pairs of values without sample rows.


@pytest.fixture(scope="module")
def pairs():
    """The sample lacks the pair (p, v), which 6 % of the population has."""
    counts = {"pu": 24, "pv": 6, "pw": 20, "qu": 10, "qv": 20, "qw": 20}
    population = pd.DataFrame([list(pair) for pair, n in counts.items() for _ in range(n)])
    mine = {"pu": 30, "pw": 20, "qu": 20, "qv": 40, "qw": 10}
    sample = pd.DataFrame([list(pair) for pair, n in mine.items() for _ in range(n)])
    return sample.set_axis(["a", "b"], axis=1), population.set_axis(["a", "b"], axis=1)


def test_shares_of_single_columns_keep_every_row(pairs):
    sample, population = pairs
    weighter = CalibrationWeights(features=["a", "b", ("a", "b")]).fit(
        sample, population=population
    )
    w = weighter.weights_
    for column in ("a", "b"):
        for level in population[column].unique():
            assert share(sample, column, level, w) == pytest.approx(
                share(population, column, level), abs=1e-8
            )
    # Raking keeps the odds ratios of the pairs that there are.
    table = pd.crosstab(sample["a"], sample["b"], values=w, aggfunc="sum").to_numpy()
    odds = table[0, 0] * table[1, 2] / (table[0, 2] * table[1, 0])
    assert odds == pytest.approx(24 * 20 / (20 * 10), rel=1e-6)
    assert [(rule.text, rule.share) for rule in weighter.unseen_pairs_] == [
        ("a = p and b = v", pytest.approx(0.06))
    ]
    assert "a = p and b = v" in str(weighter.overlap_)
    found = estimate(sample, sample["a"] == "p", population=population, weighter=weighter)
    assert any("a = p and b = v" in note for note in found.notes)


def test_a_pair_without_its_columns_is_scaled(pairs):
    sample, population = pairs
    weighter = CalibrationWeights(features=[("a", "b")], **QUIET).fit(sample, population=population)
    assert weighter.targets_.sum() == pytest.approx(1.0)
    assert weighter.targets_[0] == pytest.approx(24 / 94)
    assert weighter.unseen_pairs_[0].share == pytest.approx(0.06)


def test_pairs_that_cannot_have_the_shares_of_both_columns_give_way():
    random = np.random.default_rng(0)
    # In the sample a pair is always equal: no pairs have these shares of both columns.
    mine = random.choice(["u", "v", "w"], 300)
    sample = pd.DataFrame({"a": mine, "b": mine, "x": random.normal(size=300)})
    theirs = [random.choice(["u", "v", "w"], 3000, p=p) for p in ([0.5, 0.3, 0.2], [0.2, 0.3, 0.5])]
    population = pd.DataFrame({"a": theirs[0], "b": theirs[1], "x": random.normal(size=3000)})
    with pytest.raises(OverlapError, match="No weights match the population"):
        CalibrationWeights(features="means", **QUIET).fit(sample, population=population)
    with pytest.warns(OverlapWarning, match="No weights match all features at once"):
        weighter = CalibrationWeights(**QUIET).fit(sample, population=population)
    # Half way between, and the number, which is not guilty, is matched within chance.
    assert share(sample, "a", "u", weighter.weights_) == pytest.approx(0.35, abs=0.03)
    assert abs(weighter.imbalance_[weighter.features_.index("x")]) < 1e-3
    assert "largest differences that are left: 'a=" in weighter.notes_[0]


# Means that no weights reach.


@pytest.mark.parametrize("odd", [1.0, 1e12], ids=["binary", "sentinel"])
def test_a_trifle_that_cannot_be_matched_is_left_out_and_named(odd):
    random = np.random.default_rng(0)
    sample = pd.DataFrame({"x": random.normal(0.3, 1, 300), "rare": 0.0})
    population = pd.DataFrame({"x": random.normal(size=2000), "rare": 0.0})
    population.loc[:29, "rare"] = odd
    with pytest.warns(OverlapWarning, match=r"'rare' is not matched: .* 1\.50% of the population"):
        found = estimate(sample, sample["x"], population=population)
    assert found.value == pytest.approx(population["x"].mean())
    assert any("'rare' is not matched" in note for note in found.notes)
    with pytest.raises(OverlapError, match="on 'rare'"):
        CalibrationWeights(features=["x", "rare"]).fit(sample, population=population)
    # Of a tenth of the population that is no trifle.
    population.loc[:199, "rare"] = odd
    with pytest.raises(OverlapError, match="on 'rare'"):
        estimate(sample, sample["x"], population=population)


# Large margins.


def test_raking_to_one_large_margin_is_a_division():
    random = np.random.default_rng(0)
    level = np.append(np.arange(3000), random.integers(0, 3000, 9000))
    targets = random.uniform(0.3, 3.0, 3000)
    sample = pd.DataFrame({"a": level.astype(str)})
    census = Margins({"a": {str(k): float(one) for k, one in enumerate(targets)}})
    weighter = CalibrationWeights(total="population").fit(sample, population=census)
    expected = (targets / np.bincount(level))[level]
    assert weighter.weights_ * targets.sum() / weighter.weights_.sum() == pytest.approx(
        expected, rel=1e-8
    )
    assert np.allclose(weighter.weigh(sample), weighter.weights_, rtol=1e-8)


def test_two_large_margins_are_both_matched():
    random = np.random.default_rng(0)
    level = random.integers(0, 600, (60_000, 2))
    sample = pd.DataFrame(level.astype(str), columns=["a", "b"])
    shares = random.uniform(0.5, 2.0, (2, 600))
    shares /= shares.sum(axis=1, keepdims=True)
    tables = {
        name: {str(k): float(one) for k, one in enumerate(row)}
        for name, row in zip("ab", shares, strict=True)
    }
    weighter = CalibrationWeights().fit(sample, population=Margins(tables))
    for column, row in zip(level.T, shares, strict=True):
        found = np.bincount(column, weighter.weights_) / 60_000
        assert found == pytest.approx(row, rel=1e-7)
    assert weighter.certificate_.converged


def test_many_features_that_cannot_be_matched_have_a_message():
    random = np.random.default_rng(0)
    sample, population = random.normal(size=(700, 300)), random.normal(size=(3000, 300))
    sample[:, 0] = np.abs(sample[:, 0]) + 0.5
    with pytest.raises(OverlapError, match="come is about .* on 'x0'"):
        CalibrationWeights(features="means", **QUIET).fit(sample, population=population)
