"""Correct sample selection bias: weigh a biased sample so that it represents the population.

The public names are those in ``__init__.pyi``, one line each, those of :mod:`unskew.results` (what
functions return), :mod:`unskew.errors` (what can be caught) and :mod:`unskew.theory`; everything
else is private. They are imported when they are first used, so that ``import unskew`` costs
nothing.
"""

from __future__ import annotations

from unskew._public import public_names, resolve

__version__ = "0.2.0"

_HOME = public_names(__file__)

__all__ = sorted(_HOME)


def __getattr__(name: str) -> object:
    found = resolve(__name__, _HOME, name)
    if name in _HOME:  # one that has moved warns each time
        globals()[name] = found
    return found


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
