"""What the weights say by themselves: how few rows carry how much."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from unskew.diagnostics.diagnosis import HeavyRow, Histogram, WeightSummary
from unskew.numerics.typing import FloatArray
from unskew.numerics.weight_vectors import effective_sample_size

__all__ = ["summarise_weights"]

HEAVIEST = 10
BINS = 30


def summarise_weights(weights: FloatArray, rows: pa.RecordBatch) -> WeightSummary:
    """Return the summary of weights, and the sample rows that carry the largest.

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
        heaviest=tuple(
            HeavyRow(
                row=int(row),
                weight=float(relative[row]),
                share=float(shares[row]),
                values={name: _told(rows.column(name)[int(row)]) for name in rows.schema.names},
            )
            for row in falling[:HEAVIEST]
        ),
        histogram=_histogram(relative[relative > 0]),
    )


def _told(value: pa.Scalar) -> str:
    plain = value.as_py()
    if plain is None or plain != plain:
        return "missing"
    return f"{plain:,.6g}" if isinstance(plain, float) else str(plain)


def _histogram(positive: FloatArray) -> Histogram:
    low, high = float(positive.min()), float(positive.max())
    if high <= low * (1 + 1e-9):
        low, high = low / 1.1, high * 1.1
    edges = np.geomspace(low, high, BINS + 1)
    edges[0], edges[-1] = low, high  # exactly, so that none falls out
    counts, _ = np.histogram(positive, edges)
    return Histogram(tuple(edges.tolist()), tuple(counts.tolist()))
