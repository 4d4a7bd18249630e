"""Calibration weights against R, published results and identities."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog

from unskew import (
    CalibrationWeights,
    FrequencyWeights,
    Margins,
    Population,
    Reweighted,
    effective_sample_size,
)
from unskew.errors import LearnerError, OverlapError, OverlapWarning, ParameterError

# Identities.


QUIET = {"overlap": "ignore"}


@pytest.fixture(scope="module")
def shifted():
    random = np.random.default_rng(0)
    population = pd.DataFrame(
        {
            "age": random.integers(18, 90, 4000),
            "income": random.lognormal(0, 0.5, 4000),
            "town": random.choice(["Bonn", "Kiel", "Ulm"], 4000, p=[0.5, 0.3, 0.2]),
        }
    )
    chance = 1 / (1 + np.exp(2 - population.age / 40 - (population.town == "Ulm")))
    return population[random.uniform(size=4000) < chance / 3].reset_index(drop=True), population


FEATURES = ["age", "income", "town", ("age", "town"), ("age", "income")]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"distance": "linear", "bounds": (0, None)},
        {"distance": "logit", "bounds": (0.1, 6)},
        {"distance": "propensity"},
        {"bounds": (0.2, 4)},
        {"max_weight": 4.0},
    ],
    ids=str,
)
def test_the_weighted_sample_has_the_populations_means(shifted, options):
    sample, population = shifted
    design = np.random.default_rng(1).uniform(0.5, 1.5, len(sample))
    weight = np.random.default_rng(2).uniform(0.5, 1.5, len(population))
    weighter = CalibrationWeights(features=FEATURES, **options, **QUIET)
    given = Population(population.assign(w=weight), weight="w")
    w = weighter.fit(sample, population=given, sample_weight=design).weights_
    for name in ("age", "income"):
        assert np.average(sample[name], weights=w) == pytest.approx(
            np.average(population[name], weights=weight), rel=1e-9
        )
    for town in ("Bonn", "Kiel", "Ulm"):
        here, there = sample.town == town, population.town == town
        assert np.average(here, weights=w) == pytest.approx(np.average(there, weights=weight))
        assert np.average(here * sample.age, weights=w) == pytest.approx(
            np.average(there * population.age, weights=weight)
        )
    ratio = w / design * design.mean()
    low, high = options.get("bounds", (0, None))
    assert ratio.min() >= low - 1e-9
    assert high is None or ratio.max() <= high + 1e-9
    assert w.max() / w.mean() <= options.get("max_weight", np.inf) + 1e-9
    assert weighter.certificate_.converged
    assert weighter.certificate_.steps <= 12


def test_linear_calibration_is_the_regression_estimator(shifted):
    sample, population = shifted
    y = np.sqrt(sample.age) + sample.income
    weighter = CalibrationWeights(
        distance="linear",
        features=["age", "income"],
        columns=["age", "income"],
        negative="allow",
        **QUIET,
    ).fit(sample, population=population)
    design = np.column_stack([np.ones(len(sample)), sample[["age", "income"]]])
    slopes = np.linalg.lstsq(design, y, rcond=None)[0]
    means = np.concatenate([[1.0], population[["age", "income"]].mean()])
    assert np.average(y, weights=weighter.weights_) == pytest.approx(means @ slopes, rel=1e-10)


def test_raking_to_a_joint_table_is_post_stratification(shifted):
    sample, population = shifted
    cells = ["town"]
    raked = CalibrationWeights(features="margins", columns=cells, **QUIET)
    counted = FrequencyWeights(columns=cells, **QUIET)
    expected = counted.fit(sample, population=population).weights_
    assert np.allclose(raked.fit(sample, population=population).weights_, expected, rtol=1e-9)


def test_margins_of_rows_give_the_weights_of_the_rows(shifted):
    sample, population = shifted
    keys = ["age", "town"]
    margins = Margins.from_population(population, keys)
    options = {"columns": keys, "features": keys, "total": "population", **QUIET}
    by_rows = CalibrationWeights(**options).fit(sample, population=population).weights_
    by_margins = CalibrationWeights(**options).fit(sample, population=margins).weights_
    assert np.array_equal(by_rows, by_margins)  # whole sums are exact


def test_features_may_be_functions(shifted):
    sample, population = shifted

    def log_income(rows):
        return np.log(rows["income"])

    weighter = CalibrationWeights(features=["age", log_income], **QUIET)
    w = weighter.fit(sample, population=population).weights_
    assert weighter.features_ == ["age", "log_income"]
    mean = np.log(population.income).mean()
    assert np.average(np.log(sample.income), weights=w) == pytest.approx(mean, rel=1e-9)


def test_sums_of_products_are_those_of_the_rows(shifted):
    sample, population = shifted
    features = ["age", ("age", "income"), "town", ("income", "income"), ("town", "age")]
    weighter = CalibrationWeights(features=features, **QUIET).fit(sample, population=population)
    expected = [
        population.age.mean(),
        (population.age * population.income).mean(),
        *((population.town == town).mean() for town in ("Bonn", "Kiel", "Ulm")),
        (population.income**2).mean(),
        *((population.age * (population.town == town)).mean() for town in ("Bonn", "Kiel", "Ulm")),
    ]
    assert weighter.targets_ == pytest.approx(expected, rel=1e-13)


def test_only_the_columns_that_features_name_are_needed(shifted):
    sample, population = shifted
    features = ["age", ("age", "town")]
    given = population[["town", "age"]].assign(other=0)
    weighter = CalibrationWeights(features=features, **QUIET).fit(sample, population=given)
    expected = CalibrationWeights(features=features, columns=["age", "town"], **QUIET)
    assert weighter.columns_ == ["age", "town"]
    expected.fit(sample, population=population)
    assert np.array_equal(weighter.weights_, expected.weights_)
    new = sample[["town", "age"]]
    assert np.allclose(weighter.weigh(new), weighter.weights_, rtol=1e-10)
    numbers = ["age", "income"]
    by_position = CalibrationWeights(features=[1], **QUIET)
    by_position.fit(sample[numbers].to_numpy(), population=population[numbers].to_numpy())
    assert by_position.columns_ == ["x1"]


def test_new_rows_and_saved_weighters(shifted, tmp_path):
    from unskew import load_weighter, save_weighter

    sample, population = shifted
    weighter = CalibrationWeights(max_weight=5.0, **QUIET).fit(sample, population=population)
    assert np.allclose(weighter.weigh(sample), weighter.weights_, rtol=1e-10)
    save_weighter(weighter, tmp_path / "weighter.skops")
    loaded = load_weighter(tmp_path / "weighter.skops")
    assert np.array_equal(loaded.weigh(sample), weighter.weigh(sample))


def test_auto_features_are_the_same_in_any_order(shifted):
    sample, population = shifted
    order = np.random.default_rng(0).permutation(len(sample))
    one = CalibrationWeights(**QUIET).fit(sample, population=population)
    other = CalibrationWeights(**QUIET).fit(sample.iloc[order], population=population)
    assert one.features_ == other.features_
    assert np.allclose(one.weights_[order], other.weights_, rtol=1e-9)


def test_auto_finds_what_the_means_leave():
    # The population has the sample's means; only the spread of the first column differs.
    random = np.random.default_rng(0)
    sample, population = random.normal(size=(600, 4)), random.normal(size=(6000, 4))
    population[:, 0] *= 1.4
    weighter = CalibrationWeights(**QUIET).fit(sample, population=population)
    extra = [name for name in weighter.features_ if name not in ("x0", "x1", "x2", "x3")]
    assert extra
    assert any(name.startswith("x0") for name in extra)
    spread = np.average(sample[:, 0] ** 2, weights=weighter.weights_)
    assert spread == pytest.approx((population[:, 0] ** 2).mean(), rel=0.05)
    # A tenth as many features as rows, at most.
    few = CalibrationWeights(**QUIET).fit(sample[:30], population=population)
    assert len(few.features_) <= 3


def test_bands_of_a_column_that_is_mostly_zero():
    sample = pd.DataFrame({"gains": [0.0] * 95 + [1.0, 2.0, 3.0, 4.0, 5.0]})
    population = pd.DataFrame({"gains": [0.0] * 80 + [1.0, 9.0] * 10})
    weighter = CalibrationWeights(features="margins", **QUIET)
    w = weighter.fit(sample, population=population).weights_
    assert weighter.features_ == ["gains=below 1", "gains=from 1"]
    assert w[-5:].sum() == pytest.approx(20)


# Soft balance, limits.


def test_slack_and_ridge_leave_what_they_allow(shifted):
    sample, population = shifted
    options = {"features": ["age", "income", "town"], **QUIET}
    exact = CalibrationWeights(**options).fit(sample, population=population)
    soft = CalibrationWeights(slack=0.1, **options).fit(sample, population=population)
    assert np.abs(soft.imbalance_).max() == pytest.approx(0.1, abs=1e-9)
    assert effective_sample_size(soft.weights_) > effective_sample_size(exact.weights_)
    by_name = CalibrationWeights(slack={"age": 0.2}, **options).fit(sample, population=population)
    others = [place for place, name in enumerate(by_name.features_) if name != "age"]
    assert np.abs(by_name.imbalance_[others]).max() < 1e-8
    ridge = CalibrationWeights(ridge=0.5, **options).fit(sample, population=population)
    # The imbalance that a ridge leaves is its multiplier times the ridge.
    assert np.allclose(ridge.imbalance_, -0.5 * ridge.multipliers_, atol=1e-9)


def test_design_effect_is_kept_to(shifted):
    sample, population = shifted
    weighter = CalibrationWeights(features="means", design_effect=1.05, **QUIET)
    w = weighter.fit(sample, population=population).weights_
    assert len(w) / effective_sample_size(w) == pytest.approx(1.05, abs=1e-4)
    assert weighter.ridge_ > 0
    assert np.abs(weighter.imbalance_).max() > 0.01  # and what it costs is said
    design = np.where(np.arange(len(sample)) % 2, 1.0, 9.0)
    with pytest.raises(ParameterError, match="cannot be reached: the design weights alone"):
        weighter.fit(sample, population=population, sample_weight=design)


def test_negative_weights_only_by_name(shifted):
    sample, population = shifted
    far = population[population.age < 45]
    options = {"distance": "linear", "features": "means", "columns": ["age", "income"], **QUIET}
    with pytest.raises(ParameterError, match=r"negative.*bounds=\(0, None\)"):
        CalibrationWeights(**options).fit(sample, population=far)
    weighter = CalibrationWeights(**options, negative="allow").fit(sample, population=far)
    assert weighter.weights_.min() < 0
    assert np.average(sample.age, weights=weighter.weights_) == pytest.approx(far.age.mean())
    from sklearn.linear_model import LinearRegression

    learner = Reweighted(LinearRegression(), CalibrationWeights(**options, negative="allow"))
    with pytest.raises(LearnerError, match="negative"):
        learner.fit(sample[["age", "income"]], sample.age, population=far[["age", "income"]])


# No weights at all.


def test_infeasible_says_how_near_any_weights_come():
    random = np.random.default_rng(0)
    sample = pd.DataFrame({"age": random.integers(18, 45, 200), "size": random.normal(size=200)})
    population = pd.DataFrame({"age": [47.0, 48.0], "size": [0.0, 0.1]})
    with pytest.raises(OverlapError) as caught:
        CalibrationWeights(**QUIET).fit(sample, population=population)
    message = str(caught.value)
    assert "on 'age'" in message
    assert "No weights, with the other features matched, bring the mean of 'age' above" in message
    assert "the population has 47.5. 0 of 200 sample rows are above 47.5" in message
    assert 'on_infeasible="relax"' in message
    with pytest.warns(OverlapWarning, match="each feature was allowed"):
        relaxed = CalibrationWeights(on_infeasible="relax", **QUIET).fit(
            sample, population=population
        )
    spread = sample.std(ddof=0)
    scaled = (sample - population.mean()) / spread
    ones, rows = np.ones((2, 1)), scaled.to_numpy().T
    program = linprog(  # an independent statement of the same question
        np.r_[np.zeros(200), 1.0],
        A_ub=np.block([[rows, -ones], [-rows, -ones]]),
        b_ub=np.zeros(4),
        A_eq=np.r_[np.ones(200), 0.0][None],
        b_eq=[1.0],
    )
    assert relaxed.slack_ == pytest.approx(1.01 * program.fun, rel=1e-6)
    assert np.abs(relaxed.imbalance_).max() == pytest.approx(relaxed.slack_, rel=1e-6)


@pytest.mark.parametrize("values", [(0.0, 1e12), (1e16, 0.0)], ids=["sentinel", "constant"])
def test_values_beyond_all_others_have_a_message(values):
    random = np.random.default_rng(0)
    sample, population = random.normal(size=(200, 2)), random.normal(size=(2000, 2))
    sample[:, 0] += values[0]
    population[5, 0] += values[1]
    with pytest.raises(OverlapError, match="on 'x0'"):
        CalibrationWeights(features="means", **QUIET).fit(sample, population=population)


def test_a_largest_weight_that_leaves_no_weights():
    sample = pd.DataFrame({"level": np.repeat(["a", "b"], 10)})  # the population has no b
    weighter = CalibrationWeights(features="means", max_weight=1.5, **QUIET)
    with pytest.raises(ParameterError, match="10 of 20 rows count, and hold at most 0.75"):
        weighter.fit(sample, population=pd.DataFrame({"level": ["a", "a"]}))


@pytest.mark.parametrize("limit", [{"max_weight": 4.0}, {"design_effect": 1.5}])
def test_rows_without_weight_move_no_limit(limit):
    random = np.random.default_rng(0)
    sample, population = random.normal(0.8, 1.0, size=(200, 2)), random.normal(size=(2000, 2))
    weighter = CalibrationWeights(features="means", ridge=0.01, **limit, **QUIET)
    expected = weighter.fit(sample, population=population).weights_
    more = np.vstack([sample, random.normal(size=(300, 2))])
    design = np.repeat([1.0, 0.0], [200, 300])
    found = weighter.fit(more, population=population, sample_weight=design).weights_
    np.testing.assert_allclose(found[:200] / found.sum(), expected / expected.sum(), atol=1e-9)


def test_collinear_features_are_named_and_contradictions_found():
    random = np.random.default_rng(0)
    sample, population = random.normal(size=(300, 2)), random.normal(0.2, 1, size=(3000, 2))
    both = [np.column_stack([rows, 2 * rows[:, 0] - rows[:, 1]]) for rows in (sample, population)]
    weighter = CalibrationWeights(features="means", **QUIET).fit(both[0], population=both[1])
    assert weighter.collinear_ == ["x2"]
    assert np.abs(weighter.imbalance_).max() < 1e-9
    for distance in ("raking", "linear"):
        with pytest.raises(OverlapError, match="No weights match the population"):
            CalibrationWeights(distance=distance, features="means", **QUIET).fit(
                both[0], population=both[1] + [0, 0, 0.5]
            )


def test_levels_that_the_population_lacks_get_weight_zero():
    sample = pd.DataFrame({"a": list("xxyyz")})
    population = pd.DataFrame({"a": list("xy")})
    weighter = CalibrationWeights(features="means", **QUIET).fit(sample, population=population)
    assert weighter.weights_ == pytest.approx([1.25, 1.25, 1.25, 1.25, 0])
    assert weighter.weigh(pd.DataFrame({"a": ["z", "x"]})) == pytest.approx([0, 1.25])


def test_a_target_on_the_border_of_what_weights_reach():
    weighter = CalibrationWeights(features="means", **QUIET)
    weights = weighter.fit([[0.0], [1.0], [2.0], [2.0]], population=[[2.0]]).weights_
    assert weights == pytest.approx([0, 0, 2, 2], abs=1e-8)
    assert weighter.certificate_.converged


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"distance": "logit"}, "needs bounds.*got no bounds"),
        ({"distance": "logit", "bounds": (0, None)}, r"needs bounds.*got \(0.0, None\)"),
        ({"bounds": (1.5, 2)}, "low < 1 < high"),
        ({"bounds": 3}, "bounds"),
        ({"slack": {"agee": 1.0}}, "slack names 'agee'"),
        ({"slack": [0.1]}, "1 entries for"),
        ({"features": ["agee"]}, "features names 'agee'"),
        ({"features": []}, "empty list"),
        ({"max_weight": 0.5}, "max_weight"),
    ],
)
def test_parameters_are_checked(shifted, options, message):
    sample, population = shifted
    with pytest.raises(ParameterError, match=message):
        CalibrationWeights(**options, **QUIET).fit(sample, population=population)


def test_propensity_needs_a_larger_population(shifted):
    sample, population = shifted
    with pytest.raises(
        ValueError, match="part of the population, but the population's size is 100"
    ):
        CalibrationWeights(distance="propensity", **QUIET).fit(sample, population=population[:100])


@pytest.mark.parametrize("slack", [1e-6, 1e-2])
def test_slack_converges_with_all_levels_of_a_column(slack):
    # The levels and the intercept are collinear, and only the slack separates their multipliers.
    random = np.random.default_rng(0)
    population = pd.DataFrame(
        {"x": random.normal(size=2000), "g": random.choice(list("uvw"), 2000)}
    )
    chance = 1 / (1 + np.exp(-population["x"] + 0.5 * (population["g"] == "v")))
    sample = population[random.uniform(size=2000) < chance]
    weighter = CalibrationWeights(features="means", slack=slack, overlap="ignore")
    weighter.fit(sample, population=population)
    assert weighter.certificate_.converged
    assert np.abs(weighter.imbalance_).max() == pytest.approx(slack, rel=1e-3)


def test_rounding_does_not_choose_among_columns_that_differ_equally():
    # Five rows allow two features, and two of three columns differ as much as each other.
    sample = np.array([[1, 2, 2], [1, 0, 2], [0, 0, 2], [2, 2, 0], [0, 2, 0]], dtype=float)
    others = [[2, 2, 1], [2, 2, 0], [2, 2, 2], [1, 2, 2], [0, 1, 2], [1, 1, 1], [2, 1, 1]]
    others += [[1, 1, 0], [0, 1, 1], [2, 1, 0]]
    population = np.concatenate([sample, np.array(others, dtype=float)])
    weighter = CalibrationWeights(distance="linear", bounds=(0, None), ridge=0.1, overlap="ignore")
    labels = np.array([0.0, 1.0, 0.0, 0.0, 1.0])  # they decide the order of the rows
    for copies in (1, 2, 3):
        weighter.fit(sample, labels, population=np.tile(population, (copies, 1)))
        assert list(weighter.features_) == ["x0", "x1"]
