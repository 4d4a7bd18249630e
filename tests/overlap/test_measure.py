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
    OverlapError,
    OverlapWarning,
    ParameterError,
    Population,
    Reweighted,
    TreeWeights,
    Unweighted,
    diagnose,
)
from unskew.overlap import measure_overlap
from unskew.population import Reservoir, Sample

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
    overlap = measure_overlap(Sample.of(sample[keep(sample)]), drawn, n)
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
