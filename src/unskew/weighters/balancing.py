r"""The sample's features against their targets: what can be matched, and by which weights d F(u).

The factor F of a row's design weight d depends on its score
:math:`u = \lambda_0 + \lambda^\top (\varphi(x) - t) / s`, with targets t and scales s.
:class:`Balancing` finds the multipliers λ. A :class:`Tilt` travels to wherever rows are; its
linearisation says how weights move with the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import pyarrow as pa

from unskew.errors import InputError, OverlapError, ParameterError
from unskew.numerics.calibration import (
    CalibrationProblem,
    Reach,
    Solution,
    farthest_mean,
    independent,
    smallest_imbalance,
)
from unskew.numerics.distances import Distance, Truncated
from unskew.numerics.row_features import RowFeatures
from unskew.numerics.typing import BoolArray, FloatArray
from unskew.population.summaries import Summary
from unskew.rows.design import Design, Levels
from unskew.rows.sample import Sample
from unskew.rows.tables import RowBlock
from unskew.weighters.linearisation import CalibratedWeights

WIDE = 64
"""The largest number of levels of a column that are columns of a matrix."""


@dataclass(frozen=True)
class Tilt:
    """The factor of a row's design weight, as a function of its features.

    It travels to wherever rows are, and weighs them: ``tilt(batch)``.
    """

    features: Design
    targets: FloatArray
    spread: FloatArray
    intercept: float
    multipliers: FloatArray
    distance: Distance
    absent: BoolArray
    """Levels that the population does not have."""

    def __call__(self, batch: Any, side: str = "new rows") -> FloatArray:
        codes = self.features.codes.transform(batch, side=side).values
        scores, lost = self.scores(codes, batch)
        factors = self.distance.factors(scores)
        factors[lost] = 0.0
        return factors

    def scores(self, codes: FloatArray, batch: Any) -> tuple[FloatArray, BoolArray]:
        """Return u of rows, and which have a level that the population lacks.

        An unknown feature counts as the target. Levels are looked up, however many there are.
        """
        owner = self.features.term_of_feature
        levels = [isinstance(term, Levels) for term in self.features.terms]
        dense = ~np.array(levels, dtype=bool)[owner]
        numbers = [term for term in self.features.terms if not isinstance(term, Levels)]
        rows = Design(self.features.codes, numbers).of_codes(codes, batch)
        lost: BoolArray = (rows[:, self.absent[dense]] == 1.0).any(axis=1)
        rows = np.nan_to_num((rows - self.targets[dense]) / self.spread[dense], nan=0.0)
        scores = rows @ self.multipliers[dense] + self.intercept
        for number, term in enumerate(self.features.terms):
            if isinstance(term, Levels):
                own, places = owner == number, term.places(codes)
                slope = self.multipliers[own] / self.spread[own]
                scores += np.append(slope - slope @ self.targets[own], 0.0)[places]
                lost |= np.append(self.absent[own], False)[places]
        return scores, lost

    def at_targets(
        self, targets: FloatArray, spread: FloatArray, kept: BoolArray
    ) -> tuple[float, FloatArray]:
        """Return intercept and multipliers of the same scores with other targets and scales."""
        intercept = self.intercept + self.multipliers @ ((targets - self.targets) / self.spread)
        return float(intercept), (self.multipliers * spread / self.spread)[kept]


class TiltedSums(Summary):
    """The sums of features over rows that a tilt weighs; an unknown feature counts as its target.

    Attributes
    ----------
    sums : ndarray of shape (n_features,)
        Of what the features exceed their targets by, in standard deviations.
    mass : float
        The sum of the weights.
    """

    shared = frozenset({"tilt"})
    added = ("sums", "mass")

    def __init__(self, tilt: Tilt) -> None:
        self.tilt = tilt
        self.sums: FloatArray = np.zeros(len(tilt.targets))
        self.mass = 0.0

    def update(self, rows: RowBlock) -> None:
        """Add the rows of a block."""
        tilt = self.tilt
        features = tilt.features.transform(rows.batch, side="sample").values
        weight = rows.weight * tilt(rows.batch, side="sample")
        self.sums += weight @ np.nan_to_num((features - tilt.targets) / tilt.spread, nan=0.0)
        self.mass += float(weight.sum())


def linearised_tilt(
    tilt: Tilt,
    sample: Sample,
    kept: BoolArray,
    *,
    distance: Distance,
    ridge: float = 0.0,
    max_weight: float | None = None,
    partial: bool = False,
) -> CalibratedWeights:
    """Return the linearisation of weights d F(u) that match features.

    Parameters
    ----------
    tilt : Tilt
        The solution.
    sample : Sample
        Its design weights are the d: given ones, or weights that the tilt starts from.
    kept : ndarray of bool of shape (n_features,)
        Which features are matched, none of them a linear combination of others.
    distance : Distance
        Without the limit of ``max_weight``.
    ridge : float
    max_weight : float, optional
        The largest weight over the mean: a row that has it does not follow the multipliers.
    partial : bool
        Whether a row of the population with an unknown level counts in the other features.
    """
    feature_set = tilt.features
    scores, lost = tilt.scores(sample.values, sample.batch)
    weights = np.where(lost, 0.0, sample.design * tilt.distance.factors(scores))
    slopes = np.where(weights == 0.0, 0.0, sample.design * distance.slopes(scores))
    if max_weight is not None:
        limit = max_weight * weights.mean()
        weights = np.minimum(weights, limit)  # of new rows, the limit is another
        slopes[weights >= limit * (1 - 1e-9)] = 0.0
    terms, owner = feature_set.terms, feature_set.term_of_feature
    matched = np.bincount(owner, kept | tilt.absent, len(terms))
    wide = [
        place
        for place, term in enumerate(terms)
        if isinstance(term, Levels) and WIDE < len(term.names) <= matched[place] + 1 and not ridge
    ]
    widest = max(wide, key=lambda place: len(terms[place].names), default=-1)
    level: Any = terms[widest] if wide else None
    others = Design(feature_set.codes, [one for one in terms if one is not level])
    rest = owner != widest
    chosen, targets, spread = kept[rest], tilt.targets[rest], tilt.spread[rest]
    by_term = [isinstance(t, Levels) and (partial or len(t.positions) > 1) for t in others.terms]
    lenient = np.array(by_term, dtype=bool)[others.term_of_feature][chosen]

    def scaled(codes: FloatArray, batch: pa.RecordBatch) -> FloatArray:
        return ((others.of_codes(codes, batch) - targets) / spread)[:, chosen]

    def predict(batch: pa.RecordBatch, slope: FloatArray, effects: FloatArray) -> FloatArray:
        codes = feature_set.codes.transform(batch, side="population").values
        rows = scaled(codes, batch)
        rows[:, lenient] = np.nan_to_num(rows[:, lenient], nan=0.0)
        fitted: FloatArray = rows @ slope
        if level is not None:
            places = level.places(codes)
            fitted += effects[places]
            if not partial:
                fitted[places < 0] = 0.0
        # A row with a value that no sample row has is not among those that are matched.
        fitted[np.isnan(fitted).any(axis=1)] = 0.0
        return fitted

    features = scaled(sample.values, sample.batch)
    features[sample.design == 0] = 0.0
    levels = None
    if level is not None:
        levels = np.maximum(level.places(sample.values), 0), tilt.targets[owner == widest]
    return CalibratedWeights(weights, features, predict, sample.design, slopes, ridge, levels)


MATCHED = 1e-8
"""The imbalance, in standard deviations, up to which a feature without slack is matched."""
MAX_OF_PROGRAM = 200
"""How many features a linear program has at most: with twice as many it takes ten times as long."""
RELAXED = 1.01
"""Weights of the smallest slack are on the border of those that exist; this allows a bit more."""


class Balancing:
    """A sample whose weighted means are to be given ones.

    Parameters
    ----------
    feature_set : Design
    sample : Sample
    targets : ndarray of shape (n_features,)
        The means that the features are to have.
    distance : Distance
    slack : ndarray of shape (n_features,)
        In standard deviations.
    ratio : float
        The weights' total over the design weights', where the distance depends on it.
    max_weight : float, optional
        The largest weight over the mean.
    start : Tilt, optional
        That of like rows, whose standard deviations are the unit of imbalance, slack and ridge; by
        default they are those of these rows.

    Attributes
    ----------
    factors : ndarray of shape (n_rows,)
        Of the design weights, once :meth:`solve` has found them; zero where there is none.
    tilt : Tilt
    certificate : CalibrationCertificate
    imbalance : ndarray of shape (n_features,)
    collinear : ndarray of bool of shape (n_features,)
    allowed, ridge : float
        The slack beyond what was given, and the ridge.
    """

    def __init__(
        self,
        feature_set: Design,
        sample: Sample,
        targets: FloatArray,
        distance: Distance,
        slack: FloatArray,
        *,
        ratio: float = 1.0,
        max_weight: float | None = None,
        start: Tilt | None = None,
    ) -> None:
        self.feature_set, self.targets, self.slack, self.ratio = feature_set, targets, slack, ratio
        self.names, self.start, design = feature_set.names, start, sample.design
        features = feature_set.of_rows(sample.values, sample.batch)
        often = np.broadcast_to(sample.redrawn, design.shape)  # of as many rows of that weight
        self.n_rows, self.max_weight = float(often[design > 0].sum()), max_weight
        self.present = design > 0
        features = features.of_rows(self.present)  # others may have values that cannot be summed
        self.absent = _absent_levels(features, targets, distance) & (slack == 0.0)
        lost = features.any_one(self.absent)
        if lost.all():
            raise OverlapError("Every sample row has a level that the population lacks.", 1.0)
        self.present[self.present] = ~lost
        self.features = features.of_rows(~lost)
        counted = float(design[self.present].sum())
        self.shares = design[self.present] / counted
        self.spread = self.features.spread(self.shares) if start is None else start.spread
        for name, *numbers in zip(self.names, self.spread, targets, strict=True):
            if not np.isfinite(numbers).all():
                raise InputError(
                    f"The values of '{name}' are too large to sum. Rescale the column."
                )
        self.distance = self.new_distance = distance
        if max_weight is not None:
            # A weight over the mean is n p F / R; a new row has a design weight of one.
            limit = max_weight * ratio / self.n_rows
            often = often[self.present]
            room = max_weight * float(often.sum()) / self.n_rows
            if room < 1 - 1e-12:
                raise ParameterError(
                    f"max_weight={max_weight} leaves no weights: {len(often)} of {self.n_rows:g} "
                    f"rows count, and hold at most {room:.4g} of the total. Raise it."
                )
            self.distance = self._capped(distance, limit * often / self.shares)
            self.new_distance = self._capped(distance, limit * counted)

    def _capped(self, distance: Distance, caps: FloatArray | float) -> Distance:
        low = max(distance.lowest, 0.0)
        if np.min(caps) <= low:
            raise ParameterError(
                f"max_weight={self.max_weight} is below the smallest weight that the distance and "
                "its bounds allow. Raise it."
            )
        return Truncated(distance, low, caps)

    def solve(self, ridge: float, design_effect: float | None, *, relax: bool) -> Self:
        """Find the weights, or raise how near any come."""
        slack = 0.0
        solution, kept = self._attempt(slack, ridge, self.start)
        if not ridge and design_effect is None and not self._is_matched(solution):
            reach = self.reach()
            if reach.slack > MATCHED:
                if not relax:
                    raise OverlapError(self.explain(reach), 1.0)
                if self._is_large:
                    ridge = 1.0 / self.n_rows
                else:
                    slack = RELAXED * reach.slack
                solution, kept = self._attempt(slack, ridge)
        if design_effect is not None:
            ridge, solution, kept = self._limited(design_effect, ridge, solution, kept)
        multipliers = np.zeros(len(self.names))
        multipliers[kept] = solution.multipliers
        self.factors = np.zeros(len(self.present))
        self.factors[self.present] = solution.factors
        self.tilt = Tilt(
            self.feature_set,
            self.targets,
            self.spread,
            solution.intercept,
            multipliers,
            self.new_distance,
            self.absent,
        )
        self.certificate, self.imbalance = solution.certificate, self._imbalance(solution.factors)
        self.collinear, self.allowed, self.ridge = ~kept, slack, ridge
        return self

    @cached_property
    def _scaled(self) -> RowFeatures:
        """The features from their targets, in standard deviations."""
        return self.features.standardised(self.targets, self.spread)

    def _problem(self, slack: float, ridge: float) -> CalibrationProblem:
        return CalibrationProblem(
            self._scaled,
            self.shares,
            self.distance,
            self.ratio,
            self.slack + slack,
            np.full(len(self.names), ridge),
        )

    def _attempt(
        self, slack: float, ridge: float, start: Tilt | None = None
    ) -> tuple[Solution, BoolArray]:
        """Solve with the features that are no linear combinations of others."""
        problem = self._problem(slack, ridge)
        kept = np.ones(len(self.names), dtype=bool)
        # Of wide features, whose directions need no matrix, those of others' are as good as they.
        if not ridge and not problem.slack.any() and not self.features.wide:
            means, gram = problem.design_moments
            kept = independent(gram - np.outer(means, means))
        near = None if start is None else start.at_targets(self.targets, self.spread, kept)
        return problem.restricted(kept).solve(near), kept

    def _imbalance(self, factors: FloatArray) -> FloatArray:
        counted = self.shares * factors
        counted /= counted.sum()
        return (self.features.sums(counted) - self.targets) / self.spread

    def _is_matched(self, solution: Solution) -> bool:
        beyond = np.abs(self._imbalance(solution.factors)) - self.slack
        return bool((beyond <= MATCHED).all())

    def _limited(
        self, limit: float, ridge: float, solution: Solution, kept: BoolArray
    ) -> tuple[float, Solution, BoolArray]:
        """Return the smallest ridge under which the design effect keeps to a limit."""

        def effect(solution: Solution) -> float:
            shares = self.shares * solution.factors
            return float(self.n_rows * (shares @ shares) / shares.sum() ** 2)

        if effect(solution) <= limit and self._is_matched(solution):
            return ridge, solution, kept
        low, high = np.log(max(ridge, 1e-10)), np.log(1e8)
        least = effect(self._attempt(0.0, float(np.exp(high)))[0])
        if least > limit:
            raise ParameterError(
                f"design_effect={limit} cannot be reached: the design weights alone have "
                f"{least:.4g}."
            )

        def is_within(log_ridge: float) -> bool:
            found, _ = self._attempt(0.0, float(np.exp(log_ridge)))
            return found.certificate.converged and effect(found) <= limit

        while high - low > 1e-6:
            middle = (low + high) / 2
            low, high = (low, middle) if is_within(middle) else (middle, high)
        return (float(np.exp(high)), *self._attempt(0.0, float(np.exp(high))))

    def _share_bounds(self) -> tuple[FloatArray, FloatArray]:
        """Return the bounds of each row's share of the weights."""
        low, high = self.distance.range()
        # Without bounds, shares of up to a thousand times their own are far enough.
        return (
            np.maximum(low, -1e3) * self.shares / self.ratio,
            np.minimum(high * self.shares / self.ratio, 1.0 if np.min(low) >= 0 else 1e3),
        )

    @property
    def _is_large(self) -> bool:
        """Whether linear programs of the features take too long."""
        return len(self.names) > MAX_OF_PROGRAM or bool(self.features.wide)

    def reach(self) -> Reach:
        """Return how near any weights within the bounds come; with many features, about how near.

        A ridge of one over the number of rows allows imbalances of the size of chance.
        """
        if self._is_large:
            solution, _ = self._attempt(0.0, 1.0 / self.n_rows)
            left = self._imbalance(solution.factors)
            beyond = np.maximum(np.abs(left) - self.slack, 0.0)
            direction = np.sign(left) * beyond / max(float(beyond.sum()), np.finfo(float).tiny)
            return Reach(float(beyond.max(initial=0.0)), direction)
        return smallest_imbalance(self._scaled.dense(), *self._share_bounds(), self.slack)

    def explain(self, reach: Reach) -> str:
        """Return why no weights match the targets, in the features' names."""
        weight = np.abs(reach.direction)
        first = int(weight.argmax())
        name, origin = self.names[first], self.feature_set.origins[first]
        target = self.targets[first] + origin
        sign = -np.sign(reach.direction[first])  # in which direction the sample does not reach
        word, beyond = ("above", "above") if sign > 0 else ("below", "below")
        farthest, about = None, "about " if self._is_large else ""
        if not self._is_large:
            farthest = farthest_mean(self._scaled.dense(), first, sign, *self._share_bounds())
        text = (
            f"No weights match the population: the nearest that any come is {about}"
            f"{reach.slack:.3g} standard deviations of the sample, on '{name}'."
        )
        if farthest is not None:
            value = target + farthest * self.spread[first]
            others = ", with the other features matched," if len(self.names) > 1 else ""
            text += (
                f" No weights{others} bring the mean of '{name}' {word} {value:.6g}; the "
                f"population has {target:.6g}."
            )
        else:
            sides = [
                f"'{self.names[j]}' {'higher' if reach.direction[j] < 0 else 'lower'}"
                for j in np.argsort(-weight)[:5]
                if weight[j] > 0.05 * weight.max()
            ]
            text += f" The population has {' and '.join(sides)} than the sample can reach at once."
        one = np.zeros(len(self.names))
        one[first] = 1.0
        column = self.features.scores(one) + origin
        count = int((column > target).sum() if sign > 0 else (column < target).sum())
        text += f" {count} of {len(column)} sample rows are {beyond} {target:.6g}."
        if self.max_weight is not None or isinstance(self.distance, Truncated):
            text += " Wider bounds or a larger max_weight may help."
        return (
            f'{text} Use on_infeasible="relax" to allow this imbalance, ridge= to trade balance '
            "for even weights, fewer features, or AutoWeights(), which needs no exact match."
        )


def _absent_levels(features: RowFeatures, targets: FloatArray, distance: Distance) -> BoolArray:
    """Return the indicators whose target is zero, if weights of zero are allowed."""
    absent: BoolArray = targets == 0.0
    if distance.lowest != 0.0 or not absent.any():
        return np.zeros(len(targets), dtype=bool)
    return absent & features.are_indicators()
