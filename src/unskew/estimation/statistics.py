r"""Numbers of the population, one class each: a mean, a total, shares of classes, a quantile.

A :class:`Statistic` is a function of the rows of one domain and of their weights, and knows nothing
else: domains, outcome models, variances, replicates, sensitivity and the command line know it by

- ``columns``: the numbers that it takes from y;
- ``point``: its values, with weights :math:`w_i` of the domain's rows;
- ``influence``: the derivative of each value by each weight, :math:`u_i = \partial\theta /
  \partial w_i`, from which every variance follows: that of :math:`\sum_i w_i u_i`;
- ``interval`` and ``label``: how it is said.

A mean :math:`\theta = \sum w y / \sum w` has :math:`u_i = (y_i - \theta) / \sum w`, and a total,
whose weights sum to the population's size N, has :math:`u_i = y_i`. :class:`Target` brings a
statistic together with domains and with models of y. To add one, write a class; for a name in
place of an object, add a line to ``STATISTICS``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from numbers import Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
from scipy.stats import norm

from unskew.errors import InputError, InputTypeError, ParameterError
from unskew.estimation.inputs import Groups, LabelColumns
from unskew.estimation.outcome_models import GroupSums, OutcomeModels
from unskew.estimation.results import FEW_ROWS
from unskew.numerics.design_variance import (
    ROUNDING,
    Entries,
    share_interval,
    skewed_ends,
    weighted_quantile,
)
from unskew.numerics.typing import FloatArray, IntArray
from unskew.numerics.weight_vectors import effective_sizes

MOST_CLASSES = 100


class Uncertainty(NamedTuple):
    """What the interval of a number is made of."""

    point: float
    error: float
    """The standard error; NaN where there is none."""
    half: float
    """Half the length of the symmetric interval, a bias that is allowed for included."""
    factor: float
    """How many standard errors that is without such a bias."""
    size: float
    """The effective sample size."""
    skewness: float
    of_population: float
    """The part of the variance that comes from the population's rows."""
    one_by_one: bool
    """Whether rows were drawn one by one, and no bias is allowed for."""
    level: float
    replicated: bool
    """Whether the error is that of replicates."""
    is_share: bool

    @property
    def symmetric(self) -> tuple[float, float]:
        """The interval with the number in its middle."""
        return self.point - self.half, self.point + self.half

    @property
    def of_share(self) -> tuple[float, float]:
        """Wilson's interval; with few rows, whose residuals say too little, from their size."""
        if not -ROUNDING <= self.point <= 1 + ROUNDING or not self.size > 0:
            return self.symmetric  # a doubly robust share may be outside
        if self.size >= FEW_ROWS or not self.one_by_one:
            return share_interval(self.point, self.half, self.factor, self.size)
        factor = float(norm.ppf(0.5 + self.level / 2))
        variance = max(self.point * (1 - self.point) / self.size, 0.0) + self.of_population
        return share_interval(self.point, factor * np.sqrt(variance), factor, self.size)


class Statistic(ABC):
    """A number of the population, or several, for the rows of one domain."""

    name: ClassVar[str]
    needs_size: ClassVar[bool] = False
    """Whether it grows with the population's size: weights of all rows then sum to that."""
    is_linear: ClassVar[bool] = False
    """Whether its values of a sum are the sums of its values. A part of y can then be predicted,
    and averaged over the population: outcome models."""
    is_of_shares: ClassVar[bool] = False
    """Whether its influence is that on a share, from which ``interval`` goes back to y's unit."""
    has_influence: ClassVar[bool] = True
    """Otherwise replicates alone say how certain it is."""

    @property
    def label(self) -> str:
        """What results call it."""
        return self.name

    def columns(self, labels: Any) -> LabelColumns:
        """Return the numbers that it takes of checked labels."""
        if labels.dtype.kind not in "biuf":
            raise InputTypeError(
                f'statistic="{self.name}" needs numbers, and y holds {labels.dtype}. Use '
                'statistic="proportion" for the shares of classes.'
            )
        return LabelColumns(labels.astype(np.float64)[:, None], None, False, labels)

    @abstractmethod
    def point(self, values: FloatArray, weights: FloatArray) -> FloatArray:
        """Return its values of a domain's rows; NaN where none has weight.

        Parameters
        ----------
        values : ndarray of shape (n_rows, n_columns)
            The columns of these rows.
        weights : ndarray of shape (n_rows,)
        """

    def influence(self, values: FloatArray, weights: FloatArray) -> FloatArray:
        """Return the derivative of each value by each weight, of shape (n_rows, n_values)."""
        raise NotImplementedError

    def interval(
        self, made: Uncertainty, values: FloatArray, weights: FloatArray
    ) -> tuple[float, float]:
        """Return the interval of one of its values in a domain.

        It reaches further on the side of its skewness, where many rows count.
        """
        if made.is_share:
            return made.of_share
        if made.size < FEW_ROWS or not made.error > 0:
            return made.symmetric
        down, up = skewed_ends(made.half / made.error, made.skewness)
        return made.point - down * made.error, made.point + up * made.error


