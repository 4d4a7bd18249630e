"""Tables of counts, and their levels matched with the values of a sample.

A table may be a mapping (of tuples or nested), a series, a frame with a column of counts, or a
cross table. Totals may have the names of R's model matrix, which join a column and a level.

A level is a category, a number, or a band of numbers such as "18-24", as statistical offices write
it:

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
upper one. A value of the sample that the margin lacks is an error that names the nearest label.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from numbers import Real
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pyarrow as pa

from unskew.errors import CollapsedLevelsWarning, InputError, InputTypeError, warn_caller
from unskew.numerics.typing import FloatArray, IntArray
from unskew.rows.design import Bands, distinct, lookup
from unskew.rows.kinds import Kind, as_doubles, kind_of

Key = tuple[str, ...]
Level = tuple[Any, ...]
Table = dict[Level, float]


def read_tables(tables: Mapping[Any, Any] | None, parameter: str) -> dict[Key, Table]:
    """Return tables by their columns, with levels as tuples."""
    found: dict[Key, Table] = {}
    for key, table in dict(tables or {}).items():
        columns = key if isinstance(key, tuple) else (key,)
        if len(set(columns)) < len(columns) or not all(isinstance(one, str) for one in columns):
            raise InputError(
                f"{parameter} names the columns {key!r}; give the name of a column, or a tuple of "
                "different names."
            )
        found[columns] = _read(table, columns, parameter)
    return found


def moved_tables(table: Table, errors: Table, step: float) -> Iterator[Table]:
    """Return the table moved by each of its independent errors; its total stays.

    With independent e of variance one, √p_l e_l − p_l Σ √p_j e_j has a multinomial's covariance.
    """
    counts = np.array(list(table.values()))
    shares = counts / counts.sum()
    spread = np.sqrt(shares * (1 - shares))
    given = np.array([errors[level] for level in table]) / counts.sum()
    scale = step * np.divide(given, spread, out=np.zeros_like(given), where=spread > 0)
    for place, root in enumerate(np.sqrt(shares)):
        moved = -shares * root
        moved[place] += root
        moved = np.maximum(shares + scale * moved, 0.0)
        yield dict(zip(table, (moved * (counts.sum() / moved.sum())).tolist(), strict=True))


def _read(table: Any, columns: Key, parameter: str) -> Table:
    where = f"{parameter} of {_shown(columns)}"
    if isinstance(table, Mapping):
        pairs = list(_of_mapping(table, len(columns), where))
    elif nw.dependencies.is_into_dataframe(table):
        pairs = list(_of_frame(table, columns, where))
    elif hasattr(table, "items") and hasattr(table, "index"):  # a pandas series
        pairs = [(key if isinstance(key, tuple) else (key,), n) for key, n in table.items()]
    else:
        raise InputError(
            f"{where} must be a mapping from levels to numbers, a series or a table; got a "
            f"{type(table).__name__}."
        )
    counts: Table = {}
    for level, number in pairs:
        if len(level) != len(columns):
            raise InputError(f"{where}: level {level!r} must have {len(columns)} parts.")
        if not isinstance(number, Real) or not 0 <= float(number) < np.inf:
            raise InputError(
                f"{where}: level {_shown(level)} has {number!r}; give a number from 0."
            )
        plain = tuple(_plain(one) for one in level)
        if plain in counts:
            raise InputError(f"{where}: level {_shown(level)} is listed twice.")
        counts[plain] = float(number)
    if not counts or not sum(counts.values()):
        raise InputError(f"{where} is empty.")
    return counts


def _of_mapping(table: Mapping[Any, Any], depth: int, where: str) -> Any:
    """Yield levels and numbers of a mapping, which may be nested as deep as there are columns."""
    for key, value in table.items():
        level = key if isinstance(key, tuple) else (key,)
        if isinstance(value, Mapping):
            if len(level) >= depth:
                raise InputError(f"{where} is nested deeper than it has columns, at {key!r}.")
            inner = _of_mapping(value, depth - len(level), where)
            yield from (((*level, *rest), number) for rest, number in inner)
        else:
            yield level, value


def _of_frame(table: Any, columns: Key, where: str) -> Any:
    """Yield levels and numbers of a table: columns and a count, or a cross table of two columns."""
    frame = nw.from_native(table, eager_only=True)
    index: Any = getattr(table, "index", None)
    names = [getattr(index, "name", None), getattr(getattr(table, "columns", None), "name", None)]
    if len(columns) == 2 and set(names) == set(columns):  # pandas.crosstab
        swap = names[0] != columns[0]
        for row, values in zip(index, frame.to_numpy(), strict=True):
            for column, value in zip(table.columns, values, strict=True):
                yield ((column, row) if swap else (row, column)), float(value)
        return
    missing = [name for name in columns if name not in frame.columns]
    rest = [name for name in frame.columns if name not in columns]
    if missing or len(rest) != 1:
        raise InputError(
            f"{where} must be a table with the columns {_shown(columns)} and one of counts, or a "
            f"cross table of them; got the columns {_shown(tuple(frame.columns))}."
        )
    for row in frame.select([*columns, rest[0]]).rows():
        yield row[:-1], row[-1]


def _plain(label: Any) -> Any:
    """Return a label as a Python value; a missing one is None."""
    if isinstance(label, np.floating) and label.itemsize < 8:
        label = float(str(label))  # 0.1 in single precision is meant as 0.1
    if isinstance(label, np.generic):
        label = label.item()
    return None if label is None or label != label else label


def _shown(names: tuple[Any, ...]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def resolved_totals(
    given: Mapping[str, float], sample: pa.Table, mass: float
) -> tuple[dict[Key, Table], dict[str, float]]:
    """Return counts of levels and totals of numbers, from totals with R's names.

    The one level of a column that has no total is the reference, which gets the rest.

    Examples
    --------
    >>> sample = pa.table({"sex": ["f", "m"], "age": [30, 40]})
    >>> resolved_totals({"sexm": 48.0, "age": 4100.0}, sample, mass=100.0)
    ({('sex',): {('m',): 48.0, ('f',): 52.0}}, {'age': 4100.0})
    """
    tables: dict[Key, Table] = {}
    totals: dict[str, float] = {}
    for name, total in given.items():
        column, level = split_name(name, sample.column_names)
        if column is None:
            raise InputError(
                f"'{name}' of the totals is neither a column of the sample nor a column with a "
                "level. Interactions are given as tables: counts={(a, b): table}."
            )
        if not level:
            totals[column] = total
        else:
            tables.setdefault((column,), {})[(level,)] = total
    for (column,), table in tables.items():
        seen = {str(one) for one in sample[column].unique().to_pylist() if one is not None}
        rest = sorted(seen - {level for (level,) in table})
        left = mass - sum(table.values())
        if len(rest) != 1 or left < 0:
            raise InputError(
                f"Column '{column}' must have exactly one level without a total, which gets "
                f"the rest, {left:,.10g}; the sample has {', '.join(rest) or 'none'}."
            )
        table[(rest[0],)] = left
    return tables, totals


def split_name(name: str, columns: Sequence[str]) -> tuple[str | None, str]:
    """Return the column and the level that a name joins.

    Examples
    --------
    >>> split_name("stypeH", ["stype", "api99"])
    ('stype', 'H')
    """
    found = [one for one in columns if name.startswith(one)]
    column = max(found, key=len, default=None)
    return column, "" if column is None else name[len(column) :]


@dataclass(frozen=True)
class MarginLevels:
    """A margin whose levels are values of the sample's columns: rows with weights.

    Attributes
    ----------
    columns : tuple of str
    levels : list of tuple
        The labels.
    rows : pyarrow.Table
        A row for each level, in the sample's types; a number within its band.
    weight : ndarray of shape (n_levels,)
    bands : dict of str to Bands
        Of the columns of which only bands are known.
    groups : ndarray of shape (n_levels,)
        Levels of one group are merged.
    """

    columns: Key
    levels: list[Level]
    rows: pa.Table
    weight: FloatArray
    bands: dict[str, Bands]
    groups: IntArray

    @property
    def group_labels(self) -> dict[int, Level]:
        """The label of each group: its levels, joined."""
        members: dict[int, list[Level]] = {}
        for group, level in zip(self.groups.tolist(), self.levels, strict=True):
            members.setdefault(group, []).append(level)
        return {
            group: tuple(" + ".join(dict.fromkeys(map(str, p))) for p in zip(*own, strict=True))
            for group, own in members.items()
        }


def match_levels(
    columns: Key,
    table: Table,
    sample: pa.RecordBatch,
    borders: dict[str, Any],
    collapse: int | None,
) -> MarginLevels:
    """Match a table of counts with a sample; a value that the margin lacks is an error."""
    levels = list(table)
    values: dict[str, pa.Array] = {}
    bands: dict[str, Bands] = {}
    places: list[IntArray] = []
    for position, name in enumerate(columns):
        labels = list(dict.fromkeys(level[position] for level in levels))
        column = sample.column(name)
        values_of, own_bands, found = _match_column(name, labels, column, borders.get(name))
        places.append(found)
        values[name] = values_of.take(pa.array([labels.index(level[position]) for level in levels]))
        if own_bands is not None:
            bands[name] = own_bands
    weight = np.array([table[level] for level in levels])
    known = MarginLevels(columns, levels, pa.table(values), weight, bands, np.arange(len(levels)))
    if len(columns) == 1 and collapse is None:
        return known  # every row's label is one of the levels
    labels_of = [list(dict.fromkeys(level[p] for level in levels)) for p in range(len(columns))]
    counts = _count(columns, levels, labels_of, places)
    return known if collapse is None else _collapsed(known, counts, collapse)


def _match_column(
    name: str, labels: list[Any], column: pa.Array, borders: Any
) -> tuple[pa.Array, Bands | None, IntArray]:
    """Return the labels as values, the bands if there are any, and each sample row's label."""
    coded = pa.types.is_dictionary(column.type) and kind_of(column.type.value_type) == Kind.NUMBER
    if coded:  # a category of numbers: 1 and 1.0 are the same
        column = column.dictionary_decode()
    kind = kind_of(column.type)
    if kind == Kind.CATEGORY:
        texts, found = _match_text(name, labels, column)
        return texts, None, found
    if kind != Kind.NUMBER:
        raise InputTypeError(
            f"Column '{name}' of the sample holds {kind}, which a margin of levels cannot "
            "describe. Convert it to text or numbers."
        )
    numbers = as_doubles(column).to_numpy(zero_copy_only=False)
    is_bool = pa.types.is_boolean(column.type)
    present = [label for label in labels if label is not None]
    exact = [_as_number(label, is_bool=is_bool) for label in present]
    if pa.types.is_float32(column.type):  # a label is as exact as the values
        exact = [None if one is None else float(np.float32(one)) for one in exact]
    points = dict[Any, float | None](zip(present, exact, strict=True))
    bands = None
    if borders is not None and not coded:
        bands = bands_between(borders, present, name)
    elif None in exact and not coded:
        bands = parse_bands(present, name)
    if bands is not None:
        places = [
            labels.index(label) for text in bands.labels for label in present if str(label) == text
        ]
        found = np.array([*places, -1])[bands.of(numbers)]
        points = {labels[at]: _inside(bands, place) for place, at in enumerate(places)}
    else:
        table = {v: labels.index(label) for label, v in points.items() if v is not None}
        keys = np.array(sorted(table), dtype=float)
        found = lookup(keys, np.array([table[key] for key in keys.tolist()]), numbers)
    if None in labels:
        found[np.isnan(numbers)] = labels.index(None)
    _check_found(name, labels, found, column)
    return pa.array([points.get(label) for label in labels], pa.float64()), bands, found


