"""What it takes to extend the package: one class each, and its line where things have names."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.base import clone

from unskew import CalibrationWeights, FrequencyWeights, Population, diagnose, estimate
from unskew.numerics.distances import Distance
from unskew.population import sources
from unskew.population.sources.base import StreamedSource
from unskew.weighters.base import Traits
from unskew.weighters.inductive import InductiveWeighter

RANDOM = np.random.default_rng(0)
PEOPLE = pd.DataFrame({"age": RANDOM.normal(40, 12, 4000), "town": RANDOM.choice(list("ab"), 4000)})
SAMPLE = PEOPLE[RANDOM.uniform(size=4000) < 1 / (1 + np.exp(PEOPLE["age"] / 10 - 3.5))]


class EmpiricalLikelihood(Distance):
    """F(u) = 1 / (1 − u): the weights of largest empirical likelihood."""

    def factors(self, scores):
        return np.where(scores < 1, 1 / np.maximum(1 - scores, 1e-12), np.inf)

    def potential(self, scores):
        return np.where(scores < 1, -np.log(np.maximum(1 - scores, 1e-300)), np.inf)

    def slopes(self, scores):
        return self.factors(scores) ** 2

    def inverse(self, factors):
        with np.errstate(divide="ignore"):
            return 1 - 1 / np.asarray(factors, float)


def test_a_distance_is_a_class():
    weighter = CalibrationWeights(distance=EmpiricalLikelihood(), features="means")
    weighter.fit(SAMPLE, population=PEOPLE)
    weights = weighter.weights_
    assert np.average(SAMPLE["age"], weights=weights) == pytest.approx(PEOPLE["age"].mean())
    # The inverse of such weights is linear in the features.
    features = np.column_stack([np.ones(len(SAMPLE)), SAMPLE["age"], SAMPLE["town"] == "a"])
    features = features.astype(float)
    fitted = features @ np.linalg.lstsq(features, 1 / weights, rcond=None)[0]
    assert fitted == pytest.approx(1 / weights, rel=1e-6)
    found = estimate(SAMPLE, SAMPLE["age"], population=PEOPLE, weighter=weighter)
    assert found.value == pytest.approx(PEOPLE["age"].mean())


class TwiceTheOthers(InductiveWeighter):
    """Rows of one town count twice: the least that a weighter must write."""

    town: str = "a"

    traits = Traits(
        assumes="rows of one town were half as likely to be selected as others",
        uncovered_means="nothing is said of the share of the population that is not covered",
    )

    def _question(self, sample, about):
        return None

    def _solve(self, sample, answer):
        self.uncovered_ = 0.0
        return sample.design * self._weigh(sample)

    def _weigh(self, sample):
        return 1.0 + np.array(
            [town == self.town for town in sample.batch.column("town").to_pylist()]
        )


def test_a_weighter_is_a_class():
    weighter = TwiceTheOthers(town="b").fit(
        SAMPLE, population=PEOPLE, sample_weight=np.ones(len(SAMPLE))
    )
    expected = np.where(SAMPLE["town"] == "b", 2.0, 1.0)
    assert weighter.weights_ == pytest.approx(expected * len(SAMPLE) / expected.sum())
    assert clone(weighter).get_params()["town"] == "b"
    assert weighter.weigh(SAMPLE) == pytest.approx(weighter.weights_)
    found = estimate(SAMPLE, SAMPLE["age"], population=PEOPLE, weighter=weighter)
    assert found.value == pytest.approx(np.average(SAMPLE["age"], weights=expected))
    assert diagnose(SAMPLE, population=PEOPLE, weights=weighter).verdict.headline


class Ledger:
    """Rows of a library that the package does not know."""

    def __init__(self, rows):
        self.rows = rows


class LedgerSource(StreamedSource):
    def __init__(self, data):
        self.table = pa.Table.from_pandas(data.rows, preserve_index=False)
        self.schema = self.table.schema

    def batches(self, columns):
        return self.table.select(columns).to_batches(max_chunksize=700)


def test_an_engine_is_a_class_and_a_line(monkeypatch):
    library = Ledger.__module__.split(".")[0]
    monkeypatch.setitem(sources.ENGINES, (library, "Ledger"), LedgerSource)
    weights = FrequencyWeights(columns=["town"])
    found = clone(weights).fit(SAMPLE, population=Population(Ledger(PEOPLE))).weights_
    assert np.array_equal(found, clone(weights).fit(SAMPLE, population=PEOPLE).weights_)
