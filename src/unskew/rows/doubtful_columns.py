"""Columns that hardly describe a row: identifiers, free text, dates as text, many categories.

Weights compare how often values occur in sample and population. Where nearly every row has a value
of its own there is nothing to compare, so such a column adds noise at best; at worst, none of the
population's values occur in the sample, and everything counts as uncovered. Columns from which
the labels follow almost exactly are doubtful, too: consequences of y, or parts of it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from unskew.errors import ColumnWarning, listing, warn_caller
from unskew.numerics.typing import FloatArray, IntArray
from unskew.rows.kinds import is_text
from unskew.rows.sample import Sample

FEWEST_ROWS = 30
"""In fewer rows, all values of any column may be distinct."""

_NEARLY_ALL = 0.9
_FEWEST_PER_CATEGORY = 5
_FEWEST_CATEGORIES = 50
_WORDS_OF_A_TEXT = 4.0
_EXPECTED_REPEATS = 5.0
"""Where random values of the same range would repeat this often, none repeats by chance in fewer
than one in a hundred cases (e⁻⁵)."""
DATES: Final = "dates that were read as text"
_DATE = r"^\s*(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4})([T ].*)?$"
_NUMBER = r"^\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*$"
_FORMATTED_NUMBER = r"^\s*[-+$€£]*\s*\d+([,. ]\d{3})*([.,]\d+)?\s*[%$€£]?\s*$"
_CALLED_ID = re.compile(r"(^|[\W_])(id|uuid|guid|key|index|row)($|[\W_])|[a-z](Id|ID)$")


class Doubt(NamedTuple):
    """A column that hardly describes a row, and why."""

    column: str
    looks_like: Literal[
        "an identifier", "free text", "very many categories", "dates that were read as text"
    ]
    values: int
    rows: int

    def __str__(self) -> str:
        convert = "; convert them to dates" * (self.looks_like == DATES)
        return (
            f"Column '{self.column}' looks like {self.looks_like}: {self.values:,} values in "
            f"{self.rows:,} rows{convert}."
        )


def doubtful_columns(rows: pa.Table | pa.RecordBatch) -> list[Doubt]:
    """Return the columns of a sample that hardly describe a row.

    Text is doubtful if nine in ten rows have a value of their own, or if there are more than 50
    categories with fewer than five rows each on average; dates as text are named as such. Whole
    numbers are an identifier if they are all distinct and, in addition, rise or fall from row to
    row, are called id, or would repeat if they were drawn at random from their range. Other numbers
    and times are never doubtful.

    Examples
    --------
    >>> rows = pa.table({"customer": range(100, 140), "age": [30, 40] * 20})
    >>> print(*doubtful_columns(rows))
    Column 'customer' looks like an identifier: 40 values in 40 rows.
    """
    found = []
    for name, column in zip(rows.schema.names, rows.columns, strict=True):
        present = column.drop_null()
        if len(present) < FEWEST_ROWS:
            continue
        is_dictionary = types.is_dictionary(present.type)
        if is_text(present.type.value_type if is_dictionary else present.type):
            found.append(_doubt_of_text(name, present))
            continue
        if is_dictionary:
            present = present.cast(present.type.value_type)
        if types.is_integer(present.type) and _is_identifier(name, present):
            found.append(Doubt(name, "an identifier", len(present), len(present)))
    return [doubt for doubt in found if doubt is not None]


def numbers_read_as_text(rows: pa.Table) -> dict[str, str]:
    """Return the columns of text that are mostly numbers, each with a value that is none.

    One "?" among the numbers of a CSV file makes the column text, and its numbers categories.

    Examples
    --------
    >>> numbers_read_as_text(pa.table({"age": ["30", "?", *map(str, range(40))]}))
    {'age': '?'}
    """
    found = {}
    for name, column in zip(rows.column_names, rows.columns, strict=True):
        if is_text(column.type) and len(present := column.drop_null()):
            plain = pc.match_substring_regex(present, _NUMBER)
            alike = pc.or_(plain, pc.match_substring_regex(present, _FORMATTED_NUMBER))
            if pc.mean(alike).as_py() >= _NEARLY_ALL and not pc.all(plain).as_py():
                found[name] = str(present.filter(pc.invert(plain))[0])
    return found


def warn_of_doubtful_columns(doubts: Sequence[Doubt]) -> None:
    """Warn of columns that hardly describe a row."""
    if doubts:
        warn_caller(
            ColumnWarning(
                " ".join(map(str, doubts))
                + " Values that hardly recur cannot be compared with the population's: choose the "
                "columns to weigh by with columns=[...].",
                [doubt.column for doubt in doubts],
            )
        )


def _doubt_of_text(name: str, column: pa.ChunkedArray) -> Doubt | None:
    rows, values = len(column), _n_distinct(column)
    if values < min(rows / 2, _FEWEST_CATEGORIES):
        return None
    first = column[:1000]
    if types.is_dictionary(first.type):
        first = first.cast(first.type.value_type)
    if pc.mean(pc.match_substring_regex(first, _DATE)).as_py() >= _NEARLY_ALL:
        return Doubt(name, DATES, values, rows)
    words = pc.mean(pc.count_substring(first, " ")).as_py() + 1
    if values >= rows / 2 and words >= _WORDS_OF_A_TEXT:
        return Doubt(name, "free text", values, rows)
    if values >= _NEARLY_ALL * rows:
        return Doubt(name, "an identifier", values, rows)
    if values > _FEWEST_CATEGORIES and rows < _FEWEST_PER_CATEGORY * values:
        return Doubt(name, "very many categories", values, rows)
    return None


def _n_distinct(column: pa.Array | pa.ChunkedArray) -> int:
    """Return how many values there are, or an upper bound that is small."""
    if isinstance(column, pa.DictionaryArray) and len(column.dictionary) < _FEWEST_CATEGORIES:
        return len(column.dictionary)
    return len(column.unique())


def _is_identifier(name: str, column: pa.ChunkedArray) -> bool:
    values = column.to_numpy()
    first = values[:1000]
    if len(np.unique(first)) < len(first) or len(np.unique(values)) < len(values):
        return False
    rising = values[1:] > values[:-1]
    if (
        rising.all()
        or not rising.any()
        or _CALLED_ID.search(name.lower() if name.isupper() else name)
    ):
        return True
    span = float(values.max()) - float(values.min()) + 1.0
    return len(values) * (len(values) - 1) / (2 * span) >= _EXPECTED_REPEATS


LEVELS = (0.99, 0.9999, 0.9999)
"""The share of the variance of y from which on one, two or three columns determine it: a good model
of several is no sign of a mistake, an identity is."""
MOST_ROWS = 2000


def determined_by(sample: Sample, outcome: FloatArray) -> str:
    """Return a hint on columns that nearly determine the outcome; empty if there are none.

    Parameters
    ----------
    sample : Sample
    outcome : ndarray of shape (m,) or (m, k)
        Numbers, or a column of zeros and ones for each class.
    """
    some = np.arange(0, len(sample), max(1, len(sample) // MOST_ROWS))
    y = outcome.reshape(len(sample), -1)[some].astype(np.float64)
    y = y[:, 0] if y.shape[1] <= 2 else y.argmax(axis=1).astype(np.float64)
    columns = [_as_number(sample, column, some, y) for column in range(len(sample.codes.names))]
    chosen, left = list[int](), y - y.mean()
    if len(some) < 10 * len(LEVELS) or not left.any():
        return ""
    for level in LEVELS:
        chosen.append(int(np.argmax([abs(one @ left) for one in columns])))
        design = np.column_stack([np.ones(len(y)), *(columns[place] for place in chosen)])
        left = y - design @ np.linalg.lstsq(design, y, rcond=None)[0]
        share = 1 - float(left @ left) / float(np.square(y - y.mean()).sum())
        if share >= level:
            names = [sample.codes.names[place] for place in sorted(set(chosen))]
            return (
                f"The label follows almost exactly from {listing(names)} (R² {share:.3f}). What "
                "was measured with the label or after it should be left out: it is a consequence "
                "of the label, and no cause of selection."
            )
    return ""


def _as_number(sample: Sample, column: int, rows: IntArray, y: FloatArray) -> FloatArray:
    """Return a column with mean 0 and variance 1; a category is the mean of y where it recurs."""
    values = sample.values[rows, column]
    if sample.codes.n_categories(column):
        _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
        means = np.bincount(place, y) / counts
        values = np.where(counts > 1, means, y.mean())[place]
    values = np.nan_to_num(values / (np.nanmax(np.abs(values), initial=0.0) or 1.0))
    centred = values - values.mean()
    return np.asarray(centred / (centred.std() or 1.0))
