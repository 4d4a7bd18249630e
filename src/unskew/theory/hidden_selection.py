"""How strong hidden selection would have to be to change a fitted model."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from unskew.errors import ParameterError
from unskew.theory.bound import Bound
from unskew.theory.certified import Given, Reach
from unskew.theory.fitted import check_reweighted
from unskew.theory.flips import Several
from unskew.theory.regions import HiddenRegion
from unskew.theory.wording import FLIPPED, FLIPPED_IN_POPULATION, Known

MOST_FLIPS = 0.05
"""The share of predictions beyond which a classifier counts as another one."""

AROUND = np.geomspace(0.6, 1.6, 16)
"""Log odds that are tried in the population, in units of those of the weighted sample."""

LARGEST_ODDS = 100.0
"""Odds up to which the limits are searched."""


def hidden_selection_certificate(
    reweighted_model: Any,
    odds: float = 1.5,
    *,
    X: Any = None,
    y: Any = None,
    population: Any = None,
) -> Bound:
    r"""Bound by how much selection for reasons outside the columns can have changed a model.

    The weights correct selection by the columns. If something hidden makes the odds of a row's
    selection larger or smaller, by a factor of at most Λ, its perfect weight differs from its
    weight by at most the same factor. The value bounds by how much the predictions then differ from
    those of the perfectly weighted model, as a root mean square over the weighted sample, whatever
    the hidden factors are. It holds the estimated weights for given, apart from that.

    Parameters
    ----------
    reweighted_model : Reweighted
        Fitted; its learner is one that :func:`certificate` covers. Any weighter will do.
    odds : float, default=1.5
        Λ, larger than 1.
    X, y : array-like, optional
        The sample as it was given to ``fit``; see :func:`certificate`.
    population : Population, or anything that :class:`unskew.Population` takes, optional
        For a classifier: to count whose prediction could flip, in two passes.

    Returns
    -------
    Bound
        Its terms hold the odds up to which the model moves by less than the spread of its
        predictions, and up to which at most 5 % of a classifier's predictions flip. Since they are
        from a bound, hidden selection would have to be at least that strong; they are 1 where
        no strength can be certified.

    Notes
    -----
    Over all weights within a factor of Λ, the norm of the gradient is bounded by a diagonal
    majorant of the rows' inner products, which is within a factor of :math:`\sqrt{\pi/2}` of the
    largest norm if the rows point in all directions.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from unskew import HistogramWeights, Reweighted
    >>> from unskew.theory import hidden_selection_certificate
    >>> random = np.random.default_rng(0)
    >>> population = random.normal(size=(4000, 1))
    >>> sample = population[random.uniform(size=4000) < np.where(population[:, 0] < 0, 0.2, 0.6)]
    >>> labels = sample[:, 0] + random.logistic(size=len(sample)) > 0
    >>> model = Reweighted(LogisticRegression(), HistogramWeights(buckets={0: [0.0]}))
    >>> model = model.fit(sample, labels, population=population)
    >>> bound = hidden_selection_certificate(model, 1.05, X=sample, y=labels)
    >>> bound.vacuous, 1 < bound.terms["odds up to which it moves less than its spread"] < 2
    (False, True)
    """
    if not math.isfinite(odds) or odds <= 1:
        raise ParameterError(f"odds must be a number larger than 1; got {odds!r}.")
    check_reweighted(reweighted_model)
    given = Given(reweighted_model, X, y, population, 1, 0)
    known = Known(
        headline="If what is hidden changes the odds of selection by a factor of at most "
        f"{odds:.4g}, it has moved",
        region=f"all weights within a factor of {odds:.4g}",
        assumptions=(
            "apart from what is hidden, the weights are right: errors of their estimation come in "
            "addition",
        ),
        remarks=(),
        terms={"odds": float(odds)},
    )
    found = given.certify(HiddenRegion(float(odds), len(given.rows)), known)
    spread = found.terms["spread of the predictions"]

    @cache
    def at(tried: float) -> Reach:
        return given.reach(HiddenRegion(tried, len(given.rows)))

    limits = {
        "odds up to which it moves less than its spread": _largest(
            lambda tried: at(tried).value < spread or at(tried).value == 0
        )
    }
    remarks = [
        "To move the model by more than the spread of its predictions, hidden selection would have "
        f"to change the odds by more than {next(iter(limits.values())):.3g}."
    ]
    if FLIPPED in found.terms:
        limit = _largest(lambda tried: at(tried).flips()[0] <= MOST_FLIPS)
        if FLIPPED_IN_POPULATION in found.terms:
            limit = _largest_in_population(given, at, limit)
        limits[f"odds up to which at most {100 * MOST_FLIPS:g} % flip"] = limit
        remarks.append(
            f"To flip more than {100 * MOST_FLIPS:g} % of its predictions, by more than "
            f"{limit:.3g}."
        )
    return replace(found, terms={**found.terms, **limits}, remarks=(*found.remarks, *remarks))


def _largest_in_population(given: Given, at: Callable[[float], Reach], near: float) -> float:
    """Return the largest odds at which few enough rows of the population flip, by one pass.

    They are searched among odds around those of the weighted sample.
    """
    tried = [math.exp(share * math.log(near)) for share in AROUND] if near > 1 else []
    if not tried:
        return 1.0
    rules = [at(one).flips()[1] for one in tried]
    shares = given.asked.flips(Several(rules), given.read)
    held = np.append(np.flatnonzero(shares > MOST_FLIPS), len(tried))[0]
    return tried[held - 1] if held else 1.0


def _largest(holds: Callable[[float], bool]) -> float:
    """Return the largest odds at which a statement holds, within about one per cent of Λ − 1."""
    low, high = 0.0, math.log(LARGEST_ODDS)
    if holds(math.exp(high)):
        return LARGEST_ODDS
    for _ in range(14):
        middle = (low + high) / 2 if low else high / 8
        low, high = (middle, high) if holds(math.exp(middle)) else (low, middle)
        if low and high - low < 0.02 * low:
            break
    return math.exp(low)
