"""What a test says of an assumption on which a statement rests."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

LEVEL = 0.05
"""The level of the tests: the share of samples for which an assumption holds and is rejected all
the same."""


@dataclass(frozen=True)
class AssumptionTest(ABC):
    """The result of a test.

    Attributes
    ----------
    p_value : float or None
        None where it could not be made.
    """

    p_value: float | None
    assumed: ClassVar[str]
    """The assumption, in the indicative: "selection is even"."""
    supposed: ClassVar[str]
    """The same where it is rejected: "selection were even"."""

    @property
    def rejected(self) -> bool:
        """Whether the assumption does not hold."""
        return self.p_value is not None and self.p_value < LEVEL

    def headline(self, likely: str) -> str:
        """Return the beginning of a statement, qualified unless the test lets it stand."""
        if self.p_value is not None and not self.rejected:
            return likely[:1].upper() + likely[1:]
        likely = likely[:1].lower() + likely[1:]
        if self.p_value is None:
            return f"If {self.assumed}, which was not tested, {likely}"
        return f"Only if {self.supposed}, which a test rejects (p = {self.p_value:.2g}), {likely}"

    @property
    @abstractmethod
    def remark(self) -> str:
        """What the test says, in a sentence."""
