"""The population: rows of any size, read once.

A weighter never holds the population. It passes a summary, the empty answer to one question, to
:meth:`Population.reduce` and gets it back filled after a single pass.

Parts of a pass (:class:`Pass`) come in the order of their rows. A file that turns out unreadable
half-way is taken out again where that is allowed, so that a file counts whole or not at all. What
does not depend on the sample, totals and reservoirs, is kept for the next question.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from unskew.errors import (
    InputError,
    ParameterError,
    UnreadableFileError,
    refuse_removed,
    which_there_are,
)
from unskew.numerics.cores import in_order, n_threads, one_blas_thread
from unskew.numerics.typing import IntArray
from unskew.numerics.weight_vectors import check_weights
from unskew.population.progress import Progress, Reporter
from unskew.population.reading import PassTotals, Reading, as_marks
from unskew.population.reservoir import KeptReservoirs, Reservoir
from unskew.population.sources import Part, Source, open_source
from unskew.population.summaries import (
    About,
    Question,
    Summaries,
    Summary,
    SummaryType,
    TotalWeight,
)
from unskew.rows.column_names import (
    check_same_columns,
    chosen_names,
    columns_by_position,
)
from unskew.rows.kinds import check_kinds, reading_type
from unskew.rows.tables import Rows, check_distinct, pandas_index_columns


def progress_of(data: Any) -> Callable[[Progress], object] | None:
    """Return who hears of the progress of a population; a frame may have a column of that name."""
    return data.progress if isinstance(data, Population) else None


_MOST_KEYS = 1 << 20
"""Rows of a table from which a reservoir is drawn at once: the key of each is held meanwhile."""


class Population:
    """An unbiased reference sample of the population, or all of it, in any form that holds rows.

    Parameters
    ----------
    data : array, dataframe, path, or anything else that holds rows
        A NumPy array; a pandas, Polars (eager or lazy) or PyArrow table; a PyArrow dataset or
        reader; a DuckDB relation; an Ibis table; a Dask or Spark DataFrame; any object with the
        Arrow C stream; the path or address of a Parquet or text file (``.csv``, ``.tsv``,
        ``.txt``), a glob, a list of paths or a folder; an iterable of chunks, each an array or a
        table.
    columns : list of str, optional
        The columns that describe a row; by default all but those named by ``weight`` and
        ``selected`` and those that pandas wrote as an index. They must be the sample's columns, in
        any order. For an array, positions.
    weight : str or array-like of shape (n_rows,), optional
        Design weights: how many members of the population each row represents.
    selected : str or array-like of bool of shape (n_rows,), optional
        Which rows are also in the sample, where the sample is part of the population.
    filesystem : PyArrow or fsspec file system, optional
        The file system of the paths, if it is not the local disk. An address such as
        ``s3://bucket/folder`` needs none if :meth:`pyarrow.fs.FileSystem.from_uri` supports it.
    delimiter : str, optional
        The character between the columns of text files. By default a tab for ``.tsv``, whichever
        the header has of tab, semicolon, bar and comma for ``.txt``, and a comma otherwise.
    progress : function of a Progress, optional
        Called at most ten times a second and once at the end with the progress of a pass
        (:class:`unskew.results.Progress`), from the calling thread. An exception that it raises
        ends the pass.

    Notes
    -----
    Columns are matched with the sample's by name where both have names, by label where both have
    whole numbers as labels, as in pandas, otherwise by position.

    A pass is spread over as many threads as the process may use, or ``UNSKEW_THREADS`` of them if
    that environment variable is set. The answer does not depend on it.

    A population keeps answers that do not depend on the sample: its size, its total weight and
    uniform random samples of its rows. Fifty fits of a grid search with one Population therefore
    read less than fifty times. Create a new Population when the data have changed.

    A population is not array-like, so scikit-learn's cross-validation passes it through whole.

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
        filesystem: Any = None,
        delimiter: str | None = None,
        progress: Callable[[Progress], object] | None = None,
        checkpoint: object = None,
        on_error: object = None,
    ) -> None:
        refuse_removed("checkpoint", checkpoint, "A pass that was killed starts again")
        refuse_removed("on_error", on_error, "List the files that can be read")
        if progress is not None and not callable(progress):
            raise ParameterError(f"progress must be a function of a Progress; got {progress!r}.")
        self._progress = progress
        self._source: Source = open_source(data, filesystem=filesystem, delimiter=delimiter)
        self._weight = _row_values(weight, "weight", self._source)
        self._selected = _row_values(selected, "selected", self._source)
        roles = [role for role in (self._weight, self._selected) if isinstance(role, str)]
        self._columns = _feature_columns(self._source, columns, apart=roles)
        self._names: Sequence[str] = self._columns
        self._types: dict[str, pa.DataType] = {}
        self._seen, self._kept = PassTotals(), KeptReservoirs()

    @classmethod
    def from_data(cls, data: Any) -> Population:
        """Return ``data`` itself if it is a population already, otherwise wrap it."""
        if data is None:
            raise ParameterError(
                "population is None. Weights compare the sample with a population: pass the "
                "unlabelled rows, or a path to them."
            )
        return data if isinstance(data, cls) else cls(data)

    def __repr__(self) -> str:
        engine = self._source.engine or type(self._source).__name__.removesuffix("Source")
        return f"Population({engine}, columns={list(self._columns)})"

    @property
    def columns(self) -> list[str]:
        """The names of the columns that describe a row."""
        return list(self._columns)

    def shared_with(self, sample: Rows) -> list[str] | None:
        """Return those of a sample's columns that the population has too; None goes by position."""
        found = sample.labels.columns_in(self._source.labels)
        if found is None:
            return None
        return [name for name, column in found.items() if column in self._columns]

    @property
    def progress(self) -> Callable[[Progress], object] | None:
        """What is called with the progress of passes, and of fits."""
        return self._progress

    @property
    def is_weighted(self) -> bool:
        """Whether the rows carry design weights."""
        return self._weight is not None

    @property
    def about(self) -> About:
        """What is known without reading any rows."""
        rows, is_marked = self._source.n_rows, self._selected is not None
        return About(tuple(self._names), rows, self.is_weighted, is_marked)

    def can_answer(self, summary: Summary) -> bool:  # noqa: ARG002
        """Whether a question can be answered: from rows, every question can."""
        return True

    @property
    def size(self) -> int:
        """The number of rows; reads them once if it is not known otherwise."""
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

    def _seen_or_counted(self) -> PassTotals:
        if not self._seen.whole:
            self.reduce(TotalWeight())
        return self._seen

    def matched(
        self, sample: Rows, *, among: Sequence[str] | None = None, ignored: Sequence[str] = ()
    ) -> Self:
        """Return this population with the sample's columns, in the sample's order.

        A column that is missing, left over or of an incompatible type is an error that names it.

        Parameters
        ----------
        sample : Rows
            The sample, with the columns to weigh by.
        among : sequence of str, optional
            All columns of X, where ``sample`` has only some of them; the population may then have
            further columns too.
        ignored : sequence of str
            Columns of X that are not features, and that the population may have or lack.
        """
        twin = copy.copy(self)
        twin._types = {}
        names = sample.table.column_names
        whole = sample.labels._replace(names=names if among is None else list(among))
        if (found := whole.columns_in(self._source.labels)) is not None:
            called = {column: name for name, column in found.items()}
            features = [called.get(one, one) for one in self._columns if one not in ignored]
            check_same_columns(names, features, exact=among is None)
            twin._columns = [found[name] for name in names]
        else:
            twin._columns = columns_by_position(names, self._columns, among)
        twin._names = names
        for name, source_name in zip(names, twin._columns, strict=True):
            kind = sample.table.schema.field(name).type
            if self._source.typed:
                check_kinds(name, kind, self._source.schema.field(source_name).type)
            elif (read_as := reading_type(kind)) is not None:
                twin._types[source_name] = read_as
        return twin

    def reduce(self, summary: SummaryType, *, threads: int | None = None) -> SummaryType:
        """Answer the summary's question in one pass over the rows, and return it.

        Parameters
        ----------
        summary : Summary
            Empty; it is filled and returned.
        threads : int, optional
            How many threads read and count; by default as many as the process may use.

        Examples
        --------
        >>> import numpy as np
        >>> from unskew import Population
        >>> from unskew.population.summaries import TotalWeight
        >>> Population(np.zeros((5, 2)), weight=[1, 1, 1, 0, 2]).reduce(TotalWeight()).mass
        5.0
        """
        summary.check_empty()
        columns = self._what_is_read
        left = [one for one in _single(summary) if not (self._known(one) or self.draw(one))]
        asked = self._kept.largest(left)
        if asked:
            self._pass(summary if asked == [summary] else Summaries(asked), threads)
            self._kept.keep(asked, columns)
        for question in left:
            if question not in asked:
                self._known(question)
        summary.finish()
        return summary

    def _known(self, question: Summary) -> bool:
        """Answer a question from what earlier passes have found; return whether it was."""
        if not self._seen.whole:
            return False
        if type(question) is TotalWeight:
            question.rows, question.mass = self._seen.rows, self._seen.mass
        elif not self._kept.answer(question, self._what_is_read, self._seen.rows):
            return False
        question.finish()
        return True

    def draw(self, question: Summary) -> bool:
        """Answer a reservoir from rows in memory, which needs no pass; return whether it was."""
        reading, n_rows = self._reading, self._source.n_rows or 0
        roles = reading.weight, reading.selected
        by_name = any(isinstance(role, str) for role in roles)
        if type(question) is not Reservoir or not self._source.in_memory or by_name:
            return False
        if not 0 < n_rows <= _MOST_KEYS:
            return False

        def take(numbers: IntArray) -> pa.RecordBatch:
            return self._source.take(reading.columns, numbers).rename_columns(reading.names)

        question.draw(n_rows, *roles, take)
        question.finish()
        return True

    def check_rereadable(self, who: str) -> None:
        """Refuse a population that can be read only once, on behalf of who reads it again."""
        if not self._source.rereadable:
            raise InputError(
                f"{who} is to read the population several times, but it can be read only once. "
                "Pass a list of chunks, a path or a table."
            )

    @property
    def _what_is_read(self) -> Hashable:
        types = sorted((name, str(kind)) for name, kind in self._types.items())
        return tuple(self._columns), tuple(self._names), tuple(types)

    def _pass(self, summary: Summary, threads: int | None) -> None:
        """Read every row once and fill the summary."""
        if self._seen.started and not self._source.rereadable:
            raise InputError(
                "The population is an iterator or reader that has been read already. Give a list "
                "of chunks, a path or a table, which can be read again."
            )
        self._seen.started = True
        reporter = Reporter(self._progress, self._source.n_rows, len(self._source.files) or None)
        seen = self._source.answer(summary, self._reading)
        if seen is None:
            seen = self._read_parts(summary, threads, reporter)
        seen.started = seen.whole = True
        self._remember(seen)
        reporter.finish(seen.rows)

    def _read_parts(self, summary: Summary, threads: int | None, reporter: Reporter) -> PassTotals:
        """Read the source's parts on several threads and merge them in row order."""
        empty, merged, seen = copy.deepcopy(summary), copy.deepcopy(summary), PassTotals()
        source = self._source.for_costly() if summary.is_costly() else self._source

        def parts() -> Iterator[tuple[Part, int, int]]:
            """Yield the parts, each with the number of its file and of its first row."""
            row = 0
            for file in range(max(len(source.files), 1)):
                for part in source.parts(self._reading.all_columns, self._types, file):
                    yield part, file, row
                    row += part.n_rows

        def answer(placed: tuple[Part, int, int]) -> tuple[int, Summary, PassTotals]:
            part, file, row = placed
            partial = copy.deepcopy(empty)
            return file, partial, self._read_part(partial, part, file, row)

        current = 0
        with one_blas_thread():
            for file, partial, found in in_order(answer, parts(), n_threads(threads)):
                if file != current:  # all parts of a file are read: it must be what was opened
                    source.check_unchanged(current)
                    current = file
                merged.merge(partial)
                seen.add(found)
                reporter.advance(seen.rows, file)
        source.check_unchanged(current)
        summary.merge(merged)
        return seen

    def _remember(self, seen: PassTotals) -> None:
        """Check what a whole pass has seen, and keep it."""
        seen.check()
        self._reading.check_length(seen.rows)
        vars(self._seen).update(vars(seen))

    def _read_part(self, summary: Summary, part: Part, file: int, row: int) -> PassTotals:
        seen = self._reading.read(summary, part.read(), row)
        if seen.rows != part.n_rows:
            files = self._source.files
            where = f"'{files[file].path}'" if files else "the population"
            raise UnreadableFileError(
                f"A part of {where} announced {part.n_rows} rows and gave {seen.rows}: it changed "
                "while it was being read. Read it again when nothing writes to it."
            )
        return seen

    @property
    def _reading(self) -> Reading:
        return Reading(self._columns, self._names, self._weight, self._selected)


