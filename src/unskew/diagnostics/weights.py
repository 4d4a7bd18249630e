"""The weights themselves: a summary, and weights for rows that they were not fitted to.

Weights that follow single rows balance the rows that they were fitted to and no others. A weighter
that can weigh new rows is therefore judged on such: it is fitted again to parts of the sample, and
weighs the rest, unless it is cross-fitted already.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from sklearn.base import clone

from unskew.diagnostics.diagnosis import HeavyRow, Histogram, WeightSummary
from unskew.errors import UnskewError
from unskew.numerics.typing import FloatArray, IntArray
from unskew.numerics.weight_vectors import effective_sample_size
from unskew.population.population import Population
from unskew.population.progress import tell
from unskew.population.reservoir import Reservoir
from unskew.rows.labels import checked_labels
from unskew.rows.sample import Sample
from unskew.weighters.auto import AutoWeights
from unskew.weighters.inductive import InductiveWeighter

N_HEAVIEST = 10
N_BINS = 30
N_PARTS = 5
JUDGED_ROWS = 50_000
"""Sample rows, drawn uniformly, to which a weighter is fitted again: the tests draw fewer."""

_SAME_ROWS = (
    "The weights are judged on the rows that they were given for: if they were also fitted to "
    "them, the test flatters them, and an AUC below 0.5 means that they follow single rows."
)
_HELD_OUT = (
    "The weights that are tested are those of rows held out: each fifth of {rows} is weighed by "
    "{name} fitted to the other four and to the population rows examined."
)
_CROSS_FITTED = (
    "The weights are cross-fitted: each row's comes from models that have not seen it, so they are "
    "tested as they are."
)


def summarise_weights(weights: FloatArray, rows: pa.RecordBatch) -> WeightSummary:
    """Return the summary of the weights, with the sample rows of the largest ones.

    Examples
    --------
    >>> rows = pa.record_batch({"age": [30, 40]})
    >>> summary = summarise_weights(np.array([1.0, 3.0]), rows)
    >>> round(summary.effective_sample_size, 3), summary.heaviest[0].values
    (1.6, {'age': '40'})
    """
    relative = weights / weights.mean()
    effective = effective_sample_size(weights)
    shares = relative / len(relative)
    falling = np.argsort(-relative, kind="stable")
    top = falling[: max(1, len(relative) // 100)]
    return WeightSummary(
        effective_sample_size=effective,
        effective_share=effective / len(weights),
        design_effect=len(weights) / effective,
        smallest=float(relative.min()),
        largest=float(relative.max()),
        zero_rows=int((relative == 0).sum()),
        top_share=float(shares[top].sum()),
        half_rows=1 + int(np.searchsorted(shares[falling].cumsum(), 0.5 - 1e-9)),
        heaviest=tuple(
            HeavyRow(
                row=int(row),
                weight=float(relative[row]),
                share=float(shares[row]),
                values={
                    name: _format_value(rows.column(name)[int(row)]) for name in rows.schema.names
                },
            )
            for row in falling[:N_HEAVIEST]
        ),
        histogram=_histogram(relative[relative > 0]),
    )


def _format_value(value: pa.Scalar) -> str:
    plain = value.as_py()
    if plain is None or plain != plain:
        return "missing"
    return f"{plain:,.6g}" if isinstance(plain, float) else str(plain)


def _histogram(positive: FloatArray) -> Histogram:
    low, high = float(positive.min()), float(positive.max())
    if high <= low * (1 + 1e-9):
        low, high = low / 1.1, high * 1.1
    edges = np.geomspace(low, high, N_BINS + 1)
    counts, _ = np.histogram(positive, edges)  # which end exactly at the extreme weights
    return Histogram(tuple(edges.tolist()), tuple(counts.tolist()))


def weights_to_judge(
    weighter: Any, given: FloatArray, sample: Sample, labels: Any, drawn: Reservoir
) -> tuple[FloatArray, bool, str]:
    """Return weights of held-out rows if the weighter can weigh new rows, else those given.

    Also whether the weighter was not fitted to these rows, and how they were made, in a sentence.

    Parameters
    ----------
    weighter : object
        What was given as weights: a fitted weighter, or an array.
    given : ndarray of shape (m,)
        Its weights.
    sample : Sample
        With the columns to weigh by.
    labels : array-like of shape (m,) or None
    drawn : Reservoir
        Rows of the population: to fit to these takes no further pass.
    """
    if not isinstance(weighter, InductiveWeighter) or len(sample) < 2 * N_PARTS:
        return given, False, _SAME_ROWS
    if not weighter.traits.estimates or not hasattr(weighter, "weigh"):
        return given, True, ""
    if weighter.is_cross_fitted:
        return given, True, _CROSS_FITTED
    name = type(weighter).__name__
    try:
        weights = _held_out(weighter, sample, labels, drawn)
    except UnskewError as error:
        reason = f"{name} could not be fitted to parts of the sample ({str(error).rstrip('.')})."
        return given, False, f"{reason} {_SAME_ROWS}"
    if not weights.any():
        reason = f"{name} gives rows that it was not fitted to no weight."
        return given, False, f"{reason} {_SAME_ROWS}"
    rows = "the sample"
    if len(sample) > JUDGED_ROWS:
        rows = f"{JUDGED_ROWS:,} sample rows, drawn uniformly,"
    return weights, True, _HELD_OUT.format(name=name, rows=rows)


def _held_out(
    weighter: InductiveWeighter, sample: Sample, labels: Any, drawn: Reservoir
) -> FloatArray:
    shuffled = np.random.RandomState(drawn.seed).permutation(len(sample))
    part = np.where(shuffled < JUDGED_ROWS, shuffled % N_PARTS, -1)  # others take no part
    weights = np.zeros(len(sample))
    for number in range(N_PARTS):
        tell(f"judging the weights on rows held out, {number + 1} of {N_PARTS}")
        held_out = part == number
        train, test = np.flatnonzero(~held_out & (part >= 0)), np.flatnonzero(held_out)
        if not sample.design[train].any():
            continue
        twin = _refitted(weighter, sample, labels, drawn, train)
        with warnings.catch_warnings():  # what the sample lacks is measured on all of it
            warnings.simplefilter("ignore", UserWarning)
            own = twin.weigh(sample.rows.table.take(pa.array(test)))
        weights[test] = own * sample.design[test]
    return weights


def _refitted(
    weighter: Any,
    sample: Sample,
    labels: Any,
    drawn: Reservoir,
    rows: IntArray,
    columns: list[str] | None = None,
) -> Any:
    """Return the weighter fitted to some of the rows, by some of the columns."""
    even = bool((drawn.weight == drawn.weight[0]).all())
    population = Population(
        pa.Table.from_batches([drawn.rows]), weight=None if even else drawn.weight
    )
    twin = clone(weighter).set_params(columns=columns, total="sample", overlap="ignore")
    some = sample.under_names().take(rows)
    some.labels = None if labels is None else checked_labels(labels, len(sample))[rows]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return twin.fit(some, population=population)


def effective_without(
    weighter: Any,
    sample: Sample,
    labels: Any,
    drawn: Reservoir,
    names: Sequence[str],
) -> tuple[float, float]:
    """Return the factor by which the effective sample size grows without columns, and what it is.

    The weighter is fitted with and without them; :class:`unskew.AutoWeights` in place of weights
    that are not estimated, or of an array.
    """
    own = isinstance(weighter, InductiveWeighter) and weighter.traits.estimates
    rows = np.random.RandomState(drawn.seed).permutation(len(sample))[:JUDGED_ROWS]
    all_names, sizes = sample.rows.table.column_names, []
    try:
        for left_out in ((), names):
            columns = [name for name in all_names if name not in left_out]
            twin = _refitted(
                weighter if own else AutoWeights(), sample, labels, drawn, rows, columns
            )
            sizes.append(effective_sample_size(twin.weights_))
    except UnskewError:
        return 0.0, 0.0  # nothing is known, so nothing is advised
    return sizes[1] / sizes[0], sizes[1] * len(sample) / len(rows)
