"""The diagnosis: one pass over the population, then tests on rows drawn from it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike
from threadpoolctl import threadpool_limits

from unskew.diagnostics.advice import Circumstances, advised_verdict, with_next_step
from unskew.diagnostics.balance import measure_balance
from unskew.diagnostics.columns import ColumnTotals
from unskew.diagnostics.comparison import Comparator
from unskew.diagnostics.diagnosis import Bias, BoundStatement, Diagnosis, Outcome, Provenance
from unskew.diagnostics.features import FeatureBalance
from unskew.diagnostics.held_out import Judged, weights_to_judge
from unskew.diagnostics.known_margins import measure_margins, reach_margin_verdict
from unskew.diagnostics.relation import scored
from unskew.diagnostics.sides import Sides, different_together
from unskew.diagnostics.thresholds import THRESHOLDS
from unskew.diagnostics.verdict import Forecast, follows_rows, is_separable, limits_of
from unskew.diagnostics.weights import summarise_weights
from unskew.errors import InputError, ParameterError
from unskew.numerics.typing import FloatArray
from unskew.numerics.weight_vectors import check_design, effective_sample_size
from unskew.overlap import Overlap, measure_overlap
from unskew.population.margins import Margins
from unskew.population.open_sample import match_columns, named_columns_apart, open_sample
from unskew.population.population import Population, progress_of
from unskew.population.progress import tell, watching
from unskew.population.reservoir import Reservoir
from unskew.population.summaries import OfColumns, Summaries
from unskew.rows.doubtful_columns import (
    determined_by,
    doubtful_columns,
    warn_of_doubtful_columns,
)
from unskew.rows.labels import checked_labels
from unskew.rows.sample import Sample
from unskew.weighters.base import Family, Traits, Weighter

EXAMINED_ROWS = 20_000


def diagnose(
    X: Any,
    population: Any,
    weights: Any = None,
    *,
    y: Any = None,
    sample_weight: ArrayLike | str | None = None,
    columns: Sequence[str] | Sequence[int] | Literal["shared"] | None = None,
    judge: Literal["auto", "trees", "smooth"] = "auto",
    examined_rows: int = EXAMINED_ROWS,
    random_state: int = 0,
) -> Diagnosis:
    """Diagnose whether a sample is biased, how much and where, and whether weights correct it.

    The population is read once. Means, variances, missing values and categories are computed from
    all of its rows; distributions, tests and regions from a uniform random sample of its rows.

    Where the sample is part of the population, its rows are recognised: by the marks of
    ``Population(selected=...)``, or by their values if far more of them occur in the population
    than chance explains. Each then counts as one row. Otherwise the sample is taken to be drawn
    apart from the population's rows; if it was not, the tests find less.

    Parameters
    ----------
    X : array-like or dataframe of shape (n_samples, n_features)
        The sample.
    population : Population, Margins, or anything that :class:`unskew.Population` takes
        An unbiased reference sample of the population, with the same columns. Of margins, only
        what they know is compared: there are no rows to test or to search for overlap.
    weights : array-like of shape (n_samples,) or fitted weighter or Reweighted, optional
        The weights to judge. A fitted weighter also provides what the bounds need, its columns, and
        the family of classifiers that should judge it. One that can weigh new rows is tested on
        rows held out: it is fitted five times, each time to four fifths of the sample and the
        population rows examined, unless its weights are cross-fitted. If it needs labels, give
        ``y`` too.
    y : array-like of shape (n_samples,), or the name of a column of X, optional
        Labels: the diagnosis reports what the weights do to their mean, or to the shares of the
        classes; dates and times are left out.
    sample_weight : array-like of shape (n_samples,), or the name of a column of X, optional
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
    settings = _Settings(columns, judge, examined_rows, random_state)
    X, y, sample_weight = named_columns_apart(X, y, sample_weight, refused_by="a diagnosis")
    given = Sample.of(X, sample_weight=sample_weight)
    with watching(progress_of(population)):
        return _diagnose(given, population, weights, y, settings)


