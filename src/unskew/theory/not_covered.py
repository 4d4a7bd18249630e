"""The error for what the theory does not cover."""

from __future__ import annotations

from typing import NoReturn

from unskew.errors import LearnerError


def not_covered(why: str) -> NoReturn:
    """Raise the error for what the theory does not cover."""
    raise LearnerError(f"not covered: {why}")
