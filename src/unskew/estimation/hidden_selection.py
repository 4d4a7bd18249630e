"""How much a number can change if selection depends on more than the columns show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.optimize import brentq
from scipy.stats import t as student

from unskew.errors import InputError
from unskew.estimation.outcome_models import GroupSums
from unskew.estimation.results import FEW_ROWS
from unskew.estimation.targets import Target
from unskew.estimation.variances import bootstrapped, linearised
from unskew.estimation.weighing import Weighed
from unskew.numerics.design_variance import Design, Entries
from unskew.numerics.intervals import skewed_ends
from unskew.numerics.sharp_bounds import (
    CellProgram,
    FeatureProgram,
    MeanProgram,
    OddsProgram,
    SharpBound,
)
from unskew.numerics.typing import BoolArray, FloatArray
from unskew.numerics.weight_vectors import effective_sample_size
from unskew.weighters.linearisation import Balance

MOST_ODDS = 1000.0
"""Where no smaller factor changes a conclusion, none does."""
BLOCK = 16
"""Factors whose variances are computed together."""


@dataclass(frozen=True)
class Basis:
    """What an estimate was made from."""

    target: Target
    number: int
    """Which of the target's numbers it is."""
    weighed: Weighed
    design: Design
    options: Any
    variance: str
    kept: dict[Any, Any]
    """What does not depend on the number, once it is known: all numbers of a target share it."""


@dataclass(frozen=True)
class Ends:
    """Lower and upper bounds for several odds, each with the numbers of which it is the mean."""

    bounds: FloatArray
    """Of shape (n_odds, 2)."""
    pseudo: FloatArray
    """Of shape (n_rows, 2 n_odds): lower and upper of each."""
    gap: float = 0.0
    """Bounds are too wide by at most so much."""


class HiddenSelection:
    """The bounds of a number, as functions of the odds.

    Parameters
    ----------
    basis : Basis
    nested : bool
        Whether the sample is a part of the population: weights are then inverse probabilities.
    """

    def __init__(self, basis: Basis, *, nested: bool) -> None:
        self.basis, self.nested = basis, nested
        weighed = basis.weighed
        weights = weighed.weights * (population_scale(weighed) if nested else 1.0)
        if (weights < 0).any():
            raise InputError(
                "Some weights are negative, and have no odds of selection. Use weights that "
                'cannot be, such as CalibrationWeights(distance="raking").'
            )
        values, own = basis.target.averaged(basis.number)
        self.own: BoolArray = (own > 0) & (weights > 0)
        if not self.own.any():
            raise InputError("No row of this group has a weight.")
        self.all_values, self.all_weights = values, weights
        self.values, self.weights = values[self.own], weights[self.own]
        # With a probability of one, odds are infinite, and no factor changes them.
        self.spare = np.maximum(self.weights - 1.0, 0.0) if nested else self.weights
        self.mean = float(self.weights @ self.values) / float(self.weights.sum())
        value = basis.target.point(weighed.weights, weighed.sums)[basis.number]
        self.offset = float(value) - self.mean

    @property
    def value(self) -> float:
        """The estimate."""
        return self.mean + self.offset

    @cached_property
    def balance(self) -> Balance:
        """What the weights keep of the population."""
        return balance_of(self.basis.weighed)

    @property
    def can_keep_balance(self) -> bool:
        """Whether a group's rows keep the balance: its column is one that was weighed by."""
        groups = self.basis.target.groups
        if groups is None or self.basis.target.statistic == "total":
            return True
        return groups.column in self.basis.weighed.weighter.columns_

    def _program(self, sign: float, *, sharp: bool) -> OddsProgram:
        values = sign * self.values
        if not sharp:
            return MeanProgram(values, self.weights, self.spare)
        if self.balance.cells is not None:
            cells = self.balance.cells[self.own]
            return CellProgram(values, self.weights, self.spare, cells)
        assert self.balance.features is not None
        features = self.balance.features[self.own]
        return FeatureProgram(values, self.weights, self.spare, features)

    def _at(self, program: OddsProgram, odds: float, *, sharp: bool) -> SharpBound:
        """Return the largest mean, rather than the largest sum."""
        if odds == 1.0 or not self.spare.any():
            return SharpBound(
                float(self.weights @ program.values) / self._total, program.values, 0.0
            )
        found = program.largest(odds)
        return found._replace(value=found.value / self._total) if sharp else found

    @property
    def _total(self) -> float:
        return float(self.weights.sum())

    def ends(self, odds: Sequence[float], *, sharp: bool) -> Ends:
        """Return the bounds for each of the odds."""
        bounds = np.empty((len(odds), 2))
        pseudo, gap = np.zeros((len(self.all_values), 2 * len(odds))), 0.0
        for side, sign in enumerate((-1.0, 1.0)):
            program = self._program(sign, sharp=sharp)
            for place, factor in enumerate(odds):
                found = self._at(program, factor, sharp=sharp)
                bounds[place, side] = sign * found.value + self.offset
                pseudo[self.own, 2 * place + side] = sign * found.pseudo
                gap = max(gap, found.gap / self._total)
        return Ends(bounds, pseudo, gap)

    def breakdown(self, threshold: float, *, sharp: bool) -> float:
        """Return the odds at which a bound reaches the threshold; infinite if none do."""
        sign = 1.0 if self.value < threshold else -1.0
        goal = sign * (threshold - self.offset)
        plain = MeanProgram(sign * self.values, self.weights, self.spare).breakdown(goal)
        if not sharp or not 1.0 < plain < MOST_ODDS:
            return plain if plain < MOST_ODDS else float("inf")
        program = self._program(sign, sharp=True)

        def short(log_odds: float) -> float:
            return goal - self._at(program, float(np.exp(log_odds)), sharp=True).value

        low = high = float(np.log(plain))
        while short(high) > 0:
            low, high = high, high + np.log(2.0)
            if high > np.log(MOST_ODDS):
                return float("inf")
        if low == high:
            return plain
        return float(np.exp(brentq(short, low, high, xtol=1e-9)))

    def margins(self, ends: Ends) -> FloatArray:
        """Return how far intervals reach beyond the bounds, of shape (n_odds, 2)."""
        basis = self.basis
        if basis.variance == "bootstrap":
            return self._margins_of(ends.pseudo).reshape(-1, 2)
        blocks = range(0, ends.pseudo.shape[1], 2 * BLOCK)
        found = [self._margins_of(ends.pseudo[:, at : at + 2 * BLOCK]) for at in blocks]
        return np.concatenate(found).reshape(-1, 2)

    def _margins_of(self, pseudo: FloatArray) -> FloatArray:
        basis, options = self.basis, self.basis.options
        numbers = _PseudoNumbers(self, pseudo)
        if basis.variance == "bootstrap":
            made = bootstrapped(
                numbers, basis.weighed, basis.design, options.replicates, options.random_state
            )
        else:
            form: Any = None if basis.variance == "orthogonal" else basis.variance
            weights, sums = basis.weighed.weights, basis.weighed.sums
            point = numbers.point(weights, sums)
            made = linearised(numbers, basis.weighed, point, basis.design, form)
        factor: FloatArray = np.asarray(student.ppf(0.5 + options.level / 2, made.degrees))
        if not basis.target.is_share and effective_sample_size(self.weights) >= FEW_ROWS:
            pairs = zip(factor, made.skewness, strict=True)
            both = [skewed_ends(*one) for one in pairs]  # lower and upper bounds in turn
            factor = np.array([one[place % 2] for place, one in enumerate(both)])
        return np.asarray(factor * np.sqrt(made.total))


