"""A summary of the weights: their effective sample size, and which rows carry most of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from unskew.numerics.typing import FloatArray
from unskew.numerics.weight_vectors import effective_sample_size

N_HEAVIEST = 10
N_BINS = 30


@dataclass(frozen=True)
class Histogram:
    """Counts between edges."""

    edges: tuple[float, ...]
    counts: tuple[int, ...]


@dataclass(frozen=True)
class HeavyRow:
    """A row that carries much of the weight.

    Attributes
    ----------
    row : int or str
        Its position in the sample, from 0; in a report of the command line, its identifier.
    weight : float
        Its weight, where weights have mean one.
    share : float
        Its share of the total weight.
    values : dict of str to str
        The values of the row, as text.
    """

    row: int | str
    weight: float
    share: float
    values: dict[str, str]


@dataclass(frozen=True)
class WeightSummary:
    """A summary of the weights.

    Attributes
    ----------
    effective_sample_size : float
        Kish's: this many equally weighted rows would give a mean of the same variance.
    effective_share : float
        The same, divided by the number of rows.
    design_effect : float
        Its inverse: the factor by which weighting increases the variance of a mean.
    smallest, largest : float
        The extreme weights, where weights have mean one.
    zero_rows : int
        How many rows have weight zero.
    top_share : float
        The share of the total weight that the largest 1 % of the weights carries.
    half_rows : int
        How many rows, those of the largest weights, carry half of the total weight.
    heaviest : tuple of HeavyRow
        The largest weights, with their rows.
    histogram : Histogram
        Of the positive weights, where weights have mean one; edges equally spaced on a log scale.
    """

    effective_sample_size: float
    effective_share: float
    design_effect: float
    smallest: float
    largest: float
    zero_rows: int
    top_share: float
    half_rows: int
    heaviest: tuple[HeavyRow, ...]
    histogram: Histogram


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
