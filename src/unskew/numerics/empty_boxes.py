r"""Regions that hold much of one set of points and none of another.

A box is a conjunction of conditions, each "greater than" or "at most" on one feature. If m points
and r others were draws from one distribution, it would be chance which of those within a box that
was fixed beforehand are points: that k of the others lie there and no point has a probability of at
most :math:`(r / (m + r))^k` (:mod:`unskew.numerics.chance_gaps`, also for weights). Boxes are found
by looking, so each condition pays for the choices that it had: its feature, its direction and,
where the feature is not a mark of 0 or 1, one of the m points as its border. A box of conditions
with c_1, c_2, … choices and a share p of the others is reported only if

.. math:: r p \log(1 + m / r) \ge \sum_j \log c_j + \log(1 / \mathrm{chance}),

so that one distribution yields any box at all with probability of at most ``chance`` for each
number of conditions, whatever the search does (the union bound). With many others the left side
is m p.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unskew.numerics.chance_gaps import EvenDraw
from unskew.numerics.typing import BoolArray, FloatArray, IntArray

MAX_DEPTH = 6
"""Conditions of a box at most; each further one must pay for its choices (see above), and nobody
reads longer rules. Not tuned."""

MAX_LEAVES = 256
"""Leaves of a tree at most. Never reached at this depth; it makes scikit-learn grow the tree from
the best split on."""

BORDER = 0.1
"""The share of a box next to its borders in which points that the tree has not seen are allowed: a
tree puts borders only where the points that it saw end. Not tuned."""

NEAR, WIDE = 10, 1 / 3
"""A gap is wide if it is more than this part of what the nearest points on either side span. Where
points are spread evenly, that happens at a heap in 1 of 300 cases."""


class Features:
    """Points by column: numbers, or marks of 0 and 1 as booleans, which take an eighth of the room.

    Parameters
    ----------
    columns : sequence of ndarray of shape (n,)
        Missing values are NaN.
    """

    def __init__(self, columns: Sequence[Any]) -> None:
        self.columns = list(columns)

    @classmethod
    def of(cls, points: FloatArray | Features) -> Features:
        """Return the columns of a matrix, or what is given."""
        return points if isinstance(points, Features) else cls(list(np.asfortranarray(points).T))

    def __len__(self) -> int:
        return len(self.columns[0]) if self.columns else 0

    def take(self, rows: IntArray) -> Features:
        """Return some of the points."""
        return Features([column[rows] for column in self.columns])


class Condition(NamedTuple):
    """One side of a feature.

    Attributes
    ----------
    feature : int
    above : bool
        Whether it requires values greater than ``border``; otherwise at most ``border``.
    border : float
    gap : tuple of float
        Any border in this interval, closed on the left, separates the two sets as well.
    """

    feature: int
    above: bool
    border: float
    gap: tuple[float, float]

    def holds(self, points: Features) -> BoolArray:
        """Return which points satisfy it; a missing value satisfies no condition."""
        return self.holds_for(points.columns[self.feature])

    def holds_for(self, values: FloatArray) -> BoolArray:
        """Return which values of its feature satisfy it."""
        return values > self.border if self.above else values <= self.border


@dataclass(frozen=True)
class Box:
    """Conditions, all of which hold in the box, and the share of the mass that does."""

    conditions: tuple[Condition, ...]
    share: float

    def holds(self, points: FloatArray | Features) -> BoolArray:
        """Return which points lie in the box."""
        return all_hold(self.conditions, Features.of(points))


_BITS = (1 << np.arange(8)).astype(np.uint8)


class Held:
    """Which conditions of a box each of some points misses, as the bits of a byte.

    A box is changed one condition at a time, and each change is judged without the other
    conditions being evaluated again.

    Parameters
    ----------
    conditions : sequence of Condition
        At most eight.
    points : Features
    """

    def __init__(self, conditions: Sequence[Condition], points: Features) -> None:
        self._points = points
        held = np.array([condition.holds(points) for condition in conditions])
        # BLAS adds floats up, and takes a quarter of the time of whole numbers.
        missed = _BITS[: len(held)].astype(np.float32) @ (~held).astype(np.float32)
        self.missed: NDArray[np.uint8] = missed.astype(np.uint8)

    @property
    def all(self) -> BoolArray:
        """Which points lie in the box."""
        return self.missed == 0

    def without(self, place: int) -> BoolArray:
        """Return which points lie in the box less one of its conditions."""
        held: BoolArray = (self.missed & ~_BITS[place]) == 0
        return held

    def replace(self, place: int, condition: Condition) -> None:
        """Put another condition in the place of one."""
        missed = (~condition.holds(self._points)).view(np.uint8)
        self.missed = (self.missed & ~_BITS[place]) | (missed * _BITS[place])


def all_hold(conditions: Sequence[Condition], points: Features) -> BoolArray:
    """Return which points satisfy all of some conditions, at least one."""
    held = conditions[0].holds(points)
    for condition in conditions[1:]:
        held &= condition.holds(points)
    return held


def empty_boxes(
    points: FloatArray | Features,
    others: FloatArray | Features,
    mass: FloatArray,
    *,
    design: FloatArray | None = None,
    squares: FloatArray | None = None,
    grow_on: int = 5000,
    chance: float = 0.01,
    seed: int = 0,
) -> list[Box]:
    """Return boxes without any of the points in which much of the others' mass lies.

    The tails beyond the extreme points of each feature are looked at one by one. Boxes of several
    conditions are the leaves without points of a tree that separates the two sets, grown on one
    half of the points and kept if the other half leaves them empty too: where points are few but
    not absent, a tree can always find a region that happens to hold none of those it saw.

    Parameters
    ----------
    points : ndarray of shape (m, d), or Features
        Missing values are NaN.
    others : ndarray of shape (r, d), or Features
    mass : ndarray of shape (r,)
        Of the others.
    design, squares : ndarray of shape (m,) and (r,), optional
        As for :class:`~unskew.numerics.chance_gaps.EvenDraw`.
    grow_on : int
        How many points, and how many of the others, a tree is grown on at most; whether a
        box is empty, and how large it is, is checked with all of them.
    chance : float
        See the module's text.
    seed : int
        Of the halves, and of the trees' ties.

    Returns
    -------
    list of Box
        By falling share; one is left out where those before it cover nearly all of it.

    Examples
    --------
    >>> line = np.linspace(0, 1, 201)[:, None]
    >>> found = empty_boxes(line[line[:, 0] <= 0.7], line, np.ones(201))
    >>> [(box.conditions[0].above, round(box.share, 2)) for box in found]
    [(True, 0.3)]
    """
    points, others = Features.of(points), Features.of(others)
    # 1) Tails of single features.
    total = mass.sum()
    draw = EvenDraw(
        np.ones(len(points)) if design is None else design,
        mass / total,
        None if squares is None else squares / total**2,
    )
    search = _Search(points, others, draw, chance)
    found = list(search.tails())
    # 2) Boxes of several conditions: each half of the points grows a tree, the other checks it.
    half = np.random.RandomState(seed).permutation(len(points))
    first, second = half[: len(half) // 2], half[len(half) // 2 :]
    if len(first):
        found += search.boxes(((first, second), (second, first)), grow_on, seed)
    # 3) Keep those that are too large to be empty by chance, and that larger ones do not cover.
    return search.distinct(found)


class _Search:
    """The two sets, and what counts as a box between them."""

    def __init__(self, points: Features, others: Features, draw: EvenDraw, chance: float) -> None:
        self.points, self.others = points, others
        self.mass, self._draw = draw.mass, draw
        self._even = bool((draw.mass == draw.mass[:1]).all())
        pairs = zip(points.columns, others.columns, strict=True)
        marks = [_is_mark(mine) and _is_mark(theirs) for mine, theirs in pairs]
        # log c of the module's text, for each feature
        choices = np.log(2.0 * len(marks) * np.where(marks, 1, len(points)))
        self._log_choices: list[float] = choices.tolist()
        self._log_chance = float(np.log(chance))

    def is_large(self, box: Box, where: BoolArray) -> bool:
        """Whether the others in a part of the box are too many for it to be empty by chance."""
        evidence = self._draw.evidence(self.mass[where].sum(), self._draw.squares[where].sum())
        return bool(evidence >= self._needed(box))

    def _needed(self, box: Box) -> float:
        """Return the evidence that a box needs."""
        return sum(self._log_choices[c.feature] for c in box.conditions) - self._log_chance

    def share(self, where: BoolArray) -> float:
        if self._even:  # then equal numbers of rows are equal shares, however they are summed
            return float(self.mass[0] * np.count_nonzero(where))
        return float(self.mass[where].sum())

    def tails(self) -> Iterator[Box]:
        """Yield what lies beyond the extreme points of each feature."""
        for feature, mine in enumerate(self.points.columns):
            theirs = self.others.columns[feature]
            for above in (True, False):
                condition = _widest(Condition(feature, above, 0.0, (0.0, 0.0)), mine, theirs)
                if condition is not None:
                    yield Box((condition,), self.share(condition.holds_for(theirs)))

    def boxes(
        self, halves: Sequence[tuple[IntArray, IntArray]], grow_on: int, seed: int
    ) -> Iterator[Box]:
        """Yield boxes that the points seen leave empty, and the unseen ones too.

        Each of the two halves is the points seen, of which ``grow_on`` grow a tree, and those
        unseen.
        """
        some = np.random.RandomState(seed).permutation(len(self.others))[:grow_on]
        others, mass = self.others.take(some), self.mass[some]
        known = [self.points.take(seen[:grow_on]) for seen, _ in halves]
        with ThreadPoolExecutor(1) as pool:
            second = pool.submit(_leaves_without, known[1], others, mass, seed)
            trees = [_leaves_without(known[0], others, mass, seed), second.result()]
        for (_, unseen), mine, paths in zip(halves, known, trees, strict=True):
            refuting = self.points.take(unseen)
            for path in paths:
                # 1) Drop the conditions of a leaf that exclude no point.
                wide = self._without_useless(path, mine)
                held = Held(wide, self.others)
                inside = held.all
                if not self.share(inside):  # missing values, which no condition describes
                    continue
                # 2) Unseen points within its core refute the box.
                if all_hold(self._core(wide, inside), refuting).any():
                    continue
                # 3) Shrink the box until it holds no point at all, then widen it to the next point.
                if conditions := self._emptied(wide, held):
                    yield Box(conditions, self.share(held.all))

    def distinct(self, boxes: Sequence[Box]) -> list[Box]:
        """Keep a box only if the mass that it adds to those before it is large by itself."""
        left = np.ones(len(self.others), dtype=bool)
        kept: list[Box] = []
        # Evidence is at most the number of points that the box would hold, so that most are too
        # small at first sight: x log(1 + n / x) ≤ n.
        points = self._draw.points_with(np.array([box.share for box in boxes]))
        large = [box for box, most in zip(boxes, points, strict=True) if most >= self._needed(box)]
        for box in sorted(large, key=lambda box: (-box.share, len(box.conditions))):
            added = box.holds(self.others) & left
            if self.is_large(box, added) and self._is_wide(box):
                kept.append(box)
                left &= ~added
        return kept

    def _is_wide(self, box: Box) -> bool:
        """Whether a gap between two values of a feature is wide beside the spacing of the points.

        Others that are heaped at round values lie between two points as near as points are to each
        other: that is no gap, however many they are.
        """
        for low, high in combinations(box.conditions, 2):
            if low.feature != high.feature:
                continue
            low, high = (low, high) if low.above else (high, low)
            rest = [c for c in box.conditions if c.feature != low.feature]
            mine = self.points.columns[low.feature]
            mine = np.sort(mine[all_hold(rest, self.points)] if rest else mine)
            place = int(np.searchsorted(mine, low.border, side="right"))
            near = mine[max(0, place - NEAR) : place + NEAR]
            if high.gap[1] - low.border < WIDE * float(near[-1] - near[0]):
                return False
        return True

    def _without_useless(self, path: Sequence[Condition], points: Features) -> list[Condition]:
        """Drop conditions that exclude no point, first the one whose removal adds the most mass."""
        kept = {1 << place: condition for place, condition in enumerate(path)}
        # 1) How many points, and how much of the others, miss each set of conditions and no other.
        number = np.bincount(Held(path, points).missed, minlength=1 << len(path)).tolist()
        mass = np.bincount(
            Held(path, self.others).missed,
            weights=None if self._even else self.mass,
            minlength=1 << len(path),
        ).tolist()
        # 2) Conditions that no point misses alone, given those dropped already.
        dropped = 0
        while len(kept) > 1:
            added = {
                one: sum(mass[missed] for missed in _subsets(dropped | one))
                for one in kept
                if not any(number[missed] for missed in _subsets(dropped | one))
            }
            if not added:
                break
            most = max(added, key=added.__getitem__)
            dropped |= most
            del kept[most]
        return list(kept.values())

    def _core(self, conditions: Sequence[Condition], inside: BoolArray) -> list[Condition]:
        """Return the box less the ``BORDER`` of its mass that lies next to its borders.

        Points that the tree has not seen may lie there even if the box is truly empty.
        """
        part, rows = BORDER / len(conditions), np.flatnonzero(inside)
        return [
            c._replace(border=_quantile(values[rows], part if c.above else 1 - part))
            for c in conditions
            for values in (self.others.columns[c.feature],)
        ]

    def _emptied(self, kept: list[Condition], others: Held) -> tuple[Condition, ...]:
        """Move the borders to where the points begin; () if nothing is left.

        ``others`` follows.
        """
        rows = np.flatnonzero(all_hold(kept, self.points))
        while len(rows):
            narrowed = [_excluding(c, self.points.columns[c.feature][rows[0]]) for c in kept]
            shares = [
                self.share(others.without(place) & condition.holds(self.others))
                for place, condition in enumerate(narrowed)
            ]
            place = shares.index(max(shares))
            if not shares[place]:
                return ()
            kept[place] = narrow = narrowed[place]
            others.replace(place, narrow)
            rows = rows[narrow.holds_for(self.points.columns[narrow.feature][rows])]
        points = Held(kept, self.points)
        for place, condition in enumerate(kept):
            mine, theirs = (
                side.columns[condition.feature][held.without(place)]
                for side, held in ((self.points, points), (self.others, others))
            )
            widest = _widest(condition, mine, theirs)
            if widest is None:
                return ()
            kept[place] = widest
            points.replace(place, widest)
            others.replace(place, widest)
        return tuple(sorted(kept, key=lambda c: (c.feature, c.above)))


@cache
def _subsets(bits: int) -> list[int]:
    """Return the numbers whose bits are among those of another, the empty set first."""
    return [some for some in range(bits + 1) if not some & ~bits]


def _widest(condition: Condition, mine: FloatArray, theirs: FloatArray) -> Condition | None:
    """Move the border to where the points begin; None if no other lies beyond them.

    The values of the condition's feature are those within all other conditions.
    """
    extreme = np.fmax if condition.above else np.fmin  # which pass over NaN
    last = float(extreme.reduce(mine)) if len(mine) else np.nan
    if not np.isfinite(last):
        return None
    beyond = theirs[theirs > last if condition.above else theirs < last]
    if not len(beyond):
        return None
    if condition.above:
        return condition._replace(border=last, gap=(last, float(beyond.min())))
    first = float(beyond.max())
    return condition._replace(border=first, gap=(first, last))


def _quantile(values: FloatArray, share: float) -> float:
    """Return ``numpy.quantile`` of one share, which takes a tenth of the time."""
    place = share * (len(values) - 1)
    low = int(place)
    high = min(low + 1, len(values) - 1)
    both = np.partition(values, (low, high)).astype(np.float64)
    return float(both[low] + (both[high] - both[low]) * (place - low))


def _is_mark(column: Any) -> bool:
    return column.dtype == bool or bool(((column == 0) | (column == 1)).all())


def _excluding(condition: Condition, value: float) -> Condition:
    border = float(value)
    return condition._replace(
        border=border if condition.above else float(np.nextafter(border, -np.inf))
    )


def _leaves_without(
    points: Features, others: Features, mass: FloatArray, seed: int
) -> list[tuple[Condition, ...]]:
    """Return the conditions of each leaf without points, of a tree that separates the sets."""
    from sklearn import config_context
    from sklearn.tree import DecisionTreeClassifier

    # scikit-learn's trees compare in single precision, and add the values up to look for infinity.
    shape = len(points) + len(others), len(points.columns)
    stacked = np.empty(shape, dtype=np.float32, order="F")
    for place, (mine, theirs) in enumerate(zip(points.columns, others.columns, strict=True)):
        values = np.concatenate([mine, theirs]).astype(np.float64)
        missing = np.isnan(values)
        if missing.any():
            # They get a column of their own; here they are the median, or zero without values.
            known = mine[~np.isnan(mine)]
            with np.errstate(over="ignore", invalid="ignore"):
                values[missing] = np.nan_to_num(np.median(known)) if len(known) else 0.0
        stacked[:, place] = np.clip(values, -1e30, 1e30)
    is_other = np.arange(len(stacked)) >= len(points)
    weight = np.concatenate([np.full(len(points), 1 / len(points)), mass / mass.sum()])
    tree = DecisionTreeClassifier(max_depth=MAX_DEPTH, max_leaf_nodes=MAX_LEAVES, random_state=seed)
    with config_context(skip_parameter_validation=True):  # it and the check are no small part
        tree.fit(stacked, is_other, sample_weight=weight, check_input=False)
    with_points = tree.tree_.value[:, 0, 0] > 0  # the weight of the first class, not an other
    return [path for node, path in _paths(tree.tree_) if path and not with_points[node]]


def _paths(tree: Any) -> Iterable[tuple[int, tuple[Condition, ...]]]:
    pending: list[tuple[int, tuple[Condition, ...]]] = [(0, ())]
    lefts, rights = tree.children_left.tolist(), tree.children_right.tolist()
    features, borders = tree.feature.tolist(), tree.threshold.tolist()
    while pending:
        node, path = pending.pop()
        left, right, feature, border = lefts[node], rights[node], features[node], borders[node]
        if left == right:
            yield node, path
            continue
        for child, above in ((left, False), (right, True)):
            others = tuple(c for c in path if (c.feature, c.above) != (feature, above))
            condition = Condition(feature, above, border, (border, border))
            pending.append((child, (*others, condition)))
