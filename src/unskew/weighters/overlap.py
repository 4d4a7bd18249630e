"""Which part of the population the sample does not reach, and where, in the user's own words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from unskew.numerics.empty_boxes import Box, Condition, empty_boxes
from unskew.numerics.far_rows import FAR_FACTOR, OUTERMOST, far_rows
from unskew.numerics.kernels import FARTHEST
from unskew.numerics.typing import BoolArray, FloatArray
from unskew.population.encode import ColumnCodes, FeatureSpace
from unskew.population.kinds import Kind

__all__ = ["LIMIT", "Overlap", "OverlapRule", "bounded", "measure_overlap"]


@dataclass(frozen=True)
class OverlapRule:
    """A region that holds population rows and no sample row.

    Attributes
    ----------
    text : str
        The region in the columns' names and units, for example "income > 92,000 and region =
        north".
    share : float
        Of the population's mass.
    margin : float
        Half the width of the 95 % interval of ``share``; 0 where it was counted over all rows.
    sample_rows : int
        How many sample rows lie in the region: none, or so few that none was expected.
    sample_size : int
        Of how many.
    """

    text: str
    share: float
    margin: float
    sample_rows: int
    sample_size: int

    def __str__(self) -> str:
        margin = f" (± {100 * self.margin:.1f})" if self.margin >= 0.0005 else ""
        return (
            f"{self.text}: {100 * self.share:.1f} %{margin} of the population, "
            f"{self.sample_rows} of {self.sample_size:,} sample rows"
        )


@dataclass(frozen=True)
class Overlap:
    """How much of the population the sample does not reach, and where.

    Attributes
    ----------
    uncovered : float
        The share of the population's mass that no sample row can stand for.
    margin : float
        Half the width of its 95 % interval; 0 where it was counted over all rows.
    rules : tuple of OverlapRule
        Where, by falling share; regions may overlap.
    unexplained : float
        The part of ``uncovered`` that no rule describes.
    method : str
        How it was found, in a sentence.
    """

    uncovered: float
    margin: float
    rules: tuple[OverlapRule, ...]
    unexplained: float
    method: str

    def __str__(self) -> str:
        text = f"{100 * self.uncovered:.1f} % of the population is out of the sample's reach"
        if not self.rules:
            return f"{text}."
        shown = "; ".join(map(str, self.rules[:3]))
        more = f"; and {len(self.rules) - 3} more regions" if len(self.rules) > 3 else ""
        return f"{text}: {shown}{more}."


LIMIT = 0.05
"""The uncovered share above which a sample is said not to stand for the population."""


def measure_overlap(
    sample: pa.RecordBatch,
    rows: pa.RecordBatch,
    weight: FloatArray,
    *,
    whole: bool,
    grow_on: int = 2000,
    seed: int = 0,
) -> Overlap:
    """Say which part of the population the sample does not reach.

    Parameters
    ----------
    sample : pyarrow.RecordBatch
        Its rows that count at all.
    rows : pyarrow.RecordBatch
        The population, or rows drawn evenly from it.
    weight : ndarray
        Their design weights.
    whole : bool
        Whether these are all the rows of the population.
    grow_on : int
        How many rows of each side the search looks at.
    seed : int
        Of the search.

    Returns
    -------
    Overlap
    """
    mass = weight / weight.sum()
    error = 0.0 if whole else float(np.sqrt(mass @ mass))  # one over the root of Kish's size
    codes = ColumnCodes().fit(sample)
    mine, theirs = (codes.transform(side, side="rows").values for side in (sample, rows))
    novel = _novel_values(codes, theirs)
    regions = [(_novel_words(codes, rows, column, where), where) for column, where in novel]
    covered = ~_any_of([where for _, where in regions], len(rows))
    if covered.any():
        features, labels = _features(codes, mine, theirs, mass, len(sample))
        points, others = (np.column_stack([f[side] for f in features]) for side in (0, 1))
        boxes = empty_boxes(points, others[covered], mass[covered], grow_on=grow_on, seed=seed)
        regions += [(_box_words(box, labels), box.holds(others)) for box in boxes]
    rules = sorted(
        (
            OverlapRule(text, share, _margin(share, error), 0, len(sample))
            for text, share in ((text, float(mass[where].sum())) for text, where in regions)
        ),
        key=lambda rule: -rule.share,
    )
    explained = _any_of([where for _, where in regions], len(rows))
    uncovered = explained | _far(sample, rows, mass, grow_on, seed)
    share = min(1.0, float(mass[uncovered].sum()))
    return Overlap(
        uncovered=share,
        margin=_margin(share, error),
        rules=tuple(rules),
        unexplained=float(mass[uncovered & ~explained].sum()),
        method=_METHOD,
    )


_METHOD = (
    "Values that the sample lacks are counted. Regions are boxes in the columns that hold no "
    "sample row, where an even draw of the sample's size would leave none so large empty in 99 of "
    f"100 cases. Rows are also out of reach if they are more than {FAR_FACTOR} times as far from "
    f"every sample row as all but {100 * OUTERMOST:g} % of the sample rows are from the next one, "
    "in standardised columns."
)


def _margin(share: float, error: float) -> float:
    return 1.96 * error * float(np.sqrt(max(share * (1 - share), 0.0)))


def _any_of(masks: Sequence[BoolArray], n_rows: int) -> BoolArray:
    return np.any(masks, axis=0) if masks else np.zeros(n_rows, dtype=bool)


def _far(
    sample: pa.RecordBatch, rows: pa.RecordBatch, mass: FloatArray, judge_on: int, seed: int
) -> BoolArray:
    """Return the rows out of reach by distance."""
    space = FeatureSpace(scaling="standard").fit(sample)
    points = space.transform(sample, side="sample").values
    others = space.transform(rows, side="population").values
    return far_rows(bounded(points), bounded(others), mass, judge_on=judge_on, seed=seed)


def bounded(points: FloatArray) -> FloatArray:
    """Return points between which distances can be taken.

    A column so large that its standard deviation overflows has no scale: it is left out, as zero.
    """
    return np.clip(np.nan_to_num(points), -FARTHEST, FARTHEST)


def _novel_values(codes: ColumnCodes, theirs: FloatArray) -> list[tuple[int, BoolArray]]:
    """Return, for each column that has some, the population rows with values the sample lacks."""
    found = []
    for column in range(theirs.shape[1]):
        values = theirs[:, column]
        novel = codes.is_novel(values, column)
        if novel.any():
            found.append((column, novel))
    return found


class _Label(NamedTuple):
    """How a feature of the search is called: a column, or one value of it."""

    column: str
    value: str | None
    """Of a category; None for the column as a number."""
    tell: Callable[[float, float], str]
    """Writes a number between two others in the column's units."""


