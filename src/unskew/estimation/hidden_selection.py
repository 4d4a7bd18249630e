r"""How much a number can change if selection depends on more than the columns show.

Each row's odds of selection may be off by a factor of at most Λ. A weighted mean then lies between
two bounds, each of which is a linear program in the weights: *plain* ones let every row's odds
change, *sharp* ones only as far as the weights still match what they match of the population. A
bound is itself a weighted mean of pseudo-values, so that its interval is that of any mean.

How large a Λ to fear is compared with the columns that are seen: how much odds change if each of
them is left out. For means of numbers the indices SMUB and MUB say how biased the sample is if
selection goes by y.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.stats import t as student
from sklearn.base import clone

from unskew.errors import InputError, ParameterError, UnskewError
from unskew.estimation.outcome_models import GroupSums
from unskew.estimation.results import (
    FEW_ROWS,
    ColumnOdds,
    Estimate,
    OddsBounds,
    Sensitivity,
    SurveyBias,
)
from unskew.estimation.statistics import Target
from unskew.estimation.variances import variance_of
from unskew.estimation.weighing import NOISE_ROWS, Weighed
from unskew.numerics.design_variance import Entries, SurveyDesign, skewed_ends
from unskew.numerics.sharp_bounds import (
    CellProgram,
    FeatureProgram,
    MeanProgram,
    OddsProgram,
    SharpBound,
    proxy_moments,
)
from unskew.numerics.typing import BoolArray, FloatArray
from unskew.numerics.weight_vectors import effective_sample_size
from unskew.population.margins import Margins
from unskew.population.population import Population
from unskew.population.reservoir import Reservoir
from unskew.weighters.base import fit_beside
from unskew.weighters.linearisation import Balance

MOST_ODDS = 1000.0
"""Where no smaller factor changes a conclusion, none does."""


@dataclass(frozen=True)
class HiddenSelection:
    """What an estimate was made from, and its bounds as functions of the odds.

    A number is the weighted mean of z = θ + u, where u is the influence of each row on it. That of
    a mean is y itself; for a statistic that is not linear, bounds hold to first order.

    Attributes
    ----------
    target : Target
    number : int
        Which of the target's numbers it is.
    weighed : Weighed
    design : SurveyDesign
    options : Options
    variance : str
    kept : dict
        What does not depend on the number, once it is known: all numbers of a target share it.
    nested : bool
        Whether the sample is a part of the population: weights are then inverse probabilities.
    """

    target: Target
    number: int
    weighed: Weighed
    design: SurveyDesign
    options: Any
    variance: str
    kept: dict[Any, Any]
    nested: bool = False

    @cached_property
    def value(self) -> float:
        """The estimate."""
        return float(self.target.point(self.weighed.weights, self.weighed.sums)[self.number])

    @cached_property
    def own(self) -> BoolArray:
        """The rows that count: those of the domain; of a total all."""
        own = self.weighed.weights > 0
        if not self.target.statistic.needs_size:
            inside = np.zeros(len(own), dtype=bool)
            inside[self.target.members(slice(self.number, self.number + 1)).rows] = True
            own &= inside
        return own

    @cached_property
    def z(self) -> FloatArray:
        """The values of which the estimate is the weighted mean, over its own rows."""
        weights = self.weighed.weights
        deviations = self.target.deviations(weights, slice(self.number, self.number + 1))[:, 0]
        return np.asarray(self.value + deviations * (weights[self.own].sum() / weights.sum()))

    @property
    def values(self) -> FloatArray:
        """The same of the rows that count."""
        return self.z[self.own]

    @cached_property
    def weights(self) -> FloatArray:
        """Of the rows that count."""
        scale = population_scale(self.weighed) if self.nested else 1.0
        return self.weighed.weights[self.own] * scale

    @cached_property
    def spare(self) -> FloatArray:
        """The part of each weight that odds multiply."""
        # With a probability of one, odds are infinite, and no factor changes them.
        return np.maximum(self.weights - 1.0, 0.0) if self.nested else self.weights

    @cached_property
    def balance(self) -> Balance:
        """What the weights keep of the population."""
        return balance_of(self.weighed)

    def check(self) -> None:
        """Raise why there are no bounds."""
        statistic = self.target.statistic
        if statistic.is_of_shares or not statistic.has_influence:
            raise InputError(
                f"The sensitivity of a {statistic.name} is not implemented. Estimate a mean, or "
                'the share of rows below a number: estimate(X, y < number, ...), a "mean".'
            )
        if (self.weighed.weights < 0).any():
            raise InputError(
                "Some weights are negative, and have no odds of selection. Use weights that "
                'cannot be, such as CalibrationWeights(distance="raking").'
            )
        if not self.own.any():
            raise InputError("No row of this group has a weight.")

    @property
    def can_keep_balance(self) -> bool:
        """Whether a group's rows keep the balance: its column is one that was weighed by."""
        groups = self.target.groups
        if groups is None or self.target.statistic.needs_size:  # of which all rows are part
            return True
        return groups.column in self.weighed.weighter.columns_

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

    def _largest(self, program: OddsProgram, odds: float, *, sharp: bool) -> SharpBound:
        """Return the largest mean, rather than the largest sum."""
        total = float(self.weights.sum())
        if odds == 1.0 or not self.spare.any():
            return SharpBound(float(self.weights @ program.values) / total, program.values, 0.0)
        found = program.largest(odds)
        return found._replace(value=found.value / total, gap=found.gap / total) if sharp else found

    def bounds(self, odds: Sequence[float], *, sharp: bool) -> tuple[FloatArray, FloatArray, float]:
        """Return bounds for each of the odds, of what they are means, how much too wide they are.

        The first has the shape (n_odds, 2), the second (n_rows, 2 n_odds), lower beside upper.
        """
        bounds, gap = np.empty((len(odds), 2)), 0.0
        pseudo = np.zeros((len(self.z), 2 * len(odds)))
        for side, sign in enumerate((-1.0, 1.0)):
            program = self._program(sign, sharp=sharp)
            for place, factor in enumerate(odds):
                found = self._largest(program, factor, sharp=sharp)
                bounds[place, side] = sign * found.value
                pseudo[self.own, 2 * place + side] = sign * found.pseudo
                gap = max(gap, found.gap)
        return bounds, pseudo, gap

    def breakdown(self, threshold: float, *, sharp: bool) -> float:
        """Return the odds at which a bound reaches the threshold; infinite if none do."""
        sign = 1.0 if self.value < threshold else -1.0
        goal = sign * threshold
        plain = MeanProgram(sign * self.values, self.weights, self.spare).breakdown(goal)
        if not sharp or not 1.0 < plain < MOST_ODDS:
            return plain if plain < MOST_ODDS else float("inf")
        program = self._program(sign, sharp=True)

        def short(log_odds: float) -> float:
            return goal - self._largest(program, float(np.exp(log_odds)), sharp=True).value

        low = high = float(np.log(plain))
        while short(high) > 0:
            low, high = high, high + np.log(2.0)
            if high > np.log(MOST_ODDS):
                return float("inf")
        if low == high:
            return plain
        return float(np.exp(brentq(short, low, high, xtol=1e-9)))

    def reach(self, pseudo: FloatArray) -> FloatArray:
        """Return how far intervals reach beyond bounds that are means of these, (n_odds, 2)."""
        numbers = _PseudoNumbers(self, pseudo)
        made = variance_of(numbers, self.weighed, self.design, self.variance, self.options)
        factor: FloatArray = np.asarray(student.ppf(0.5 + self.options.level / 2, made.degrees))
        if not self.target.outcome.is_share and effective_sample_size(self.weights) >= FEW_ROWS:
            pairs = zip(factor, made.skewness, strict=True)
            both = [skewed_ends(*one) for one in pairs]  # lower and upper bounds in turn
            factor = np.array([one[place % 2] for place, one in enumerate(both)])
        return np.asarray(factor * np.sqrt(made.total)).reshape(-1, 2)

    def analyse(self, found: Estimate, *, nested: bool | None, **options: Any) -> Sensitivity:
        """Return the sensitivity of the estimate that was made from this."""
        if nested is None:
            nested = bool(self.options.finite or self.weighed.fit.target.about.selected)
        return analyse(found, replace(self, nested=nested), **options)


