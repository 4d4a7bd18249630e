"""Correct sample selection bias: weigh a biased sample so that it represents the population.

The public names are those in ``__init__.pyi``, one line each, and those of :mod:`unskew.theory`;
everything else is private. They are imported when they are first used, so that ``import unskew``
costs nothing.
"""

from __future__ import annotations

import os
from importlib import import_module

__version__ = "0.2.0"


def _public_names() -> dict[str, str]:
    """Return the module that defines each public name; each line imports one, as itself."""
    with open(os.path.splitext(__file__)[0] + ".pyi", encoding="utf-8") as stub:
        lines = [line.split() for line in stub if line.startswith("from unskew")]
    return {name: home for _, home, _, name, *_ in lines}


_HOME = _public_names()

__all__ = sorted(_HOME)


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'unskew' has no attribute '{name}'")
    home = _HOME[name]
    if home == "unskew":  # a public module
        return import_module(f"unskew.{name}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