_Pair = tuple[FloatArray, FloatArray]
MAX_VALUES = 32


def _features(
    codes: ColumnCodes, mine: FloatArray, theirs: FloatArray, mass: FloatArray, m: int
) -> tuple[list[_Pair], list[_Label]]:
    """Return the columns in which boxes are sought: numbers, and a mark for each category."""
    features: list[_Pair] = []
    labels: list[_Label] = []

    def add(pair: _Pair, name: str, value: str | None, tell: Any = _roundest) -> None:
        features.append(pair)
        labels.append(_Label(name, value, tell))

    for column, name in enumerate(codes.names):
        pair = mine[:, column], theirs[:, column]
        if codes.kinds[column] == Kind.CATEGORY:
            for rank in _frequent(pair, mass, m):
                marks = [(side == rank).astype(np.float64) for side in pair]
                add((marks[0], marks[1]), name, codes.tell(column, rank))
        else:
            add(pair, name, None, partial(_told, codes, column))
        missing = np.isnan(pair[0]), np.isnan(pair[1])
        if codes.has_missing[column]:
            add((missing[0].astype(np.float64), missing[1].astype(np.float64)), name, "missing")
    return features, labels


def _frequent(pair: _Pair, mass: FloatArray, m: int) -> list[float]:
    """Return the categories with the most mass in sample and population."""
    both = np.concatenate(pair)
    each = np.concatenate([np.full(m, 1 / m), mass])
    known = both >= 0  # neither novel nor missing
    if not known.any():
        return []
    totals = np.bincount(both[known].astype(np.int64), weights=each[known])
    order = np.argsort(-totals, kind="stable")[:MAX_VALUES]
    return [float(rank) for rank in order if totals[rank] > 0]


