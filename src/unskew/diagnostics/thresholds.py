"""The limits by which a verdict is reached."""

from __future__ import annotations

from dataclasses import dataclass

from unskew.overlap import LIMIT


@dataclass(frozen=True)
class Thresholds:
    """The limits of a verdict.

    Attributes
    ----------
    significance_level : float
        Of the tests together: half of it is for that of columns one by one.
    max_uncovered : float
        The uncovered share above which weights cannot correct the bias.
    balanced_difference : float
        The standardised difference up to which a feature counts as balanced.
    balanced_auc : float
        The AUC up to which sample and population count as balanced.
    min_effective_share : float
        The effective share of the sample below which weights are costly.
    chance_difference : float
        With weights: what the largest of all standardised differences reaches by chance at this
        effective sample size.
    """

    significance_level: float = 0.05
    max_uncovered: float = LIMIT
    balanced_difference: float = 0.1
    balanced_auc: float = 0.55
    min_effective_share: float = 0.5
    chance_difference: float = 0.0

    @property
    def largest_difference(self) -> float:
        """The difference above which a feature counts against the weights, everywhere."""
        return self.balanced_difference + self.chance_difference


THRESHOLDS = Thresholds()