def _match_text(name: str, labels: list[Any], column: pa.Array) -> tuple[pa.Array, IntArray]:
    texts = pa.array([_as_text(label) for label in labels], pa.large_string())
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    values = column.dictionary.cast(pa.large_string())
    table = {text: place for place, text in enumerate(texts.to_pylist())}
    places = np.array([table.get(text, -1) for text in [*values.to_pylist(), None]])
    indices = column.indices.fill_null(len(values)) if column.null_count else column.indices
    found = places[indices.to_numpy()]
    _check_found(name, labels, found, pa.DictionaryArray.from_arrays(column.indices, values))
    return texts, found


def _check_found(name: str, labels: list[Any], found: IntArray, column: pa.Array) -> None:
    """Refuse sample values that the margin lacks, with the nearest spelling."""
    lost = np.flatnonzero(found < 0)
    if not len(lost):
        return
    values = column.take(pa.array(lost)).to_pylist()
    value, count = values[0], values.count(values[0])
    if value is None or value != value:
        raise InputError(
            f"{len(lost)} sample rows have no value in column '{name}', and its margin says "
            "nothing of missing values. Fill them in, leave these rows out, or add a level None."
        )
    near = difflib.get_close_matches(
        str(value).strip().lower(), [str(label).strip().lower() for label in labels], 1
    )
    hint = next((label for label in labels if near and str(label).strip().lower() == near[0]), None)
    meant = "" if hint is None else f" Did you mean {hint!r}?"
    shown = ", ".join(repr(label) for label in labels[:10]) + (" …" if len(labels) > 10 else "")
    more = (
        ""
        if count == len(lost)
        else f" It lacks the values of {len(lost) - count} further rows, too."
    )
    raise InputError(
        f"The sample has {value!r} in column '{name}' ({count} rows), which the margin does "
        f"not list: it has {shown}.{meant}{more} Rename the level, or leave these rows out."
    )