class _PseudoNumbers:
    """Bounds as weighted means of numbers, of which the variance is that of any mean."""

    def __init__(self, hidden: HiddenSelection, pseudo: FloatArray) -> None:
        self._hidden, self._pseudo, self._target = hidden, pseudo, hidden.target
        self.models, self.statistic = self._target.models, self._target.statistic

    def _shares(self, weights: FloatArray) -> tuple[FloatArray, float]:
        own = np.where(self._hidden.own, weights, 0.0)
        return own / own.sum(), float(own.sum() / weights.sum())

    def point(self, weights: FloatArray, sums: GroupSums | None) -> FloatArray:
        """Return the bounds with these weights."""
        shares, _ = self._shares(weights)
        whole = self._target.point(weights, sums)[self._hidden.number]
        return np.asarray(shares @ self._pseudo + (whole - shares @ self._hidden.z))

    def members(self, numbers: slice) -> Entries:
        """Return which rows the bounds are about."""
        rows, width = np.flatnonzero(self._hidden.own), self._pseudo[:, numbers].shape[1]
        return Entries(np.tile(rows, width), np.repeat(np.arange(width), len(rows)))

    def deviations(self, weights: FloatArray, numbers: slice) -> FloatArray:
        """Return values whose weighted means have, to first order, the errors of the bounds."""
        shares, part = self._shares(weights)
        pseudo = self._pseudo[:, numbers]
        return np.asarray(self._hidden.own[:, None] * (pseudo - shares @ pseudo) / part)

    def of_population(
        self, batch: pa.RecordBatch, weights: FloatArray, numbers: slice
    ) -> FloatArray:
        """Return what population rows contribute by the outcome models."""
        number = self._hidden.number
        one = self._target.of_population(batch, weights, slice(number, number + 1))
        return np.repeat(one, self._pseudo[:, numbers].shape[1], axis=1)


