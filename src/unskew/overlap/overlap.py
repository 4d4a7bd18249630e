"""Which part of the population the sample does not cover, in the user's own columns and units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unskew.errors import UnseenValueWarning
from unskew.numerics.empty_boxes import Box, Condition
from unskew.numerics.typing import BoolArray, FloatArray
from unskew.rows.encode import ColumnCodes
from unskew.rows.kinds import Kind

LIMIT = 0.05
"""The uncovered share above which a sample cannot represent the population."""


@dataclass(frozen=True)
class OverlapRule:
    """A region that holds population rows and no sample row.

    Attributes
    ----------
    text : str
        The region in the columns' names and units, for example "income > 92,000 and region =
        north".
    share : float
        The region's share of the population's mass, less ``by_chance``.
    margin : float
        Half the width of the 95 % interval of ``share``; 0 where it was counted over all rows.
    sample_rows : int
        The number of sample rows in the region: none.
    sample_size : int
        The number of sample rows in all.
    by_chance : float
        For many rare values together: the share that an even draw of the sample's size would lack
        as well.
    unseen : bool
        Whether the region is values of one column that no sample row has, such as a category.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew import Unweighted
    >>> people = np.random.default_rng(0).uniform(size=(2000, 1))
    >>> weighter = Unweighted(overlap=1.0).fit(people[people[:, 0] < 0.8], population=people)
    >>> weighter.overlap_.rules[0].sample_rows
    0
    """

    text: str
    share: float
    margin: float
    sample_rows: int
    sample_size: int
    by_chance: float = 0.0
    unseen: bool = False

    def __str__(self) -> str:
        margin = f" (± {100 * self.margin:.1f})" if self.margin >= 0.0005 else ""
        more = ""
        if self.by_chance >= 0.0005:
            more = f" beyond the {100 * self.by_chance:.1f} % that chance explains"
        return (
            f"{self.text}: {100 * self.share:.1f} %{margin} of the population{more}, "
            f"{self.sample_rows} of {self.sample_size:,} sample rows"
        )


@dataclass(frozen=True)
class Overlap:
    """How much of the population the sample does not cover, and where.

    Attributes
    ----------
    uncovered : float
        The share of the population's mass that no sample row can represent, beyond what chance
        explains.
    margin : float
        Half the width of its 95 % interval; 0 where it was counted over all rows.
    rules : tuple of OverlapRule
        The regions, in order of falling share; they may overlap.
    unexplained : float
        The part of ``uncovered`` that no rule describes.
    method : str
        How it was measured, in a few sentences.
    by_chance : float
        The share of the population's mass with values that no sample row has, but as few of them as
        an even draw of the sample's size would lack: not part of ``uncovered``.
    rounded : tuple of str
        For each column in which one side is rounded and the other is not, to what, in a sentence.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew import Unweighted
    >>> people = np.random.default_rng(0).uniform(size=(2000, 1))
    >>> weighter = Unweighted(overlap=1.0).fit(people[people[:, 0] < 0.8], population=people)
    >>> bool(abs(weighter.overlap_.uncovered - 0.2) < 0.02)
    True
    """

    uncovered: float
    margin: float
    rules: tuple[OverlapRule, ...]
    unexplained: float
    method: str
    by_chance: float = 0.0
    rounded: tuple[str, ...] = ()

    @property
    def unseen(self) -> tuple[OverlapRule, ...]:
        """The rules of values, such as categories, that no sample row has.

        Only those that a random draw of the sample's size would lack in at most 1 of 100 cases.
        """
        return tuple(rule for rule in self.rules if rule.unseen)

    @property
    def lacking(self) -> tuple[str, ...]:
        """A sentence for each rule in ``unseen``."""
        return tuple(f"{rule}: no weights make up for it." for rule in self.unseen)

    @property
    def chance_sentence(self) -> str:
        """What chance explains, in a sentence; empty where it is next to nothing."""
        if self.by_chance < 0.0005:
            return ""
        return (
            f"Rare values that no sample row has hold {100 * self.by_chance:.1f} % of the "
            "population; a random draw of the sample's size would lack as much."
        )

    def __str__(self) -> str:
        rare = self.chance_sentence
        if not self.uncovered and self.rules:
            return f"No sample row has {'; '.join(map(str, self.rules[:3]))}.{rare and ' ' + rare}"
        if not self.uncovered:
            return rare or "The sample covers the whole population examined."
        rare = f" {rare}" if rare else ""
        text = f"{100 * self.uncovered:.1f} % of the population is not covered by the sample"
        if not self.rules:
            return f"{text}.{rare}"
        shown = [rule for place, rule in enumerate(self.rules) if place < 3 or rule.unseen]
        left = len(self.rules) - len(shown)
        more = f"; and {left} more regions" if left else ""
        return f"{text}: {'; '.join(map(str, shown))}{more}.{rare}"


_SHOWN = 5
"""How many values of a column a warning names."""


Label = tuple[int, str | None]
"""A feature of the search: a column, and a value of it or "missing"; None for the number."""


def describe_box(codes: ColumnCodes, box: Box, labels: Sequence[Label]) -> str:
    """Write a box in the columns' names and units."""
    by_feature: dict[int, list[Condition]] = {}
    for condition in box.conditions:
        by_feature.setdefault(condition.feature, []).append(condition)
    return " and ".join(_describe(codes, labels, f, found) for f, found in by_feature.items())