def _single(summary: Summary) -> list[Summary]:
    """Return the single questions of which a summary is composed."""
    if not isinstance(summary, Summaries | Question):
        return [summary]
    return [single for part in summary.nested() for single in _single(part)]


def _feature_columns(
    source: Source, columns: Sequence[str] | Sequence[int] | None, *, apart: Sequence[str]
) -> list[str]:
    """Return the population's columns that describe a row.

    By default all but those ``apart``, which have another role, and what was a pandas index.
    """
    schema = source.schema
    if columns is None:
        others = [*apart, *pandas_index_columns(schema)]
        chosen = [name for name in schema.names if name not in others]
    else:
        chosen = chosen_names(columns, source.labels, owner="The population")
    check_distinct(chosen, owner="The population")
    if not chosen:
        raise InputError("The population has no columns that describe its rows.")
    return chosen


def _row_values(values: Any, parameter: str, source: Source) -> Any:
    """Return the name of a column, or an array with one entry per row."""
    if values is None:
        return None
    if isinstance(values, str):
        if values not in source.schema.names:
            raise InputError(
                f"{parameter}='{values}' is not a column of the population."
                f"{which_there_are(values, source.schema.names)}"
            )
        return values
    if not source.ordered:
        raise ParameterError(
            f"{parameter} must be the name of a column: the rows of this population have no "
            f"order that an array could follow; got a {type(values).__name__}."
        )
    n_rows = source.n_rows
    if parameter == "weight":
        return check_weights(values, name="The population's weight", n_rows=n_rows)
    marks = as_marks(np.array(values), "The population's selected")
    if marks.ndim != 1:
        raise InputError(f"selected must have one mark per row; got shape {marks.shape}.")
    if n_rows is not None and len(marks) != n_rows:
        raise InputError(f"selected has {len(marks)} entries for {n_rows} rows.")
    return marks