def population_scale(weighed: Weighed) -> float:
    """Return the factor that makes weights inverse probabilities of selection."""
    if weighed.weighter.traits.inverts_probabilities:
        return 1.0 / weighed.weighter.scale_
    return weighed.mass() / float(weighed.weights.sum())


def balance_of(weighed: Weighed) -> Balance:
    """Return what the weights keep: what they match, or else the means of the columns."""
    line = weighed.weighter.linearisation(weighed.fit.sample)
    known = None if line is None else line.balance()
    if known is not None:
        return known
    if not weighed.weighter.traits.corrects_columns:  # they say nothing of the columns
        return Balance(None, np.ones(1), np.zeros(len(weighed.weights), dtype=np.int64))
    # Weights that follow the columns keep the mean of every function of these, such as themselves.
    space, points = weighed.fit.sample.points("standard")
    means = np.full(points.shape[1], np.nan)
    if weighed.drawn is not None and weighed.drawn.rows is not None:
        rows = space.transform(weighed.select_columns(weighed.drawn.rows), side="population").values
        inside = np.isfinite(rows).all(axis=1)
        means = np.average(rows[inside], axis=0, weights=weighed.drawn.weight[inside])
    return Balance(points, means)


MOST_ROWS = 0.95
"""The share of rows for which a typical change holds."""
_WEIGHT = "unskew design weight"


def odds_of_columns(
    weighed: Weighed, *, nested: bool
) -> tuple[tuple[ColumnOdds, ...], tuple[str, ...]]:
    """Return how much odds change if each column is left out, and what could not be done.

    Weights are fitted again without the column, to margins or to at most 20,000 rows of the
    population.
    """
    names = list(weighed.weighter.columns_)
    if not weighed.weighter.traits.corrects_columns:
        return (), ("Weights that do not go by columns change with none that is left out.",)
    if not weighed.weighter.traits.estimates:
        return (), ("Known weights were not fitted to columns, so that none can be left out.",)
    try:
        known, whole = _population(weighed), weighed.weights
        if isinstance(known, pa.Table) and len(known) < weighed.n_rows:
            whole = _weights(weighed, known, names)
    except UnskewError as error:
        return (), (f"No column was left out for comparison: {error}",)
    scale = population_scale(weighed) * weighed.weights.sum() if nested else 0.0
    found, notes = [], []
    for name in names:
        others = [one for one in names if one != name]
        try:
            without = _weights(weighed, known, others)
        except UnskewError as error:
            notes.append(f"'{name}' could not be left out for comparison: {error}")
            continue
        found.append(_compared(name, whole, without, scale))
    return tuple(found), tuple(notes)


