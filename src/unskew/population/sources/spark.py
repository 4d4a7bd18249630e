"""A Spark DataFrame, classic or Connect: summaries are computed on the executors.

Every partition fills a summary in ``mapInArrow`` and sends its number, its row count and the
partial summary. Further steps merge these in partition order, so that the driver gets a few results
however many partitions there are. Spark keeps exactly one output per partition, whatever was
retried or run twice; a check ensures that none is merged twice.

Reservoirs draw by row number, which is that of Spark's ``monotonically_increasing_id``: the number
of the partition times 2**33, plus the position in the partition.
"""

from __future__ import annotations

import base64
import copy
import json
import pickle
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from unskew import errors
from unskew.errors import InputError, UnskewError
from unskew.population.reading import Reading
from unskew.population.seen import Seen
from unskew.population.sources.base import Part, Source
from unskew.population.summaries import Summary
from unskew.population.travel import by_value, nested_summaries, pack, unpack

__all__ = ["SparkSource", "with_column"]

ROW_BITS = 33
"""Bits of a row number for the position within the partition, as in Spark."""

FAN_IN = 64
"""How many results a merging step combines into one."""

SMALL, LARGE = 2**14, 2**20
"""Bytes of a result up to which the driver takes one from every partition, and up to which one
merging step is enough."""

_SCHEMA = "first_part long, last_part long, rows long, mass double, selected long, answer binary"
_ARROW_SCHEMA = pa.schema(
    {
        "first_part": pa.int64(),
        "last_part": pa.int64(),
        "rows": pa.int64(),
        "mass": pa.float64(),
        "selected": pa.int64(),
        "answer": pa.binary(),
    }
)

_MARK = "unskew error: "


class SparkSource(Source):
    """A DataFrame whose rows stay on the executors."""

    ordered = False

    def __init__(self, frame: Any) -> None:
        self._frame = frame
        self.schema = pa.schema(
            [pa.field(field.name, _arrow_type(field.dataType)) for field in frame.schema.fields]
        )

    def parts(self, columns: Sequence[str], types: Mapping[str, pa.DataType]) -> Iterator[Part]:
        """Raise an error: rows are never brought to the driver."""
        raise NotImplementedError("Spark computes summaries on the executors.")

    def answer(self, summary: Summary, reading: Reading) -> Seen:
        """Fill the summary in every partition and merge the results in stages."""
        task = _Pass(copy.deepcopy(summary), reading)
        payload = by_value(task)
        try:
            answers = self._answers(payload, reading.all_columns, _merging_steps(task.empty))
        except Exception as error:  # of several types, not all of them Spark's
            raise _original_error(error) from error
        merged = _Merged(task.empty, summary)
        for row in sorted(answers, key=lambda row: row["first_part"]):
            merged.take(row.asDict())
        return merged.seen

    def _answers(self, payload: bytes, columns: Sequence[str], steps: int) -> Any:
        # Under plain names, because mapInArrow reads a dot in a name as a field of a struct.
        plain = (f"{quoted(name)} as c{place}" for place, name in enumerate(columns))
        frame = self._frame.selectExpr(*plain).mapInArrow(
            send(payload, "answer_partition"), _SCHEMA
        )
        for level in range(1, steps + 1):
            frame = (
                frame.selectExpr("*", f"first_part div {FAN_IN**level} as bucket")
                .repartition("bucket")
                .sortWithinPartitions("first_part")
                .drop("bucket")
                .mapInArrow(send(payload, f"merge_level_{level}"), _SCHEMA)
            )
        return frame.collect()


def _merging_steps(empty: Summary) -> int:
    """Return how many merging steps leave few enough results for the driver.

    Two steps reduce 10,000 partitions to three results.
    """
    if any(summary.grows for summary in nested_summaries(empty)):
        return 2
    size = len(pack(empty, empty))
    return 0 if size <= SMALL else 1 if size <= LARGE else 2


