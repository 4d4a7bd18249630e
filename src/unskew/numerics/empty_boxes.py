r"""Regions that hold much of one set of points and none of another.

A box is a conjunction of conditions, each "greater than" or "at most" on one feature. If m points
and r others were draws from one distribution, it would be chance which of those within a box that
was fixed beforehand are points: that k of the others lie there and no point has a probability of at
most :math:`(r / (m + r))^k` (:mod:`unskew.numerics.even_draw`, also for weights). Boxes are found
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
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from unskew.numerics.even_draw import EvenDraw
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


@dataclass(frozen=True)
class Condition:
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
        values: FloatArray = points.columns[self.feature]
        return values > self.border if self.above else values <= self.border


@dataclass(frozen=True)
class Box:
    """Conditions, all of which hold in the box, and the share of the mass that does."""

    conditions: tuple[Condition, ...]
    share: float

    def holds(self, points: FloatArray | Features) -> BoolArray:
        """Return which points lie in the box."""
        return _all_hold(self.conditions, Features.of(points))


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
        As for :class:`~unskew.numerics.even_draw.EvenDraw`.
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
    for seen, unseen in ((first, second), (second, first)):
        if len(seen) and len(unseen):
            found += search.boxes(seen[:grow_on], unseen, grow_on, seed)
    # 3) Keep those that are too large to be empty by chance, and that larger ones do not cover.
    return search.distinct(found)


class _Search:
    """The two sets, and what counts as a box between them."""

    def __init__(self, points: Features, others: Features, draw: EvenDraw, chance: float) -> None:
        self.points, self.others = points, others
        self.mass, self._draw = draw.mass, draw
        pairs = zip(points.columns, others.columns, strict=True)
        marks = [_is_mark(mine) and _is_mark(theirs) for mine, theirs in pairs]
        # log c of the module's text, for each feature
        self._log_choices = np.log(2.0 * len(marks) * np.where(marks, 1, len(points)))
        self._log_chance = np.log(chance)

    def is_large(self, box: Box, where: BoolArray) -> bool:
        """Whether the others in a part of the box are too many for it to be empty by chance."""
        choices = sum(self._log_choices[c.feature] for c in box.conditions)
        evidence = self._draw.evidence(self.mass[where].sum(), self._draw.squares[where].sum())
        return bool(evidence >= choices - self._log_chance)

    def share(self, conditions: Sequence[Condition]) -> float:
        return float(self.mass[_all_hold(conditions, self.others)].sum())

    def tails(self) -> Iterator[Box]:
        """Yield what lies beyond the extreme points of each feature."""
        for feature in range(len(self.points.columns)):
            for above in (True, False):
                condition = self._widest(Condition(feature, above, 0.0, (0.0, 0.0)), ())
                if condition is not None:
                    yield Box((condition,), self.share([condition]))

    def boxes(self, seen: IntArray, unseen: IntArray, grow_on: int, seed: int) -> Iterator[Box]:
        """Yield boxes that the points seen leave empty, and the unseen ones too."""
        some = np.random.RandomState(seed).permutation(len(self.others))[:grow_on]
        known, others = self.points.take(seen), self.others.take(some)
        for path in _leaves_without(known, others, self.mass[some], seed):
            # 1) Drop the conditions of a leaf that exclude no point.
            wide = self._without_useless(path, known)
            if not self.share(wide):  # a leaf of missing values, which no condition describes
                continue
            # 2) Unseen points within its core refute the box.
            if _all_hold(self._core(wide), self.points)[unseen].any():
                continue
            # 3) Shrink the box until it holds no point at all, then widen it up to the next point.
            if conditions := self._emptied(wide):
                yield Box(conditions, self.share(conditions))

    def distinct(self, boxes: Sequence[Box]) -> list[Box]:
        """Keep a box only if the mass that it adds to those before it is large by itself."""
        left = np.ones(len(self.others), dtype=bool)
        kept: list[Box] = []
        for box in sorted(boxes, key=lambda box: (-box.share, len(box.conditions))):
            added = box.holds(self.others) & left
            if self.is_large(box, added):
                kept.append(box)
                left &= ~added
        return kept

    def _without_useless(
        self, path: Sequence[Condition], points: Features
    ) -> tuple[Condition, ...]:
        """Drop conditions that exclude no point, first the one whose removal adds the most mass."""
        kept = list(path)
        while len(kept) > 1:
            rests = [[c for c in kept if c is not condition] for condition in kept]
            empty = [rest for rest in rests if not _all_hold(rest, points).any()]
            if not empty:
                break
            kept = max(empty, key=self.share)
        return tuple(kept)

    def _core(self, conditions: Sequence[Condition]) -> list[Condition]:
        """Return the box less the ``BORDER`` of its mass that lies next to its borders.

        Points that the tree has not seen may lie there even if the box is truly empty.
        """
        held = _all_hold(conditions, self.others)
        inside = np.array([self.others.columns[c.feature][held] for c in conditions], float)
        part = BORDER / len(conditions)
        low, high = np.quantile(inside, (part, 1 - part), axis=1)
        return [
            replace(c, border=float(a if c.above else b))
            for c, a, b in zip(conditions, low, high, strict=True)
        ]

    def _emptied(self, conditions: tuple[Condition, ...]) -> tuple[Condition, ...]:
        """Move the borders to where the points begin; () if nothing is left."""
        kept = list(conditions)
        while (inside := _all_hold(kept, self.points)).any():
            row = int(np.flatnonzero(inside)[0])
            values = [float(self.points.columns[c.feature][row]) for c in kept]
            narrowed = [
                [*kept[:place], _excluding(condition, values[place]), *kept[place + 1 :]]
                for place, condition in enumerate(kept)
            ]
            kept = max(narrowed, key=self.share)
            if not self.share(kept):
                return ()
        for place, condition in enumerate(kept):
            widest = self._widest(condition, kept[:place] + kept[place + 1 :])
            if widest is None:
                return ()
            kept[place] = widest
        return tuple(sorted(kept, key=lambda c: (c.feature, c.above)))

    def _widest(self, condition: Condition, rest: Sequence[Condition]) -> Condition | None:
        """Move the border to where the points begin; None if no other lies beyond them."""
        sign = 1.0 if condition.above else -1.0
        mine, theirs = (
            sign * side.columns[condition.feature][_all_hold(rest, side)]
            for side in (self.points, self.others)
        )
        last = float(np.nanmax(mine)) if (~np.isnan(mine)).any() else -np.inf
        beyond = theirs[theirs > last]  # NaN is not
        if not len(beyond) or not np.isfinite(last):
            return None
        first = float(beyond.min())
        if condition.above:
            return replace(condition, border=last, gap=(last, first))
        return replace(condition, border=-first, gap=(-first, -last))


def _is_mark(column: Any) -> bool:
    return column.dtype == bool or bool(((column == 0) | (column == 1)).all())


def _excluding(condition: Condition, value: float) -> Condition:
    border = value if condition.above else float(np.nextafter(value, -np.inf))
    return replace(condition, border=border)


def _leaves_without(
    points: Features, others: Features, mass: FloatArray, seed: int
) -> list[tuple[Condition, ...]]:
    """Return the conditions of each leaf without points, of a tree that separates the sets."""
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
    tree = DecisionTreeClassifier(
        max_depth=MAX_DEPTH, max_leaf_nodes=MAX_LEAVES, random_state=seed
    ).fit(stacked, is_other, sample_weight=weight)
    leaf = tree.apply(stacked)
    with_points = np.unique(leaf[~is_other])
    return [path for node, path in _paths(tree.tree_) if path and node not in with_points]


def _paths(tree: Any) -> Iterable[tuple[int, tuple[Condition, ...]]]:
    pending: list[tuple[int, tuple[Condition, ...]]] = [(0, ())]
    while pending:
        node, path = pending.pop()
        left, right = tree.children_left[node], tree.children_right[node]
        if left == right:
            yield node, path
            continue
        feature, border = int(tree.feature[node]), float(tree.threshold[node])
        for child, above in ((left, False), (right, True)):
            others = tuple(c for c in path if (c.feature, c.above) != (feature, above))
            condition = Condition(feature, above, border, (border, border))
            pending.append((child, (*others, condition)))


def _all_hold(conditions: Sequence[Condition], points: Features) -> BoolArray:
    held = np.ones(len(points), dtype=bool)
    for condition in conditions:
        held &= condition.holds(points)
    return held
