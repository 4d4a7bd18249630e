"""One column of a diagnosis: its differences and its distribution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

OTHER, NOT_IN_SAMPLE, MISSING = "(other)", "(not in the sample)", "(missing)"
"""Labels of rare categories, of unseen categories (of the population alone), of missing values."""


@dataclass(frozen=True)
class BalanceLine:
    """A mean of one column, or the share of one category, compared with the population's.

    The differences are standardised: the sample's mean or share minus the population's, in standard
    deviations of the population. Infinite if the population is constant and the sample differs from
    it; None if either side has no value.

    Attributes
    ----------
    category : str or None
        The category, the same before and after; "(missing)" for the share of missing values, "(not
        in the sample)" for that of all unseen categories; None for the mean of numbers and times.
    before : float or None
        With the sample's design weights only, if it has any.
    after : float or None
        With the weights; None without.
    """

    category: str | None
    before: float | None
    after: float | None

    @property
    def size(self) -> float:
        """The larger of both differences, without its sign."""
        return max(abs(self.before or 0.0), abs(self.after or 0.0))


@dataclass(frozen=True)
class Difference:
    """How far the sample is from the population in one column as a whole.

    Attributes
    ----------
    variance_ratio : float or None
        The sample's variance divided by the population's, for numbers and times.
    distance : float or None
        The Kolmogorov-Smirnov distance for numbers and times, the total variation distance for
        categories; between 0 and 1.
    missing : float
        The sample's share of missing values minus the population's.
    correctable_difference : float or None
        The largest absolute standardised difference that weights can reduce: of the mean, of the
        shares of categories that the sample has, of the share of missing values if the sample has
        some.
    """

    variance_ratio: float | None
    distance: float | None
    missing: float
    correctable_difference: float | None = None


@dataclass(frozen=True)
class Distribution:
    """The distribution of one column in sample, weighted sample and population.

    Attributes
    ----------
    labels : tuple of str
        The bins, in the column's units, or the categories; none where only a mean of the population
        is known.
    edges : tuple of float or None
        The edges of the bins, one more than bins, equally spaced; None for categories and for
        numbers of few values. Times are in days since the sample's first.
    sample, weighted, population : tuple of float
        Shares that sum to one; ``weighted`` is None without weights.
    n_special : int
        How many labels at the end are neither a bin nor a category of the sample, but "(other)",
        "(not in the sample)" or "(missing)".
    """

    labels: tuple[str, ...]
    edges: tuple[float, ...] | None
    sample: tuple[float, ...]
    weighted: tuple[float, ...] | None
    population: tuple[float, ...]
    n_special: int = 0

    @property
    def shares(self) -> dict[str, tuple[float, ...]]:
        """The shares by side, without ``weighted`` if there are no weights."""
        sides = {"sample": self.sample, "weighted": self.weighted, "population": self.population}
        return {side: shares for side, shares in sides.items() if shares is not None}


@dataclass(frozen=True)
class FeatureBalance:
    """One column, before and after weighting.

    Attributes
    ----------
    name : str
    kind : {"number", "category", "time"}
    lines : tuple of BalanceLine
        The mean, or categories: the largest difference before weighting first. Of categories, those
        whose difference exceeds ``thresholds.balanced_difference`` before or after weighting, at
        most 20; of two categories, whose differences are opposite, one; if all are balanced, the
        one that differs most. Missing values have a line if they exceed it too.
    unlisted : int
        How many more categories exceed it.
    before : Difference
        With the sample's design weights only, if it has any.
    after : Difference or None
        With the weights; None without.
    distribution : Distribution
    """

    name: str
    kind: Literal["number", "category", "time"]
    lines: tuple[BalanceLine, ...]
    unlisted: int
    before: Difference
    after: Difference | None
    distribution: Distribution

    @property
    def differences(self) -> dict[str, Difference]:
        """The differences by stage, without ``after`` if there are no weights."""
        return {"before": self.before} | ({"after": self.after} if self.after else {})
