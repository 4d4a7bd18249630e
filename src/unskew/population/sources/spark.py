"""A Spark DataFrame, classic or Connect: the question goes to the rows, only answers come back.

Each partition answers the summary in ``mapInArrow`` and sends its number, what it has seen and its
partial answer. Further steps merge these in partition order, so that the driver receives a few
answers however many partitions there are. Spark keeps exactly one output of each partition, even
if a task was retried or run twice; merging checks this all the same: partitions are numbered from
0 without gaps, empty ones too, and Spark observes the highest number in the same query.

The number of a row, which decides whether a reservoir draws it, is that of Spark's
``monotonically_increasing_id``: the partition's number times 2**33, plus the row's position in it.

Code travels *by value*: functions and classes of unskew are sent in full, so that the receiving
machines need not have unskew installed, and import only what a task calls. Partial answers travel
without what all copies of a summary share (the encoder, the tree, the sample's points) and without
their classes, which both ends already have.
"""

from __future__ import annotations

import base64
import copy
import functools
import io
import json
import pickle
import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import pyarrow as pa

from unskew import errors
from unskew.errors import InputError, UnskewError
from unskew.population.reading import PassTotals, Reading, in_blocks
from unskew.population.sources.base import Part, Source, Types
from unskew.population.summaries import Summary

ROW_BITS = 33
"""Bits of a row's number that hold its position within the partition, as in Spark."""

FAN_IN = 64
"""How many answers a merging step combines into one."""

SMALL, LARGE = 2**14, 2**20
"""The size of an answer in bytes up to which no merging step is needed, and up to which one is."""

_SPARK_SCHEMA = (
    "first_part long, last_part long, rows long, mass double, selected long, answer binary"
)

_MARKER = "unskew error: "

_PATIENCE = 10.0
"""Seconds to wait for what Spark has observed; it reports within milliseconds, or never if busy."""
_OTHER_PYTHON = re.compile(
    r"No module named '?[\w.]+'?"
    r"|(Python in worker has different version|Cannot run program)[^,\n]*"
    r"|[^\n]+(?=\nPYTHONPATH was:)"  # the last that a worker wrote which did not start
)
"""What Spark says when executors run another Python than the driver, before any code of ours."""


class SparkSource(Source):
    """A DataFrame whose rows stay on the executors."""

    ordered = False

    def __init__(self, frame: Any) -> None:
        self._frame = frame
        self.schema = pa.schema(
            [pa.field(field.name, _arrow_type(field.dataType)) for field in frame.schema.fields]
        )

    def parts(self, columns: Sequence[str], types: Types, file: int = 0) -> Iterator[Part]:
        """Raise: the rows never come to the driver."""
        raise NotImplementedError("Spark answers where the rows are.")

    def answer(self, summary: Summary, reading: Reading) -> PassTotals:
        """Let each partition answer, and merge the answers in stages."""
        task = _Pass(copy.deepcopy(summary), reading)
        payload = by_value(task)
        try:
            steps = _merging_steps(task.empty)
            answers, last_part = self._answers(payload, reading.all_columns, steps)
        except Exception as error:  # of several kinds, not all of them Spark's own
            raise _original_error(error) from error
        merged = _Merged(task.empty, summary)
        for row in sorted(answers, key=lambda row: row["first_part"]):
            merged.add(row.asDict())
        merged.check_up_to(last_part)
        return merged.seen

    def _answers(
        self, payload: bytes, columns: Sequence[str], steps: int
    ) -> tuple[Sequence[Any], int]:
        """Return the answers, and the number of the last partition that has answered."""
        from pyspark.sql.functions import max as largest

        # Under plain names: mapInArrow would take a dot in a name for a field of a struct.
        plain = (f"{quoted(name)} as c{place}" for place, name in enumerate(columns))
        frame = self._frame.selectExpr(*plain).mapInArrow(
            send(payload, "answer_partition"), _SPARK_SCHEMA
        )
        observation = _observation(frame)
        frame = frame.observe(observation, largest("first_part").alias("last_part"))
        for size in (FAN_IN, FAN_IN**2)[:steps]:
            frame = (
                frame.selectExpr("*", f"first_part div {size} as bucket")
                .repartition("bucket")
                .sortWithinPartitions("first_part")
                .drop("bucket")
                .mapInArrow(send(payload, "merge_buckets", size), _SPARK_SCHEMA)
            )
        answers = frame.collect()
        return answers, _observed(observation, "last_part") if answers else -1


def _observation(frame: Any) -> Any:
    """Return an observation for a frame; there is one class for Connect and one without it."""
    if type(frame).__module__.startswith("pyspark.sql.connect"):
        from pyspark.sql.connect.observation import Observation
    else:
        from pyspark.sql import Observation
    return Observation()


