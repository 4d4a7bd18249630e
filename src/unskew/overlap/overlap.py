"""The result: which part of the population the sample does not cover."""

from __future__ import annotations

from dataclasses import dataclass

LIMIT = 0.05
"""The uncovered share above which a sample cannot represent the population."""


@dataclass(frozen=True)
class OverlapRule:
    """A region that holds population rows and no sample row.

    Attributes
    ----------
    text : str
        The region in the columns' names and units, for example "income > 92,000 and region =
        north".
    share : float
        The region's share of the population's mass.
    margin : float
        Half the width of the 95 % interval of ``share``; 0 where it was counted over all rows.
    sample_rows : int
        The number of sample rows in the region: none.
    sample_size : int
        The number of sample rows in all.
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
    """How much of the population the sample does not cover, and where.

    Attributes
    ----------
    uncovered : float
        The share of the population's mass that no sample row can represent.
    margin : float
        Half the width of its 95 % interval; 0 where it was counted over all rows.
    rules : tuple of OverlapRule
        The regions, in order of falling share; they may overlap.
    unexplained : float
        The part of ``uncovered`` that no rule describes.
    method : str
        How it was measured, in a few sentences.
    """

    uncovered: float
    margin: float
    rules: tuple[OverlapRule, ...]
    unexplained: float
    method: str

    def __str__(self) -> str:
        text = f"{100 * self.uncovered:.1f} % of the population is not covered by the sample"
        if not self.rules:
            return f"{text}."
        shown = "; ".join(map(str, self.rules[:3]))
        more = f"; and {len(self.rules) - 3} more regions" if len(self.rules) > 3 else ""
        return f"{text}: {shown}{more}."
