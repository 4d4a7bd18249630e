"""Types that the weighters' parameters share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

Columns = Sequence[str] | Sequence[int] | Literal["shared"] | None
Total = Literal["sample", "population"]
OnUncovered = Literal["warn", "raise", "ignore"] | float