def _observed(observation: Any, name: str) -> int:
    """Return what was observed in a query that has ended, or -1 if Spark does not tell in time."""
    found: list[int] = []

    def ask() -> None:  # it would wait for ever for an event that a busy driver has dropped
        with suppress(Exception):
            found.append(int(observation.get[name]))

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(_PATIENCE)
    return found[0] if found else -1


def _merging_steps(empty: Summary) -> int:
    """Return how many steps make the answers few enough for the driver.

    Two steps turn 10,000 partitions into three answers.
    """
    if any(summary.grows for summary in nested_summaries(empty)):
        return 2
    size = len(pack(empty, empty))
    return 0 if size <= SMALL else 1 if size <= LARGE else 2


@dataclass(frozen=True)
class _Pass:
    """What the executors do."""

    empty: Summary
    reading: Reading

    def answer_partition(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the answer of one partition."""
        from pyspark import TaskContext

        part = TaskContext.get().partitionId()
        summary = copy.deepcopy(self.empty)
        named = (batch.rename_columns(self.reading.all_columns) for batch in batches)
        seen = self.reading.read(summary, in_blocks(named), part << ROW_BITS)
        yield _Merged(self.empty, summary, seen, part, part).record()

    def merge_buckets(
        self, batches: Iterable[pa.RecordBatch], size: int
    ) -> Iterator[pa.RecordBatch]:
        """Merge the answers of each ``size`` consecutive partitions; they come in that order."""
        rows = (
            batch.slice(position, 1).to_pylist()[0]  # one at a time, as answers can be large
            for batch in batches
            for position in range(batch.num_rows)
        )
        for number, bucket in groupby(rows, key=lambda row: int(row["first_part"]) // size):
            first = number * size
            merged = _Merged(self.empty, copy.deepcopy(self.empty), PassTotals(), first, first - 1)
            for row in bucket:
                merged.add(row)
            yield merged.record()


@dataclass
class _Merged:
    """The merged answer of consecutive partitions, from ``first_part``, each merged once."""

    empty: Summary
    summary: Summary
    seen: PassTotals = field(default_factory=PassTotals)
    first_part: int = 0
    last_part: int = -1

    def add(self, row: Mapping[str, Any]) -> None:
        """Merge the answer of the partitions that follow."""
        if row["first_part"] <= self.last_part:
            raise InputError(
                f"Spark returned the answer of partition {row['first_part']} of the population "
                "twice, which would count its rows twice. Run it again."
            )
        self.check_up_to(row["first_part"] - 1)
        self.last_part = row["last_part"]
        self.seen.add(PassTotals(rows=row["rows"], mass=row["mass"], selected=row["selected"]))
        if row["rows"]:
            self.summary.merge(unpack(bytes(row["answer"]), self.empty))

    def check_up_to(self, last_part: int) -> None:
        """Refuse to go on where the answer of a partition up to ``last_part`` is missing."""
        if self.last_part < last_part:
            raise InputError(
                f"Spark returned no answer of partition {self.last_part + 1} of the population, "
                "whose rows would be missing. Run it again."
            )

    def record(self) -> pa.RecordBatch:
        """Return the answer as the one row that :meth:`add` takes."""
        seen = self.seen
        parts = {"first_part": self.first_part, "last_part": self.last_part}
        totals = {"rows": seen.rows, "mass": seen.mass, "selected": seen.selected}
        answer = pack(self.summary, self.empty) if seen.rows else b""
        return pa.RecordBatch.from_pylist([{**parts, **totals, "answer": answer}])


def send(payload: bytes, step: str, *arguments: Any) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Return a function for executors: the method ``step`` of what :func:`by_value` pickled.

    It is a closure over bytes, which Spark can pickle without unskew on the executors; the function
    must not refer to anything in unskew.
    """
    marker = _MARKER

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        try:
            yield from getattr(pickle.loads(payload), step)(batches, *arguments)
        except Exception as error:
            names = [kind.__name__ for kind in type(error).__mro__]
            report = [names[0], str(error)]
            if isinstance(error, ModuleNotFoundError):
                report = ["InputError", f"The executors' Python lacks a module ({error}). "]
                report[1] += "Install it there, start the session with PYSPARK_PYTHON set to a "
                report[1] += "Python that has it, or choose a weighter that does not need it."
            elif "UnskewError" not in names:
                raise
            if hasattr(error, "share"):
                report.append(error.share)
            text = base64.b64encode(json.dumps(report).encode()).decode()
            raise RuntimeError(f"{marker}<{text}>") from error

    return run


def _original_error(error: Exception) -> UnskewError:
    """Return the error that an executor raised, read from Spark's report of it."""
    found = re.search(_MARKER + r"<([A-Za-z0-9+/=]+)>", str(error))
    if found is None:
        if other := _OTHER_PYTHON.search(str(error)):
            return InputError(_name_the_python(other[0].strip()))
        lines = [line for line in str(error).splitlines() if line.strip()]
        lines = lines or [type(error).__name__]
        reason = lines[-1] if any(line.startswith("Traceback") for line in lines) else lines[0]
        return InputError(f"Spark could not read the population: {reason}")
    name, *arguments = json.loads(base64.b64decode(found[1]))
    original: UnskewError = getattr(errors, name)(*arguments)
    return original


def _name_the_python(reason: str) -> str:
    version = "{}.{}".format(*sys.version_info[:2])
    return (
        f"Spark's executors run another Python than the driver: {reason}. They need Python "
        f"{version}, as here, with NumPy and PyArrow. Set PYSPARK_PYTHON to it before the session "
        "starts: export PYSPARK_PYTHON=$(which python), or with spark-submit, --conf "
        "spark.pyspark.python=PATH. For Spark Connect, set it where the server starts."
    )


def with_column(frame: Any, name: str, columns: Sequence[str], task: Any, step: str) -> Any:
    """Return a Spark DataFrame with one more column of numbers, computed on the executors.

    ``getattr(task, step)`` receives arrays of structs of ``columns``, one per batch.
    """
    try:
        from pyspark.sql.functions import arrow_udf, col, struct
    except ImportError as error:
        raise InputError("Weighing a Spark DataFrame requires Spark 4.1 or newer.") from error

    # By default Spark ignores case in column names.
    if name.lower() in (column.lower() for column in frame.columns):
        raise InputError(
            f"X has a column '{name}' already, which the weights would overwrite. Choose another "
            "name: weigh(X, name=...)."
        )
    run = send(by_value(task), step)

    def compute(arrays: Iterator[pa.Array]) -> Iterator[pa.Array]:
        yield from run(arrays)

    numbers = arrow_udf(compute, "double")
    fields = [col(quoted(column)).alias(f"c{place}") for place, column in enumerate(columns)]
    return frame.withColumn(name, numbers(struct(*fields)))


def quoted(column: str) -> str:
    """Return a column's name in backticks, so that Spark takes dots and spaces literally."""
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
    "timestamp": pa.timestamp("us", tz="UTC"),  # in whatever time zone the session is
    "timestamp_ntz": pa.timestamp("us"),
    "time": pa.time64("ns"),
    "daytimeinterval": pa.duration("us"),
    "void": pa.null(),
}