def _population(weighed: Weighed) -> pa.Table | Margins:
    """Return margins, or a part of the population's rows that stands for all, with weights."""
    target = weighed.fit.target
    if isinstance(target, Margins):
        return target
    drawn = weighed.drawn if weighed.drawn is not None else target.reduce(Reservoir(NOISE_ROWS))
    table = pa.Table.from_batches([weighed.select_columns(drawn.rows)])
    share = drawn.weight * (target.mass / drawn.weight.sum())
    return table.append_column(_WEIGHT, pa.array(share))


def _weights(weighed: Weighed, known: pa.Table | Margins, columns: list[str]) -> FloatArray:
    """Return the weights by some of the columns."""
    sample = weighed.fit.sample
    if not columns:
        return sample.design
    weighter = clone(weighed.weighter)
    chosen = {name: "shared" for name in weighter.get_params() if name.endswith("columns")}
    weighter.set_params(**chosen, overlap="ignore")
    if isinstance(known, pa.Table):  # without further columns: those without names go by position
        known = Population(known.select([*columns, _WEIGHT]), weight=_WEIGHT)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fit with all columns has said what there is to say
        fit_beside(weighter, sample.select(columns), known)
    return weighter.weights_


def _compared(name: str, whole: FloatArray, without: FloatArray, scale: float) -> ColumnOdds:
    """Return by which factor odds differ; with a scale, those of inverse probabilities."""
    one, other = whole / whole.sum(), without / without.sum()
    if scale:
        one, other = np.maximum(scale * one - 1.0, 0.0), np.maximum(scale * other - 1.0, 0.0)
    kept = (one > 0) & (other > 0)
    if not kept.any():
        return ColumnOdds(name, 1.0, 1.0)
    ratios = np.exp(np.abs(np.log(one[kept]) - np.log(other[kept])))
    typical = np.sort(ratios)[int(np.ceil(MOST_ROWS * len(ratios))) - 1]
    return ColumnOdds(name, float(ratios.max()), float(typical))


PHIS = (0.0, 0.5, 1.0)
FAR_FROM_SOLVED = 1e-6
"""A duality gap that is worth a note, as a share of the range of y."""


def analyse(
    found: Estimate,
    hidden: HiddenSelection,
    *,
    odds: ArrayLike,
    threshold: float | None,
    sharp: bool,
    benchmark: bool,
) -> Sensitivity:
    """Return what :meth:`unskew.results.Estimate.sensitivity` does."""
    factors, goal = checked_odds(odds), _checked_threshold(threshold, found)
    hidden.check()
    notes: list[str] = []
    if sharp and not hidden.can_keep_balance:
        sharp = False
        notes.append("Groups that were not weighed by do not keep the balance: bounds are plain.")
    breakdown_plain = hidden.breakdown(goal, sharp=False)
    breakdown = hidden.breakdown(goal, sharp=True) if sharp else breakdown_plain
    # The factor one and the breakdown are where the interval's way to the threshold begins and
    # ends; they are dropped afterwards.
    further = [1.0, *([breakdown] if breakdown < MOST_ODDS else [])]
    asked = sorted({*factors, *further})
    clip = found.is_share and found.outcome is None
    rows, gap = _bounds(hidden, asked, sharp=sharp, clip=clip)
    if gap > FAR_FROM_SOLVED * float(np.ptp(hidden.values)):
        notes.append(f"The sharp bounds are too wide by up to {gap:.1g}: the solver stopped early.")
    columns: tuple[tuple[ColumnOdds, ...], tuple[str, ...]] = ((), ())
    if benchmark:
        if hidden.nested not in hidden.kept:
            hidden.kept[hidden.nested] = odds_of_columns(hidden.weighed, nested=hidden.nested)
        columns = hidden.kept[hidden.nested]
    weighter = hidden.weighed.weighter
    by_columns = weighter.traits.estimates and weighter.traits.corrects_columns
    return Sensitivity(
        value=found.value,
        unweighted=found.unweighted,
        interval=found.interval,
        bounds=tuple(row for row in rows if row.odds in factors),
        threshold=goal,
        breakdown=breakdown,
        breakdown_plain=breakdown_plain,
        breakdown_with_error=_interval_reaches(rows, found.value, goal),
        columns=columns[0],
        survey_bias=_survey_bias(hidden, found),
        weighed_by=tuple(map(str, weighter.columns_)) if by_columns else (),
        nested=hidden.nested,
        level=found.level,
        notes=(*notes, *columns[1]),
        is_share=found.is_share,
        digits=found._digits,
    )


