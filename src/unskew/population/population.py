"""The population: rows of any size, asked once.

A weighter never holds the population. It hands :meth:`Population.reduce` a summary, an empty answer
to one question, and gets it back filled after a single pass.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any, Literal, Self, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from unskew.errors import InputError, ParameterError, UnreadableFileError
from unskew.numerics.cores import available_cores, one_blas_thread
from unskew.numerics.weight_vectors import check_weights
from unskew.population.checkpoint import Checkpoint, checked_path
from unskew.population.kinds import check_kinds, reading_type
from unskew.population.one_pass import Pass, warn_of_skipped
from unskew.population.progress import Progress, Reporter
from unskew.population.pushdown import count_in_engine
from unskew.population.reading import BLOCK_ROWS, Reading, as_marks
from unskew.population.rows import Rows, pandas_index_columns
from unskew.population.seen import Place, Seen
from unskew.population.sources import FileSource, Part, Source, open_source
from unskew.population.summaries import Summaries, Summary, Total
from unskew.population.threads import in_order
from unskew.population.travel import nested_summaries

__all__ = ["Population"]

SummaryType = TypeVar("SummaryType", bound=Summary)
_Answer: TypeAlias = tuple[SummaryType, Seen] | UnreadableFileError


class Population:
    """Rows drawn as the world draws them, in whatever form they are held.

    Parameters
    ----------
    data : array, dataframe, path, or anything else that holds rows
        A NumPy array; a pandas, Polars (eager or lazy) or PyArrow table; a PyArrow dataset or
        reader; a DuckDB relation; an Ibis table; a Dask or Spark DataFrame; any object with the
        Arrow C stream; the path or address of a Parquet or CSV file, a glob, a list of paths or a
        folder; an iterable of chunks, each an array or a table.
    columns : list of str, optional
        The columns that describe a row; by default all but those named by ``weight`` and
        ``selected`` and those that pandas wrote as an index. They must be the sample's columns, in
        any order. For an array, positions.
    weight : str or array-like of shape (n_rows,), optional
        Design weights: how many rows of the world each row stands for.
    selected : str or array-like of bool of shape (n_rows,), optional
        Which rows are also in the sample, where the sample is part of the population.
    filesystem : PyArrow or fsspec file system, optional
        Where paths lead, if it is not the local disk. An address such as ``s3://bucket/folder``
        says it by itself, wherever :meth:`pyarrow.fs.FileSystem.from_uri` knows the storage.
    on_error : {"raise", "skip"}, default="raise"
        What becomes of a file that is damaged, disappears or changes while it is read. "skip"
        leaves it out with all its rows, those already read included, warns with the names
        (:class:`unskew.SkippedFilesWarning`) and lists it in ``skipped_files``. Files whose columns
        or types differ are an error in either case, as are values that cannot be converted: they
        are another population, not a damaged one.
    checkpoint : path, optional
        For long passes over files: the state of a pass is saved to this file now and then, and a
        pass that was killed resumes from it when it is run again with the same settings on the same
        files. No row counts twice, and the answer has the same bits as that of an uninterrupted
        pass. The file is deleted when the pass is complete. A checkpoint of a different run
        (another sample or weighter, other columns, changed files) is an error. Reading it executes
        nothing.
    pushdown : bool, default=False
        For lazy frames and queries: let their own engine count the cells in one aggregation, so
        that only counts leave it. Answers TreeWeights, HistogramWeights and FrequencyWeights, with
        the same counts as reading the rows. On one machine reading is faster
        (docs/large-populations.md); this is for engines that are far away, or that cannot hand over
        their rows in batches.
    progress : function of a Progress, optional
        Told now and then, at most ten times a second and once at the end, how far a pass has come:
        :class:`unskew.Progress`. It is called from the thread that asked, and an exception that it
        raises ends the pass.

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
        filesystem: Any = None,
        on_error: Literal["raise", "skip"] = "raise",
        checkpoint: str | os.PathLike[str] | None = None,
        pushdown: bool = False,
        progress: Callable[[Progress], object] | None = None,
    ) -> None:
        if on_error not in ("raise", "skip"):
            raise ParameterError(f"on_error must be 'raise' or 'skip'; got {on_error!r}.")
        if progress is not None and not callable(progress):
            raise ParameterError(f"progress must be a function of a Progress; got {progress!r}.")
        self._progress = progress
        self._skip = on_error == "skip"
        self._source: Source = open_source(data, filesystem=filesystem, skip=self._skip)
        self._checkpoint = checked_path(checkpoint, self._source)
        self._weight = self._row_values(weight, "weight")
        self._selected = self._row_values(selected, "selected")
        self._columns = self._chosen_columns(columns)
        self._names: Sequence[str] = self._columns
        self._types: dict[str, pa.DataType] = {}
        self._seen = Seen()
        self._asked_besides: list[Summary] = []
        self._pushdown = bool(pushdown)
        if self._pushdown:
            self._check_that_the_engine_can_count()
        if self._skip:
            self._check_that_files_can_be_skipped()

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
    def counts_in_engine(self) -> bool:
        """Whether only counts leave the engine that holds the rows (``pushdown=True``)."""
        return self._pushdown

    @property
    def size(self) -> int:
        """How many rows there are; reads them once if nothing else tells."""
        if self._source.n_rows == 0:
            raise InputError("The population has no rows.")
        if self._source.n_rows is not None and not self._skip:
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

    @property
    def skipped_files(self) -> dict[str, str]:
        """The files that were left out because they could not be read, and why."""
        unreadable = self._source.unreadable if isinstance(self._source, FileSource) else {}
        return {**unreadable, **self._seen.skipped}

    def _check_that_files_can_be_skipped(self) -> None:
        if not isinstance(self._source, FileSource):
            raise ParameterError('on_error="skip" is for populations in files; this one is not.')
        for name, values in (("weight", self._weight), ("selected", self._selected)):
            if values is not None and not isinstance(values, str):
                raise ParameterError(
                    f"{name} is one entry per row, which has no place once a file is skipped; with "
                    'on_error="skip" give the name of a column.'
                )
        n_files = len(self._source.files) + len(self._source.unreadable)
        warn_of_skipped(self._source.unreadable, n_files)

    def _seen_or_counted(self) -> Seen:
        if not self._seen.whole:
            self.without_checkpoint().reduce(Total())
        return self._seen

    def without_checkpoint(self) -> Self:
        """Return this population for a question beside the one that its checkpoint is kept for."""
        twin = copy.copy(self)
        twin._checkpoint = None
        return twin

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

    def asked_besides(self, summary: Summary) -> Self:
        """Return this population with one question more, answered in the first pass over it."""
        twin = copy.copy(self)
        twin._asked_besides = [*self._asked_besides, summary]
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
        if self._asked_besides:
            both = Summaries([summary, *self._asked_besides])
            self._asked_besides = []
            self.reduce(both, threads=threads)
            return summary
        if self._seen.started and not self._source.rereadable:
            raise InputError(
                "The population is an iterator or reader that has been read already. Give a list "
                "of chunks, a path or a table, which can be read again."
            )
        self._seen.started = True
        in_engine = Reporter(self._progress, total_rows=None, total_files=None)
        if self._pushdown:
            seen: Seen | None = self._counted_in_engine(summary)
        else:
            seen = self._source.answer(summary, self._reading)
        if seen is not None:
            seen.started = seen.whole = True
            self._finish(seen)
            in_engine.finish(seen.rows)
            return summary
        empty = copy.deepcopy(summary)
        checkpoint = self._checkpoint_for(empty)
        run = Pass(summary, self._source, skip=self._skip, checkpoint=checkpoint)
        files = self._source.files if isinstance(self._source, FileSource) else None
        reporter = Reporter(
            self._progress,
            total_rows=self._source.n_rows,
            total_files=None if files is None else len(files),
            resumed_rows=run.resumed_rows,
        )

        def answer(work: tuple[Part, Place]) -> tuple[Part, Place, _Answer[SummaryType]]:
            try:
                return *work, self._read_part(self._copy_for_a_part(empty), *work)
            except UnreadableFileError as error:
                return *work, error

        work = run.parts(self._reading.all_columns, self._types)
        with one_blas_thread():
            for part, place, result in in_order(answer, work, _n_threads(threads)):
                if isinstance(result, UnreadableFileError):
                    run.leave_out(place, result)
                else:
                    run.add(part, place, *result)
                reporter.advance(run.seen.rows, part.file)
        self._finish(run.seen)
        run.finish()
        reporter.finish(run.seen.rows)
        return summary

    def _check_that_the_engine_can_count(self) -> None:
        if self._source.lazy is None:
            raise ParameterError(
                "pushdown=True is for lazy frames and queries (Ibis, DuckDB, Polars lazy, Dask); "
                "this population is read."
            )
        for name, values in (("weight", self._weight), ("selected", self._selected)):
            if values is not None and not isinstance(values, str):
                raise ParameterError(f"With pushdown=True {name} must be the name of a column.")

    def _counted_in_engine(self, summary: Summary) -> Seen:
        counted = count_in_engine(
            summary,
            self._source.lazy,
            columns=self._columns,
            schema=self._source.schema,
            weight=self._weight,
            selected=self._selected,
        )
        return Seen(**counted._asdict())

    def _checkpoint_for(self, question: Summary) -> Checkpoint | None:
        if self._checkpoint is None or not isinstance(self._source, FileSource):
            return None
        types = [(name, str(kind)) for name, kind in sorted(self._types.items())]
        settings = {
            "the columns": [self._columns, list(self._names), types],
            "weight": self._weight,
            "selected": self._selected,
            # With "raise" a checkpoint may hold a part of a file, which "skip" must not keep.
            "on_error": self._skip,
            # The place in a checkpoint is the number of a part.
            "the reader or its block size": [type(self._source).__name__, BLOCK_ROWS],
        }
        return Checkpoint(self._checkpoint, question, self._source, settings)

    def _finish(self, seen: Seen) -> None:
        """Check the whole of what a pass has shown, and remember it."""
        if isinstance(self._source, FileSource):
            warn_of_skipped(seen.skipped, len(self._source.files))
        if not seen.rows:
            raise InputError("The population has no rows.")
        if seen.mass == 0:
            raise InputError("The population's weight is zero on every row, so no row would count.")
        if not np.isfinite(seen.mass):
            raise InputError(
                "The population's weight adds up to infinity. Divide it by its largest entry."
            )
        self._reading.check_length(seen.rows)
        vars(self._seen).update(vars(seen))

    def _copy_for_a_part(self, empty: SummaryType) -> SummaryType:
        twin = copy.deepcopy(empty)
        if self._skip:
            for summary in nested_summaries(twin):
                summary.stand_alone()
        return twin

    def _read_part(
        self, summary: SummaryType, part: Part, place: Place
    ) -> tuple[SummaryType, Seen]:
        seen = self._reading.read(summary, part.read(), place.row)
        if seen.rows != part.n_rows:
            where = "A part of the population"
            if isinstance(self._source, FileSource) and part.file is not None:
                where = f"A part of '{self._source.files[part.file].path}'"
            raise UnreadableFileError(
                f"{where} announced {part.n_rows} rows and gave {seen.rows}: it changed while it "
                "was read. Read it again when nobody writes to it."
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
