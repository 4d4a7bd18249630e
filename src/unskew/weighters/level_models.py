r"""Density ratios by level: partial pooling of many categories.

Models of numbers and trees see little in a column of many categories, each with few rows. Here the
logarithm of the ratio is a sum of effects of levels, :math:`\sum_c e_{c, l_c(x)}`, that minimises
the balanced log loss with the same ridge on every effect: a level of :math:`m_l` sample rows keeps
about :math:`m_l / (m_l + \kappa)` of its correction. κ is the one with the least held-out loss.

Such effects are best for single weights, and too small on the whole: each is drawn to zero. Where
levels matter, :class:`LevelTilt` therefore brings the weights that were pooled nearer to the
population's shares of levels: with the sample's weighted share :math:`W_l` and the population's
:math:`N_l`, :math:`W_l e^{e_l} + \kappa e_l / m = N_l`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from unskew.numerics.ratio_loss import lowers_loss, ratio_loss
from unskew.numerics.row_hash import Words
from unskew.numerics.typing import FloatArray, IntArray
from unskew.weighters.ratio_models import RatioModels
from unskew.weighters.two_samples import TwoSamples, hash_values

RIDGES = (100.0, 30.0, 10.0, 3.0, 1.0, 0.3)
"""The sample rows at which a level keeps half of its correction, the most cautious first."""
MAX_SWEEPS = 20
TOLERANCE = 1e-4
"""The largest change of an effect, in nats, at which they count as found."""
LONGEST_STEP = 2.0
TILTED = 0.5


class LevelBlock(NamedTuple):
    """The levels of a column, or values of whole rows by their hash (column -1)."""

    column: int
    known: Any

    @property
    def width(self) -> int:
        """The number of effects: a missing value has one, and what is not known (always zero)."""
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


class LevelModels(RatioModels):
    """Effects of the levels of columns, one for each fold.

    Parameters
    ----------
    frequent : ndarray of uint64, optional
        Hashes of rows, sorted: the levels are these rows, instead of the categories of columns.

    Attributes
    ----------
    blocks : list of LevelBlock
    ridge : float
        The κ with the least held-out loss.
    matters : bool
        Whether that loss is below that of equal weights by two standard errors.
    """

    def __init__(self, frequent: Words | None = None) -> None:
        self.frequent = frequent

    def fit(self, rows: TwoSamples) -> FloatArray:
        """Choose the ridge."""
        codes = rows.codes
        places = [p for p in range(len(codes.names)) if codes.n_categories(p)]
        self.blocks = [LevelBlock(p, np.arange(float(codes.n_categories(p)))) for p in places]
        if self.frequent is not None:
            self.blocks = [LevelBlock(-1, self.frequent)]
        self.n_models = rows.n_folds
        located = [block.places(rows.given) for block in self.blocks]
        found = []
        self.effects: list[list[FloatArray]] = [
            [np.zeros(b.width) for b in self.blocks] for _ in range(rows.n_folds)
        ]
        for ridge in RIDGES:
            self.effects = [
                self._effects(rows, rows.outside(number), located, ridge, start)
                for number, start in enumerate(self.effects)
            ]
            held_out = self.held_out(rows, rows.given)
            loss = ratio_loss(rows.split(held_out), rows.shares).value
            found.append((loss, ridge, held_out, self.effects))
        _, self.ridge, held_out, self.effects = min(found, key=lambda one: one[0])
        even = rows.shares.map(np.zeros_like)
        self.matters = rows.n_folds > 1 and lowers_loss(rows.split(held_out), even, rows.shares)
        return held_out

    def _effects(
        self,
        rows: TwoSamples,
        train: IntArray,
        located: list[IntArray],
        ridge: float,
        start: list[FloatArray],
    ) -> list[FloatArray]:
        """Return the effects with the least loss, by Newton's method for one block at a time."""
        places, is_sample = [place[train] for place in located], rows.is_sample[train]
        mass = rows.balanced(train) / len(train)
        penalty = ridge * float(np.square(mass[is_sample]).sum())
        effects = [effect.copy() for effect in start]
        total = add_effects(effects, places)
        for _ in range(MAX_SWEEPS):
            largest = 0.0
            for effect, place in zip(effects, places, strict=True):
                chance = expit(total)
                slope = np.bincount(place, mass * (chance - ~is_sample), len(effect))
                curve = np.bincount(place, mass * chance * (1 - chance), len(effect))
                step = -(slope + penalty * effect) / (curve + penalty)
                step = np.clip(step, -LONGEST_STEP, LONGEST_STEP)
                step[-1] = 0.0
                effect += step
                total += step[place]
                largest = max(largest, float(np.abs(step).max()))
            if largest < TOLERANCE:
                break
        return effects

    def predict(self, number: int, encoded: FloatArray) -> FloatArray:
        """Return the sum of the effects of the rows' levels."""
        return add_effects(self.effects[number], [block.places(encoded) for block in self.blocks])


class LevelTilt:
    """Effects by which weights come nearer to the population's shares of levels.

    Parameters
    ----------
    models : list of LevelModels
        Those that matter; with their levels and ridges.
    """

    def __init__(self, models: list[LevelModels]) -> None:
        self.blocks = [(block, TILTED * model.ridge) for model in models for block in model.blocks]
        self.effects = [np.zeros(block.width) for block, _ in self.blocks]

    def fit(
        self, codes: FloatArray, weights: FloatArray, values: FloatArray, shares: FloatArray
    ) -> None:
        """Move the weights of rows with these codes to the shares of levels among other rows.

        ``values`` and ``shares`` are the codes of the others, and their shares.
        """
        places = [block.places(codes) for block, _ in self.blocks]
        targets = [np.bincount(b.places(values), shares, b.width) for b, _ in self.blocks]
        mass = weights / weights.sum()
        row = float(np.square(mass).sum())
        for _ in range(MAX_SWEEPS if self.blocks else 0):
            largest = 0.0
            for (_, ridge), effect, place, target in zip(
                self.blocks, self.effects, places, targets, strict=True
            ):
                own = mass * np.exp(add_effects(self.effects, places))
                share = np.bincount(place, own / own.sum(), len(effect))
                step = (target - share - ridge * row * effect) / (share + ridge * row)
                step = np.clip(step, -LONGEST_STEP, LONGEST_STEP)
                step[-1] = 0.0
                effect += step
                largest = max(largest, float(np.abs(step).max()))
            if largest < TOLERANCE:
                break

    def of(self, codes: FloatArray) -> FloatArray:
        """Return the sum of the effects of rows, to add to the logarithms of their weights."""
        if not self.blocks:
            return np.zeros(len(codes))
        return add_effects(self.effects, [block.places(codes) for block, _ in self.blocks])
