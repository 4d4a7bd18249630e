"""The numbers to estimate, as functions of the weights: one for each group and column of y."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from unskew.estimation.outcome_models import GroupSums, OutcomeModels
from unskew.estimation.quantities import Groups, Outcome, Statistic
from unskew.numerics.design_variance import weighted_quantile
from unskew.numerics.typing import FloatArray


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
    def _members(self) -> FloatArray:
        """Which rows are in which group."""
        if self.groups is None:
            return np.ones((len(self.outcome.values), 1))
        return (self.groups.of_sample[:, None] == np.arange(len(self.groups))).astype(float)

    @property
    def is_share(self) -> bool:
        """Whether the numbers are shares."""
        return self.outcome.is_share and self.statistic != "quantile"

    @property
    def labels(self) -> list[Any]:
        """The group and the class of each number."""
        groups = [None] if self.groups is None else self.groups.labels
        classes = [None] if self.outcome.classes is None else list(self.outcome.classes)
        return [(group, one) for group in groups for one in classes]

    def plain(self) -> Target:
        """Return the same numbers without models."""
        return Target(self.outcome, self.statistic, self.q, self.groups, None, self.mass)

    def group_weights(self, weights: FloatArray) -> FloatArray:
        """Return the weights of each group's rows, a column for each number."""
        width = len(self.labels) // self._members.shape[1]
        return np.repeat(weights[:, None] * self._members, width, axis=1)

    def point(self, weights: FloatArray, sums: GroupSums | None) -> FloatArray:
        """Return the numbers; NaN for a group without weight."""
        shares, members = weights / weights.sum(), self._members
        if self.statistic == "quantile":
            assert self.q is not None
            return np.array([self._quantile(shares * column, self.q) for column in members.T])
        means = members.T @ (shares[:, None] * self._values)
        if self.statistic == "total":
            means *= self.mass
            return (means if self.models is None else means + _given(sums).sums).reshape(-1)
        with np.errstate(divide="ignore", invalid="ignore"):
            means /= (shares @ members)[:, None]
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
        values, own = self._values[:, column], self._members[:, group]
        if self.statistic == "total":
            return self.mass * own * values, np.ones_like(own)
        return values, own

    def _quantile(self, weights: FloatArray, q: float) -> float:
        inside = weights > 0
        if not inside.any():
            return float("nan")
        return float(weighted_quantile(self.outcome.values[inside, 0], weights[inside], q))

    def deviations(self, weights: FloatArray, point: FloatArray) -> FloatArray:
        """Return values whose weighted means have, to first order, the errors of the numbers.

        Their weighted means are zero. For a quantile they are errors of the share below it.
        """
        shares, members, columns = weights / weights.sum(), self._members, []
        for group in range(members.shape[1]):
            own = members[:, group]
            share = shares @ own
            for column in range(self._values.shape[1]):
                values = self._values[:, column]
                if self.statistic == "total":
                    values = self.mass * own * values
                    columns.append(values - shares @ values)
                    continue
                if self.statistic == "quantile":
                    values = (self.outcome.values[:, 0] <= point[group]).astype(float)
                mean = (shares * own) @ values / share if share > 0 else 0.0
                columns.append(own * (values - mean) / (share if share > 0 else 1.0))
        return np.column_stack(columns)

    def woodruff(self, weights: FloatArray, number: int, errors: FloatArray) -> FloatArray:
        """Return the quantiles at shares that lie ``errors`` beside q (Woodruff 1952)."""
        assert self.q is not None
        own = weights * self._members[:, number]
        ends = np.clip(self.q + errors, 0.0, 1.0)
        return np.array([self._quantile(own, float(end)) for end in ends])

    def of_population(self, batch: pa.RecordBatch, sums: GroupSums) -> FloatArray:
        """Return the deviations of the models' predictions at rows of the population."""
        assert self.models is not None
        predicted = self.models.mean(batch)
        place = np.zeros(len(predicted), int) if self.groups is None else self.groups.of(batch)
        columns = []
        for group in range(self._members.shape[1]):
            own = (place == group).astype(float)
            share = sums.mass[group] / (sums.mass.sum() + sums.elsewhere)
            for column in range(predicted.shape[1]):
                if self.statistic == "total":
                    total = sums.sums[group, column] / self.mass
                    columns.append(self.mass * (own * predicted[:, column] - total))
                else:
                    mean = sums.sums[group, column] / max(sums.mass[group], np.finfo(float).tiny)
                    columns.append(own * (predicted[:, column] - mean) / max(share, 1e-300))
        return np.column_stack(columns)


def _given(sums: GroupSums | None) -> GroupSums:
    assert sums is not None
    return sums
