r"""Regions that hold much of one set of points and none of another.

**An even draw.** If m points and r others were draws from one distribution, it would be chance
which of them are points. Fix a region with k of the others: no point lies in it with probability of
at most :math:`(r / (m + r))^k`, whose negative logarithm, the *evidence*, is
:math:`k \log(1 + m / r)`.

**Weights.** k is the effective number (Kish) of the others in the region, and m / r is n / k, where
n is the number of points that an even draw would place there. Points with design weights were drawn
with unequal probabilities, and a region may consist of what is drawn the least often: a region of
share p then counts on no more points than the heaviest ones that carry a share p of the design
weight. Without weights, n is m p.

**Values.** A column cuts the rows into values, of which the points may lack many by chance where
there are many. Given how often each value occurs in both sets together, the indicators of the
values that the points lack are negatively associated (Joag-Dev and Proschan, The Annals of
Statistics 11, 1983), so that Chernoff's inequality for independent ones bounds the tail of the mass
that they lack.

**Boxes.** A box is a conjunction of conditions, each "greater than" or "at most" on one feature.
Boxes are found by looking, so each condition pays for the choices that it had: its feature, its
direction and, where the feature is not a mark of 0 or 1, one of the m points as its border. A box
of conditions with c_1, c_2, … choices and a share p of the others is reported only if

.. math:: r p \log(1 + m / r) \ge \sum_j \log c_j + \log(1 / \mathrm{chance}),

so that one distribution yields any box at all with probability of at most ``chance`` for each
number of conditions, whatever the search does (the union bound). With many others the left side
is m p.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

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


class EvenDraw:
    """Two sets of rows, as if they were draws from one distribution.

    Parameters
    ----------
    design : ndarray of shape (m,)
        The design weights of the points, all positive.
    mass : ndarray of shape (r,)
        Of the others; it sums to one.
    squares : ndarray of shape (r,), optional
        The sum of squared masses of the rows that each of the others stands for; by default each
        stands for itself.

    Examples
    --------
    >>> draw = EvenDraw(np.ones(100), np.full(400, 1 / 400))
    >>> print(draw.evidence(0.1, 0.1 / 400).round(2), (40 * np.log(1 + 100 / 400)).round(2))
    8.93 8.93
    """

    def __init__(
        self, design: FloatArray, mass: FloatArray, squares: FloatArray | None = None
    ) -> None:
        self.mass = mass
        self.squares = mass**2 if squares is None else squares
        self.design = design / design.sum()
        # A region of a share may consist of the heaviest points: the fewest that carry it.
        heaviest_first = np.sort(self.design)[::-1]
        self._carried = np.append(0.0, np.cumsum(heaviest_first))
        self._points = np.arange(len(self._carried), dtype=np.float64)

    @property
    def effective_others(self) -> float:
        """The effective number of the others."""
        return float(1 / self.squares.sum())

    def points_with(self, share: float | FloatArray) -> FloatArray:
        """Return how many points, the heaviest first, carry a share of the design weight."""
        return np.asarray(np.interp(share, self._carried, self._points))

    def evidence(self, share: float | FloatArray, squares: float | FloatArray) -> FloatArray:
        """Return −log of the probability that no point lies where a share of the others does.

        ``squares`` is the sum of ``squares`` there.
        """
        return _evidence(_rows(np.asarray(share), np.asarray(squares)), self.points_with(share))

    def totals(self, of_others: IntArray, n_values: int) -> tuple[FloatArray, FloatArray]:
        """Return the mass and the squares of each value of a column."""
        mass = np.bincount(of_others, weights=self.mass, minlength=n_values)
        squares = np.bincount(of_others, weights=self.squares, minlength=n_values)
        return mass.astype(np.float64), squares.astype(np.float64)

    def lacking(
        self,
        of_points: IntArray,
        of_others: IntArray,
        n_values: int,
        *,
        except_for: IntArray | None = None,
    ) -> tuple[FloatArray, FloatArray]:
        """Return the mass of each value of a column, and the chance that an even draw lacks it.

        The arguments are the value of each point and of each of the others, as numbers. The mass of
        values in ``except_for`` counts as zero.
        """
        mass, squares = self.totals(of_others, n_values)
        design = np.bincount(of_points, weights=self.design, minlength=n_values)
        # Both sets together: the mass that a value has if all of its rows are others.
        points = design / np.square(self.design).sum()
        share = mass + points * self.squares.sum()
        rows = _rows(mass, squares) + points
        probability = np.exp(-_evidence(rows, self.points_with(share)))
        if except_for is not None:
            share[except_for] = 0.0
        return share, probability


def log_tail(share: FloatArray, probability: FloatArray, mass: float) -> float:
    """Return an upper bound on the log of the chance that an even draw lacks at least a mass.

    ``share`` and ``probability`` are those of :meth:`EvenDraw.lacking`.
    """
    if mass <= float(share @ probability):
        return 0.0
    probability = np.clip(probability, 1e-300, 1 - 1e-16)
    no, yes = np.log1p(-probability), np.log(probability)

    def chernoff(log_tilt: float) -> float:
        # log E e^(s L) − s·mass of the lacking mass L = Σ share · 1{lacking}, at the tilt s.
        tilt = math.exp(log_tilt)
        return float(np.logaddexp(no, yes + tilt * share).sum() - tilt * mass)

    # Any tilt gives a valid bound; the least is near the inverse of a share of a value.
    middle = -math.log(float(share.max()))
    found = minimize_scalar(chernoff, bounds=(middle - 10, middle + 10), method="bounded")
    return min(0.0, float(found.fun))


def _rows(share: FloatArray, squares: FloatArray) -> FloatArray:
    """Return the effective number of rows."""
    return np.divide(share**2, squares, out=np.zeros_like(share), where=squares > 0)


def _evidence(rows: FloatArray, points: FloatArray) -> FloatArray:
    ratio = np.divide(points, rows, out=np.zeros_like(rows), where=rows > 0)
    return rows * np.log1p(ratio)


Columns = Sequence[NDArray[Any]]
"""Points by column: numbers, NaN where missing, or marks of 0 and 1 as booleans."""


def _columns(points: FloatArray | Columns) -> Columns:
    return list(np.asfortranarray(points).T) if isinstance(points, np.ndarray) else points


def _take(points: Columns, rows: IntArray) -> Columns:
    return [column[rows] for column in points]


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

    def holds(self, points: Columns) -> BoolArray:
        """Return which points satisfy it; a missing value satisfies no condition."""
        return self.holds_for(points[self.feature])

    def holds_for(self, values: FloatArray) -> BoolArray:
        """Return which values of its feature satisfy it."""
        return values > self.border if self.above else values <= self.border


@dataclass(frozen=True)
class Box:
    """Conditions, all of which hold in the box, and the share of the mass that does."""

    conditions: tuple[Condition, ...]
    share: float

    def holds(self, points: FloatArray | Columns) -> BoolArray:
        """Return which points lie in the box."""
        return all_hold(self.conditions, _columns(points))


def all_hold(conditions: Sequence[Condition], points: Columns) -> BoolArray:
    """Return which points satisfy all of some conditions, at least one."""
    held = conditions[0].holds(points)
    for condition in conditions[1:]:
        held &= condition.holds(points)
    return held


def empty_boxes(
    points: FloatArray | Columns,
    others: FloatArray | Columns,
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
    points : ndarray of shape (m, d), or its columns
        Missing values are NaN; marks of 0 and 1 may be booleans.
    others : ndarray of shape (r, d), or its columns
    mass : ndarray of shape (r,)
        Of the others.
    design, squares : ndarray of shape (m,) and (r,), optional
        As for :class:`EvenDraw`.
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
    points, others = _columns(points), _columns(others)
    n_points = len(points[0]) if points else 0
    # 1) Tails of single features.
    total = mass.sum()
    draw = EvenDraw(
        np.ones(n_points) if design is None else design,
        mass / total,
        None if squares is None else squares / total**2,
    )
    search = _Search(points, others, draw, chance)
    found = list(search.tails())
    # 2) Boxes of several conditions: each half of the points grows a tree, the other checks it.
    half = np.random.RandomState(seed).permutation(n_points)
    first, second = half[: len(half) // 2], half[len(half) // 2 :]
    if len(first):
        found += search.boxes(((first, second), (second, first)), grow_on, seed)
    # 3) Keep those that are too large to be empty by chance, and that larger ones do not cover.
    return search.distinct(found)


class _Search:
    """The two sets, and what counts as a box between them."""

    def __init__(self, points: Columns, others: Columns, draw: EvenDraw, chance: float) -> None:
        self.points, self.others = points, others
        self.mass, self._draw = draw.mass, draw
        self._even = bool((draw.mass == draw.mass[:1]).all())
        pairs = zip(points, others, strict=True)
        marks = [all(map(_is_mark, sides)) for sides in pairs]
        # log c of the module's text, for each feature
        choices = np.log(2.0 * len(marks) * np.where(marks, 1, len(draw.design)))
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
        for feature, (values, others) in enumerate(zip(self.points, self.others, strict=True)):
            for above in (True, False):
                condition = _widest(Condition(feature, above, 0.0, (0.0, 0.0)), values, others)
                if condition is not None:
                    yield Box((condition,), self.share(condition.holds_for(others)))

    def boxes(
        self, halves: Sequence[tuple[IntArray, IntArray]], grow_on: int, seed: int
    ) -> Iterator[Box]:
        """Yield boxes that the points seen leave empty, and the unseen ones too.

        Each of the two halves is the points seen, of which ``grow_on`` grow a tree, and those
        unseen.
        """
        some = np.random.RandomState(seed).permutation(len(self.mass))[:grow_on]
        others, mass = _take(self.others, some), self.mass[some]
        known = [_take(self.points, seen[:grow_on]) for seen, _ in halves]
        with ThreadPoolExecutor(1) as pool:
            second = pool.submit(_leaves_without, known[1], others, mass, seed)
            trees = [_leaves_without(known[0], others, mass, seed), second.result()]
        for (_, unseen), points, paths in zip(halves, known, trees, strict=True):
            refuting = _take(self.points, unseen)
            for path in paths:
                # 1) Drop the conditions of a leaf that exclude no point.
                wide = self._without_useless(path, points)
                held = _held(wide, self.others)
                inside = _inside(held)
                if not self.share(inside):  # missing values, which no condition describes
                    continue
                # 2) Unseen points within its core refute the box.
                if all_hold(self._core(wide, inside), refuting).any():
                    continue
                # 3) Shrink the box until it holds no point at all, then widen it to the next point.
                if conditions := self._emptied(wide, held):
                    yield Box(conditions, self.share(_inside(held)))

    def distinct(self, boxes: Sequence[Box]) -> list[Box]:
        """Keep a box only if the mass that it adds to those before it is large by itself."""
        left = np.ones(len(self.mass), dtype=bool)
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
            values = self.points[low.feature]
            values = np.sort(values[all_hold(rest, self.points)] if rest else values)
            place = int(np.searchsorted(values, low.border, side="right"))
            near = values[max(0, place - NEAR) : place + NEAR]
            if high.gap[1] - low.border < WIDE * float(near[-1] - near[0]):
                return False
        return True

    def _without_useless(self, path: Sequence[Condition], points: Columns) -> list[Condition]:
        """Drop conditions that exclude no point, first the one whose removal adds the most mass."""
        kept, held, of_others = list(path), _held(path, points), _held(path, self.others)
        while len(kept) > 1:
            useless = [place for place, rest in enumerate(_without(held)) if not rest.any()]
            if not useless:
                break
            rests = list(_without(of_others))
            most = max(useless, key=lambda place: self.share(rests[place]))
            del kept[most]
            held, of_others = np.delete(held, most, axis=0), np.delete(of_others, most, axis=0)
        return kept

    def _core(self, conditions: Sequence[Condition], inside: BoolArray) -> list[Condition]:
        """Return the box less the ``BORDER`` of its mass that lies next to its borders.

        Points that the tree has not seen may lie there even if the box is truly empty.
        """
        part, rows = BORDER / len(conditions), np.flatnonzero(inside)
        return [
            c._replace(border=_quantile(values[rows], part if c.above else 1 - part))
            for c in conditions
            for values in (self.others[c.feature],)
        ]

    def _emptied(self, kept: list[Condition], others: BoolArray) -> tuple[Condition, ...]:
        """Move the borders to where the points begin; () if nothing is left.

        ``others`` says which of the conditions each of the others satisfies, and follows.
        """
        rows = np.flatnonzero(all_hold(kept, self.points))
        while len(rows):
            narrowed = [_excluding(c, self.points[c.feature][rows[0]]) for c in kept]
            shares = [
                self.share(rest & condition.holds(self.others))
                for condition, rest in zip(narrowed, _without(others), strict=True)
            ]
            place = shares.index(max(shares))
            if not shares[place]:
                return ()
            kept[place] = narrow = narrowed[place]
            others[place] = narrow.holds(self.others)
            rows = rows[narrow.holds_for(self.points[narrow.feature][rows])]
        points = _held(kept, self.points)
        for place, condition in enumerate(kept):
            values, beyond = (
                side[condition.feature][list(_without(held))[place]]
                for side, held in ((self.points, points), (self.others, others))
            )
            widest = _widest(condition, values, beyond)
            if widest is None:
                return ()
            kept[place] = widest
            points[place], others[place] = widest.holds(self.points), widest.holds(self.others)
        return tuple(sorted(kept, key=lambda c: (c.feature, c.above)))


def _held(conditions: Sequence[Condition], points: Columns) -> BoolArray:
    """Return which conditions each point satisfies, a row for each condition."""
    return np.array([condition.holds(points) for condition in conditions])


def _inside(held: BoolArray) -> BoolArray:
    inside: BoolArray = np.logical_and.reduce(held, axis=0)
    return inside


def _without(held: BoolArray) -> Iterator[BoolArray]:
    """Yield, for each condition, which points lie in the box less that one."""
    missed = np.add.reduce(~held, axis=0, dtype=np.uint8)
    for one in held:  # a point misses no other condition if it misses this one or none
        yield missed == (~one).view(np.uint8)


def _widest(condition: Condition, points: FloatArray, others: FloatArray) -> Condition | None:
    """Move the border to where the points begin; None if no other lies beyond them.

    The values of the condition's feature are those within all other conditions.
    """
    extreme = np.fmax if condition.above else np.fmin  # which pass over NaN
    last = float(extreme.reduce(points)) if len(points) else np.nan
    if not np.isfinite(last):
        return None
    beyond = others[others > last if condition.above else others < last]
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
    points: Columns, others: Columns, mass: FloatArray, seed: int
) -> list[tuple[Condition, ...]]:
    """Return the conditions of each leaf without points, of a tree that separates the sets."""
    from sklearn import config_context
    from sklearn.tree import DecisionTreeClassifier

    # scikit-learn's trees compare in single precision, and add the values up to look for infinity.
    n_points = len(points[0])
    stacked = np.empty((n_points + len(mass), len(points)), dtype=np.float32, order="F")
    for place, sides in enumerate(zip(points, others, strict=True)):
        values = np.concatenate(sides).astype(np.float64)
        missing = np.isnan(values)
        if missing.any():
            # They get a column of their own; here they are the median, or zero without values.
            known = values[:n_points][~missing[:n_points]]
            with np.errstate(over="ignore", invalid="ignore"):
                values[missing] = np.nan_to_num(np.median(known)) if len(known) else 0.0
        stacked[:, place] = np.clip(values, -1e30, 1e30)
    is_other = np.arange(len(stacked)) >= n_points
    weight = np.concatenate([np.full(n_points, 1 / n_points), mass / mass.sum()])
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