@dataclass(frozen=True)
class Target:
    """A statistic of domains, of labels or of what outcome models leave of them.

    Numbers are in the order of domains, and within each of the statistic's values.

    Parameters
    ----------
    outcome : LabelColumns
    statistic : Statistic
    groups : Groups or None
        The domains; one of all rows by default.
    models : OutcomeModels or None
        Their predictions are averaged over the population, and their residuals over the sample.
    size : float
        The population's, for a statistic that grows with it.
    """

    outcome: LabelColumns
    statistic: Statistic
    groups: Groups | None = None
    models: OutcomeModels | None = None
    size: float = 1.0

    @cached_property
    def values(self) -> FloatArray:
        """The numbers that are averaged over the sample: labels, or what models leave of them."""
        values = self.outcome.values
        return values if self.models is None else values - self.models.of_sample

    @cached_property
    def _codes(self) -> IntArray:
        """The domain of each row."""
        n_rows = len(self.outcome.values)
        return np.zeros(n_rows, np.int64) if self.groups is None else self.groups.of_sample

    @cached_property
    def rows(self) -> list[IntArray]:
        """The rows of each domain."""
        return _rows_by_code(self._codes, self._n_domains)

    @property
    def _n_domains(self) -> int:
        return 1 if self.groups is None else len(self.groups)

    @property
    def _n_each(self) -> int:
        """How many values the statistic has in a domain."""
        return 1 if self.outcome.classes is None else len(self.outcome.classes)

    def _places(self, numbers: slice) -> tuple[IntArray, IntArray]:
        """Return the domain and the place in it of each of these numbers."""
        return np.divmod(np.arange(self._n_domains * self._n_each)[numbers], self._n_each)

    def members(self, numbers: slice = slice(None)) -> Entries:
        """Return which rows each of these numbers is about."""
        rows = [self.rows[domain] for domain in self._places(numbers)[0]]
        columns = np.repeat(np.arange(len(rows)), [len(one) for one in rows])
        return Entries(np.concatenate(rows), columns)

    @cached_property
    def names(self) -> dict[str, Sequence[Any]]:
        """What distinguishes the numbers, and which there are: domains, classes, both or none."""
        found: dict[str, Sequence[Any]] = {}
        if self.groups is not None:
            found[self.groups.column] = self.groups.labels
        if self.outcome.classes is not None:
            found["class"] = list(self.outcome.classes)
        return found

    @cached_property
    def labels(self) -> list[tuple[Any, ...]]:
        """The domain and the class of each number, as far as there are several."""
        return list(product(*self.names.values()))

    def plain(self) -> Target:
        """Return the same numbers without models."""
        return replace(self, models=None)

    def effective_sizes(self, weights: FloatArray) -> FloatArray:
        """Return the effective sample size of each number's domain; zero without weight."""
        sizes = effective_sizes(weights, self._codes, self._n_domains)
        return np.repeat(sizes, self._n_each)

    def spread(self, weights: FloatArray) -> float:
        """Return the largest standard deviation of the outcome's columns; of a total, times N."""
        shares, values = weights / weights.sum(), self.outcome.values
        variances = shares @ (values - shares @ values) ** 2
        return self.size * float(np.sqrt(np.maximum(variances, 0.0)).max())

    def point(self, weights: FloatArray, sums: GroupSums | None) -> FloatArray:
        """Return the numbers; NaN for a domain without weight."""
        # Others do not depend on the scale, and equal weights of one keep every digit.
        scaled = weights * (self.size / weights.sum() if self.statistic.needs_size else 1.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            found = [self.statistic.point(self.values[rows], scaled[rows]) for rows in self.rows]
            plain = np.concatenate(found)
            return plain if self.models is None else plain + self._of_models(sums)

    def _of_models(self, sums: GroupSums | None) -> FloatArray:
        """Return what outcome models say alone.

        A linear statistic of all predictions is that of one row with their mean and their weight.
        """
        assert sums is not None
        means = sums.sums / sums.mass[:, None]
        rows = zip(means[:, None, :], sums.mass[:, None], strict=True)
        return np.concatenate([self.statistic.point(mean, mass) for mean, mass in rows])

    def deviations(self, weights: FloatArray, numbers: slice = slice(None)) -> FloatArray:
        """Return values of the rows whose weighted means have, to first order, these errors.

        Their weighted means are zero.
        """
        return self._deviations(self.values, self.rows, weights, numbers)

    def of_population(
        self, batch: pa.RecordBatch, weights: FloatArray, numbers: slice = slice(None)
    ) -> FloatArray:
        """Return the same of the models' predictions at rows of the population."""
        assert self.models is not None
        codes = np.zeros(len(weights), int) if self.groups is None else self.groups.codes(batch)
        rows = _rows_by_code(codes, self._n_domains)
        return self._deviations(self.models.mean(batch), rows, weights, numbers)

    def _deviations(
        self, values: FloatArray, rows: Sequence[IntArray], weights: FloatArray, numbers: slice
    ) -> FloatArray:
        shares, (domains, places) = weights / weights.sum(), self._places(numbers)
        found = np.zeros((len(shares), len(domains)))
        for domain in np.unique(domains):
            own, inside = np.flatnonzero(domains == domain), rows[domain]
            if shares[inside].any():
                by_weight = self.statistic.influence(values[inside], self.size * shares[inside])
                found[np.ix_(inside, own)] = self.size * by_weight[:, places[own]]
        # Weights have a known sum: what raises all of them alike does not move a total.
        return found - shares @ found if self.statistic.needs_size else found

    def interval(self, number: int, weights: FloatArray, made: Uncertainty) -> tuple[float, float]:
        """Return the interval of a number."""
        rows = self.rows[number // self._n_each]
        low, high = self.statistic.interval(made, self.values[rows], weights[rows])
        return float(low), float(high)

    def disagreements(
        self, weights: FloatArray, point: FloatArray, sums: GroupSums | None
    ) -> FloatArray:
        """Return how far the numbers are from those of the weights, or the models, alone.

        If weights and models leave the shares r and s of a bias b, the doubly robust number has
        r·s·b of it, and differs from theirs by r(1 − s)b and s(1 − r)b: the larger of these is an
        upper bound of its bias where r or s is at most one half.
        """
        alone = np.array([self.plain().point(weights, None), self._of_models(sums)])
        return np.asarray(np.nan_to_num(np.abs(alone - point).max(axis=0)))


def _rows_by_code(codes: IntArray, n_codes: int) -> list[IntArray]:
    """Return the rows of each code from zero on; those below zero are in none."""
    order = np.argsort(codes, kind="stable")
    return np.split(order, np.searchsorted(codes[order], np.arange(n_codes + 1)))[1:-1]


class Mean(Statistic):
    """The population's mean, or the share of a label that is zero or one.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew import Mean, estimate
    >>> random = np.random.default_rng(0)
    >>> sample, population = random.normal(0.3, 1, (400, 1)), random.normal(0, 1, (2000, 1))
    >>> y = sample[:, 0] + random.normal(size=len(sample))
    >>> found = estimate(sample, y, population=population, statistic=Mean())
    >>> found.value == estimate(sample, y, population=population).value
    True
    """

    name = "mean"
    is_linear = True

    def columns(self, labels: Any) -> LabelColumns:
        found = super().columns(labels)
        return replace(found, is_share=bool(np.isin(found.values, (0.0, 1.0)).all()))

    def point(self, values: FloatArray, weights: FloatArray) -> FloatArray:
        first = values[0]  # so that the mean of a constant is that constant, to the last bit
        return np.asarray(first + weights @ (values - first) / weights.sum())

    def influence(self, values: FloatArray, weights: FloatArray) -> FloatArray:
        return np.asarray((values - self.point(values, weights)) / weights.sum())


class Total(Statistic):
    """The population's total: its size times the mean.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew import Total, estimate
    >>> random = np.random.default_rng(0)
    >>> sample, population = random.normal(5, 1, (200, 1)), random.normal(5, 1, (2000, 1))
    >>> y = sample[:, 0] + random.normal(size=len(sample))
    >>> found = estimate(sample, y, population=population, statistic=Total())
    >>> bool(9_500 < found.value < 10_500)
    True
    """

    name = "total"
    needs_size = True
    is_linear = True

    def point(self, values: FloatArray, weights: FloatArray) -> FloatArray:
        return np.asarray(weights @ values)

    def influence(self, values: FloatArray, weights: FloatArray) -> FloatArray:
        return values


class Proportion(Mean):
    """The share of each class of y.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew import Proportion, estimate
    >>> random = np.random.default_rng(0)
    >>> sample, population = random.normal(0.3, 1, (400, 1)), random.normal(0, 1, (2000, 1))
    >>> votes = np.where(sample[:, 0] > 0, "yes", "no")
    >>> found = estimate(sample, votes, population=population, statistic=Proportion())
    >>> bool(0.4 < found["yes"].value < 0.6)
    True
    """

    name = "proportion"

    def columns(self, labels: Any) -> LabelColumns:
        classes = np.unique(labels)
        if len(classes) > MOST_CLASSES:
            raise InputError(
                f"y has {len(classes)} classes, more than {MOST_CLASSES}. For a number use "
                'statistic="mean".'
            )
        return LabelColumns((labels[:, None] == classes).astype(float), classes, True, labels)


class Quantile(Statistic):
    """A quantile of the population; ``Quantile(0.5)`` is the median.

    Parameters
    ----------
    q : float
        Between 0 and 1.

    References
    ----------
    Woodruff, "Confidence intervals for medians and other position measures", JASA 47 (1952).

    Examples
    --------
    >>> import numpy as np
    >>> from unskew import Quantile, estimate
    >>> random = np.random.default_rng(0)
    >>> sample, population = random.normal(0.3, 1, (400, 1)), random.normal(0, 1, (2000, 1))
    >>> found = estimate(sample, sample[:, 0], population=population, statistic=Quantile(0.5))
    >>> bool(found.interval[0] < 0 < found.interval[1])
    True
    """

    name = "quantile"
    is_of_shares = True
    q: float

    def __init__(self, q: float) -> None:
        if not isinstance(q, Real) or not 0 < float(q) < 1:
            raise ParameterError(f"q must lie between 0 and 1; got {q!r}.")
        self.q = float(q)

    @property
    def label(self) -> str:
        return f"quantile {self.q:g}"

    def point(self, values: FloatArray, weights: FloatArray) -> FloatArray:
        return self._at(values, weights, [self.q])

    @staticmethod
    def _at(values: FloatArray, weights: FloatArray, shares: Sequence[float]) -> FloatArray:
        counted = weights > 0
        if not counted.any():
            return np.full(len(shares), np.nan)
        return weighted_quantile(values[counted, 0], weights[counted], np.array(shares))

    def influence(self, values: FloatArray, weights: FloatArray) -> FloatArray:
        """Return the influence on the share of rows that are at most the quantile."""
        below = (values <= self.point(values, weights)).astype(float)
        return np.asarray((below - weights @ below / weights.sum()) / weights.sum())

    def interval(
        self, made: Uncertainty, values: FloatArray, weights: FloatArray
    ) -> tuple[float, float]:
        """Return the quantiles at the ends of the interval of the share below."""
        if made.replicated:
            return made.symmetric
        shares = np.clip([self.q - made.half, self.q + made.half], 0.0, 1.0)
        low, high = self._at(values, weights, list(shares))
        return float(low), float(high)


STATISTICS: dict[str, Any] = {one.name: one for one in (Mean, Total, Proportion, Quantile)}
"""Statistics by name; a quantile's q is a parameter of its own there."""


def statistic_of(given: Any, q: Any, *, has_models: bool) -> Any:
    """Return the statistic that is given by name or as an object, or raise what does not fit."""
    found = given
    if isinstance(given, str) and given in STATISTICS:
        if (given == Quantile.name) != (q is not None):
            raise ParameterError(
                'q is for statistic="quantile", and needed there: q=0.5 is the median.'
            )
        found = STATISTICS[given]() if q is None else Quantile(q)
    elif isinstance(given, Statistic) and q is not None:
        raise ParameterError('q is for statistic="quantile"; an object has its own: Quantile(0.5).')
    if not isinstance(found, Statistic):
        raise ParameterError(
            f"statistic must be one of {', '.join(STATISTICS)}, or an object such as Mean(); got "
            f"{given!r}."
        )
    if has_models and not found.is_linear:
        raise ParameterError(
            f"outcome models predict means; a {found.name} is estimated from the weights alone."
        )
    return found