def _describe(
    codes: ColumnCodes, labels: Sequence[Label], feature: int, conditions: Sequence[Condition]
) -> str:
    column, value = labels[feature]
    name, above = codes.names[column], any(condition.above for condition in conditions)
    if value == "missing":
        return f"{name} is {'' if above else 'not '}missing"
    if value is not None:
        values = [other for at, other in labels if at == column]
        others = [other for other in values if other not in (value, "missing")]
        if not above and len(others) == 1:
            return f"{name} = {others[0]}"
        return f"{name} {'=' if above else 'is not'} {value}"
    if pa.types.is_boolean(codes.types[column]):
        return f"{name} = {'true' if above else 'false'}"
    low, high = (
        [
            _border(codes, column, *condition.gap)
            for condition in conditions
            if condition.above == side
        ]
        for side in (True, False)
    )
    if low and high:
        return f"{low[0]} < {name} ≤ {high[0]}"
    return f"{name} > {low[0]}" if low else f"{name} ≤ {high[0]}"


def _border(codes: ColumnCodes, column: int, low: float, high: float) -> str:
    """Write a border between two values of a column, as short as possible."""
    if codes.kinds[column] != Kind.TIME:
        return shortest_between(low, high)
    whole_day = float(np.ceil(low))
    return codes.format_value(column, whole_day if low <= whole_day < high else low)


def shortest_between(low: float, high: float) -> str:
    """Return the shortest decimal number b with low ≤ b < high."""
    largest = max(abs(low), abs(high))
    if not high > low or not np.isfinite(largest) or largest == 0:
        return f"{low:,.6g}"
    top = int(np.floor(np.log10(largest)))
    for digits in range(-top, 16 - top):
        step = Decimal(1).scaleb(-digits)
        number = (Decimal(low) / step).to_integral_value(ROUND_CEILING) * step
        if number < Decimal(high):
            if 1e-4 <= abs(number) < 1e15:
                return f"{number.normalize():,f}"
            return f"{float(number):zg}"
    return f"{low:,.17g}"


def describe_unseen(codes: ColumnCodes, rows: pa.RecordBatch, column: int, where: BoolArray) -> str:
    """Name the values of a column that no sample row has."""
    name, counts = codes.names[column], count_unseen(codes, rows, column, where)
    missing = counts.pop("missing", 0)
    if not counts:
        return f"{name} is missing"
    if list(counts) == ["not missing"]:
        return f"{name} is not missing"
    shown = list(counts)
    if len(shown) > 3:
        shown = [*shown[:3], f"{len(shown) - 3:,} more that the sample lacks"]
    return f"{name} = " + " or ".join(shown) + (" or missing" if missing else "")


def count_unseen(
    codes: ColumnCodes, rows: pa.RecordBatch, column: int, where: BoolArray
) -> dict[str, int]:
    """Return the values that a column has on some rows and how often, the most frequent first.

    "missing" is one of them; where the sample has no value at all, "not missing" is the other.
    """
    values = rows.column(column).filter(pa.array(where))
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    present = values.filter(pc.invert(values.is_null(nan_is_null=True)))
    missing = len(values) - len(present)
    counts = {"missing": missing} if missing else {}
    numbers = codes.kinds[column] != Kind.CATEGORY
    if numbers and codes.counts_categories(column):
        return (
            counts if missing == len(values) else {**counts, "not missing": len(values) - missing}
        )
    entries = sorted(present.value_counts().to_pylist(), key=lambda c: -c["counts"])
    shown = partial(codes.format_value, column) if numbers else str
    return counts | {shown(entry["values"]): entry["counts"] for entry in entries}


def warn_of_unseen(
    codes: ColumnCodes, rows: pa.RecordBatch, weights: FloatArray, how: str, *, what: str = "weight"
) -> UnseenValueWarning | None:
    """Return a warning of new rows with values that no sample row has, or None without such rows.

    ``how`` states how they were weighed. ``weights`` may be other numbers that rows get; ``what``
    says what they are.
    """
    values, unseen = codes.transform(rows, side="new rows")
    if unseen is None:
        return None
    found = {}
    for column, name in enumerate(codes.names):
        where = codes.is_unseen(values[:, column], column)
        if where.any():
            found[name] = count_unseen(codes, rows, column, where)
    named = []
    for name, counts in found.items():
        shown = [f"{value} ({number:,} rows)" for value, number in counts.items()]
        more = [f"{len(shown) - _SHOWN:,} more"] if len(shown) > _SHOWN else []
        named.append(f"column '{name}': {', '.join(shown[:_SHOWN] + more)}")
    low, high = weights[unseen].min(), weights[unseen].max()
    given = f"{what} {low:.4g}" if low == high else f"{what}s from {low:.4g} to {high:.4g}"
    message = (
        f"{int(unseen.sum()):,} of {len(weights):,} new rows hold values that no sample row has "
        f"({'; '.join(named)}). They get {given}, which no row like them supports: {how}."
    )
    return UnseenValueWarning(message, found)
