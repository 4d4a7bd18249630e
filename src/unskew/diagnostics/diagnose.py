"""The diagnosis: one pass over the population, then tests on rows drawn from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike
from threadpoolctl import threadpool_limits

from unskew.diagnostics.balance import measure_balance
from unskew.diagnostics.columns import ColumnTotals
from unskew.diagnostics.diagnosis import (
    Bias,
    BoundStatement,
    Comparison,
    Diagnosis,
    Outcome,
    TwoSampleTest,
)
from unskew.diagnostics.discrepancy import MAX_ROWS as MMD_ROWS
from unskew.diagnostics.discrepancy import N_RESAMPLES, MaximumMeanDiscrepancy
from unskew.diagnostics.discrimination import MAX_ROWS as CLASSIFIER_ROWS
from unskew.diagnostics.discrimination import Family, classifier_two_sample_test, draw_rows
from unskew.diagnostics.thresholds import THRESHOLDS
from unskew.diagnostics.verdict import reach_verdict
from unskew.diagnostics.weights import summarise_weights
from unskew.errors import InputError, ParameterError
from unskew.numerics.typing import BoolArray, FloatArray, IntArray
from unskew.numerics.weight_vectors import check_design
from unskew.population.encode import ColumnCodes, FeatureSpace
from unskew.population.population import Population
from unskew.population.rows import as_rows
from unskew.population.summaries import Reservoir, Summaries
from unskew.theory import cluster_distance_bound, importance_weighting_bound
from unskew.theory.bound import Bound
from unskew.weighters.base import checked_labels
from unskew.weighters.cells import CellWeighter
from unskew.weighters.overlap import bounded, measure_overlap

__all__ = ["diagnose"]

EXAMINED_ROWS = 20_000
MAX_CLASSES = 20


def diagnose(
    X: Any,
    population: Any,
    weights: Any = None,
    *,
    y: Any = None,
    sample_weight: ArrayLike | None = None,
    judge: Literal["auto", "trees", "smooth"] = "auto",
    examined_rows: int = EXAMINED_ROWS,
    random_state: int = 0,
) -> Diagnosis:
    """Say whether a sample is biased, how badly and where, and whether weights mend it.

    The population is read once. Means, variances, missing values and categories are counted over
    all of its rows; distributions, tests and regions go by rows drawn evenly from it.

    Parameters
    ----------
    X : array-like or dataframe of shape (n_samples, n_features)
        The sample.
    population : Population, or anything that :class:`unskew.Population` takes
        Rows drawn as the world draws them, with the same columns.
    weights : array-like of shape (n_samples,) or fitted weighter or Reweighted, optional
        To be judged. A fitted weighter also tells the theory what it needs, and the classifier
        which family of models made the weights.
    y : array-like of shape (n_samples,), optional
        Labels: what the weights do to their mean, or to the shares of the classes, is told; of
        dates and times nothing is.
    sample_weight : array-like of shape (n_samples,), optional
        Design weights of the sample: "before" is with these. The weights contain them already, as
        weighters make them.
    judge : {"auto", "trees", "smooth"}, default="auto"
        Which classifier tries to tell sample and population apart: boosted trees, or a logistic
        regression on kernel features. "auto" takes a family that did not make the weights: trees
        without weights and for kernel mean matching, otherwise the smooth one.
    examined_rows : int, default=20000
        How many population rows to draw.
    random_state : int, default=0
        Of the draws and the tests; the same everywhere gives the same diagnosis.

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
    rows = as_rows(X, name="X")
    if not len(rows):
        raise InputError("X has no rows, so there is nothing to diagnose.")
    batch = rows.batch
    before = check_design(sample_weight, name="sample_weight", n_rows=len(rows))
    after, method = _given_weights(weights, len(rows))
    codes = ColumnCodes().fit(batch)
    sample = codes.transform(batch, side="sample").values
    drawn = Reservoir(examined_rows, seed=random_state)
    totals = ColumnTotals(codes, sample)
    matched = Population.of(population).matched(rows)
    matched.reduce(Summaries([totals, drawn]))
    theirs = codes.transform(drawn.rows, side="population").values
    _check_ranges(codes.names, np.concatenate([sample, theirs]))
    even = sample_weight is None and not matched.is_weighted
    family: Family = judge if judge != "auto" else _other_family(weights)
    comparison = _Compared(
        batch, drawn.rows, codes, sample, theirs, before, drawn.weight, even, random_state
    )
    with threadpool_limits(limits=1):  # the models are small: threads wait more than they work
        classifier, expected_share = comparison.discrimination(family, after)
        bias = Bias(
            features=measure_balance(
                codes, totals.columns, sample, before, after, theirs, drawn.weight
            ),
            mmd=comparison.discrepancy(after),
            classifier=classifier,
        )
        overlap = measure_overlap(
            batch.filter(pa.array(before > 0)),
            drawn.rows,
            drawn.weight,
            whole=totals.rows == len(drawn.weight),
            grow_on=5000,
            seed=random_state,
        )
    summary = None if after is None else summarise_weights(after, batch)
    return Diagnosis(
        verdict=reach_verdict(
            bias,
            overlap,
            summary,
            expected_share=expected_share,
            sample_rows=len(rows),
            population_rows=totals.rows,
            n_means=sum(max(1, codes.n_categories(column)) for column in range(len(codes.names))),
        ),
        bias=bias,
        overlap=overlap,
        weights=summary,
        bounds=() if after is None else _bounds(after, weights),
        sample_rows=len(rows),
        population_rows=totals.rows,
        examined_rows=len(drawn.weight),
        method=method,
        thresholds=THRESHOLDS,
        outcome=None if y is None else _outcome(y, len(rows), before, after),
    )


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


