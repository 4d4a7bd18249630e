r"""Numbers of the population, one class each: a mean, a total, shares of classes, a quantile.

With weights :math:`w_i` and rows :math:`i` of a domain d, a mean is
:math:`\sum_{i \in d} w_i y_i / \sum_{i \in d} w_i`, a total N times
:math:`\sum_{i \in d} w_i y_i / \sum_i w_i`, and a quantile inverts the weighted distribution
function. Whatever else there is, such as variances, replicates, domains, sensitivity and the
command line, knows a statistic by the methods below alone:

- ``outcome``: the columns of numbers that it takes from y;
- ``point``: its values, one for each domain and column (see :class:`Target`);
- ``deviations``: values of the rows whose weighted means have, to first order, the errors of its
  values, from which any variance follows; ``of_population`` is the same for population rows where
  outcome models are averaged over them;
- ``ends``: its intervals; ``label`` and ``notes``: its words.

To add one, write a class and a line in ``STATISTICS``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
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
from unskew.numerics.typing import BoolArray, FloatArray, IntArray
from unskew.numerics.weight_vectors import effective_sizes

MOST_CLASSES = 100
TINY = np.finfo(float).tiny


class Uncertainty(NamedTuple):
    """What intervals are made of: an entry for each value of a statistic."""

    point: FloatArray
    errors: FloatArray
    """Standard errors; NaN where there is none."""
    halves: FloatArray
    """Half the lengths of symmetric intervals, biases that are allowed for included."""
    factor: FloatArray
    """How many standard errors these are without such a bias."""
    level: float
    sizes: FloatArray
    """Effective sample sizes."""
    skewness: FloatArray
    of_population: FloatArray | float
    """The part of the variance that comes from the population's rows."""
    one_by_one: BoolArray
    """Where rows were drawn one by one, and no bias is allowed for."""
    replicated: bool
    """Whether the errors are those of replicates."""


