"""Totals of a pass besides the summary, and its position."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isfinite

from unskew.errors import InputError


@dataclass
class Seen:
    """Totals of the passes over a population; its matched copies share them."""

    started: bool = False
    whole: bool = False
    rows: int = 0
    mass: float = 0.0
    selected: int = 0
    skipped: dict[str, str] = field(default_factory=dict)

    def add(self, other: Seen) -> None:
        """Add the totals of another part."""
        self.rows += other.rows
        self.mass += other.mass
        self.selected += other.selected

    def check(self) -> None:
        """Refuse a population without rows, or whose weights count for nothing."""
        if not self.rows:
            raise InputError("The population has no rows.")
        if self.mass == 0:
            raise InputError("The population's weight is zero on every row, so no row would count.")
        if not isfinite(self.mass):
            raise InputError(
                "The population's weight adds up to infinity. Divide it by its largest entry."
            )


@dataclass(frozen=True)
class Place:
    """The first part that is not merged yet: its file, its number there, and its first row."""

    file: int = 0
    part: int = 0
    row: int = 0
