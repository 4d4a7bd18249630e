"""Lazy frames: never the whole of them in memory, and what is said where that cannot be."""

from __future__ import annotations

import time

import dask.dataframe as dd
import duckdb
import ibis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from unskew import Population, TreeWeights
from unskew.errors import InputError, InputTypeError, ParameterError
from unskew.numerics.cores import available_cores
from unskew.population import sources
from unskew.population.summaries import TotalWeight
from unskew.results import Summary


class Watching(Summary):
    """Notes how many partitions have been computed when each part is merged."""

    shared = frozenset({"computed"})

    def __init__(self, computed: list[int]) -> None:
        self.computed = computed
        self.rows = 0
        self.ahead = 0

    def update(self, rows):
        self.rows += len(rows)

    def merge(self, other):
        self.rows += other.rows
        self.ahead = max(self.ahead, len(self.computed) - self.rows // 70_000)


COMPUTED: list[int] = []

DATABASE = duckdb.connect()  # relations of older DuckDB do not keep theirs open


def numbered_partition(number: int) -> pd.DataFrame:
    COMPUTED.append(number)
    return pd.DataFrame({"a": np.full(70_000, float(number)), "unused": 0.0})


def test_dask_computes_a_few_partitions_at_a_time():
    frame = dd.from_map(numbered_partition, range(40), meta=numbered_partition(0))
    COMPUTED.clear()
    answer = Population(frame, columns=["a"]).reduce(Watching(COMPUTED))
    assert answer.rows == 40 * 70_000
    assert sorted(COMPUTED) == list(range(40))
    # One a thread being computed, one waiting, and those that are being counted.
    assert answer.ahead <= 4 * available_cores() + 2


def test_dask_errors_name_the_partition():
    def partition(number: int) -> pd.DataFrame:
        if number == 3:
            raise ValueError("no such day")
        return pd.DataFrame({"a": [1.0]})

    frame = dd.from_map(partition, range(5), meta=pd.DataFrame({"a": [1.0]}))
    with pytest.raises(InputError, match="partition 3 of the population: no such day"):
        Population(frame).reduce(TotalWeight())


def test_dask_partitions_that_are_not_what_was_said():
    def partition(number: int) -> pd.DataFrame:
        return pd.DataFrame({"a": ["x"] if number else [1.0]})

    frame = dd.from_map(
        partition, range(2), meta=pd.DataFrame({"a": [1.0]}), enforce_metadata=False
    )
    with pytest.raises(InputTypeError, match="Column 'a'"):
        Population(frame).reduce(TotalWeight())


@pytest.mark.parametrize(
    "frame",
    [
        DATABASE.from_arrow(pa.table({"a": [1.0, 2.0]})),
        pl.LazyFrame({"a": [1.0, 2.0]}),
        ibis.memtable(pa.table({"a": [1.0, 2.0]})),
    ],
    ids=lambda frame: type(frame).__module__,
)
@pytest.mark.parametrize("role", ["weight", "selected"])
def test_the_rows_of_a_query_have_no_order_that_an_array_could_follow(frame, role):
    with pytest.raises(ParameterError, match=f"{role} must be the name of a column: the rows"):
        Population(frame, **{role: np.array([1, 0])})


def test_a_frame_that_cannot_be_read_in_batches_is_refused(monkeypatch):
    frame = pl.LazyFrame({"a": [1.0, 2.0]})
    monkeypatch.setattr(sources, "_library_and_name", lambda data: ("daft", "DataFrame"))
    with pytest.raises(InputTypeError, match=r"daft DataFrame.*Population\(counts, weight"):
        Population(frame)


def test_progress_of_a_lazy_frame():
    seen = []
    frame = pl.DataFrame({"a": np.arange(10.0)})
    population = Population(frame.lazy(), progress=seen.append)
    TreeWeights(min_samples_leaf=1).fit(frame, np.arange(10.0), population=population)
    passed = [one for one in seen if not one.doing]
    assert (passed[-1].rows, passed[-1].share) == (10, 1.0)


def test_the_time_that_an_engine_takes_is_told():
    def slow(frame: pl.DataFrame) -> pl.DataFrame:
        time.sleep(0.05)
        return frame

    told = []
    frame = pl.LazyFrame({"a": [1.0, 2.0]}).map_batches(slow)
    Population(frame, progress=told.append).reduce(TotalWeight())
    assert told[-1].seconds >= 0.05
