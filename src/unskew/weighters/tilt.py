"""Calibration weights as a function of a row, which travels to wherever the rows are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from unskew.numerics.distances import Distance
from unskew.numerics.typing import BoolArray, FloatArray
from unskew.population.features import FeatureSet, Levels
from unskew.population.summaries import RowBlock, Summary


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
