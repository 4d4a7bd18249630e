"""Types that the weighters' parameters share."""

from __future__ import annotations

from typing import Literal

Total = Literal["sample", "population"]
OnUncovered = Literal["warn", "raise", "ignore"] | float
