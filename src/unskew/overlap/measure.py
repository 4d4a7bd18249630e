"""Search for the part of the population that the sample does not cover."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from unskew.numerics.empty_boxes import empty_boxes
from unskew.numerics.far_rows import FAR_FACTOR, OUTERMOST, far_rows
from unskew.numerics.kernels import FARTHEST
from unskew.numerics.typing import BoolArray, FloatArray
from unskew.overlap.overlap import Overlap, OverlapRule
from unskew.overlap.words import (
    Label,
    border_text,
    describe_box,
    describe_unseen,
    shortest_between,
)
from unskew.population.encode import ColumnCodes
from unskew.population.kinds import Kind
from unskew.population.sample import Sample

__all__ = ["bounded", "measure_overlap"]


def measure_overlap(
    sample: Sample,
    rows: pa.RecordBatch,
    weight: FloatArray,
    *,
    whole: bool,
    grow_on: int = 2000,
    seed: int = 0,
) -> Overlap:
    """Measure which part of the population the sample does not cover.

    Parameters
    ----------
    sample : Sample
        Rows with a design weight of zero do not count.
    rows : pyarrow.RecordBatch
        The population, or a uniform random sample of its rows.
    weight : ndarray
        Their design weights.
    whole : bool
        Whether these are all the rows of the population.
    grow_on : int
        The number of rows of each side that the search uses.
    seed : int
        Seeds the search.

    Returns
    -------
    Overlap
    """
    mass = weight / weight.sum()
    error = 0.0 if whole else float(np.sqrt(mass @ mass))  # one over the root of Kish's size
    sample = sample.take(np.flatnonzero(sample.design > 0))
    codes, mine = sample.codes, sample.values
    theirs = codes.transform(rows, side="population").values
    regions = [
        (describe_unseen(codes, rows, column, where), where)
        for column, where in _unseen_values(codes, theirs)
    ]
    covered = ~_any_of([where for _, where in regions], len(rows))
    if covered.any():
        features, labels = _features(codes, mine, theirs, mass, len(sample))
        ours, others = (np.column_stack([f[side] for f in features]) for side in (0, 1))
        boxes = empty_boxes(ours, others[covered], mass[covered], grow_on=grow_on, seed=seed)
        regions += [(describe_box(box, labels), box.holds(others)) for box in boxes]
    rules = sorted(
        (
            OverlapRule(text, share, _margin(share, error), 0, len(sample))
            for text, share in ((text, float(mass[where].sum())) for text, where in regions)
        ),
        key=lambda rule: -rule.share,
    )
    explained = _any_of([where for _, where in regions], len(rows))
    space, points = sample.points("standard")
    others = bounded(space.of_codes(theirs))
    uncovered = explained | far_rows(bounded(points), others, mass, judge_on=grow_on, seed=seed)
    share = min(1.0, float(mass[uncovered].sum()))
    return Overlap(
        uncovered=share,
        margin=_margin(share, error),
        rules=tuple(rules),
        unexplained=float(mass[uncovered & ~explained].sum()),
        method=_METHOD,
    )


_METHOD = (
    "Values that no sample row has are counted. Regions are boxes in the columns without sample "
    "rows, so large that a uniform random sample of the same size would leave one of them empty in "
    "only 1 of 100 cases. A row is also uncovered if its distance from every sample row is more "
    f"than {FAR_FACTOR} times the nearest-neighbour distance that all but {100 * OUTERMOST:g} % of "
    "the sample rows have, in standardised columns."
)


def _margin(share: float, error: float) -> float:
    return 1.96 * error * float(np.sqrt(max(share * (1 - share), 0.0)))


def _any_of(masks: Sequence[BoolArray], n_rows: int) -> BoolArray:
    return np.any(masks, axis=0) if masks else np.zeros(n_rows, dtype=bool)


def bounded(points: FloatArray) -> FloatArray:
    """Return points with finite distances.

    A column so large that its standard deviation overflows has no scale and is set to zero.
    """
    return np.clip(np.nan_to_num(points), -FARTHEST, FARTHEST)


def _unseen_values(codes: ColumnCodes, theirs: FloatArray) -> list[tuple[int, BoolArray]]:
    """Return, for each column that has any, the population rows with values the sample lacks."""
    found = ((column, codes.is_unseen(values, column)) for column, values in enumerate(theirs.T))
    return [(column, unseen) for column, unseen in found if unseen.any()]


_Pair = tuple[FloatArray, FloatArray]
MAX_VALUES = 32


def _features(
    codes: ColumnCodes, mine: FloatArray, theirs: FloatArray, mass: FloatArray, m: int
) -> tuple[list[_Pair], list[Label]]:
    """Return the features in which boxes are searched: numbers, and an indicator per category."""
    features: list[_Pair] = []
    labels: list[Label] = []

    def add(
        pair: _Pair, name: str, value: str | None, format_border: Any = shortest_between
    ) -> None:
        features.append(pair)
        labels.append(Label(name, value, format_border))

    for column, name in enumerate(codes.names):
        pair = mine[:, column], theirs[:, column]
        if codes.kinds[column] == Kind.CATEGORY:
            for rank in _frequent(pair, mass, m):
                marks = [(side == rank).astype(np.float64) for side in pair]
                add((marks[0], marks[1]), name, codes.format_value(column, rank))
        else:
            add(pair, name, None, partial(border_text, codes, column))
        missing = np.isnan(pair[0]), np.isnan(pair[1])
        if codes.has_missing[column]:
            add((missing[0].astype(np.float64), missing[1].astype(np.float64)), name, "missing")
    return features, labels


def _frequent(pair: _Pair, mass: FloatArray, m: int) -> list[float]:
    """Return the categories with the most mass in sample and population."""
    both = np.concatenate(pair)
    each = np.concatenate([np.full(m, 1 / m), mass])
    known = both >= 0  # neither unseen nor missing
    if not known.any():
        return []
    totals = np.bincount(both[known].astype(np.int64), weights=each[known])
    order = np.argsort(-totals, kind="stable")[:MAX_VALUES]
    return [float(rank) for rank in order if totals[rank] > 0]