class FitToDiagnose:
    """A fit whose pass over the population also answers what the diagnosis of it asks.

    The sample is encoded once for both, and overlap is measured once: the diagnosis takes it from
    the fit, where that measures it as a diagnosis does.

    Parameters
    ----------
    weighter : Weighter
        It is fitted.
    X, y, population, sample_weight
        As in :meth:`Weighter.fit`.
    """

    def __init__(
        self,
        weighter: Weighter,
        X: Any,
        *,
        population: Population | Margins,
        y: Any = None,
        sample_weight: ArrayLike | None = None,
    ) -> None:
        self._weighter, self._population, self._y = weighter, population, y
        self._given = open_sample(X, y, sample_weight)
        self._asked: list[OfColumns[Summaries]] = []

    def fit(self, *, diagnosed: bool = True, replicates: int = 0, **design: Any) -> Any:
        """Fit the weighter, and ask what its diagnosis needs if it is to be ``diagnosed``.

        Returns ``replicates`` of the weights, drawn in the ``design``; None if there are none.
        """
        if diagnosed and isinstance(self._population, Population):
            sample, _ = self._weighter._matched(self._given, self._population)
            question = _question(sample, EXAMINED_ROWS, 0)
            self._asked = [OfColumns(sample.rows.table.column_names, question)]
        if replicates:
            from unskew.estimation.weighing import fit_with_replicates

            return fit_with_replicates(
                self._weighter,
                self._given,
                None,
                self._population,
                None,
                replicates=replicates,
                beside=self._asked,
                **design,
            )
        self._weighter._fit(self._given, None, self._population, beside=self._asked)
        return None

    def diagnose(self, *, whole: bool = True) -> Diagnosis:
        """Return the diagnosis; if it is not ``whole``, as far as the verdict needs it."""
        known = self._weighter.overlap in ("warn", "ignore")
        overlap = None if known else self._weighter.overlap_
        settings = _Settings(None, "auto", EXAMINED_ROWS, 0, overlap=overlap, whole=whole)
        answered = self._asked[0].summary if self._asked else None
        with watching(progress_of(self._population)):
            return _diagnose(
                self._given, self._population, self._weighter, self._y, settings, answered
            )


@dataclass(frozen=True)
class _Settings:
    """How to diagnose: the parameters of :func:`diagnose`, and what is known or not wanted."""

    columns: Sequence[str] | Sequence[int] | Literal["shared"] | None
    judge: Literal["auto", "trees", "smooth"]
    examined_rows: int
    seed: int
    overlap: Overlap | None = None
    """As it was measured already."""
    whole: bool = True
    """Whether bounds and what the weights do to the labels are wanted."""


def _diagnose(
    given: Sample,
    population: Any,
    weights: Any,
    y: Any,
    settings: _Settings,
    answered: Summaries | None = None,
) -> Diagnosis:
    """Diagnose; the question is asked here unless it is ``answered`` already."""
    if not len(given):
        raise InputError("X has no rows, so there is nothing to diagnose.")
    after = _given_weights(weights, len(given))
    weighter, columns = getattr(weights, "weighter_", weights), settings.columns
    columns = getattr(weighter, "columns_", None) if columns is None else columns
    if isinstance(population, Margins):
        return _diagnose_margins(given, population, columns, after, weights, y)
    sample, matched = match_columns(given, Population.of(population), columns)
    doubts = doubtful_columns(sample.batch)
    if not hasattr(weighter, "columns_") and (columns is None or isinstance(columns, str)):
        warn_of_doubtful_columns(doubts)
    if answered is None:
        answered = matched.reduce(_question(sample, settings.examined_rows, settings.seed))
    totals, drawn = answered.parts
    pa.default_memory_pool().release_unused()  # copies that were made on the way
    even = bool((sample.design == 1).all()) and not matched.is_weighted
    judged = None if after is None else weights_to_judge(weighter, after, sample, y, drawn)
    family = _family_of(settings.judge, weights, weighter)
    bias, overlap, forecast = _compare(
        sample, drawn, totals, after, judged, family, even, settings.overlap
    )
    summary = None if after is None else summarise_weights(after, sample.batch)
    fitted = weighter if hasattr(weights, "weights_") else None
    compared = bias, overlap, forecast
    codes = sample.codes
    n_means = sum(max(1, codes.n_categories(column)) for column in range(len(codes.names)))
    limits = limits_of(summary, totals.rows, n_means)
    verdict = advised_verdict(
        sample, totals.rows, limits, compared, summary, fitted, doubts, y, after, drawn
    )
    hints = _hints(sample, totals.rows, even, y)
    verdict = replace(verdict, sentences=(*verdict.sentences, *hints))
    outcome: Outcome | None = None
    bounds: tuple[BoundStatement, ...] = ()
    if settings.whole:
        outcome, bounds = _consequences(weighter, after, sample, matched, drawn, y)
    return Diagnosis(
        verdict=verdict,
        bias=bias,
        overlap=overlap,
        weights=summary,
        bounds=bounds,
        sample_rows=len(sample),
        population_rows=totals.rows,
        examined_rows=len(drawn.weight),
        method=None if fitted is None else type(fitted).__name__,
        thresholds=limits,
        provenance=_provenance(population, y),
        outcome=outcome,
    )


def _consequences(
    weighter: Any,
    after: FloatArray | None,
    sample: Sample,
    known: Population | Margins,
    drawn: Reservoir | None,
    y: Any,
) -> tuple[Outcome | None, tuple[BoundStatement, ...]]:
    """Return what the weights do to the labels, and the bounds that they have."""
    # Here, because a verdict alone needs neither, and they import a good part of unskew.
    from unskew.diagnostics.bounds import state_bounds
    from unskew.diagnostics.outcome import as_estimated, measure_outcome

    outcome = None
    if y is not None:
        weighed = as_estimated(weighter, after, sample, known, drawn)
        outcome = measure_outcome(y, sample.design, after, weighed)
    return outcome, () if after is None else state_bounds(after, weighter)