class _PseudoNumbers:
    """Bounds as weighted means of numbers, of which the variance is that of any mean."""

    def __init__(self, hidden: HiddenSelection, pseudo: FloatArray) -> None:
        self._hidden, self._pseudo = hidden, pseudo
        self._target = hidden.basis.target
        self.models, self.statistic = self._target.models, self._target.statistic

    def _shares(self, weights: FloatArray) -> tuple[FloatArray, float]:
        own = np.where(self._hidden.own, weights, 0.0)
        return own / own.sum(), float(own.sum() / weights.sum())

    def point(self, weights: FloatArray, sums: GroupSums | None) -> FloatArray:
        """Return the bounds with these weights."""
        shares, _ = self._shares(weights)
        whole = self._target.point(weights, sums)[self._hidden.basis.number]
        return np.asarray(shares @ self._pseudo + (whole - shares @ self._hidden.all_values))

    def members(self, numbers: slice) -> Entries:
        """Return which rows the bounds are about."""
        rows, width = np.flatnonzero(self._hidden.own), self._pseudo[:, numbers].shape[1]
        return Entries(np.tile(rows, width), np.repeat(np.arange(width), len(rows)))

    def deviations(
        self,
        weights: FloatArray,
        point: FloatArray,  # noqa: ARG002
        numbers: slice,
    ) -> FloatArray:
        """Return values whose weighted means have, to first order, the errors of the bounds."""
        shares, part = self._shares(weights)
        pseudo = self._pseudo[:, numbers]
        centred = pseudo - shares @ pseudo
        return np.asarray(self._hidden.own[:, None] * centred / part)

    def of_population(self, batch: pa.RecordBatch, sums: GroupSums, numbers: slice) -> FloatArray:
        """Return what population rows contribute by the outcome models."""
        number = self._hidden.basis.number
        one = self._target.of_population(batch, sums, slice(number, number + 1))
        return np.repeat(one, self._pseudo[:, numbers].shape[1], axis=1)


def population_scale(weighed: Weighed) -> float:
    """Return the factor that makes weights inverse probabilities of selection."""
    if weighed.weighter._inverts_probabilities:
        return 1.0 / weighed.weighter.scale_
    return weighed.mass() / float(weighed.weights.sum())


def balance_of(weighed: Weighed) -> Balance:
    """Return what the weights keep: what they match, or else the means of the columns."""
    line = weighed.weighter._linearisation(weighed.fit.sample)
    known = None if line is None else line.balance()
    if known is not None:
        return known
    if not weighed.weighter._corrects_columns:  # they say nothing of the columns
        return Balance(None, np.ones(1), np.zeros(len(weighed.weights), dtype=np.int64))
    # Weights that follow the columns keep the mean of every function of these, such as themselves.
    space, points = weighed.fit.sample.points("standard")
    means = np.full(points.shape[1], np.nan)
    if weighed.drawn is not None and weighed.drawn.rows is not None:
        rows = space.transform(weighed.select_columns(weighed.drawn.rows), side="population").values
        inside = np.isfinite(rows).all(axis=1)
        means = np.average(rows[inside], axis=0, weights=weighed.drawn.weight[inside])
    return Balance(points, means)
