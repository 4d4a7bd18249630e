"""What a pass has seen besides the answer, and how far it has come."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["Place", "Seen"]


@dataclass
class Seen:
    """What passes have shown of a population; its matched twins share it."""

    started: bool = False
    whole: bool = False
    rows: int = 0
    mass: float = 0.0
    selected: int = 0
    skipped: dict[str, str] = field(default_factory=dict)

    def add(self, other: Seen) -> None:
        """Take in what a further part has shown."""
        self.rows += other.rows
        self.mass += other.mass
        self.selected += other.selected


@dataclass(frozen=True)
class Place:
    """The first part that is not merged yet: of which file, which of it, from which row on."""

    file: int = 0
    part: int = 0
    row: int = 0
