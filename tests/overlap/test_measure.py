"""What weighters say of the part of the population that the sample does not reach."""

import datetime as dt
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

from unskew import (
    ClusterWeights,
    FrequencyWeights,
    HistogramWeights,
    KernelMeanMatching,
    KnownProbability,
    Population,
    Reweighted,
    TreeWeights,
    Unweighted,
    diagnose,
)
from unskew.errors import OverlapError, OverlapWarning, ParameterError
from unskew.overlap.measure import measure_overlap
from unskew.population.reservoir import Reservoir
from unskew.rows.sample import Sample

ASKING = [
    TreeWeights(),
    ClusterWeights(),
    HistogramWeights(),
    FrequencyWeights(),
    KernelMeanMatching(),
    KnownProbability(np.ones(300)),
    Unweighted(),
]


def apart(seed=0):
    random = np.random.default_rng(seed)
    return random.uniform(size=(300, 2)), random.uniform(3, 4, size=(900, 2))


def told(keep, m=3000, n=5000, seed=0):
    """Return the overlap of a made-up sample, of which only some rows are kept."""
    random = np.random.default_rng(seed)

    def make(rows):
        days = random.integers(0, 1000, rows)
        return pd.DataFrame(
            {
                "income": np.exp(random.normal(10.5, 0.5, rows)).round(),
                "age": random.integers(18, 90, rows),
                "region": random.choice(["north", "south", "east"], rows),
                "member": random.uniform(size=rows) < 0.3,
                "joined": [dt.date(2020, 1, 1) + dt.timedelta(int(day)) for day in days],
                "score": np.where(random.uniform(size=rows) < 0.1, np.nan, 1.0),
            }
        )

    sample, population = make(m), make(n)
    drawn = Population(population).reduce(Reservoir(n))
    overlap = measure_overlap(Sample.from_data(sample[keep(sample)]), drawn, n)
    return overlap, 1 - keep(population).mean()


class TestWords:
    @pytest.mark.parametrize(
        ("keep", "text"),
        [
            (lambda t: ~((t["income"] > 52_000) & (t["region"] == "north")),
             r"income > 5\d,\d+ and region = north"),
            (lambda t: t["region"] != "north", "region = north"),
            (lambda t: t["age"] > 25, "age ≤ 25"),
            (lambda t: t["member"], "member = false"),
            (lambda t: ~t["member"], "member = true"),
            (lambda t: t["joined"] < dt.date(2022, 1, 1), "joined > 2021-12-31"),
            (lambda t: t["score"].notna(), "score is missing"),
            (lambda t: ~t["age"].between(40, 50), "39 < age ≤ 50"),
        ],
    )  # fmt: skip
    def test_a_hole_is_told_in_the_columns_own_units(self, keep, text):
        overlap, share = told(keep)
        assert overlap.uncovered == pytest.approx(share, abs=0.01)
        assert overlap.unexplained < 0.01
        rule = overlap.rules[0]
        assert pd.Series([rule.text]).str.fullmatch(text).item(), rule.text
        assert str(rule).endswith(f"0 of {rule.sample_size:,} sample rows")
        assert rule.text in str(overlap)

    def test_no_hole(self):
        overlap, _ = told(lambda t: t["age"] > 0)
        assert overlap.uncovered == 0
        assert overlap.rules == ()

    def test_a_share_has_a_margin_unless_all_rows_were_seen(self):
        random = np.random.default_rng(0)
        sample, population = random.uniform(size=(500, 1)), random.uniform(0, 2, size=(60_000, 1))
        some = TreeWeights(overlap=1.0).fit(sample, sample[:, 0], population=population).overlap_
        assert abs(some.uncovered - 0.5) < 2 * some.margin
        assert some.margin == pytest.approx(1.96 * np.sqrt(0.25 / 20_000), rel=0.05)
        weighter = TreeWeights(overlap=1.0).fit(sample, sample[:, 0], population=population[:9000])
        assert weighter.overlap_.margin == 0


