"""Labels of bands of numbers, such as "18-24", as statistical offices write them.

===============================================  ==========================================
label                                            numbers
===============================================  ==========================================
``18-24``, ``18 to 24``, ``18–24``               from 18; up to the next band, or below 25
``65+``, ``65 and over``, ``65 or more``, ``≥65``  from 65
``under 18``, ``<18``, ``below 18``              below 18
``up to 18``, ``≤18``; ``over 65``, ``>65``      up to and including 18; more than 65
``[18, 25)``, ``(18, 25]``                       an interval; a bracket includes its end
``18``                                           18 alone
===============================================  ==========================================

Thousands separators and currency signs are ignored. A border that two bands share belongs to the
upper one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from unskew.errors import InputError
from unskew.population.groupings import Bands

_NUMBER = r"(-?\d+(?:\.\d+)?)"
_PATTERNS = (
    ("within", rf"{_NUMBER}\s*(?:-|to)\s*{_NUMBER}"),
    ("from", rf"{_NUMBER}\s*(?:\+|plus|(?:and|or)\s+(?:over|more|older|above))"),
    ("from", rf"(?:>=|≥|from|at least)\s*{_NUMBER}"),
    ("over", rf"(?:>|over|above|more than|older than)\s*{_NUMBER}"),
    ("up to", rf"(?:<=|≤|up to|at most)\s*{_NUMBER}"),
    ("up to", rf"{_NUMBER}\s*(?:and|or)\s+(?:under|less|younger|below)"),
    ("under", rf"(?:<|under|below|less than|younger than)\s*{_NUMBER}"),
    ("alone", _NUMBER),
)
_INTERVAL = re.compile(rf"([\[(])\s*{_NUMBER}?\s*[,;]\s*{_NUMBER}?\s*([\])])")


def parse_bands(labels: Sequence[Any], column: str) -> Bands:
    """Return the bands that labels describe, in the labels' own order of borders.

    Examples
    --------
    >>> bands = parse_bands(["under 18", "18-24", "25-64", "65+"], "age")
    >>> bands.of(np.array([3.0, 18.0, 24.5, 25.0, 99.0]))
    array([0, 1, 1, 2, 3])
    """
    found = sorted(
        ((*_interval(str(label), column), str(label)) for label in labels), key=lambda one: one[:2]
    )
    lows, highs = (np.array([one[end] for one in found]) for end in (0, 1))
    for place, ((_, high, label), (following, _, other)) in enumerate(pairwise(found)):
        # Between the last number of a band and the first of the next, as 24 and 25, lies nothing.
        if high < following <= high + 1:
            highs[place] = following
        elif following < high - 1e-9 and following != high - 1:
            raise InputError(
                f"The bands '{label}' and '{other}' of column '{column}' overlap. Give the borders "
                f"with bands={{'{column}': [...]}}."
            )
        elif following < high:
            highs[place] = following  # a border of both belongs to the upper one
    return Bands(lows, highs, [one[2] for one in found])


def bands_between(borders: Sequence[float], labels: Sequence[Any], column: str) -> Bands:
    """Return the bands between borders that are given, for labels in the same order."""
    cuts = np.asarray(borders, dtype=float)
    if cuts.ndim != 1 or not (np.diff(cuts) > 0).all():
        raise InputError(f"bands of column '{column}' must be rising borders; got {borders!r}.")
    names = [str(label) for label in labels]
    if len(names) == len(cuts) + 1:
        cuts = np.concatenate([[-np.inf], cuts, [np.inf]])
    elif len(names) == len(cuts):
        cuts = np.append(cuts, np.inf)
    if len(cuts) != len(names) + 1:
        raise InputError(
            f"bands of column '{column}' has {len(borders)} borders for the {len(names)} levels "
            f"of its margin; {len(names)} bands need {len(names) + 1} borders, or fewer where the "
            "outermost are open."
        )
    return Bands(cuts[:-1], cuts[1:], names)


def _interval(label: str, column: str) -> tuple[float, float]:
    """Return the first number in a band, and the first beyond it."""
    text = re.sub(r"[–—−]", "-", label.strip().lower())
    text = re.sub(r"(?<=\d),(?=\d{3})|[$€£]", "", text)
    if interval := _INTERVAL.fullmatch(text):
        opening, low, high, closing = interval.groups()
        start = -np.inf if low is None else float(low)
        stop = np.inf if high is None else float(high)
        return (_after(start) if opening == "(" else start), (
            _after(stop) if closing == "]" else stop
        )
    text = re.sub(r"\s*(?:years?(?: old)?|yrs?|y)(?=\s|$|\+)", "", text).strip()
    matches = [(kind, re.fullmatch(pattern, text)) for kind, pattern in _PATTERNS]
    kind, match = next((one for one in matches if one[1]), ("", None))
    if match is None:
        raise InputError(
            f"Level '{label}' of the margin of column '{column}', which holds numbers in the "
            f"sample, is neither a number nor a band such as '18-24' or '65+'. Give the borders "
            f"with bands={{'{column}': [...]}}."
        )
    first, *others = (float(number) for number in match.groups())
    if kind == "within":
        last = others[0]
        if last < first:
            raise InputError(f"The band '{label}' of column '{column}' ends before it begins.")
        return first, last + 1 if last.is_integer() and first.is_integer() else _after(last)
    ends = {
        "from": (first, np.inf),
        "over": (_after(first), np.inf),
        "up to": (-np.inf, _after(first)),
        "under": (-np.inf, first),
        "alone": (first, _after(first)),
    }
    return ends[kind]


def _after(number: float) -> float:
    """Return the next number that floating point can hold."""
    return float(np.nextafter(number, np.inf))