def _hints(sample: Sample, population_rows: int, even: bool, y: Any) -> Iterator[str]:
    """Yield what looks like a mistake in what was given."""
    if population_rows < len(sample) and even:
        yield (
            f"The population has fewer rows than the sample ({population_rows:,} and "
            f"{len(sample):,}): if the two are swapped, give the sample first."
        )
    labels = checked_labels(y, len(sample))
    if labels is not None and labels.ndim == 1 and labels.dtype.kind not in "mM":
        hint = determined_by(sample, scored(labels, ranks=False))
        yield from filter(None, [hint])


def _family_of(judge: Family | Literal["auto"], weights: Any, weighter: Any) -> Family:
    """Return the classifiers that judge: by default a family that did not make the weights."""
    if judge != "auto":
        return judge
    return "trees" if weights is None else getattr(weighter, "traits", Traits()).judged_by


def _question(sample: Sample, examined_rows: int, seed: int) -> Summaries:
    totals = ColumnTotals(sample.codes, sample.values)
    return Summaries([totals, Reservoir(examined_rows, seed=seed)])


def _compare(
    sample: Sample,
    drawn: Reservoir,
    totals: ColumnTotals,
    after: FloatArray | None,
    judged: Judged | None,
    family: Family,
    even: bool,
    overlap: Overlap | None,
) -> tuple[Bias, Overlap, Forecast]:
    """Compare the sample with the rows drawn."""
    with threadpool_limits(limits=1):  # the models are small: threads wait more than they work
        of_population = sample.codes.transform(drawn.rows, side="population").values
        _check_ranges(sample.codes.names, sample.values, of_population)
        with ThreadPoolExecutor(1) as beside:  # the classifier's test alone leaves a core idle
            features = beside.submit(
                measure_balance, sample, after, totals.columns, of_population, drawn.weight
            )
            del of_population  # of many columns, it is large
            tell("testing whether sample and population differ")
            bias, forecast = _test(sample, drawn, features, after, judged, family, even, beside)
        if overlap is None:
            tell("searching for what the sample does not cover")
            overlap = measure_overlap(sample, drawn, totals.rows, grow_on=5000)
    return bias, overlap, forecast


def _test(
    sample: Sample,
    drawn: Reservoir,
    features: Future[tuple[FeatureBalance, ...]],
    after: FloatArray | None,
    judged: Judged | None,
    family: Family,
    even: bool,
    beside: Executor,
) -> tuple[Bias, Forecast]:
    """Test whether sample and population differ, before and after weighting."""
    tested, how = (None, "") if judged is None else (judged.weights, judged.how)
    comparison = Comparator(
        Sides.from_reservoir(sample, drawn), sample.design, even, drawn.seed, how
    )
    mmd = beside.submit(comparison.discrepancy, tested)
    columns = beside.submit(comparison.columns)
    classifier, expected_share = comparison.discrimination(family, tested)
    bias = Bias(features.result(), mmd.result(), classifier, columns.result())
    overfitted, together = False, ""
    if after is not None and judged is not None and classifier.after is not None:
        share = effective_sample_size(after) / len(after)
        overfitted = follows_rows(classifier.after, share, held_out=judged.held_out)
        if judged.held_out and is_separable(classifier.after):  # and on the rows fitted to?
            overfitted = not is_separable(comparison.separated(family, after))
        if is_separable(classifier.after):
            together = different_together(comparison.sides, after)
    return bias, Forecast(expected_share, overfitted, together)


def _diagnose_margins(
    given: Sample, population: Margins, columns: Any, after: FloatArray | None, weights: Any, y: Any
) -> Diagnosis:
    """Compare the sample with known margins."""
    sample, margins = match_columns(given, population, columns)
    features, uncovered = measure_margins(sample, margins, after)
    summary = None if after is None else summarise_weights(after, sample.batch)
    weighter = getattr(weights, "weighter_", weights)
    outcome, bounds = _consequences(weighter, after, sample, margins, None, y)
    bias = Bias(features, None, None)
    circumstances = Circumstances(
        bias,
        weighted=after is not None,
        weighter=weighter if hasattr(weights, "weights_") else None,
        only_margins=True,
    )
    return Diagnosis(
        verdict=with_next_step(reach_margin_verdict(features, uncovered, summary), circumstances),
        bias=bias,
        overlap=None,
        weights=summary,
        bounds=bounds,
        sample_rows=len(sample),
        population_rows=round(margins.size or 0),
        examined_rows=0,
        method=type(weighter).__name__ if hasattr(weights, "weights_") else None,
        thresholds=THRESHOLDS,
        provenance=_provenance(population, y),
        outcome=outcome,
    )


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


def _check_ranges(names: Sequence[str], sample: FloatArray, population: FloatArray) -> None:
    """Refuse columns whose largest and smallest value have no difference in floating point."""
    with np.errstate(over="ignore", invalid="ignore"):
        largest, smallest = (
            extreme(extreme.reduce(sample, axis=0), extreme.reduce(population, axis=0))
            for extreme in (np.fmax, np.fmin)
        )
        ranges = largest - smallest
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
