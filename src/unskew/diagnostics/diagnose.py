"""The diagnosis: one pass over the population, then tests on rows drawn from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from os import PathLike
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike
from threadpoolctl import threadpool_limits

from unskew.diagnostics.balance import ColumnTotals, measure_balance, measure_margins
from unskew.diagnostics.compared_rows import ComparedRows, different_together
from unskew.diagnostics.diagnosis import (
    Bias,
    BoundStatement,
    Diagnosis,
    Outcome,
    Provenance,
)
from unskew.diagnostics.shift_tests import SHIFT_TESTS, expected_share, separation
from unskew.diagnostics.verdict import (
    Evidence,
    follows_rows,
    is_separable,
    limits_of,
    reach_verdict,
    scored,
    unrelated_columns,
)
from unskew.diagnostics.weights import effective_without, summarise_weights, weights_to_judge
from unskew.errors import InputError, ParameterError
from unskew.numerics.typing import FloatArray
from unskew.numerics.weight_vectors import check_design
from unskew.overlap.measure import measure_overlap
from unskew.overlap.overlap import Overlap
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
from unskew.weighters.base import Family, Traits, Weighter, fit_beside, weighed_columns

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
    consequences: bool = True,
    replicates: int = 0,
    strata: ArrayLike | str | None = None,
    clusters: ArrayLike | str | None = None,
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
    weights : array-like of shape (n_samples,), weighter or fitted Reweighted, optional
        The weights to judge. A weighter that has not been fitted is fitted, in the same pass over
        the population. A weighter also provides what the bounds need, its columns, and the family
        of classifiers that should judge it. One that can weigh new rows is tested on rows held out:
        it is fitted five times, each time to four fifths of the sample and the population rows
        examined, unless its weights are cross-fitted. If it needs labels, give ``y`` too.
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
    consequences : bool, default=True
        Whether to compute what the weights do to the labels, and theoretical bounds. The verdict
        needs neither, and with ``y`` they take about a third of the time.
    replicates : int, default=0
        Of a weighter that is fitted here, also draw as many bootstrap replicates of the weights, as
        :func:`unskew.replicate_weights` does: ``replicates_`` of the weighter has them.
    strata, clusters : str or array-like of shape (n_samples,), optional
        In which the replicates are drawn.

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

    Weigh the sample and judge the weights in one pass:

    >>> from unskew import AutoWeights
    >>> weighter = AutoWeights()
    >>> diagnose(population[answered], population, weighter).verdict.status
    'corrected'
    >>> weighter.weights_.shape
    (1516,)
    """
    _check_parameters(judge, examined_rows, random_state)
    X, y, sample_weight = named_columns_apart(X, y, sample_weight, refused_by="a diagnosis")
    fits = isinstance(weights, Weighter) and not hasattr(weights, "scale_")
    given = open_sample(X, y if fits else None, sample_weight)
    if not len(given):
        raise InputError("X has no rows, so there is nothing to diagnose.")
    known = population if isinstance(population, Margins) else Population.from_data(population)
    ask = partial(_question, examined_rows=examined_rows, seed=random_state)
    with watching(progress_of(population)):
        design = {"replicates": replicates, "strata": strata, "clusters": clusters}
        answered, overlap = (
            _fit_and_ask(weights, given, known, ask, design) if fits else (None, None)
        )
        after = _given_weights(weights, len(given))
        weighter = getattr(weights, "weighter_", weights)
        made_by = weighter if hasattr(weights, "weights_") else None
        columns = getattr(made_by, "columns_", None) if columns is None else columns
        sample, matched = match_columns(given, known, columns)
        if isinstance(matched, Margins):
            found = _examine_margins(sample, matched, after)
        else:
            answered = answered or matched.reduce(ask(sample))
            even = bool((sample.design == 1).all()) and not matched.is_weighted
            tested = {"even": even, "family": _family_of(judge, weights, weighter)}
            found = _examine(sample, answered, after, weighter, y, overlap, tested)
        if made_by is None and (columns is None or isinstance(columns, str)):
            warn_of_doubtful_columns(found.doubts)
        drawn = None if answered is None else answered.parts[1]
        effects = _consequences if consequences else lambda *_: (None, ())
        outcome, bounds = effects(weighter, after, sample, matched, drawn, y)
    return Diagnosis(
        verdict=reach_verdict(replace(found, weighter=made_by)),
        bias=found.bias,
        overlap=found.overlap,
        weights=found.weights,
        bounds=bounds,
        sample_rows=found.sample_rows,
        population_rows=found.population_rows,
        examined_rows=0 if drawn is None else len(drawn.weight),
        method=None if made_by is None else type(made_by).__name__,
        thresholds=found.limits,
        provenance=_provenance(population, y),
        outcome=outcome,
    )


def _question(sample: Sample, *, examined_rows: int, seed: int) -> Summaries:
    """Return what a diagnosis asks of the population."""
    totals = ColumnTotals(sample.codes, sample.values)
    return Summaries([totals, Reservoir(examined_rows, seed=seed)])


