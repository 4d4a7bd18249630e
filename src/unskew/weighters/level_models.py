r"""Density ratios by level: partial pooling of many categories.

Models of numbers and trees see little in a column of many categories, each with few rows. Here the
logarithm of the ratio is a sum of effects of levels, :math:`\sum_c e_{c, l_c(x)}`, that minimises
the balanced log loss with the same ridge on every effect: a level of :math:`m_l` sample rows keeps
about :math:`m_l / (m_l + \kappa)` of its correction. κ is the one with the least held-out loss.
Frequent combinations of values, *cells*, have effects beside those of their levels, with a κ of
their own: where effects of levels add up, it is large.

Such effects are best for single weights, and too small on the whole: each is drawn to zero. Where
levels matter, :class:`LevelTilt` therefore brings the weights that were pooled nearer to the
population's shares of levels: with the sample's weighted share :math:`W_l` and the population's
:math:`N_l`, :math:`W_l e^{e_l} + \kappa e_l / m = N_l`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from unskew.numerics.ratio_loss import lowers_loss, ratio_loss
from unskew.numerics.row_keys import Words
from unskew.numerics.typing import FloatArray, IntArray
from unskew.weighters.ratio_models import RatioModels
from unskew.weighters.two_samples import TwoSamples, hash_values

HELD = 1e9
"""The penalty of an effect that is to be zero."""
NO_EFFECT = 1e6
RIDGES = (NO_EFFECT, 100.0, 30.0, 10.0, 3.0, 1.0, 0.3)
"""The sample rows at which a level keeps half of its correction, the most cautious first."""
MAX_SWEEPS = 20
TOLERANCE = 1e-4
"""The largest change of an effect, in nats, at which they count as found."""
LONGEST_STEP = 2.0
TILTED = 0.15
"""The ridge with which weights are brought nearer to shares, as a multiple of the models': of 0.03
to 0.5, the one with which a mean by 60 or 200 levels is off by less than with cells, while single
weights are as good."""
RARE = 5
"""Levels of up to so many sample rows stand for those that no sample row has."""


class LevelBlock(NamedTuple):
    """The levels of a column, or values of whole rows by their hash (column -1)."""

    column: int
    known: Any

    @property
    def width(self) -> int:
        """The number of effects: a missing value has one, and what is not known."""
        return len(self.known) + 2

    def places(self, codes: FloatArray) -> IntArray:
        """Return the level of each row."""
        column: Any = hash_values(codes) if self.column < 0 else codes[:, self.column]
        found = np.searchsorted(self.known, column)
        known = np.append(self.known, self.known[:1])[found] == column
        found[~known] = len(self.known) + 1
        found[np.isnan(column)] = len(self.known)
        return found


def add_effects(effects: Sequence[FloatArray], places: Sequence[IntArray]) -> FloatArray:
    """Return the sum of each row's effects."""
    return np.sum([e[place] for e, place in zip(effects, places, strict=True)], axis=0)


def solve_effects(
    start: Sequence[FloatArray],
    places: Sequence[IntArray],
    penalties: Sequence[FloatArray],
    derivatives: Callable[[FloatArray], tuple[FloatArray, FloatArray]],
    targets: Sequence[FloatArray | float],
) -> list[FloatArray]:
    """Return the effects with the least loss, by Newton's method for one block at a time.

    Parameters
    ----------
    start : sequence of ndarray
        Effects to begin with, for each block.
    places : sequence of ndarray of shape (n_rows,)
        Which of them each row has.
    penalties : sequence of ndarray
        Of half the square of each effect.
    derivatives : callable
        Returns the loss's first and second derivatives by each row's sum of effects.
    targets : sequence of ndarray or float
        What the sums of first derivatives are to be, up to the penalty: zero at a minimum.
    """
    effects = [effect.copy() for effect in start]
    total = add_effects(effects, places)
    blocks = list(zip(effects, places, penalties, targets, strict=True))
    for _ in range(MAX_SWEEPS):
        largest = 0.0
        for effect, place, penalty, target in blocks:
            first, second = (np.bincount(place, one, len(effect)) for one in derivatives(total))
            step = (target - first - penalty * effect) / (second + penalty)
            step = np.clip(step, -LONGEST_STEP, LONGEST_STEP)
            effect += step
            total += step[place]
            largest = max(largest, float(np.abs(step).max()))
        if largest < TOLERANCE:
            break
    return effects


