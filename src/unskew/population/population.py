"""The population: rows of any size, asked once.

A weighter never holds the population. It hands :meth:`Population.reduce` a summary, an empty answer
to one question, and gets it back filled after a single pass.
"""

from __future__ import annotations

import copy
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from numbers import Integral
from typing import Any, Self, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from unskew.errors import InputError, ParameterError
from unskew.numerics.cores import available_cores
from unskew.numerics.weight_vectors import check_weights
from unskew.population.kinds import check_kinds, reading_type
from unskew.population.reading import Reading, Seen, as_marks
from unskew.population.rows import Rows, pandas_index_columns
from unskew.population.sources import Part, Source, open_source
from unskew.population.summaries import Summary, Total

__all__ = ["Population"]

SummaryType = TypeVar("SummaryType", bound=Summary)


class Population:
    """Rows drawn as the world draws them, in whatever form they are held.

    Parameters
    ----------
    data : array, dataframe, path, or anything else that holds rows
        A NumPy array; a pandas, Polars (eager or lazy) or PyArrow table; a PyArrow dataset or
        reader; a DuckDB relation; a Spark DataFrame; any object with the Arrow C stream; the path
        of a Parquet or CSV file, a glob, a list of paths or a folder; an iterable of chunks, each
        an array or a table.
    columns : list of str, optional
        The columns that describe a row; by default all but those named by ``weight`` and
        ``selected`` and those that pandas wrote as an index. They must be the sample's columns, in
        any order. For an array, positions.
    weight : str or array-like of shape (n_rows,), optional
        Design weights: how many rows of the world each row stands for.
    selected : str or array-like of bool of shape (n_rows,), optional
        Which rows are also in the sample, where the sample is part of the population.

    Notes
    -----
    Columns are matched with the sample's by name where both have names, otherwise by position.

    A pass is spread over as many threads as the process may use, or ``UNSKEW_THREADS`` of them if
    that environment variable is set. The answer does not depend on it.

    A population is not array-like, so scikit-learn's cross-validation hands it through whole.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew import Population
    >>> Population(np.zeros((5, 2))).size
    5
    """

    def __init__(
        self,
        data: Any,
        *,
        columns: Sequence[str] | Sequence[int] | None = None,
        weight: str | ArrayLike | None = None,
        selected: str | ArrayLike | None = None,
    ) -> None:
        self._source: Source = open_source(data)
        self._weight = self._row_values(weight, "weight")
        self._selected = self._row_values(selected, "selected")
        self._columns = self._chosen_columns(columns)
        self._names: Sequence[str] = self._columns
        self._types: dict[str, pa.DataType] = {}
        self._seen = Seen()

    @classmethod
    def of(cls, data: Any) -> Population:
        """Return ``data`` itself if it is a population already, otherwise wrap it."""
        if data is None:
            raise ParameterError(
                "population is None. Weights compare the sample with a population: pass the "
                "unlabelled rows, or a path to them."
            )
        return data if isinstance(data, cls) else cls(data)

    def __repr__(self) -> str:
        engine = type(self._source).__name__.removesuffix("Source")
        return f"Population({engine}, columns={list(self._columns)})"

    @property
    def columns(self) -> list[str]:
        """The names of the columns that describe a row."""
        return list(self._columns)

    @property
    def is_weighted(self) -> bool:
        """Whether the rows carry design weights."""
        return self._weight is not None

    @property
    def size(self) -> int:
        """How many rows there are; reads them once if nothing else tells."""
        if self._source.n_rows == 0:
            raise InputError("The population has no rows.")
        if self._source.n_rows is not None:
            return self._source.n_rows
        return self._seen_or_counted().rows

    @property
    def mass(self) -> float:
        """The total design weight, which without design weights is the number of rows."""
        return self._seen_or_counted().mass if self.is_weighted else float(self.size)

    @property
    def n_selected(self) -> int | None:
        """How many rows are marked as being in the sample; None without such marks."""
        return None if self._selected is None else self._seen_or_counted().selected

    def _seen_or_counted(self) -> Seen:
        if not self._seen.whole:
            self.reduce(Total())
        return self._seen

    def matched(self, sample: Rows, *, ignored: Sequence[str] = ()) -> Self:
        """Return this population with the sample's columns, in the sample's order.

        A column that is missing, left over or of an incomparable type is an error that names it,
        but for those to be ``ignored`` where the population has them.
        """
        twin = copy.copy(self)
        twin._types = {}
        names = sample.table.column_names
        if self._source.named and sample.named:
            _check_same_columns(names, [name for name in self._columns if name not in ignored])
            twin._columns = names
        elif len(names) != len(self._columns):
            raise InputError(
                f"The sample has {len(names)} columns and the population {len(self._columns)}. "
                "Columns without names are matched by position, so there must be as many; "
                "Population(data, columns=[...]) chooses them."
            )
        twin._names = names
        for name, source_name in zip(names, twin._columns, strict=True):
            kind = sample.table.schema.field(name).type
            if self._source.typed:
                check_kinds(name, kind, self._source.schema.field(source_name).type)
            elif (read_as := reading_type(kind)) is not None:
                twin._types[source_name] = read_as
        return twin

    def reduce(self, summary: SummaryType, *, threads: int | None = None) -> SummaryType:
        """Answer the summary's question in one pass over the rows.

        Parameters
        ----------
        summary : Summary
            Empty; it is filled and returned.
        threads : int, optional
            How many threads read and count; by default as many as the process may use.

        Returns
        -------
        Summary
            The one given.

        Examples
        --------
        >>> import numpy as np
        >>> from unskew import Population
        >>> from unskew.population.summaries import Total
        >>> Population(np.zeros((5, 2)), weight=[1, 1, 1, 0, 2]).reduce(Total()).mass
        5.0
        """
        if self._seen.started and not self._source.rereadable:
            raise InputError(
                "The population is an iterator or reader that has been read already. Give a list "
                "of chunks, a path or a table, which can be read again."
            )
        self._seen.started = True
        seen = self._source.answer(summary, self._reading)
        if seen is None:
            seen = self._read_by_parts(summary, threads)
        if not seen.rows:
            raise InputError("The population has no rows.")
        if seen.mass == 0:
            raise InputError("The population's weight is zero on every row, so no row would count.")
        self._reading.check_length(seen.rows)
        seen.started = seen.whole = True
        self._seen.__dict__.update(seen.__dict__)
        return summary

    def _read_by_parts(self, summary: SummaryType, threads: int | None) -> Seen:
        """Read the parts on several threads and merge them in the order of the rows."""
        empty = copy.deepcopy(summary)
        seen = Seen()

        def answer(work: tuple[Part, int]) -> tuple[SummaryType, Seen]:
            return self._read_part(copy.deepcopy(empty), *work)

        parts = self._source.parts(self._reading.all_columns, self._types)
        for partial, seen_in_part in _in_order(answer, _with_start(parts), _n_threads(threads)):
            summary.merge(partial)
            seen.add(seen_in_part)
        return seen

    def _read_part(self, summary: SummaryType, part: Part, start: int) -> tuple[SummaryType, Seen]:
        seen = self._reading.read(summary, part.read(), start)
        if seen.rows != part.n_rows:
            raise InputError(
                f"A part of the population announced {part.n_rows} rows and gave {seen.rows}: it "
                "changed while it was read. Read it again when nobody writes to it."
            )
        return summary, seen

    @property
    def _reading(self) -> Reading:
        return Reading(self._columns, self._names, self._weight, self._selected)

    def _row_values(self, values: Any, parameter: str) -> Any:
        """Return the name of a column, or an array with one entry per row."""
        if values is None:
            return None
        if isinstance(values, str):
            if values not in self._source.schema.names:
                raise InputError(
                    f"{parameter}='{values}' is not a column of the population, whose columns are "
                    f"{_listing(self._source.schema.names)}."
                )
            return values
        if not self._source.ordered:
            raise ParameterError(
                f"{parameter} must be the name of a column: the rows of this population have no "
                f"order that an array could follow; got a {type(values).__name__}."
            )
        n_rows = self._source.n_rows
        if parameter == "weight":
            return check_weights(values, name="The population's weight", n_rows=n_rows)
        marks = as_marks(np.array(values), "The population's selected")
        if marks.ndim != 1:
            raise InputError(f"selected must have one mark per row; got shape {marks.shape}.")
        if n_rows is not None and len(marks) != n_rows:
            raise InputError(f"selected has {len(marks)} entries for {n_rows} rows.")
        return marks

    def _chosen_columns(self, columns: Sequence[str] | Sequence[int] | None) -> list[str]:
        available = self._source.schema.names
        if columns is None:
            apart = [role for role in (self._weight, self._selected) if isinstance(role, str)]
            apart += pandas_index_columns(self._source.schema)
            chosen = [name for name in available if name not in apart]
        else:
            if isinstance(columns, str):
                raise ParameterError(f"columns must be a list of names; got '{columns}'.")
            chosen = [_column_name(column, available) for column in columns]
            unknown = [name for name in chosen if name not in available]
            if unknown:
                raise InputError(
                    f"The population lacks column '{unknown[0]}', which columns names. Its columns "
                    f"are {_listing(available)}."
                )
        repeated = [name for name in chosen if chosen.count(name) > 1]
        if repeated:
            raise InputError(f"The population has more than one column called '{repeated[0]}'.")
        if not chosen:
            raise InputError("The population has no columns that describe its rows.")
        return chosen