@dataclass(frozen=True)
class Target:
    """A statistic of groups.

    Numbers are in the order of groups, and within each of columns.

    Parameters
    ----------
    outcome : LabelColumns
    statistic : Statistic
    groups : Groups or None
    models : OutcomeModels or None
        Their predictions are averaged over the population, and their residuals over the sample.
    mass : float
        The population's size, for a statistic that grows with it.
    """

    outcome: LabelColumns
    statistic: Statistic
    groups: Groups | None = None
    models: OutcomeModels | None = None
    mass: float = 1.0

    @cached_property
    def values(self) -> FloatArray:
        """The numbers that are averaged over the sample: labels, or what models leave of them."""
        values = self.outcome.values
        return values if self.models is None else values - self.models.of_sample

    @cached_property
    def _codes(self) -> IntArray:
        """The group of each row."""
        n_rows = len(self.outcome.values)
        return np.zeros(n_rows, np.int64) if self.groups is None else self.groups.of_sample

    @cached_property
    def rows(self) -> list[IntArray]:
        """The rows of each group."""
        ends = np.cumsum(np.bincount(self._codes, minlength=self._n_groups))
        return np.split(np.argsort(self._codes, kind="stable"), ends[:-1])

    @property
    def _n_groups(self) -> int:
        return 1 if self.groups is None else len(self.groups)

    def sums_of(self, values: FloatArray) -> FloatArray:
        """Return the sums of each group, of one column or several: never rows times groups."""
        if values.ndim == 1:
            return np.bincount(self._codes, values, self._n_groups).astype(float)
        return np.column_stack([self.sums_of(column) for column in values.T])

    def places(self, numbers: slice) -> tuple[IntArray, IntArray]:
        """Return the group and the column of each of these numbers."""
        width = self.values.shape[1]
        return np.divmod(np.arange(self._n_groups * width)[numbers], width)

    def members(self, numbers: slice = slice(None)) -> Entries:
        """Return which rows each of these numbers is about."""
        rows = [self.rows[group] for group in self.places(numbers)[0]]
        columns = np.repeat(np.arange(len(rows)), [len(one) for one in rows])
        return Entries(np.concatenate(rows), columns)

    def values_of(self, number: int) -> tuple[FloatArray, FloatArray]:
        """Return the values of a number's column, and which rows are in its group."""
        group, column = divmod(number, self.values.shape[1])
        return self.values[:, column], (self._codes == group).astype(float)

    @property
    def is_share(self) -> bool:
        """Whether the numbers are shares."""
        return self.outcome.is_share

    @cached_property
    def labels(self) -> list[Any]:
        """The group and the class of each number."""
        groups = [None] if self.groups is None else self.groups.labels
        classes = [None] if self.outcome.classes is None else list(self.outcome.classes)
        return [(group, one) for group in groups for one in classes]

    def plain(self) -> Target:
        """Return the same numbers without models."""
        return replace(self, models=None)

    def effective_sizes(self, weights: FloatArray) -> FloatArray:
        """Return the effective sample size of each number's group; zero without weight."""
        sizes = effective_sizes(weights, self._codes, self._n_groups)
        return np.repeat(sizes, self.values.shape[1])

    def spread(self, weights: FloatArray) -> float:
        """Return the largest standard deviation of the outcome's columns; of a total, times N."""
        shares, values = weights / weights.sum(), self.outcome.values
        variances = shares @ (values - shares @ values) ** 2
        return self.mass * float(np.sqrt(np.maximum(variances, 0.0)).max())

    def point(self, weights: FloatArray, sums: GroupSums | None) -> FloatArray:
        """Return the numbers; NaN for a group without weight."""
        return self.statistic.point(self, weights, sums)

    def deviations(
        self, weights: FloatArray, point: FloatArray, numbers: slice = slice(None)
    ) -> FloatArray:
        """Return values whose weighted means have, to first order, the errors of these numbers."""
        return self.statistic.deviations(self, weights, point, numbers)

    def ends(self, weights: FloatArray, made: Uncertainty) -> FloatArray:
        """Return the numbers' intervals."""
        return self.statistic.ends(self, weights, made)

    def averaged(self, number: int) -> tuple[FloatArray, FloatArray]:
        """Return the values of which a number is the weighted mean, and which rows are in it."""
        return self.statistic.averaged(self, number)

    def disagreements(
        self, weights: FloatArray, point: FloatArray, sums: GroupSums | None
    ) -> FloatArray:
        """Return how far the numbers are from those of the weights, or the models, alone.

        If weights and models leave the shares r and s of a bias b, the doubly robust number has
        r·s·b of it, and differs from theirs by r(1 − s)b and s(1 − r)b: the larger of these is an
        upper bound of its bias where r or s is at most one half.
        """
        by_weights = self.plain().point(weights, None)
        by_models = self.statistic.of_models(sums).reshape(-1)
        alone = np.array([by_weights, by_models])
        return np.asarray(np.nan_to_num(np.abs(alone - point).max(axis=0)))

    def of_population(
        self, batch: pa.RecordBatch, sums: GroupSums, numbers: slice = slice(None)
    ) -> FloatArray:
        """Return the deviations of the models' predictions at rows of the population."""
        assert self.models is not None
        places = self.places(numbers)
        predicted = self.models.mean(batch)[:, places[1]]
        place = np.zeros(len(predicted), int) if self.groups is None else self.groups.of(batch)
        own = place[:, None] == places[0]
        return self.statistic.of_population(self, own, predicted, sums, places)


