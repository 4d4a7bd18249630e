"""The diagnosis: one pass over the population, then tests on rows drawn from it."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from threadpoolctl import threadpool_limits

from unskew.diagnostics.balance import measure_balance
from unskew.diagnostics.bounds import state_bounds
from unskew.diagnostics.columns import ColumnTotals
from unskew.diagnostics.comparison import Comparator
from unskew.diagnostics.diagnosis import Bias, Diagnosis, Provenance
from unskew.diagnostics.outcome import measure_outcome
from unskew.diagnostics.thresholds import THRESHOLDS
from unskew.diagnostics.verdict import reach_verdict
from unskew.diagnostics.weights import summarise_weights
from unskew.errors import InputError, ParameterError
from unskew.numerics.typing import FloatArray
from unskew.numerics.weight_vectors import check_design
from unskew.overlap import Overlap, measure_overlap
from unskew.population.open_sample import match_columns
from unskew.population.population import Population
from unskew.population.reservoir import Reservoir
from unskew.population.sample import Sample
from unskew.population.summaries import Summaries
from unskew.weighters.base import Family

EXAMINED_ROWS = 20_000


def diagnose(
    X: Any,
    population: Any,
    weights: Any = None,
    *,
    y: Any = None,
    sample_weight: ArrayLike | None = None,
    columns: Sequence[str] | Sequence[int] | Literal["shared"] | None = None,
    judge: Literal["auto", "trees", "smooth"] = "auto",
    examined_rows: int = EXAMINED_ROWS,
    random_state: int = 0,
) -> Diagnosis:
    """Diagnose whether a sample is biased, how much and where, and whether weights correct it.

    The population is read once. Means, variances, missing values and categories are computed from
    all of its rows; distributions, tests and regions from a uniform random sample of its rows.

    Parameters
    ----------
    X : array-like or dataframe of shape (n_samples, n_features)
        The sample.
    population : Population, or anything that :class:`unskew.Population` takes
        An unbiased reference sample of the population, with the same columns.
    weights : array-like of shape (n_samples,) or fitted weighter or Reweighted, optional
        The weights to judge. A fitted weighter also provides what the bounds need, its columns, and
        the family of classifiers that should judge it.
    y : array-like of shape (n_samples,), optional
        Labels: the diagnosis reports what the weights do to their mean, or to the shares of the
        classes; dates and times are left out.
    sample_weight : array-like of shape (n_samples,), optional
        Design weights of the sample: "before" is with these. ``weights`` include them already, as
        those of weighters do.
    columns : None, list or "shared", optional
        The columns to compare, as on weighters. By default those of a fitted weighter that is given
        as ``weights``, otherwise all of X, which the population must then have.
    judge : {"auto", "trees", "smooth"}, default="auto"
        The classifier that tries to separate sample and population: boosted trees, or a logistic
        regression on kernel features. "auto" uses a family that did not make the weights: trees
        without weights and for kernel weights, otherwise the smooth one.
    examined_rows : int, default=20000
        The number of population rows to draw.
    random_state : int, default=0
        Seeds the draws and the tests; the same value gives the same diagnosis on every engine.

    Returns
    -------
    Diagnosis

    Examples
    --------
    >>> import numpy as np
    >>> from unskew import diagnose
    >>> random = np.random.RandomState(0)
    >>> population = random.normal(size=(3000, 2))
    >>> answered = random.uniform(size=3000) < 1 / (1 + np.exp(-population[:, 0]))
    >>> found = diagnose(population[answered], population)
    >>> found.verdict.headline
    'The sample is biased, and weights can correct it.'
    >>> found.bias.features[0].name
    'x0'
    """
    _check_parameters(judge, examined_rows, random_state)
    given = Sample.of(X, sample_weight=sample_weight)
    if not len(given):
        raise InputError("X has no rows, so there is nothing to diagnose.")
    after = _given_weights(weights, len(given))
    weighter = getattr(weights, "weighter_", weights)
    columns = getattr(weighter, "columns_", None) if columns is None else columns
    sample, matched = match_columns(given, Population.of(population), columns)
    codes = sample.codes
    drawn = Reservoir(examined_rows, seed=random_state)
    totals = ColumnTotals(codes, sample.values)
    matched.reduce(Summaries([totals, drawn]))
    even = sample_weight is None and not matched.is_weighted
    # By default a family of classifiers that did not make the weights.
    other: Family = "trees" if weights is None else getattr(weighter, "judged_by", "smooth")
    family = other if judge == "auto" else judge
    bias, overlap, expected_share = _compare(sample, drawn, totals, after, family, even)
    summary = None if after is None else summarise_weights(after, sample.batch)
    return Diagnosis(
        verdict=reach_verdict(
            bias,
            overlap,
            summary,
            expected_share=expected_share,
            sample_rows=len(sample),
            population_rows=totals.rows,
            n_means=sum(max(1, codes.n_categories(column)) for column in range(len(codes.names))),
        ),
        bias=bias,
        overlap=overlap,
        weights=summary,
        bounds=() if after is None else state_bounds(after, weighter),
        sample_rows=len(sample),
        population_rows=totals.rows,
        examined_rows=len(drawn.weight),
        method=type(weighter).__name__ if hasattr(weights, "weights_") else None,
        thresholds=THRESHOLDS,
        provenance=_provenance(population, y),
        outcome=None if y is None else measure_outcome(y, sample.design, after),
    )


def _compare(
    sample: Sample,
    drawn: Reservoir,
    totals: ColumnTotals,
    after: FloatArray | None,
    family: Family,
    even: bool,
) -> tuple[Bias, Overlap, float]:
    """Compare the sample with the rows drawn; also return the effective share to be expected."""
    theirs = sample.codes.transform(drawn.rows, side="population").values
    _check_ranges(sample.codes.names, np.concatenate([sample.values, theirs]))
    comparison = Comparator(sample, theirs, drawn.weight, even, drawn.seed)
    with threadpool_limits(limits=1):  # the models are small: threads wait more than they work
        classifier, expected_share = comparison.discrimination(family, after)
        bias = Bias(
            features=measure_balance(sample, after, totals.columns, theirs, drawn.weight),
            mmd=comparison.discrepancy(after),
            classifier=classifier,
        )
        overlap = measure_overlap(sample, drawn, totals.rows, grow_on=5000)
    return bias, overlap, expected_share


def _provenance(population: Any, y: Any) -> Provenance:
    """Return what is known of the data: the path of the population, the name of a series."""
    path = str(population) if isinstance(population, str | PathLike) else None
    name = getattr(y, "name", None)
    return Provenance(population=path, target=name if isinstance(name, str) else None)


def _check_parameters(judge: str, examined_rows: Any, random_state: Any) -> None:
    if judge not in ("auto", "trees", "smooth"):
        raise ParameterError(f"judge must be 'auto', 'trees' or 'smooth'; got {judge!r}.")
    if not isinstance(examined_rows, int | np.integer) or examined_rows < 2:
        raise ParameterError(
            f"examined_rows must be a whole number above 1; got {examined_rows!r}."
        )
    if not isinstance(random_state, int | np.integer) or not 0 <= random_state < 2**32:
        raise ParameterError(
            f"random_state must be a whole number from 0 to 2**32 - 1; got {random_state!r}."
        )


def _check_ranges(names: Sequence[str], values: FloatArray) -> None:
    """Refuse columns whose largest and smallest value have no difference in floating point."""
    with np.errstate(over="ignore", invalid="ignore"):
        ranges = np.fmax.reduce(values, axis=0) - np.fmin.reduce(values, axis=0)
    for position in np.flatnonzero(np.isinf(ranges)):
        raise InputError(
            f"Column '{names[int(position)]}' spans more than floating point can hold. Rescale it."
        )


def _given_weights(weights: Any, n_rows: int) -> FloatArray | None:
    if weights is None:
        return None
    weights = getattr(weights, "weights_", weights)
    if hasattr(weights, "fit"):
        raise InputError(
            f"weights is {type(weights).__name__}, which has not been fitted: fit it to this "
            "sample first, or give an array of weights."
        )
    return check_design(weights, name="weights", n_rows=n_rows)
