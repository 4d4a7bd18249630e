"""What functions of unskew return: frozen values with attributes, to print and to read.

The classes are those in ``results.pyi``, one line each; they are imported when they are first used.
"""

from __future__ import annotations

from unskew._public import public_names, resolve

_HOME = public_names(__file__)

__all__ = sorted(_HOME)


def __getattr__(name: str) -> object:
    return resolve(__name__, _HOME, name)


def __dir__() -> list[str]:
    return __all__
