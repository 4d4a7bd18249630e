"""Any other lazy frame that narwhals knows: its engine can count, but not hand over batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import narwhals.stable.v2 as nw
import pyarrow as pa

from unskew.errors import InputError
from unskew.population.sources.base import Part, Source


class LazySource(Source):
    """A frame of which only aggregates can be had without taking all of it into memory."""

    ordered = False  # a query promises no order, and may give another in each pass

    def __init__(self, frame: Any) -> None:
        self.lazy = frame
        self.schema = nw.from_native(frame).head(0).collect(backend="pyarrow").to_native().schema

    def parts(self, columns: Sequence[str], types: Mapping[str, pa.DataType]) -> Iterator[Part]:  # noqa: ARG002
        """Refuse: it would mean the whole frame in memory."""
        raise InputError(
            f"The population is a {type(self.lazy).__module__.split('.')[0]} "
            f"{type(self.lazy).__name__}, whose rows unskew cannot read in batches. Let its engine "
            "count them, Population(data, pushdown=True), or write it to Parquet."
        )
