"""Which part of the population the sample does not reach, and where, in the user's own words."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Overlap", "OverlapRule"]


@dataclass(frozen=True)
class OverlapRule:
    """A region that holds population rows and no sample row.

    Attributes
    ----------
    text : str
        The region in the columns' names and units, for example "income > 92,000 and region = north".
    share : float
        Of the population's mass.
    margin : float
        Half the width of the 95 % interval of ``share``; 0 where it was counted over all rows.
    sample_rows : int
        How many sample rows lie in the region: none, or so few that none was expected.
    sample_size : int
        Of how many.
    """

    text: str
    share: float
    margin: float
    sample_rows: int
    sample_size: int

    def __str__(self) -> str:
        margin = f" (± {100 * self.margin:.1f})" if self.margin >= 0.0005 else ""
        return (
            f"{self.text}: {100 * self.share:.1f} %{margin} of the population, "
            f"{self.sample_rows} of {self.sample_size:,} sample rows"
        )


@dataclass(frozen=True)
class Overlap:
    """How much of the population the sample does not reach, and where.

    Attributes
    ----------
    uncovered : float
        The share of the population's mass that no sample row can stand for.
    margin : float
        Half the width of its 95 % interval; 0 where it was counted over all rows.
    rules : tuple of OverlapRule
        Where, by falling share; regions may overlap.
    unexplained : float
        The part of ``uncovered`` that no rule describes.
    method : str
        How it was found, in a sentence.
    """

    uncovered: float
    margin: float
    rules: tuple[OverlapRule, ...]
    unexplained: float
    method: str
