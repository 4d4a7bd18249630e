"""Search for the part of the population that the sample does not cover."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unskew.numerics.empty_boxes import empty_boxes
from unskew.numerics.far_rows import FAR_FACTOR, OUTERMOST, far_rows
from unskew.numerics.kernels import FARTHEST
from unskew.numerics.typing import BoolArray, FloatArray
from unskew.overlap.overlap import Overlap, OverlapRule
from unskew.overlap.words import Label, describe_box, describe_unseen
from unskew.population.encode import ColumnCodes
from unskew.population.kinds import Kind
from unskew.population.reservoir import Reservoir
from unskew.population.sample import Sample


def measure_overlap(
    sample: Sample, drawn: Reservoir, n_rows: int, *, grow_on: int = 2000
) -> Overlap:
    """Measure which part of the population the sample does not cover.

    Parameters
    ----------
    sample : Sample
        Rows with a design weight of zero do not count.
    drawn : Reservoir
        The population, or a uniform random sample of its rows; its seed is that of the search.
    n_rows : int
        The number of rows of the population.
    grow_on : int
        The number of rows of each side that the search uses.

    Returns
    -------
    Overlap
    """
    rows, seed = drawn.rows, drawn.seed
    mass = drawn.weight / drawn.weight.sum()
    # One over the root of Kish's effective size; nothing where all rows were counted.
    error = 0.0 if drawn.whole(n_rows) else float(np.sqrt(mass @ mass))
    sample = sample.take(np.flatnonzero(sample.design > 0))
    codes, mine = sample.codes, sample.values
    theirs = codes.transform(rows, side="population").values
    # 1) Values that no sample row has.
    regions = [
        (describe_unseen(codes, rows, column, where), where)
        for column, values in enumerate(theirs.T)
        if (where := codes.is_unseen(values, column)).any()
    ]
    covered = ~_any_of(regions, len(rows))
    # 2) Boxes among the other rows.
    if covered.any():
        masses = np.concatenate([np.full(len(mine), 1 / len(mine)), mass])
        features, labels = _features(codes, np.concatenate([mine, theirs]), masses)
        ours, others = features[: len(mine)], features[len(mine) :]
        boxes = empty_boxes(ours, others[covered], mass[covered], grow_on=grow_on, seed=seed)
        regions += [(describe_box(codes, box, labels), box.holds(others)) for box in boxes]
    rules = []
    for text, where in regions:
        share = float(mass[where].sum())
        rules.append(OverlapRule(text, share, _margin(share, error), 0, len(mine)))
    # 3) Rows far from every sample row.
    explained = _any_of(regions, len(rows))
    space, points = sample.points("standard")
    others = bounded(space.of_codes(theirs))
    uncovered = explained | far_rows(bounded(points), others, mass, judge_on=grow_on, seed=seed)
    share = min(1.0, float(mass[uncovered].sum()))
    return Overlap(
        uncovered=share,
        margin=_margin(share, error),
        rules=tuple(sorted(rules, key=lambda rule: -rule.share)),
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


def _any_of(regions: Sequence[tuple[str, BoolArray]], n_rows: int) -> BoolArray:
    nowhere = np.zeros(n_rows, dtype=bool)
    return np.any([nowhere, *(where for _, where in regions)], axis=0)


def bounded(points: FloatArray) -> FloatArray:
    """Return points with finite distances.

    A column so large that its standard deviation overflows has no scale and is set to zero.
    """
    return np.clip(np.nan_to_num(points), -FARTHEST, FARTHEST)


MAX_VALUES = 32


def _features(
    codes: ColumnCodes, values: FloatArray, mass: FloatArray
) -> tuple[FloatArray, list[Label]]:
    """Return the features in which boxes are searched: numbers, and an indicator per category."""
    features: list[FloatArray | BoolArray] = []
    labels = []
    for column, here in enumerate(values.T):
        if codes.kinds[column] == Kind.CATEGORY:
            for rank in _frequent(here, mass):
                features.append(here == rank)
                labels.append(Label(column, codes.format_value(column, rank)))
        else:
            features.append(here)
            labels.append(Label(column))
        if codes.has_missing[column]:
            features.append(np.isnan(here))
            labels.append(Label(column, "missing"))
    return np.column_stack(features).astype(np.float64), labels


def _frequent(values: FloatArray, mass: FloatArray) -> list[float]:
    """Return the categories with the most mass in sample and population."""
    known = values >= 0  # neither unseen nor missing
    totals = np.bincount(values[known].astype(np.int64), weights=mass[known])
    order = np.argsort(-totals, kind="stable")[:MAX_VALUES]
    return [float(rank) for rank in order if totals[rank] > 0]
