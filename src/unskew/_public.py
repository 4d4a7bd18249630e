"""Public names that are imported when they are first used, as their module's stub lists them."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from importlib import import_module

from unskew import errors

_RESULTS = (
    "ColumnOdds Diagnosis Estimate Estimates HeckmanSummary LabelShiftTest OddsBounds Overlap "
    "OverlapRule Progress SelectionComparison Sensitivity Summary SurveyBias"
)
MOVED = dict.fromkeys(errors.__all__, "unskew.errors")
MOVED |= dict.fromkeys(_RESULTS.split(), "unskew.results")
"""Names that were once in ``unskew`` itself, and where they are now."""


def public_names(file: str) -> dict[str, str]:
    """Return the module that defines each public name; each line of the stub imports one."""
    with open(os.path.splitext(file)[0] + ".pyi", encoding="utf-8") as stub:
        lines = [line.split() for line in stub if line.startswith("from unskew")]
    return {name: home for _, home, _, name, *_ in lines}


def resolve(module: str, homes: Mapping[str, str], name: str) -> object:
    """Return a public name of a module; one that has moved with a warning."""
    if module == "unskew" and name in MOVED:
        warnings.warn(
            f"unskew.{name} is {MOVED[name]}.{name} now; the old name goes in the next release.",
            DeprecationWarning,
            stacklevel=3,
        )
        return getattr(import_module(MOVED[name]), name)
    if name not in homes:
        raise AttributeError(f"module '{module}' has no attribute '{name}'")
    home = homes[name]
    if home == "unskew":  # a public module
        return import_module(f"unskew.{name}")
    return getattr(import_module(home), name)