@dataclass(frozen=True)
class _Pass:
    """The task of the executors."""

    empty: Summary
    reading: Reading

    def answer_partition(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the result of one partition."""
        from pyspark import TaskContext

        part = TaskContext.get().partitionId()
        summary = copy.deepcopy(self.empty)
        named = (batch.rename_columns(self.reading.all_columns) for batch in batches)
        seen = self.reading.read(summary, named, part << ROW_BITS)
        yield _record(part, part, seen, pack(summary, self.empty) if seen.rows else b"")

    def merge_level_1(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Merge the results of up to 64 partitions each."""
        return self._merge(batches, FAN_IN)

    def merge_level_2(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Merge the results of up to 64² partitions each."""
        return self._merge(batches, FAN_IN**2)

    def _merge(
        self, batches: Iterable[pa.RecordBatch], partitions: int
    ) -> Iterator[pa.RecordBatch]:
        """Merge results, which arrive in partition order, bucket by bucket."""
        merged: _Merged | None = None
        for batch in batches:
            for position in range(batch.num_rows):
                row = batch.slice(position, 1).to_pylist()[0]
                if merged is not None and merged.last_part // partitions < (
                    row["first_part"] // partitions
                ):
                    yield merged.record()
                    merged = None
                merged = merged or _Merged(self.empty, copy.deepcopy(self.empty))
                merged.take(row)
        if merged is not None:
            yield merged.record()


class _Merged:
    """A result into which those of the partitions are merged, each once."""

    def __init__(self, empty: Summary, summary: Summary) -> None:
        self._empty = empty
        self._summary = summary
        self.seen = Seen()
        self.first_part = self.last_part = -1

    def take(self, row: Mapping[str, Any]) -> None:
        """Merge the result of later partitions."""
        if row["first_part"] <= self.last_part:
            raise InputError(
                f"Spark returned the result of partition {row['first_part']} of the population "
                "twice, and it must count once. Run the fit again."
            )
        if self.first_part < 0:
            self.first_part = row["first_part"]
        self.last_part = row["last_part"]
        seen = Seen()
        seen.rows, seen.mass, seen.selected = row["rows"], row["mass"], row["selected"]
        self.seen.add(seen)
        if seen.rows:
            self._summary.merge(unpack(bytes(row["answer"]), self._empty))

    def record(self) -> pa.RecordBatch:
        """Return the merged result in the form of the inputs."""
        answer = pack(self._summary, self._empty) if self.seen.rows else b""
        return _record(self.first_part, self.last_part, self.seen, answer)


def _record(first: int, last: int, seen: Seen, answer: bytes) -> pa.RecordBatch:
    values = [first, last, seen.rows, seen.mass, seen.selected, answer]
    return pa.RecordBatch.from_arrays(
        [pa.array([v], kind) for v, kind in zip(values, _ARROW_SCHEMA.types, strict=True)],
        schema=_ARROW_SCHEMA,
    )


def send(payload: bytes, step: str) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Return a function for executors: the method ``step`` of what :func:`by_value` pickled.

    It is a closure over bytes, which Spark can pickle without unskew; it must not refer to any name
    of unskew.
    """
    mark = _MARK

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        try:
            yield from getattr(pickle.loads(payload), step)(batches)
        except Exception as error:
            names = [kind.__name__ for kind in type(error).__mro__]
            report = [names[0], str(error)]
            if isinstance(error, ModuleNotFoundError):
                report = ["InputError", f"The executors' Python lacks a module ({error}). "]
                report[1] += "Install it there, or choose a weighter that does not need it."
            elif "UnskewError" not in names:
                raise
            if hasattr(error, "share"):
                report.append(error.share)
            text = base64.b64encode(json.dumps(report).encode()).decode()
            raise RuntimeError(f"{mark}<{text}>") from error

    return run


def _original_error(error: Exception) -> UnskewError:
    """Return the error that an executor raised, extracted from the error of Spark."""
    found = re.search(_MARK + r"<([A-Za-z0-9+/=]+)>", str(error))
    if found is None:
        lines = [line for line in str(error).splitlines() if line.strip()]
        lines = lines or [type(error).__name__]
        reason = lines[-1] if any(line.startswith("Traceback") for line in lines) else lines[0]
        return InputError(f"Spark could not read the population: {reason}")
    name, *arguments = json.loads(base64.b64decode(found[1]))
    original: UnskewError = getattr(errors, name)(*arguments)
    return original


def with_column(frame: Any, name: str, columns: Sequence[str], task: Any, step: str) -> Any:
    """Return a Spark DataFrame with an additional numeric column, computed on the executors.

    ``getattr(task, step)`` gets arrays of structs of ``columns``, one batch after the other.
    """
    try:
        from pyspark.sql.functions import arrow_udf, col, struct
    except ImportError as error:
        raise InputError("Computing weights on Spark requires Spark 4.1 or newer.") from error

    # By default, column names in Spark are case-insensitive.
    if name.lower() in (column.lower() for column in frame.columns):
        raise InputError(
            f"X already has a column '{name}', which weights would overwrite. Choose another name: "
            "weigh(X, name=...)."
        )
    run = send(by_value(task), step)

    def compute(arrays: Iterator[pa.Array]) -> Iterator[pa.Array]:
        yield from run(arrays)

    numbers = arrow_udf(compute, "double")
    fields = [col(quoted(column)).alias(f"c{place}") for place, column in enumerate(columns)]
    return frame.withColumn(name, numbers(struct(*fields)))


def quoted(column: str) -> str:
    """Return a column name quoted, so that it may contain dots and spaces."""
    return "`" + column.replace("`", "``") + "`"


_ARROW_TYPES = {
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "char": pa.string(),
    "varchar": pa.string(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),  # the same instants in any session time zone
    "timestamp_ntz": pa.timestamp("us"),
    "time": pa.time64("ns"),
    "daytimeinterval": pa.duration("us"),
    "void": pa.null(),
}


def _arrow_type(kind: Any) -> pa.DataType:
    """Return the Arrow type in which Spark passes a column."""
    name = kind.typeName()
    if name == "decimal":
        return pa.decimal128(kind.precision, kind.scale)
    if name in _ARROW_TYPES:
        return _ARROW_TYPES[name]
    # Not comparable; the error message shows Spark's name of the type.
    return pa.struct([pa.field(kind.simpleString(), pa.null())])
