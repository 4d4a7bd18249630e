"""Every public weighter on all ugly data: it gives proper weights or names what is wrong."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from tests.weighters.catalogue import REWEIGHTED, WEIGHTERS, labels_for, shown, to_sample
from tests.weighters.ugly_data import FACTORIES, Problem

import unskew
from unskew.weighters.base import Weighter

# What fails today: a reason, then the weighters, and for each the names of its factories.
KNOWN: dict[str, dict[str, str]] = {}


def products() -> Iterator[object]:
    reasons = {
        (weighter, name): reason
        for reason, failures in KNOWN.items()
        for weighter, names in failures.items()
        for name in names.split()
    }
    for weighter in [*WEIGHTERS, REWEIGHTED]:
        for name, factory in FACTORIES.items():
            reason = reasons.pop((shown(weighter), name), None)
            marks = [pytest.mark.xfail(strict=True, reason=reason)] if reason else []
            yield pytest.param(weighter, factory, id=f"{shown(weighter)}-{name}", marks=marks)
    assert not reasons, f"No such combination: {list(reasons)}"


def check_weights(weighter: Weighter, problem: Problem) -> None:
    m = len(problem.labels)
    weights = weighter.weights_
    assert weights.shape == (m,)
    assert np.isfinite(weights).all()
    assert (weights >= 0).all()
    assert weights.sum() == pytest.approx(m, rel=1e-9)
    assert 0 <= getattr(weighter, "uncovered_", 0.0) <= 1
    if isinstance(weighter, Weighter) and hasattr(weighter, "weigh"):
        design = 1.0 if problem.sample_weight is None else np.asarray(problem.sample_weight)
        assert weighter.weigh(problem.sample) * design == pytest.approx(weights, rel=1e-9, abs=0)


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


def check_refusal_by_learner(error: Exception, weighter: object, problem: Problem) -> None:
    """Check that the learner says the same without any weights: these are its own words."""
    assert isinstance(weighter, unskew.Reweighted)
    with pytest.raises(type(error)) as alone:
        clone(weighter.estimator).fit(problem.sample, problem.labels)
    assert str(alone.value) == str(error)


@pytest.mark.parametrize(("weighter", "factory"), list(products()))
def test_proper_weights_or_a_clear_refusal(weighter, factory):
    problem = factory()
    problem = problem._replace(labels=labels_for(weighter, problem.labels))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            fitted = to_sample(weighter).fit(
                problem.sample,
                problem.labels,
                population=problem.population,
                sample_weight=problem.sample_weight,
            )
        except unskew.errors.UnskewError as error:
            check_refusal(error, problem)
        except (ValueError, TypeError) as error:  # a learner may refuse its rows
            check_refusal_by_learner(error, weighter, problem)
        else:
            assert problem.refused is None
            check_weights(fitted, problem)
    own = (
        unskew.errors.OverlapWarning
        | unskew.errors.UnseenValueWarning
        | unskew.errors.LabelShiftWarning
    )
    for warning in caught:  # unskew's own point at the line that called it
        if isinstance(weighter, unskew.Reweighted) and not issubclass(warning.category, own):
            continue  # the learner's
        assert issubclass(warning.category, own | ConvergenceWarning)
        assert warning.filename == __file__, str(warning)
