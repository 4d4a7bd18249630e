"""Every public weighter on all ugly data: it gives proper weights or names what is wrong."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from tests.weighters.ugly_data import FACTORIES, Problem

import unskew
from unskew.weighters.base import Weighter


def one_half(X):
    return np.full(len(X), 0.5)


# Weighters that need an argument, and those with more than one way of working. All others are made
# without arguments, so that a new one is tested as soon as it is public.
CONSTRUCTED = {
    "ClassifierWeights": [unskew.ClassifierWeights(), unskew.ClassifierWeights("logistic")],
    "Tempered": [unskew.Tempered(unskew.TreeWeights(), power=0.5)],
    "FrequencyWeights": [unskew.FrequencyWeights(), unskew.FrequencyWeights(empty="drop")],
    "DensityRatioWeights": [
        unskew.DensityRatioWeights(),
        unskew.DensityRatioWeights("kl"),
        unskew.DensityRatioWeights(relative=0.2, bandwidth="paper"),
    ],
    "KernelMeanMatching": [
        unskew.KernelMeanMatching(),
        unskew.KernelMeanMatching(method="low-rank"),
    ],
    "KnownProbability": [unskew.KnownProbability(one_half)],
    "TreeWeights": [
        unskew.TreeWeights(),
        unskew.TreeWeights(min_samples_leaf=1),
        unskew.TreeWeights(honest=True),
    ],
}


# What fails today: a reason, then the weighters, and for each the names of its factories.
KNOWN: dict[str, dict[str, str]] = {}


def weighters() -> Iterator[Weighter]:
    for name in unskew.__all__:
        public = getattr(unskew, name)
        if inspect.isclass(public) and issubclass(public, Weighter):
            yield from CONSTRUCTED.get(name) or [public()]


def products() -> Iterator[object]:
    reasons = {
        (weighter, name): reason
        for reason, failures in KNOWN.items()
        for weighter, names in failures.items()
        for name in names.split()
    }
    for weighter in weighters():
        shown = str(weighter).partition(" at 0x")[0]
        for name, factory in FACTORIES.items():
            reason = reasons.pop((shown, name), None)
            marks = [pytest.mark.xfail(strict=True, reason=reason)] if reason else []
            yield pytest.param(weighter, factory, id=f"{shown}-{name}", marks=marks)
    assert not reasons, f"No such combination: {list(reasons)}"


def check_weights(weighter: Weighter, problem: Problem) -> None:
    m = len(problem.labels)
    weights = weighter.weights_
    assert weights.shape == (m,)
    assert np.isfinite(weights).all()
    assert (weights >= 0).all()
    assert weights.sum() == pytest.approx(m, rel=1e-9)
    assert 0 <= getattr(weighter, "uncovered_", 0.0) <= 1
    if hasattr(weighter, "weigh"):
        design = 1.0 if problem.sample_weight is None else np.asarray(problem.sample_weight)
        assert weighter.weigh(problem.sample) * design == pytest.approx(weights, rel=1e-9, abs=0)


def with_classes(problem: Problem) -> Problem:
    """Return the problem with two classes where its labels are numbers."""
    labels = np.asarray(problem.labels)
    if labels.ndim != 1 or labels.dtype.kind != "f" or not np.isfinite(labels).all():
        return problem
    return problem._replace(labels=np.where(labels > np.median(labels), "high", "low"))


def check_refusal(error: unskew.errors.UnskewError, problem: Problem) -> None:
    assert isinstance(error, problem.refused or unskew.errors.UnskewError)
    message = str(error)
    assert "\n" not in message
    if isinstance(
        error, unskew.errors.OverlapError
    ):  # the data are as they are: what can be changed?
        assert any(
            f"{name}=" in message for name in ("empty", "overlap", "columns", "on_infeasible")
        )
    else:
        assert problem.cause in message


@pytest.mark.parametrize(("weighter", "factory"), list(products()))
def test_proper_weights_or_a_clear_refusal(weighter, factory):
    problem = factory()
    if isinstance(weighter, unskew.LabelShiftWeights):
        problem = with_classes(problem)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            fitted = clone(weighter).fit(
                problem.sample,
                problem.labels,
                population=problem.population,
                sample_weight=problem.sample_weight,
            )
        except unskew.errors.UnskewError as error:
            check_refusal(error, problem)
        else:
            assert problem.refused is None
            check_weights(fitted, problem)
    for warning in caught:  # unskew's own point at the line that called it
        own = (
            unskew.errors.OverlapWarning
            | unskew.errors.UnseenValueWarning
            | unskew.errors.LabelShiftWarning
        )
        assert issubclass(warning.category, own | ConvergenceWarning)
        assert warning.filename == __file__, str(warning)