def _given_weights(weights: Any, n_rows: int) -> tuple[FloatArray | None, str | None]:
    if weights is None:
        return None, None
    method = None
    if hasattr(weights, "weights_"):
        method = type(getattr(weights, "weighter_", weights)).__name__
        weights = weights.weights_
    elif hasattr(weights, "fit"):
        raise InputError(
            f"weights is {type(weights).__name__}, which has not been fitted: fit it to this "
            "sample first, or give an array of weights."
        )
    return check_design(weights, name="weights", n_rows=n_rows), method


def _other_family(weights: Any) -> Family:
    weighter = getattr(weights, "weighter_", weights)
    if weights is None or type(weighter).__name__ == "KernelMeanMatching":
        return "trees"
    return "smooth"


class _Compared:
    """Sample and drawn rows, ready for the tests."""

    def __init__(
        self,
        batch: pa.RecordBatch,
        drawn: pa.RecordBatch,
        codes: ColumnCodes,
        sample: FloatArray,
        theirs: FloatArray,
        before: FloatArray,
        drawn_weight: FloatArray,
        even: bool,
        seed: int,
    ) -> None:
        self._batch, self._drawn, self._codes = batch, drawn, codes
        self._values = sample, theirs
        self._before, self._drawn_weight = before, drawn_weight
        self._even = even
        self._seed = seed

    def discrepancy(self, after: FloatArray | None) -> TwoSampleTest:
        mine = draw_rows(self._before, MMD_ROWS, self._seed)
        theirs = draw_rows(self._drawn_weight, MMD_ROWS, self._seed + 1)
        test = MaximumMeanDiscrepancy(*self._points(mine, theirs), seed=self._seed)

        def wild(given: FloatArray) -> Comparison:
            chosen = draw_rows(given, MMD_ROWS, self._seed)
            judge = test
            if not np.array_equal(chosen, mine):  # some rows have no weight now
                judge = MaximumMeanDiscrepancy(*self._points(chosen, theirs), seed=self._seed)
            return judge.wild_bootstrap_test(given[chosen], self._drawn_weight[theirs])

        by = "swapping rows between the two" if self._even else "flipping signs at random"
        return TwoSampleTest(
            name="maximum mean discrepancy",
            method=(
                f"Gaussian kernel with the median distance as its width, {len(mine):,} sample rows "
                f"and {len(theirs):,} of the population; p by {by} {N_RESAMPLES} times"
                + ("" if after is None else ", with weights by flipping signs, weights as given")
                + "."
            ),
            before=test.permutation_test() if self._even else wild(self._before),
            after=None if after is None else wild(after),
        )

    def discrimination(
        self, family: Family, after: FloatArray | None
    ) -> tuple[TwoSampleTest, float]:
        theirs = draw_rows(self._drawn_weight, CLASSIFIER_ROWS, self._seed + 1)

        def told_apart(given: FloatArray) -> tuple[Comparison, FloatArray, FloatArray, int]:
            mine = draw_rows(given, CLASSIFIER_ROWS, self._seed)
            values, categories = self._judged_values(family, mine, theirs)
            weight = np.concatenate([given[mine], self._drawn_weight[theirs]])
            is_sample = np.arange(len(weight)) < len(mine)
            found = classifier_two_sample_test(
                family, values, is_sample, weight, categories=categories, seed=self._seed
            )
            return *found, weight, len(mine)

        before, log_odds, weight, n_mine = told_apart(self._before)
        is_sample = np.arange(len(weight)) < n_mine
        by = "boosted trees" if family == "trees" else "logistic regression on kernel features"
        test = TwoSampleTest(
            name="classifier",
            method=(
                f"{by}, each fold scored by a model of those before; {n_mine:,} sample rows "
                f"and {len(theirs):,} of the population; area under the curve, with a 95 % interval"
            ),
            before=before,
            after=None if after is None else told_apart(after)[0],
        )
        # Odds of population over sample are weights in the making. With weights w of mean one on
        # the sample, E_S[w²] = E_U[w], and the latter is not raised by noise in the odds.
        scored = np.isfinite(log_odds)
        if not scored.any():
            return test, 1.0
        odds = np.exp(np.clip(-log_odds, -20, 20))
        on_sample, on_population = (
            np.average(odds[side], weights=weight[side])
            for side in (scored & is_sample, scored & ~is_sample)
        )
        return test, min(1.0, float(on_sample / on_population))

    def _judged_values(
        self, family: Family, mine: IntArray, theirs: IntArray
    ) -> tuple[FloatArray, BoolArray]:
        """Return the rows as the classifier sees them, and which columns are categories."""
        if family == "smooth":
            points = np.concatenate(self._points(mine, theirs))
            return points, np.zeros(points.shape[1], dtype=bool)
        values = np.concatenate([self._values[0][mine], self._values[1][theirs]])
        categories = np.array([self._few_categories(column) for column in range(values.shape[1])])
        return np.where(categories & (values < 0), np.nan, values), categories

    def _few_categories(self, column: int) -> bool:
        n_categories = self._codes.n_categories(column)
        return self._codes.counts_categories(column) and 0 < n_categories <= 200

    def _points(self, mine: Any, theirs: Any) -> tuple[FloatArray, FloatArray]:
        space = FeatureSpace(scaling="standard").fit(self._batch)
        points = space.transform(self._batch.take(pa.array(mine)), side="sample").values
        others = space.transform(self._drawn.take(pa.array(theirs)), side="population").values
        return bounded(points), bounded(others)