def _arrow_type(kind: Any) -> pa.DataType:
    """Return the Arrow type in which Spark passes a column on."""
    name = kind.typeName()
    if name == "decimal":
        return pa.decimal128(kind.precision, kind.scale)
    if name in _ARROW_TYPES:
        return _ARROW_TYPES[name]
    # A type that cannot be compared; error messages show Spark's own name for it.
    return pa.struct([pa.field(kind.simpleString(), pa.null())])


def by_value(task: Any) -> bytes:
    """Return ``task`` pickled so that it can be loaded where unskew is not installed."""
    from pyspark import cloudpickle

    import unskew

    class Pickler(cloudpickle.CloudPickler):
        def reducer_override(self, obj: Any) -> Any:
            # cloudpickle cannot pickle these two by value.
            if isinstance(obj, functools.cached_property):
                return functools.cached_property, (obj.func,), {"attrname": obj.attrname}
            if isinstance(obj, functools._lru_cache_wrapper):
                return functools.cache, (obj.__wrapped__,)
            return super().reducer_override(obj)

    buffer = io.BytesIO()
    registered = unskew.__name__ in cloudpickle.list_registry_pickle_by_value()
    cloudpickle.register_pickle_by_value(unskew)
    try:
        Pickler(buffer).dump(task)
    finally:
        if not registered:
            cloudpickle.unregister_pickle_by_value(unskew)
    return buffer.getvalue()


def nested_summaries(summary: Summary) -> Iterator[Summary]:
    """Yield a summary and the summaries within it."""
    yield summary
    for part in summary.nested():
        yield from nested_summaries(part)


def _known_to_both_ends(empty: Summary) -> list[Any]:
    return [
        part
        for summary in nested_summaries(empty)
        for part in (type(summary), *(vars(summary).get(n) for n in sorted(summary.shared)))
    ]


def pack(partial: Summary, empty: Summary) -> bytes:
    """Return ``partial``, a filled copy of ``empty``, pickled without what the two share."""
    from pyspark.cloudpickle import CloudPickler

    places = {id(part): place for place, part in enumerate(_known_to_both_ends(empty))}

    class Packer(CloudPickler):
        def persistent_id(self, obj: Any) -> int | None:
            return places.get(id(obj))

    buffer = io.BytesIO()
    Packer(buffer).dump(partial)
    return buffer.getvalue()


def unpack(data: bytes, empty: Summary) -> Any:
    """Return the summary that :func:`pack` was given."""
    known = _known_to_both_ends(empty)

    class Unpacker(pickle.Unpickler):
        def persistent_load(self, pid: Any) -> Any:
            return known[pid]

    return Unpacker(io.BytesIO(data)).load()