Work = TypeVar("Work")
Result = TypeVar("Result")


def _in_order(
    function: Callable[[Work], Result], items: Iterable[Work], threads: int
) -> Iterator[Result]:
    """Map over items on several threads, yielding in order and running only a little ahead."""
    if threads == 1:
        yield from map(function, items)
        return
    with ThreadPoolExecutor(threads, thread_name_prefix="unskew") as pool:
        pending: deque[Future[Result]] = deque()
        try:
            for item in items:
                pending.append(pool.submit(function, item))
                if len(pending) > 2 * threads:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            for future in pending:
                future.cancel()


def _with_start(parts: Iterable[Part]) -> Iterator[tuple[Part, int]]:
    start = 0
    for part in parts:
        yield part, start
        start += part.n_rows


def _n_threads(threads: int | None) -> int:
    if threads is None:
        given = os.environ.get("UNSKEW_THREADS", "")
        if given and not given.isdigit():
            raise ParameterError(f"UNSKEW_THREADS must be a whole number; got '{given}'.")
        threads = int(given) if given else available_cores()
    if threads < 1:
        raise ParameterError(f"threads must be at least 1; got {threads}.")
    return threads


def _column_name(column: Any, available: Sequence[str]) -> str:
    if isinstance(column, str):
        return column
    if isinstance(column, Integral) and 0 <= int(column) < len(available):
        return available[int(column)]
    raise ParameterError(
        f"columns must be names, or positions below {len(available)}; got {column!r}."
    )


def _check_same_columns(sample: Sequence[str], population: Sequence[str]) -> None:
    missing = [name for name in sample if name not in population]
    if len(missing) == len(sample):
        raise InputError(
            f"The sample and the population have no column in common: {_listing(sample)} against "
            f"{_listing(population)}."
        )
    if missing:
        raise InputError(
            f"The population lacks {_plural(missing)}, which the sample has. Its columns are "
            f"{_listing(population)}."
        )
    extra = [name for name in population if name not in sample]
    if extra:
        raise InputError(
            f"The population has {_plural(extra)}, which the sample lacks. Say which columns to "
            "use: Population(data, columns=[...])."
        )


def _plural(names: Sequence[str]) -> str:
    return ("column " if len(names) == 1 else "columns ") + _listing(names)


def _listing(names: Sequence[str]) -> str:
    shown = ", ".join(f"'{name}'" for name in names[:10])
    return shown + (f" and {len(names) - 10} more" if len(names) > 10 else "")