class Statistic(ABC):
    """A number of the population, for each domain and column of labels."""

    name: ClassVar[str]
    needs_size: ClassVar[bool] = False
    """Whether it grows with the population's size."""
    is_of_shares: ClassVar[bool] = False
    """Whether its deviations are those of a share, from which ``ends`` goes back to y's unit."""
    takes_models: ClassVar[bool] = True
    """Whether it can be averaged over the population by outcome models."""
    without_bounds: ClassVar[str] = ""
    """Why its bounds under hidden selection are not known; empty where they are."""
    has_bias_indices: ClassVar[bool] = False
    """Whether the indices of survey bias, which are of a mean of numbers, hold for it."""

    @property
    def label(self) -> str:
        """What results call it."""
        return self.name

    def outcome(self, labels: Any) -> LabelColumns:
        """Return the columns that it needs of checked labels."""
        if labels.ndim != 1:
            raise InputError(f"y must have one number or class per row; got shape {labels.shape}.")
        return self._columns(labels)

    def _columns(self, labels: Any) -> LabelColumns:
        if labels.dtype.kind not in "biuf":
            raise InputTypeError(
                f'statistic="{self.name}" needs numbers, and y holds {labels.dtype}. Use '
                'statistic="proportion" for the shares of classes.'
            )
        return LabelColumns(labels.astype(np.float64)[:, None], None, False, labels)

    @abstractmethod
    def point(self, target: Target, weights: FloatArray, sums: GroupSums | None) -> FloatArray:
        """Return the values; NaN for a domain without weight."""

    @abstractmethod
    def deviations(
        self, target: Target, weights: FloatArray, point: FloatArray, numbers: slice
    ) -> FloatArray:
        """Return values of the rows whose weighted means have, to first order, these errors.

        Their weighted means are zero.
        """

    @abstractmethod
    def ends(self, target: Target, weights: FloatArray, made: Uncertainty) -> FloatArray:
        """Return the intervals, of shape (n_numbers, 2)."""

    def averaged(self, target: Target, number: int) -> tuple[FloatArray, FloatArray]:
        """Return the values of which a number is the weighted mean, and which rows are in it.

        With models the mean of their predictions over the population comes on top.
        """
        raise InputError(self.without_bounds or f"A {self.name} is no mean over rows.")

    def of_models(self, sums: GroupSums | None) -> FloatArray:
        """Return what outcome models say alone, of shape (n_domains, n_columns)."""
        raise InputError(f"A {self.name} has no outcome models.")

    def of_population(
        self, target: Target, own: Any, predicted: FloatArray, sums: GroupSums, places: Any
    ) -> FloatArray:
        """Return the deviations of predictions at population rows that are ``own`` to domains."""
        raise InputError(f"A {self.name} has no outcome models.")

    def notes(self, mass: float, *, of_weights: bool, counted: bool) -> tuple[str, ...]:
        """Return what to know of it where the population's size is the sum of its weights."""
        return ()


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
    has_bias_indices = True

    def _columns(self, labels: Any) -> LabelColumns:
        found = super()._columns(labels)
        is_share = bool(np.isin(found.values, (0.0, 1.0)).all())
        return LabelColumns(found.values, None, is_share, labels)

    def point(self, target: Target, weights: FloatArray, sums: GroupSums | None) -> FloatArray:
        means = target.sums_of(weights[:, None] * target.values)
        with np.errstate(divide="ignore", invalid="ignore"):
            means /= target.sums_of(weights)[:, None]
            if target.models is not None:
                means += self.of_models(sums)
        return means.reshape(-1)

    def of_models(self, sums: GroupSums | None) -> FloatArray:
        assert sums is not None
        return np.asarray(sums.sums / sums.mass[:, None])

    def averaged(self, target: Target, number: int) -> tuple[FloatArray, FloatArray]:
        return target.values_of(number)

    def deviations(
        self, target: Target, weights: FloatArray, point: FloatArray, numbers: slice
    ) -> FloatArray:
        rows, places = target.members(numbers)
        _, columns = target.places(numbers)
        return self._centred(target, weights, target.values[rows, columns[places]], numbers)

    @staticmethod
    def _centred(
        target: Target, weights: FloatArray, values: FloatArray, numbers: slice
    ) -> FloatArray:
        """Return (value − mean) / (share of the domain) at the members of each number."""
        shares, (rows, places) = weights / weights.sum(), target.members(numbers)
        groups, _ = target.places(numbers)
        found = np.zeros((len(weights), len(groups)))
        sums = np.bincount(places, shares[rows] * values, len(groups))
        part = np.maximum(target.sums_of(shares)[groups], TINY)
        found[rows, places] = (values - (sums / part)[places]) / part[places]
        return found

    def of_population(
        self, target: Target, own: Any, predicted: FloatArray, sums: GroupSums, places: Any
    ) -> FloatArray:
        groups, columns = places
        mass = np.maximum(sums.mass[groups], TINY)
        share = mass / (sums.mass.sum() + sums.elsewhere)
        centred = predicted - sums.sums[groups, columns] / mass
        return np.asarray(own * centred / np.maximum(share, 1e-300))

    def ends(self, target: Target, weights: FloatArray, made: Uncertainty) -> FloatArray:
        """Return the intervals.

        A mean's reaches further on the side of its skewness, where many rows count. A share of few
        rows has Wilson's of its effective size: their residuals say too little of the variance.
        """
        if target.outcome.is_share:
            return _ends_of_shares(made)
        ends = np.column_stack([made.point - made.halves, made.point + made.halves])
        for place in np.flatnonzero((made.sizes >= FEW_ROWS) & (made.errors > 0)):
            error = made.errors[place]
            down, up = skewed_ends(made.halves[place] / error, made.skewness[place])
            ends[place] = made.point[place] - down * error, made.point[place] + up * error
        return ends