def _count(
    columns: Key, levels: list[Level], labels: list[list[Any]], places: list[IntArray]
) -> IntArray:
    """Return the number of sample rows of each level; refuse one that is not listed."""
    shape = [len(one) for one in labels]
    flat = places[0] if len(places) == 1 else np.ravel_multi_index(places, shape)
    ids = [
        np.ravel_multi_index([o.index(v) for o, v in zip(labels, level, strict=True)], shape)
        for level in levels
    ]
    present, counts = distinct(flat, int(np.prod(shape)))
    tally = dict(zip(present.tolist(), counts.tolist(), strict=True))
    lost = set(tally) - set(ids)
    if lost:
        one = np.unravel_index(min(lost), shape)
        shown = ", ".join(
            f"{name}={own[place]}" for name, own, place in zip(columns, labels, one, strict=True)
        )
        raise InputError(
            f"The sample has {tally[min(lost)]} rows with {shown}, which the joint margin of "
            f"{', '.join(columns)} does not list. Add it, or leave these rows out."
        )
    return np.array([tally.get(one, 0) for one in ids])


def _collapsed(known: MarginLevels, counts: IntArray, fewest: int) -> MarginLevels:
    """Merge levels with fewer sample rows than ``fewest`` with a neighbour, and say so.

    The neighbour of a band is the next to it with fewer rows; of another level, the level with the
    fewest rows.
    """
    groups = known.groups.copy()
    band = known.bands.get(known.columns[0]) if len(known.columns) == 1 else None
    order = {label: place for place, label in enumerate(band.labels)} if band else {}
    merged = []
    while True:
        sizes = {int(g): int(counts[groups == g].sum()) for g in np.unique(groups)}
        small = min(sizes, key=lambda group: (sizes[group], group))
        if sizes[small] >= fewest or len(sizes) == 1:
            break
        others = [group for group in sizes if group != small]
        if band is not None:
            rank = {g: order[str(known.levels[g][0])] for g in sizes}
            line = sorted(sizes, key=rank.__getitem__)
            at = line.index(small)
            others = [line[p] for p in (at - 1, at + 1) if 0 <= p < len(line)]
        into = min(others, key=lambda group: (sizes[group], group))
        names = [" ".join(map(str, known.levels[group])) for group in (small, into)]
        merged.append(f"'{names[0]}' ({sizes[small]} sample rows) with '{names[1]}'")
        groups[groups == small] = into
    if merged:
        warn_caller(
            CollapsedLevelsWarning(
                f"Levels of the margin of {', '.join(known.columns)} are merged (collapse="
                f"{fewest}): {'; '.join(merged)}."
            )
        )
    return replace(known, groups=groups)


def _inside(bands: Bands, place: int) -> float:
    """Return a number in a band: its lower end, or one just below its upper one."""
    low, high = bands.lows[place], bands.highs[place]
    return float(low if np.isfinite(low) else np.nextafter(high, -np.inf))


def _as_number(label: Any, *, is_bool: bool) -> float | None:
    if isinstance(label, bool | int | float):
        return float(label)
    words = {"true": 1.0, "yes": 1.0, "false": 0.0, "no": 0.0}
    text = str(label).strip().lower()
    if is_bool and text in words:
        return words[text]
    try:
        return float(text)
    except ValueError:
        return None


def _as_text(label: Any) -> str | None:
    if label is None or isinstance(label, str):
        return label
    if isinstance(label, bool):
        return str(label)
    return str(pa.array([float(label)]).cast(pa.large_string())[0])


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
