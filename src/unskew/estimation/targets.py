"""The numbers to estimate, as functions of the weights: one for each group and column of y."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from unskew.estimation.outcome_models import GroupSums, OutcomeModels
from unskew.estimation.quantities import Groups, Outcome, Statistic
from unskew.numerics.design_variance import Entries, weighted_quantile
from unskew.numerics.typing import FloatArray, IntArray
from unskew.numerics.weight_vectors import effective_sizes


@dataclass(frozen=True)
class Target:
    """Means, totals, shares or quantiles of groups.

    Numbers are in the order of groups, and within each of columns.

    Parameters
    ----------
    outcome : Outcome
    statistic : str
    q : float or None
    groups : Groups or None
    models : OutcomeModels or None
        Their predictions are averaged over the population, and their residuals over the sample.
    mass : float
        The population's size, for totals.
    """

    outcome: Outcome
    statistic: Statistic
    q: float | None = None
    groups: Groups | None = None
    models: OutcomeModels | None = None
    mass: float = 1.0

    @cached_property
    def _values(self) -> FloatArray:
        """The numbers that are averaged over the sample."""
        values = self.outcome.values
        return values if self.models is None else values - self.models.of_sample

    @cached_property
    def _codes(self) -> IntArray:
        """The group of each row."""
        n_rows = len(self.outcome.values)
        return np.zeros(n_rows, np.int64) if self.groups is None else self.groups.of_sample

    @cached_property
    def _rows(self) -> list[IntArray]:
        """The rows of each group."""
        ends = np.cumsum(np.bincount(self._codes, minlength=self._n_groups))
        return np.split(np.argsort(self._codes, kind="stable"), ends[:-1])

    @property
    def _n_groups(self) -> int:
        return 1 if self.groups is None else len(self.groups)

    def _sums(self, values: FloatArray) -> FloatArray:
        """Return the sums of each group, of one column or several: never rows times groups."""
        if values.ndim == 1:
            return np.bincount(self._codes, values, self._n_groups).astype(float)
        return np.column_stack([self._sums(column) for column in values.T])

    def _places(self, numbers: slice) -> tuple[IntArray, IntArray]:
        """Return the group and the column of each of these numbers."""
        width = self._values.shape[1]
        return np.divmod(np.arange(self._n_groups * width)[numbers], width)

    def members(self, numbers: slice = slice(None)) -> Entries:
        """Return which rows each of these numbers is about."""
        rows = [self._rows[group] for group in self._places(numbers)[0]]
        columns = np.repeat(np.arange(len(rows)), [len(one) for one in rows])
        return Entries(np.concatenate(rows), columns)

    @property
    def is_share(self) -> bool:
        """Whether the numbers are shares."""
        return self.outcome.is_share and self.statistic != "quantile"

    @cached_property
    def labels(self) -> list[Any]:
        """The group and the class of each number."""
        groups = [None] if self.groups is None else self.groups.labels
        classes = [None] if self.outcome.classes is None else list(self.outcome.classes)
        return [(group, one) for group in groups for one in classes]

    def plain(self) -> Target:
        """Return the same numbers without models."""
        return Target(self.outcome, self.statistic, self.q, self.groups, None, self.mass)

    def effective_sizes(self, weights: FloatArray) -> FloatArray:
        """Return the effective sample size of each number's group; zero without weight."""
        sizes = effective_sizes(weights, self._codes, self._n_groups)
        return np.repeat(sizes, self._values.shape[1])

    def spread(self, weights: FloatArray) -> float:
        """Return the largest standard deviation of the outcome's columns; of a total, times N."""
        shares, values = weights / weights.sum(), self.outcome.values
        variances = shares @ (values - shares @ values) ** 2
        return self.mass * float(np.sqrt(np.maximum(variances, 0.0)).max())

    def point(self, weights: FloatArray, sums: GroupSums | None) -> FloatArray:
        """Return the numbers; NaN for a group without weight."""
        if self.statistic == "quantile":
            assert self.q is not None
            return np.array([self._quantile(weights, g, self.q) for g in range(self._n_groups)])
        means = self._sums(weights[:, None] * self._values)
        if self.statistic == "total":
            means *= self.mass / weights.sum()
            return (means if self.models is None else means + _given(sums).sums).reshape(-1)
        with np.errstate(divide="ignore", invalid="ignore"):
            means /= self._sums(weights)[:, None]
            if self.models is not None:
                means += _given(sums).sums / _given(sums).mass[:, None]
        return means.reshape(-1)

    def disagreements(
        self, weights: FloatArray, point: FloatArray, sums: GroupSums | None
    ) -> FloatArray:
        """Return how far the numbers are from those of the weights, or the models, alone.

        If weights and models leave the shares r and s of a bias b, the doubly robust number has
        r·s·b of it, and differs from theirs by r(1 − s)b and s(1 − r)b: the larger of these is an
        upper bound of its bias where r or s is at most one half.
        """
        by_weights = self.plain().point(weights, None)
        by_models = _given(sums).sums
        if self.statistic != "total":
            by_models = by_models / _given(sums).mass[:, None]
        alone = np.array([by_weights, by_models.reshape(-1)])
        return np.asarray(np.nan_to_num(np.abs(alone - point).max(axis=0)))

    def averaged(self, number: int) -> tuple[FloatArray, FloatArray]:
        """Return the values of which a number is the weighted mean, and which rows are in it.

        With models the mean of their predictions over the population comes on top.
        """
        group, column = divmod(number, self._values.shape[1])
        values, own = self._values[:, column], (self._codes == group).astype(float)
        if self.statistic == "total":
            return self.mass * own * values, np.ones_like(own)
        return values, own

    def _quantile(self, weights: FloatArray, group: int, q: float) -> float:
        rows = self._rows[group]
        rows = rows[weights[rows] > 0]
        if not len(rows):
            return float("nan")
        return float(weighted_quantile(self.outcome.values[rows, 0], weights[rows], q))

    def deviations(
        self, weights: FloatArray, point: FloatArray, numbers: slice = slice(None)
    ) -> FloatArray:
        """Return values whose weighted means have, to first order, the errors of these numbers.

        Their weighted means are zero. For a quantile they are errors of the share below it.
        """
        shares, (rows, places) = weights / weights.sum(), self.members(numbers)
        groups, columns = self._places(numbers)
        values = self._values[rows, columns[places]]
        if self.statistic == "quantile":
            values = (self.outcome.values[rows, 0] <= point[numbers][places]).astype(float)
        found = np.zeros((len(weights), len(groups)))
        sums = np.bincount(places, shares[rows] * values, len(groups))
        if self.statistic == "total":
            found[rows, places] = self.mass * values
            return found - self.mass * sums
        part = np.maximum(self._sums(shares)[groups], np.finfo(float).tiny)
        found[rows, places] = (values - (sums / part)[places]) / part[places]
        return found

    def woodruff(self, weights: FloatArray, number: int, errors: FloatArray) -> FloatArray:
        """Return the quantiles at shares that lie ``errors`` beside q (Woodruff 1952)."""
        assert self.q is not None
        ends = np.clip(self.q + errors, 0.0, 1.0)
        return np.array([self._quantile(weights, number, float(end)) for end in ends])

    def of_population(
        self, batch: pa.RecordBatch, sums: GroupSums, numbers: slice = slice(None)
    ) -> FloatArray:
        """Return the deviations of the models' predictions at rows of the population."""
        assert self.models is not None
        groups, columns = self._places(numbers)
        predicted = self.models.mean(batch)[:, columns]
        place = np.zeros(len(predicted), int) if self.groups is None else self.groups.of(batch)
        own, found = place[:, None] == groups, sums.sums[groups, columns]
        if self.statistic == "total":
            return np.asarray(self.mass * own * predicted - found)
        mass = np.maximum(sums.mass[groups], np.finfo(float).tiny)
        share = mass / (sums.mass.sum() + sums.elsewhere)
        return np.asarray(own * (predicted - found / mass) / np.maximum(share, 1e-300))


def _given(sums: GroupSums | None) -> GroupSums:
    assert sums is not None
    return sums