def _bounds(weights: FloatArray, given: Any) -> tuple[BoundStatement, ...]:
    """Return what the theory says, where it applies."""
    bounds: list[Bound] = [importance_weighting_bound(weights)]
    weighter = getattr(given, "weighter_", given)
    if isinstance(weighter, CellWeighter):
        counted = weighter.sample_counts_ > 0
        population, sample = weighter.population_counts_[counted], weighter.sample_counts_[counted]
        whole = all((c == np.round(c)).all() for c in (population, sample))
        if whole and (sample <= population).all():  # the sample is part of the population
            bounds.append(
                cluster_distance_bound(
                    population_counts=population, sample_counts=sample, norm="l1"
                )
            )
    return tuple(
        BoundStatement(
            theorem=bound.reference,
            statement=f"{bound.statement}: "
            + (f"at most {float(bound):.3g}." if np.isfinite(float(bound)) else "no bound.")
            + (f" This says nothing: {bound.reason}." if bound.vacuous and bound.reason else ""),
            value=float(bound),
            vacuous=bound.vacuous,
            assumptions=bound.assumptions,
        )
        for bound in bounds
    )


def _outcome(y: Any, n_rows: int, before: FloatArray, after: FloatArray | None) -> Outcome | None:
    labels = checked_labels(y, n_rows)
    if np.asarray(y).dtype.kind in "mM":  # a mean of dates in days says nothing to a reader
        return None
    if labels.ndim > 1:
        raise InputError(f"y must be one label per row; got shape {labels.shape}.")
    distinct, place = np.unique(labels, return_inverse=True)
    is_class = labels.dtype.kind not in "fiu" or (labels.dtype.kind in "iu" and len(distinct) <= 2)
    if is_class:
        common = np.argsort(-np.bincount(place), kind="stable")[:MAX_CLASSES]
        columns = (place[:, None] == common).astype(np.float64)
        names = tuple(str(distinct[rank]) for rank in common)
        if len(common) < len(distinct):
            columns = np.column_stack([columns, 1.0 - columns.sum(axis=1)])
            names = (*names, "(other)")
    else:
        columns, names = labels.astype(np.float64)[:, None], ("mean",)
    (mean, error), (mean_after, error_after) = (
        (None, None) if weight is None else _weighted_means(columns, weight)
        for weight in (before, after)
    )
    assert mean is not None
    assert error is not None
    return Outcome("shares" if is_class else "mean", names, mean, error, mean_after, error_after)


def _weighted_means(
    columns: FloatArray, weight: FloatArray
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    share = weight / weight.sum()
    mean = share @ columns
    error = np.sqrt(share**2 @ (columns - mean) ** 2)  # of a ratio, to first order
    return tuple(mean.tolist()), tuple(error.tolist())
