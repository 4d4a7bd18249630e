r"""Tilted weights d F(u): as a function of a row, and how they follow the rows.

The factor F of a row's design weight d depends on its score
:math:`u = \lambda_0 + \lambda^\top (\varphi(x) - t) / s`, with targets t and scales s.
A tilt travels to wherever rows are; its linearisation says how weights move with the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from unskew.numerics.distances import Distance
from unskew.numerics.typing import BoolArray, FloatArray, IntArray
from unskew.population.summaries import Summary
from unskew.rows.features import FeatureSet, Levels
from unskew.rows.sample import Sample
from unskew.rows.tables import RowBlock
from unskew.weighters.linearisation import CalibratedWeights

WIDE = 64
"""The largest number of levels of a column that are columns of a matrix."""


@dataclass(frozen=True)
class Tilt:
    """The factor of a row's design weight, as a function of its features."""

    targets: FloatArray
    spread: FloatArray
    intercept: float
    multipliers: FloatArray
    distance: Distance
    absent: BoolArray
    """Levels that the population does not have."""

    def standardised(self, features: FloatArray) -> FloatArray:
        """Return features from their targets, in standard deviations; zero where unknown."""
        return np.nan_to_num((features - self.targets) / self.spread, nan=0.0)

    def factors(self, features: FloatArray) -> FloatArray:
        """Return F(u); an unknown feature (NaN) counts as the target."""
        scores = self.standardised(features) @ self.multipliers + self.intercept
        factors = self.distance.factors(scores)
        factors[(features[:, self.absent] == 1.0).any(axis=1)] = 0.0
        return factors

    def for_features(
        self, targets: FloatArray, spread: FloatArray, kept: BoolArray
    ) -> tuple[float, FloatArray]:
        """Return intercept and multipliers of the same scores with other targets and scales."""
        intercept = self.intercept + self.multipliers @ ((targets - self.targets) / self.spread)
        return float(intercept), (self.multipliers * spread / self.spread)[kept]


class TiltRule(NamedTuple):
    """The weight of a row is the factor of its features."""

    features: FeatureSet
    tilt: Tilt

    def __call__(self, batch: Any) -> FloatArray:
        codes = self.features.codes.transform(batch, side="new rows").values
        scores, lost = self.scores(codes, batch)
        factors = self.tilt.distance.factors(scores)
        factors[lost] = 0.0
        return factors

    def scores(self, codes: FloatArray, batch: Any) -> tuple[FloatArray, BoolArray]:
        """Return u of rows, and which have a level that the population lacks.

        An unknown feature counts as the target. Levels are looked up, however many there are.
        """
        tilt, owner = self.tilt, self.features.term_of_feature
        levels = [isinstance(term, Levels) for term in self.features.terms]
        dense = ~np.array(levels, dtype=bool)[owner]
        numbers = [term for term in self.features.terms if not isinstance(term, Levels)]
        rows = FeatureSet(self.features.codes, numbers).of_codes(codes, batch)
        lost: BoolArray = (rows[:, tilt.absent[dense]] == 1.0).any(axis=1)
        rows = np.nan_to_num((rows - tilt.targets[dense]) / tilt.spread[dense], nan=0.0)
        scores = rows @ tilt.multipliers[dense] + tilt.intercept
        for number, term in enumerate(self.features.terms):
            if isinstance(term, Levels):
                own, places = owner == number, term.places(codes)
                slope = tilt.multipliers[own] / tilt.spread[own]
                scores += np.append(slope - slope @ tilt.targets[own], 0.0)[places]
                lost |= np.append(tilt.absent[own], False)[places]
        return scores, lost


class TiltedSums(Summary):
    """The sums of features over rows that a tilt weighs; an unknown feature counts as its target.

    Attributes
    ----------
    sums : ndarray of shape (n_features,)
        Of what the features exceed their targets by, in standard deviations.
    mass : float
        The sum of the weights.
    """

    shared = frozenset({"rule"})
    added = ("sums", "mass")

    def __init__(self, rule: TiltRule) -> None:
        self.rule = rule
        self.sums: FloatArray = np.zeros(len(rule.tilt.targets))
        self.mass = 0.0

    def update(self, rows: RowBlock) -> None:
        """Add the rows of a block."""
        tilt = self.rule.tilt
        features = self.rule.features.transform(rows.batch, side="sample")
        weight = rows.weight * tilt.factors(features)
        self.sums += weight @ tilt.standardised(features)
        self.mass += float(weight.sum())

    @property
    def imbalance(self) -> FloatArray:
        """The weighted means."""
        return self.sums / self.mass


def linearised_tilt(
    tilt: Tilt,
    feature_set: FeatureSet,
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
    feature_set : FeatureSet
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
    scores, lost = TiltRule(feature_set, tilt).scores(sample.values, sample.batch)
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
    others = FeatureSet(feature_set.codes, [one for one in terms if one is not level])
    rest = owner != widest
    chosen, targets, spread = kept[rest], tilt.targets[rest], tilt.spread[rest]
    by_term = [isinstance(t, Levels) and (partial or len(t.positions) > 1) for t in others.terms]
    lenient = np.array(by_term, dtype=bool)[others.term_of_feature][chosen]

    def scaled(codes: FloatArray, batch: pa.RecordBatch) -> FloatArray:
        return ((others.of_codes(codes, batch) - targets) / spread)[:, chosen]

    def of_batch(batch: pa.RecordBatch) -> tuple[FloatArray, IntArray]:
        codes = feature_set.codes.transform(batch, side="population").values
        rows = scaled(codes, batch)
        rows[:, lenient] = np.nan_to_num(rows[:, lenient], nan=0.0)
        if level is None:
            return rows, np.zeros(len(codes), dtype=np.int64)
        places = level.places(codes)
        if not partial:
            rows[places < 0] = np.nan
        return rows, places

    features = scaled(sample.values, sample.batch)
    features[sample.design == 0] = 0.0
    levels = None
    if level is not None:
        levels = np.maximum(level.places(sample.values), 0), tilt.targets[owner == widest]
    return CalibratedWeights(weights, features, of_batch, sample.design, slopes, ridge, levels)