def _box_words(box: Box, labels: Sequence[_Label]) -> str:
    by_feature: dict[int, list[Condition]] = {}
    for condition in box.conditions:
        by_feature.setdefault(condition.feature, []).append(condition)
    return " and ".join(_words(labels[f], found, labels) for f, found in by_feature.items())


def _words(label: _Label, conditions: Sequence[Condition], labels: Sequence[_Label]) -> str:
    above = next((c for c in conditions if c.above), None)
    below = next((c for c in conditions if not c.above), None)
    if label.value is not None:
        is_or_not = "=" if above is not None else "is not"
        if label.value == "missing":
            return f"{label.column} is{'' if above is not None else ' not'} missing"
        values = [each.value for each in labels if each.column == label.column]
        others = [value for value in values if value not in (label.value, "missing")]
        if above is None and len(others) == 1:
            return f"{label.column} = {others[0]}"
        return f"{label.column} {is_or_not} {label.value}"
    if above is None or below is None:
        only = above or below
        assert only is not None
        told = label.tell(*only.gap)
        if told in ("true", "false"):
            return f"{label.column} = {'true' if above is not None else 'false'}"
        return f"{label.column} {'>' if above is not None else '≤'} {told}"
    return f"{label.tell(*above.gap)} < {label.column} ≤ {label.tell(*below.gap)}"


def _told(codes: ColumnCodes, column: int, low: float, high: float) -> str:
    """Write the border between two values of a column, the shortest way that tells them apart."""
    if codes.kinds[column] == Kind.TIME:
        days = next((d for d in _rounder(low, high)), low)
        return codes.tell(column, days)
    if pa.types.is_boolean(codes.types[column]):
        return "true"
    return _roundest(low, high)


def _rounder(low: float, high: float) -> Iterator[float]:
    whole = float(np.ceil(low))
    if low <= whole < high:
        yield whole


def _roundest(low: float, high: float) -> str:
    """Return the shortest decimal number b with low ≤ b < high."""
    largest = max(abs(low), abs(high))
    if not high > low or not np.isfinite(largest) or largest == 0:
        return f"{low:,.6g}"
    top = int(np.floor(np.log10(largest)))
    for digits in range(-top, 16 - top):
        step = Decimal(1).scaleb(-digits)
        number = (Decimal(low) / step).to_integral_value(ROUND_CEILING) * step
        if number < Decimal(high):
            return _grouped(number)
    return f"{low:,.17g}"


def _grouped(number: Decimal) -> str:
    if number == 0:
        return "0"
    if 1e-4 <= abs(number) < 1e15:
        return f"{number.normalize():,f}"
    return f"{float(number):g}"


def _novel_words(codes: ColumnCodes, rows: pa.RecordBatch, column: int, where: BoolArray) -> str:
    name = codes.names[column]
    values = rows.column(column).filter(pa.array(where))
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    missing = values.is_null().to_numpy(zero_copy_only=False) | _is_nan(values)
    if missing.all():
        return f"{name} is missing"
    if codes.kinds[column] != Kind.CATEGORY:
        return f"{name} is not missing"
    counts = sorted(values.drop_null().value_counts().to_pylist(), key=lambda c: -c["counts"])
    told = [str(entry["values"]) for entry in counts]
    if len(told) > 3:
        told = [*told[:3], f"{len(told) - 3:,} more that the sample lacks"]
    return f"{name} = " + " or ".join(told) + (" or missing" if missing.any() else "")


def _is_nan(values: pa.Array) -> Any:
    if not pa.types.is_floating(values.type):
        return np.zeros(len(values), dtype=bool)
    return np.isnan(values.to_numpy(zero_copy_only=False))