def checked_odds(odds: ArrayLike) -> list[float]:
    """Return the factors in order, or raise what is wrong with them."""
    try:
        factors = np.atleast_1d(np.asarray(odds, dtype=float))
    except (TypeError, ValueError) as error:
        raise ParameterError(f"odds must be numbers of at least 1; got {odds!r}.") from error
    if factors.ndim != 1 or not len(factors):
        raise ParameterError(f"odds must be a number or a list of numbers; got {odds!r}.")
    wrong = factors[~((factors >= 1.0) & (factors <= MOST_ODDS))]
    if len(wrong):
        raise ParameterError(
            f"odds must be at least 1 and at most {MOST_ODDS:,.0f}: the factor by which odds of "
            f"selection may be off, in either direction; got {wrong[0]:g}."
        )
    return sorted({float(one) for one in factors})


def _checked_threshold(threshold: Any, found: Estimate) -> float:
    if threshold is None:
        return found.unweighted
    if not isinstance(threshold, Real) or not np.isfinite(float(threshold)):
        raise ParameterError(f"threshold must be a number; got {threshold!r}.")
    return float(threshold)


def _bounds(
    hidden: HiddenSelection, odds: list[float], *, sharp: bool, clip: bool
) -> tuple[list[OddsBounds], float]:
    """Return bounds and intervals of each of the odds, and by how much they may be too wide."""

    def pairs(kind: bool) -> tuple[FloatArray, FloatArray, float]:
        bounds, pseudo, gap = hidden.bounds(odds, sharp=kind)
        reach = bounds + np.array([-1.0, 1.0]) * hidden.reach(pseudo)
        return bounds, np.clip(reach, 0.0, 1.0) if clip else reach, gap

    def pair(row: Any) -> tuple[float, float]:
        return float(row[0]), float(row[1])

    plain = pairs(False)
    kept = pairs(True) if sharp else None
    rows = [
        OddsBounds(
            odds=factor,
            plain=pair(plain[0][place]),
            plain_interval=pair(plain[1][place]),
            sharp=None if kept is None else pair(kept[0][place]),
            sharp_interval=None if kept is None else pair(kept[1][place]),
        )
        for place, factor in enumerate(odds)
    ]
    return rows, 0.0 if kept is None else kept[2]


def _interval_reaches(rows: list[OddsBounds], value: float, threshold: float) -> float:
    """Return the odds at which the interval reaches the threshold, between those of the rows."""
    side, sign = (1, 1.0) if value < threshold else (0, -1.0)
    short = np.array([sign * (threshold - row.best_interval[side]) for row in rows])
    if short.min() > 0:
        return float("inf")
    place = int(np.argmax(short <= 0))
    if place == 0:
        return 1.0
    (far, near), logs = short[place - 1 : place + 1], np.log([row.odds for row in rows])
    part = far / (far - near)
    return float(np.exp(logs[place - 1] + part * (logs[place] - logs[place - 1])))


def _survey_bias(hidden: HiddenSelection, found: Estimate) -> SurveyBias | None:
    """Return the indices of a mean of numbers; None of shares, groups, scores and totals."""
    target, weighed, statistic = hidden.target, hidden.weighed, hidden.target.statistic
    if not statistic.is_linear or statistic.needs_size or found.is_share or target.groups:
        return None
    balance, design = hidden.balance, weighed.fit.sample.design
    features, means = balance.features, balance.means
    if features is None:
        assert balance.cells is not None
        features = (balance.cells[:, None] == np.arange(len(means))).astype(float)
    if not np.isfinite(means).all():
        return None
    moments = proxy_moments(target.outcome.values[:, 0], design, features, means)
    if moments is None:
        return None
    smub = [moments.standardised_bias(phi) for phi in PHIS]
    mub = [moments.spread * one for one in smub]
    return SurveyBias(moments.correlation, (smub[0], smub[1], smub[2]), (mub[0], mub[1], mub[2]))