@pytest.mark.parametrize("weighter", ASKING, ids=lambda weighter: type(weighter).__name__)
class TestDisjointSupports:
    def test_they_are_refused_on_request(self, weighter):
        sample, population = apart()
        weighter.set_params(overlap="raise")
        with pytest.raises(OverlapError, match="not covered by the sample") as caught:
            weighter.fit(sample, sample[:, 0], population=population)
        assert caught.value.share == pytest.approx(1.0)
        assert caught.value.rules
        again = pickle.loads(pickle.dumps(caught.value))
        assert again.rules == caught.value.rules

    def test_they_are_warned_of(self, weighter):
        sample, population = apart()
        weighter.set_params(overlap="warn")
        with pytest.warns(OverlapWarning) as caught:
            weighter.fit(sample, sample[:, 0], population=population)
        assert caught[0].message.share == pytest.approx(1.0)
        assert weighter.overlap_.uncovered == pytest.approx(1.0)

    def test_they_can_be_ignored(self, weighter):
        sample, population = apart()
        weighter.set_params(overlap="ignore")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            weighter.fit(sample, sample[:, 0], population=population)
        assert weighter.overlap_ is None


def test_a_number_is_the_largest_share_to_accept():
    random = np.random.default_rng(0)
    sample, population = random.uniform(size=(900, 1)), random.uniform(0, 1.25, size=(9000, 1))
    TreeWeights(overlap=0.25).fit(sample, sample[:, 0], population=population)
    with pytest.raises(OverlapError, match="20"):
        TreeWeights(overlap=0.15).fit(sample, sample[:, 0], population=population)
    with pytest.raises(ParameterError, match="overlap"):
        TreeWeights(overlap=2.0).fit(sample, sample[:, 0], population=population)


def test_reweighted_passes_it_on():
    sample, population = apart()
    model = Reweighted(LinearRegression(), TreeWeights(), overlap="raise")
    with pytest.raises(OverlapError):
        model.fit(sample, sample[:, 0], population=population)
    model.set_params(overlap="ignore").fit(sample, sample[:, 0], population=population)
    assert model.weighter_.overlap_ is None


def test_it_is_asked_in_the_same_pass():
    sample, population = apart()
    chunks = (population[start : start + 300] for start in range(0, 900, 300))
    with pytest.raises(OverlapError):
        TreeWeights(overlap="raise").fit(sample, sample[:, 0], population=chunks)


def test_weighter_and_diagnosis_agree():
    random = np.random.default_rng(1)
    sample, population = random.normal(size=(900, 3)), random.normal(size=(4000, 3))
    sample = sample[sample[:, 0] < 1]
    weighter = TreeWeights(overlap=1.0).fit(sample, sample[:, 1], population=population)
    assert weighter.overlap_ == diagnose(sample, population).overlap


def test_design_weights_of_the_population_count():
    sample = np.linspace(0, 1, 400)[:, None]
    population = np.linspace(0, 2, 801)[:, None]
    mass = np.where(population[:, 0] > 1, 3.0, 1.0)
    weighter = TreeWeights(overlap=1.0)
    weighter.fit(sample, sample[:, 0], population=Population(population, weight=mass))
    assert weighter.overlap_.uncovered == pytest.approx(0.75, abs=0.005)
    assert weighter.overlap_.rules[0].text == "x0 > 1"


def test_repeated_rows_reach_as_far_as_single_ones():
    random = np.random.default_rng(0)
    sample, population = random.normal(size=(60, 2)), random.normal(size=(500, 2))
    repeated = np.repeat(sample, 5, axis=0)
    weighter = TreeWeights(overlap=1.0).fit(repeated, repeated[:, 0], population=population)
    assert weighter.overlap_.unexplained == 0


def towns(random, m, n, k=200, answering=None):
    """Return a sample and a population with equal categories, of which the first ones answer."""
    sample, population = random.integers(0, answering or k, m), random.integers(0, k, n)
    return (pd.DataFrame({"town": side.astype(str)}) for side in (sample, population))


def overlap_of(sample, population, sample_weight=None):
    weighter = Unweighted(overlap=1.0)
    with warnings.catch_warnings():  # values that no sample row has are named whatever is allowed
        warnings.simplefilter("ignore", OverlapWarning)
        return weighter.fit(sample, population=population, sample_weight=sample_weight).overlap_