def _fit_and_ask(
    weighter: Weighter,
    given: Sample,
    population: Population | Margins,
    ask: Callable[[Sample], Summaries],
    design: dict[str, Any],
) -> tuple[Summaries | None, Overlap | None]:
    """Fit the weighter; return what the same pass answers of the diagnosis, and the overlap.

    The sample is encoded once for both, and overlap is measured once: the diagnosis takes it from
    the fit, where that measures it as a diagnosis does, and otherwise measures it again.
    """
    asked: list[OfColumns[Summaries]] = []
    if isinstance(population, Population):
        sample, _ = weighed_columns(weighter, given, population)
        asked = [OfColumns(sample.rows.table.column_names, ask(sample))]
    if design["replicates"]:
        from unskew.estimation.weighing import fit_with_replicates

        fit_with_replicates(weighter, given, None, population, None, beside=asked, **design)
    else:
        fit_beside(weighter, given, population, asked)
    overlap = None if weighter.overlap in ("warn", "ignore") else weighter.overlap_
    return asked[0].summary if asked else None, overlap


def _examine_margins(sample: Sample, margins: Margins, after: FloatArray | None) -> Evidence:
    """Compare the sample with known margins."""
    features, uncovered = measure_margins(sample, margins, after)
    return Evidence(
        Bias(features),
        None,
        None if after is None else summarise_weights(after, sample.batch),
        sample_rows=len(sample),
        population_rows=round(margins.size or 0),
        uncovered=uncovered,
    )


def _examine(
    sample: Sample,
    answered: Summaries,
    after: FloatArray | None,
    weighter: Any,
    y: Any,
    overlap: Overlap | None,
    tested: dict[str, Any],
) -> Evidence:
    """Compare the sample with the rows drawn, by column and by the tests of shift."""
    totals, drawn = answered.parts
    pa.default_memory_pool().release_unused()  # copies that were made on the way
    held_out = False
    if after is not None:
        weights, held_out, how = weights_to_judge(weighter, after, sample, y, drawn)
        tested |= {"tested": weights, "how": how}
    with threadpool_limits(limits=1):  # the models are small: threads wait more than they work
        codes = sample.codes.transform(drawn.rows, side="population").values
        _check_ranges(sample.codes.names, sample.values, codes)
        with ThreadPoolExecutor(2) as pool:  # the classifier alone leaves a core idle
            features = pool.submit(
                measure_balance, sample, after, totals.columns, codes, drawn.weight
            )
            del codes  # of many columns, it is large
            tell("testing whether sample and population differ")
            rows = ComparedRows.from_reservoir(sample, drawn, **tested)
            tests = tuple(pool.map(lambda test: test.run(rows), SHIFT_TESTS))
        bias = Bias(features.result(), tests)
        summary = None if after is None else summarise_weights(after, sample.batch)
        overfitted, together = False, ""
        auc = None if bias.classifier is None else bias.classifier.after
        if after is not None and summary is not None and auc is not None:
            overfitted = follows_rows(auc, summary.effective_share, held_out=held_out)
            if is_separable(auc):
                if held_out:  # and on the rows fitted to?
                    overfitted = not is_separable(separation(rows, after))
                together = different_together(rows, after)
        if overlap is None:
            tell("searching for what the sample does not cover")
            overlap = measure_overlap(sample, drawn, totals.rows, grow_on=5000)
    n_means = sum(max(1, sample.codes.n_categories(place)) for place in range(len(bias.features)))
    used = sample.design if after is None else after
    return Evidence(
        bias,
        overlap,
        summary,
        limits=limits_of(summary, totals.rows, n_means),
        sample_rows=len(sample),
        population_rows=totals.rows,
        expected_share=expected_share(rows),
        overfitted=overfitted,
        together=together,
        doubts=doubtful_columns(sample.batch),
        hints=_hints(sample, totals.rows, tested["even"], y),
        unrelated=partial(unrelated_columns, y, sample, used),
        effective_without=partial(effective_without, weighter, sample, y, drawn),
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
    from unskew.diagnostics.consequences import as_estimated, measure_outcome, state_bounds

    outcome = None
    if y is not None:
        weighed = as_estimated(weighter, after, sample, known, drawn)
        outcome = measure_outcome(y, sample.design, after, weighed)
    return outcome, () if after is None else state_bounds(after, weighter)


def _hints(sample: Sample, population_rows: int, even: bool, y: Any) -> list[str]:
    """Return what looks like a mistake in what was given."""
    hints = []
    if population_rows < len(sample) and even:
        hints.append(
            f"The population has fewer rows than the sample ({population_rows:,} and "
            f"{len(sample):,}): if the two are swapped, give the sample first."
        )
    labels = checked_labels(y, len(sample))
    if labels is not None and labels.ndim == 1 and labels.dtype.kind not in "mM":
        hints.append(determined_by(sample, scored(labels, ranks=False)))
    return list(filter(None, hints))


def _family_of(judge: Family | Literal["auto"], weights: Any, weighter: Any) -> Family:
    """Return the classifiers that judge: by default a family that did not make the weights."""
    if judge != "auto":
        return judge
    return "trees" if weights is None else getattr(weighter, "traits", Traits()).judged_by


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