class LevelModels(RatioModels):
    """Effects of the levels of columns, and of frequent rows, one for each fold.

    Parameters
    ----------
    cells : ndarray of uint64, optional
        Hashes of frequent rows, sorted.

    Attributes
    ----------
    blocks : list of LevelBlock
    ridges : list of float
        The κ of each block with the least held-out loss.
    matters : bool
        Whether that loss is below that of equal weights by two standard errors.
    """

    def __init__(self, cells: Words | None = None) -> None:
        self.cells = cells

    def fit(self, rows: TwoSamples) -> FloatArray:
        """Choose the ridge of levels, then that of cells beside them."""
        codes = rows.codes
        places = [p for p in range(len(codes.names)) if codes.n_categories(p)]
        self.blocks = [LevelBlock(p, np.arange(float(codes.n_categories(p)))) for p in places]
        groups = [slice(len(places))] if places else []
        if self.cells is not None and len(self.cells) > 1 and len(codes.names) > len(groups):
            self.blocks.append(LevelBlock(-1, self.cells))
            groups.append(slice(len(places), None))
        self.n_models = rows.n_folds
        self.ridges = [NO_EFFECT] * len(self.blocks)
        self.effects: list[list[FloatArray]] = [
            [np.zeros(block.width) for block in self.blocks] for _ in range(rows.n_folds)
        ]
        located = [block.places(rows.given) for block in self.blocks]
        held_out: FloatArray = np.zeros(len(rows.values))
        for group in groups:
            held_out = self._choose(rows, located, group)
        even = rows.shares.map(np.zeros_like)
        self.matters = rows.n_folds > 1 and lowers_loss(rows.split(held_out), even, rows.shares)
        return held_out

    def _choose(self, rows: TwoSamples, located: list[IntArray], group: slice) -> FloatArray:
        """Choose the ridge of some blocks, and return each row's ratio without its fold."""
        found, effects = [], self.effects
        for ridge in RIDGES:
            ridges = self.ridges.copy()
            ridges[group] = [ridge] * len(ridges[group])
            effects = [
                self._effects(rows, rows.outside(number), located, ridges, start)
                for number, start in enumerate(effects)
            ]
            held_out = np.zeros(len(rows.values))
            for number, own in enumerate(effects):
                inside = rows.inside(number)
                held_out[inside] = add_effects(own, [place[inside] for place in located])
            loss = ratio_loss(rows.split(held_out), rows.shares).value
            found.append((loss, ridges, held_out, effects))
        _, self.ridges, held_out, self.effects = min(found, key=lambda one: one[0])
        return held_out

    def _effects(
        self,
        rows: TwoSamples,
        train: IntArray,
        located: list[IntArray],
        ridges: list[float],
        start: list[FloatArray],
    ) -> list[FloatArray]:
        """Return the effects with the least balanced log loss on some rows."""
        is_sample = rows.is_sample[train]
        mass = rows.balanced(train) / len(train)
        row = float(np.square(mass[is_sample]).sum())

        def derivatives(total: FloatArray) -> tuple[FloatArray, FloatArray]:
            chance = expit(total)
            return mass * (chance - ~is_sample), mass * chance * (1 - chance)

        places = [place[train] for place in located]
        each = zip(start, ridges, strict=True)
        # What is not known, and a row that is not frequent, has no effect.
        penalties = [np.append(np.full(len(e) - 1, ridge * row), HELD) for e, ridge in each]
        return solve_effects(start, places, penalties, derivatives, [0.0] * len(places))

    def predict(self, number: int, encoded: FloatArray) -> FloatArray:
        """Return the sum of the effects of the rows' levels."""
        return add_effects(self.effects[number], [block.places(encoded) for block in self.blocks])


class LevelTilt:
    """Effects by which weights come nearer to the population's shares of levels.

    Levels of up to ``RARE`` sample rows stand for those that no sample row has: where the
    population has such, they have one effect, and the share of both. Cells are left alone, but
    where there are no levels of columns.

    Parameters
    ----------
    models : LevelModels or None
        With its levels and ridges; None leaves weights as they are.
    """

    def __init__(self, models: LevelModels | None) -> None:
        self.blocks: list[LevelBlock] = []
        self.ridges: list[float] = []
        if models is not None:
            n_columns = sum(block.column >= 0 for block in models.blocks) or 1
            self.blocks, self.ridges = models.blocks[:n_columns], models.ridges[:n_columns]
        self.effects: list[FloatArray] = [np.zeros(block.width) for block in self.blocks]

    def fit(
        self, codes: FloatArray, weights: FloatArray, values: FloatArray, mass: FloatArray
    ) -> None:
        """Move the weights of rows with these codes to the shares of levels in the population.

        ``values`` and ``mass`` are the codes of its rows, and their weights.
        """
        if not self.blocks:
            return
        counted = weights > 0
        shares = weights[counted] / weights[counted].sum()
        row = TILTED * float(np.square(shares).sum())

        def derivatives(total: FloatArray) -> tuple[FloatArray, FloatArray]:
            own = shares * np.exp(total)
            own /= own.sum()
            return own, own

        places, penalties, targets = [], [], []
        for block, ridge in zip(self.blocks, self.ridges, strict=True):
            place = block.places(codes[counted])
            counts = np.bincount(place, minlength=block.width)
            target = np.bincount(block.places(values), mass, block.width)
            rare, known = (counts > 0) & (counts <= RARE), counts > 0
            if block.column >= 0 and target[rare].any():
                target[rare] *= 1 + min(1.0, target[~known].sum() / target[rare].sum())
            target[~known] = 0.0
            places.append(place)
            targets.append(target / target.sum())
            penalties.append(np.where(known, ridge * row, HELD))
        self.effects = solve_effects(self.effects, places, penalties, derivatives, targets)

    def of(self, codes: FloatArray) -> FloatArray:
        """Return the sum of the effects of rows, to add to the logarithms of their weights."""
        if not self.blocks:
            return np.zeros(len(codes))
        return add_effects(self.effects, [block.places(codes) for block in self.blocks])
