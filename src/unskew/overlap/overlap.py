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
        The region's share of the population's mass, less ``by_chance``.
    margin : float
        Half the width of the 95 % interval of ``share``; 0 where it was counted over all rows.
    sample_rows : int
        The number of sample rows in the region: none.
    sample_size : int
        The number of sample rows in all.
    by_chance : float
        For many rare values together: the share that an even draw of the sample's size would lack
        as well.
    unseen : bool
        Whether the region is values of one column that no sample row has, such as a category.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew import Unweighted
    >>> people = np.random.default_rng(0).uniform(size=(2000, 1))
    >>> weighter = Unweighted(overlap=1.0).fit(people[people[:, 0] < 0.8], population=people)
    >>> weighter.overlap_.rules[0].sample_rows
    0
    """

    text: str
    share: float
    margin: float
    sample_rows: int
    sample_size: int
    by_chance: float = 0.0
    unseen: bool = False

    def __str__(self) -> str:
        margin = f" (± {100 * self.margin:.1f})" if self.margin >= 0.0005 else ""
        more = ""
        if self.by_chance >= 0.0005:
            more = f" beyond the {100 * self.by_chance:.1f} % that chance explains"
        return (
            f"{self.text}: {100 * self.share:.1f} %{margin} of the population{more}, "
            f"{self.sample_rows} of {self.sample_size:,} sample rows"
        )


@dataclass(frozen=True)
class Overlap:
    """How much of the population the sample does not cover, and where.

    Attributes
    ----------
    uncovered : float
        The share of the population's mass that no sample row can represent, beyond what chance
        explains.
    margin : float
        Half the width of its 95 % interval; 0 where it was counted over all rows.
    rules : tuple of OverlapRule
        The regions, in order of falling share; they may overlap.
    unexplained : float
        The part of ``uncovered`` that no rule describes.
    method : str
        How it was measured, in a few sentences.
    by_chance : float
        The share of the population's mass with values that no sample row has, but as few of them as
        an even draw of the sample's size would lack: not part of ``uncovered``.
    rounded : tuple of str
        For each column in which one side is rounded and the other is not, to what, in a sentence.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew import Unweighted
    >>> people = np.random.default_rng(0).uniform(size=(2000, 1))
    >>> weighter = Unweighted(overlap=1.0).fit(people[people[:, 0] < 0.8], population=people)
    >>> bool(abs(weighter.overlap_.uncovered - 0.2) < 0.02)
    True
    """

    uncovered: float
    margin: float
    rules: tuple[OverlapRule, ...]
    unexplained: float
    method: str
    by_chance: float = 0.0
    rounded: tuple[str, ...] = ()

    @property
    def unseen(self) -> tuple[OverlapRule, ...]:
        """The rules of values, such as categories, that no sample row has.

        Only those that a random draw of the sample's size would lack in at most 1 of 100 cases.
        """
        return tuple(rule for rule in self.rules if rule.unseen)

    @property
    def lacking(self) -> tuple[str, ...]:
        """A sentence for each rule in ``unseen``."""
        return tuple(f"{rule}: no weights make up for it." for rule in self.unseen)

    @property
    def chance_sentence(self) -> str:
        """What chance explains, in a sentence; empty where it is next to nothing."""
        if self.by_chance < 0.0005:
            return ""
        return (
            f"Rare values that no sample row has hold {100 * self.by_chance:.1f} % of the "
            "population; a random draw of the sample's size would lack as much."
        )

    def __str__(self) -> str:
        rare = self.chance_sentence
        if not self.uncovered and self.rules:
            return f"No sample row has {'; '.join(map(str, self.rules[:3]))}.{rare and ' ' + rare}"
        if not self.uncovered:
            return rare or "The sample covers the whole population examined."
        rare = f" {rare}" if rare else ""
        text = f"{100 * self.uncovered:.1f} % of the population is not covered by the sample"
        if not self.rules:
            return f"{text}.{rare}"
        shown = [rule for place, rule in enumerate(self.rules) if place < 3 or rule.unseen]
        left = len(self.rules) - len(shown)
        more = f"; and {left} more regions" if left else ""
        return f"{text}: {'; '.join(map(str, shown))}{more}.{rare}"
