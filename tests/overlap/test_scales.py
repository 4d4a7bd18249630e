"""A scaler before a weighter in a pipeline is noticed; strong selection is not taken for one."""

from __future__ import annotations

import contextlib
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

from unskew import (
    AutoWeights,
    CalibrationWeights,
    FrequencyWeights,
    HistogramWeights,
    LabelShiftWeights,
    Population,
    Reweighted,
    TreeWeights,
)
from unskew.errors import ColumnWarning, UnskewError

RANDOM = np.random.default_rng(0)
N = 3000
U = pd.DataFrame(
    {
        "age": RANDOM.normal(45, 15, N),
        "income": RANDOM.lognormal(10, 1, N),
        "children": RANDOM.poisson(1.5, N),
        "member": RANDOM.integers(0, 2, N),
    }
)
S = U[RANDOM.uniform(size=N) < 0.5 / (1 + np.exp(-(U["age"] - 45) / 15))]
Y = RANDOM.integers(0, 2, len(S))


def columns_named(fit):
    """Return the columns that the warning names, or None without one."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with contextlib.suppress(UnskewError):  # no weights may exist; the warning comes before
            fit()
    found = [one.message for one in caught if "looks scaled" in str(one.message)]
    assert all(isinstance(one, ColumnWarning) for one in found)
    return found[0].columns if found else None


@pytest.mark.parametrize("scaler", [StandardScaler(), MinMaxScaler(), MaxAbsScaler()], ids=str)
@pytest.mark.parametrize(
    "weighter",
    [
        AutoWeights(),
        CalibrationWeights(overlap="ignore"),
        FrequencyWeights(),
        HistogramWeights(),
        LabelShiftWeights(),
        TreeWeights(),
    ],
    ids=lambda one: type(one).__name__,
)
def test_a_scaler_before_a_weighter(weighter, scaler):
    name = f"{type(weighter).__name__.lower()}__population"
    pipeline = make_pipeline(scaler, weighter)
    given = S.to_numpy()
    found = columns_named(lambda: pipeline.fit(given, Y, **{name: U.to_numpy()}))
    assert found[:2] == ["x0", "x1"]
    # The same by a pass over rows that are not in memory at once.
    parts = Population(iter([U.to_numpy()[:2000], U.to_numpy()[2000:]]))
    assert columns_named(lambda: pipeline.fit(given, Y, **{name: parts})) == found
    assert columns_named(lambda: weighter.fit(S, Y, population=U)) is None


def test_a_scaler_before_a_learner():
    model = make_pipeline(StandardScaler(), Reweighted(LogisticRegression(), TreeWeights()))
    fit = model.fit
    assert columns_named(lambda: fit(S.to_numpy(), Y, reweighted__population=U.to_numpy()))
    inside = Reweighted(make_pipeline(StandardScaler(), LogisticRegression()), TreeWeights())
    assert columns_named(lambda: inside.fit(S, Y, population=U)) is None


@pytest.mark.parametrize("fitted_on", [S, U], ids=["sample", "population"])
def test_both_sides_scaled_alike_are_no_mistake(fitted_on):
    scaler = StandardScaler().fit(fitted_on)
    sample, population = scaler.transform(S), scaler.transform(U)
    assert columns_named(lambda: TreeWeights().fit(sample, Y, population=population)) is None


def test_strong_selection_is_none():
    for seed in range(60):
        random = np.random.default_rng(seed)
        population = random.normal(size=(2000, 1 + seed % 3)) * 30.0 ** (seed % 2)
        sample = population[population[:, 0] > 1.5 * 30.0 ** (seed % 2)]
        y = random.integers(0, 2, len(sample))
        fit = TreeWeights(overlap="ignore").fit
        assert columns_named(lambda: fit(sample, y, population=population)) is None  # noqa: B023


def test_indicators_and_few_rows_are_none():
    flags = np.tile([[0.0], [1.0]], (20, 1))
    counts = np.arange(100.0).reshape(-1, 1)
    assert columns_named(lambda: TreeWeights().fit(flags, flags[:, 0], population=counts)) is None
    pair = np.array([[-1.0], [1.0]])
    fit = TreeWeights(min_samples_leaf=1).fit
    assert columns_named(lambda: fit(pair, [0, 1], population=counts)) is None