class Total(Mean):
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
    has_bias_indices = False

    def _columns(self, labels: Any) -> LabelColumns:
        return Statistic._columns(self, labels)

    def point(self, target: Target, weights: FloatArray, sums: GroupSums | None) -> FloatArray:
        totals = target.sums_of(weights[:, None] * target.values)
        totals *= target.mass / weights.sum()
        return (totals if target.models is None else totals + self.of_models(sums)).reshape(-1)

    def of_models(self, sums: GroupSums | None) -> FloatArray:
        assert sums is not None
        return sums.sums

    def averaged(self, target: Target, number: int) -> tuple[FloatArray, FloatArray]:
        values, own = target.values_of(number)
        return target.mass * own * values, np.ones_like(own)

    def deviations(
        self, target: Target, weights: FloatArray, point: FloatArray, numbers: slice
    ) -> FloatArray:
        shares, (rows, places) = weights / weights.sum(), target.members(numbers)
        groups, columns = target.places(numbers)
        values = target.values[rows, columns[places]]
        found = np.zeros((len(weights), len(groups)))
        sums = np.bincount(places, shares[rows] * values, len(groups))
        found[rows, places] = target.mass * values
        return found - target.mass * sums

    def of_population(
        self, target: Target, own: Any, predicted: FloatArray, sums: GroupSums, places: Any
    ) -> FloatArray:
        return np.asarray(target.mass * own * predicted - sums.sums[places])

    def notes(self, mass: float, *, of_weights: bool, counted: bool) -> tuple[str, ...]:
        if not of_weights:
            return ()
        said = "counted" if counted else "not counted: it is as known"
        return (
            f"The population's size, {mass:,.0f}, is the sum of its weights. The error that "
            f"it has if it is not known is {said}.",
        )


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
    has_bias_indices = False

    def _columns(self, labels: Any) -> LabelColumns:
        classes = np.unique(labels)
        if len(classes) > MOST_CLASSES:
            raise InputError(
                f"y has {len(classes)} classes, more than {MOST_CLASSES}. For a number use "
                'statistic="mean".'
            )
        return LabelColumns((labels[:, None] == classes).astype(float), classes, True, labels)


class Quantile(Mean):
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
    takes_models = False
    has_bias_indices = False
    without_bounds = (
        "The sensitivity of a quantile is not implemented: its bounds are those of a share. "
        'Estimate the share of rows below a number: estimate(X, y < number, ...), a "mean".'
    )

    q: float

    def __init__(self, q: float) -> None:
        if not isinstance(q, Real) or not 0 < float(q) < 1:
            raise ParameterError(f"q must lie between 0 and 1; got {q!r}.")
        self.q = float(q)

    @property
    def label(self) -> str:
        return f"quantile {self.q:g}"

    def _columns(self, labels: Any) -> LabelColumns:
        return Statistic._columns(self, labels)

    def point(self, target: Target, weights: FloatArray, sums: GroupSums | None) -> FloatArray:
        return np.array([_quantile(target, weights, rows, self.q) for rows in target.rows])

    def deviations(
        self, target: Target, weights: FloatArray, point: FloatArray, numbers: slice
    ) -> FloatArray:
        rows, places = target.members(numbers)
        below = (target.outcome.values[rows, 0] <= point[numbers][places]).astype(float)
        return self._centred(target, weights, below, numbers)

    def ends(self, target: Target, weights: FloatArray, made: Uncertainty) -> FloatArray:
        ends = np.column_stack([made.point - made.halves, made.point + made.halves])
        if not made.replicated:
            # So far these are errors of the share below the quantile.
            for number, half in enumerate(made.halves):
                shares = np.clip([self.q - half, self.q + half], 0.0, 1.0)
                rows = target.rows[number]
                ends[number] = [_quantile(target, weights, rows, share) for share in shares]
        return ends


def _quantile(target: Target, weights: FloatArray, rows: IntArray, q: float) -> float:
    rows = rows[weights[rows] > 0]
    if not len(rows):
        return float("nan")
    return float(weighted_quantile(target.outcome.values[rows, 0], weights[rows], q))


def _ends_of_shares(made: Uncertainty) -> FloatArray:
    """Return Wilson's intervals; those of few rows from their effective sizes."""
    few = (made.sizes < FEW_ROWS) & made.one_by_one
    factor = np.where(few, norm.ppf(0.5 + made.level / 2), made.factor)
    by_size = made.point * (1 - made.point) / np.maximum(made.sizes, 1e-300)
    by_size = np.sqrt(np.maximum(by_size, 0.0) + made.of_population)
    halves = np.where(few, factor * by_size, made.halves)
    ends = np.column_stack([made.point - made.halves, made.point + made.halves])
    for number, share in enumerate(made.point):
        # A doubly robust one may be outside.
        if -ROUNDING <= share <= 1 + ROUNDING and made.sizes[number] > 0:
            ends[number] = share_interval(share, halves[number], factor[number], made.sizes[number])
    return ends


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
    if has_models and not found.takes_models:
        raise ParameterError(
            f"outcome models predict means; a {found.name} is estimated from the weights alone."
        )
    return found