class TestUnseenValues:
    def test_an_even_draw_is_not_blamed_for_the_rare_ones_that_it_lacks(self):
        shares = []
        for seed in range(20):
            found = overlap_of(*towns(np.random.default_rng(seed), 100, 2000))
            assert found.uncovered == 0
            assert found.rules == ()
            shares.append(found.by_chance)
        assert np.mean(shares) == pytest.approx((1 - 1 / 200) ** 100, abs=0.01)
        assert str(found).startswith(
            f"Rare values that no sample row has hold {100 * shares[-1]:.1f}"
        )

    def test_too_many_rare_ones_count_beyond_chance(self):
        # Half of the categories never answer; of the others e^(-300 / 100) are lacking by chance.
        found = overlap_of(*towns(np.random.default_rng(0), 300, 20_000, answering=100))
        (rule,) = found.rules
        lacking = 0.5 + 0.5 * np.exp(-3)
        assert rule.share + rule.by_chance == pytest.approx(lacking, abs=0.03)
        assert rule.by_chance == pytest.approx(np.exp(-1.5), abs=0.02)
        assert found.uncovered == pytest.approx(rule.share)
        assert "that chance explains, 0 of 300 sample rows" in str(rule)

    def test_a_frequent_one_is_named_and_counts_in_full(self):
        random = np.random.default_rng(0)
        sample, population = towns(random, 400, 5000)
        population.loc[random.uniform(size=5000) < 0.06, "town"] = "Ulm"
        (rule,) = overlap_of(sample, population).rules
        assert rule.text == "town = Ulm"
        assert rule.share == pytest.approx((population["town"] == "Ulm").mean())
        assert rule.by_chance == 0

    def test_missing_values_may_be_absent_by_chance_too(self):
        random = np.random.default_rng(0)
        sample, population = random.normal(size=(60, 1)), random.normal(size=(3000, 1))
        population[:60] = np.nan
        assert overlap_of(sample, population).by_chance == pytest.approx(0.02)
        population[:900] = np.nan
        assert overlap_of(sample, population).rules[0].text == "x0 is missing"

    def test_identifiers_are_all_unseen_and_prove_nothing(self):
        sample, population = (
            {"id": [f"{a}{i}" for i in range(n)]} for a, n in (("S", 900), ("U", 300))
        )
        found = overlap_of(pd.DataFrame(sample), pd.DataFrame(population))
        assert (found.uncovered, found.by_chance) == (0, pytest.approx(1))

    def test_grouped_counts_are_as_many_rows(self):
        counts = pd.DataFrame({"town": ["Bonn", "Kiel", "Ulm"], "n": [3000, 2000, 500]})
        sample = pd.DataFrame({"town": ["Bonn", "Kiel"] * 100})
        found = overlap_of(sample, Population(counts, weight="n"))
        assert [rule.text for rule in found.rules] == ["town = Ulm"]
        each = counts.loc[counts.index.repeat(counts["n"]), ["town"]]
        assert found.uncovered == pytest.approx(overlap_of(sample, each).uncovered)


class TestDesignWeightsOfTheSample:
    def test_rows_without_weight_cover_nothing(self):
        sample = pd.DataFrame({"town": ["Bonn", "Ulm"] * 200})
        population = pd.DataFrame({"town": ["Bonn", "Ulm"] * 500})
        weight = (sample["town"] == "Bonn").astype(float)
        (rule,) = overlap_of(sample, population, weight).rules
        assert rule.text == "town = Ulm"
        assert rule.sample_size == 200

    def test_a_stratum_drawn_less_often_is_not_blamed(self):
        # Its categories are drawn nine times less often than the others, and weigh as much more.
        for seed in range(10):
            random = np.random.default_rng(seed)
            probability = np.where(np.arange(200) < 100, 1.0, 9.0)
            chosen = random.choice(200, 1500, p=probability / probability.sum())
            sample = pd.DataFrame({"town": chosen.astype(str)})
            _, population = towns(random, 1, 3000)
            found = overlap_of(sample, population, 1 / probability[chosen])
            assert found.uncovered == 0

    def test_uneven_weights_make_an_absence_more_likely_to_be_chance(self):
        random = np.random.default_rng(0)
        sample, population = random.uniform(size=(300, 1)), random.uniform(0, 1.1, size=(3000, 1))
        assert overlap_of(sample, population).rules
        # Five rows carry half of the weight: what lies beyond 1 might be drawn as rarely as they.
        weight = np.append(np.ones(295), np.full(5, 59.0))
        assert overlap_of(sample, population, weight).rules == ()


def test_the_diagnosis_calls_an_even_draw_correctable():
    sample, population = towns(np.random.default_rng(1), 100, 2000)
    found = diagnose(sample, population)
    assert found.verdict.status != "not correctable"
    assert found.overlap.chance_sentence in found.to_markdown()
