"""A Dask DataFrame: a few partitions at a time, each computed by one thread of unskew."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from unskew.errors import InputError
from unskew.numerics.cores import available_cores, in_order
from unskew.population.sources.base import StreamedSource
from unskew.rows.kinds import check_kinds
from unskew.rows.tables import as_rows


class DaskSource(StreamedSource):
    """The partitions of the frame in order; at most one per core is in memory."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame
        empty = as_rows(frame._meta, name="population")
        self.schema = empty.table.schema
        self.named, self.numbered = empty.named, empty.numbered

    def batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        """Yield the partitions as they are computed."""
        labels = [self._frame.columns[self.schema.names.index(name)] for name in columns]
        work = enumerate(self._frame[labels].to_delayed())
        for table in in_order(self._computed, work, available_cores(), ahead=0):
            for name in columns:
                check_kinds(name, self.schema.field(name).type, table.schema.field(name).type)
            yield from table.to_batches()

    def _computed(self, work: tuple[int, Any]) -> pa.Table:
        number, partition = work
        try:
            # In this thread: unskew runs the threads, and each holds one partition.
            frame = partition.compute(scheduler="synchronous")
        except Exception as error:
            raise InputError(
                f"Dask could not compute partition {number} of the population: {error}"
            ) from error
        return as_rows(frame, name=f"partition {number} of the population").table
