"""Rows of few different values are counted as their different rows, with the same answers."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from unskew import FrequencyWeights, Population
from unskew.numerics.row_keys import lowest_keys, row_keys
from unskew.population import cell_counts
from unskew.population.cell_counts import ROWS_A_COMBINATION, CellCounts, Combinations
from unskew.population.reservoir import Reservoir
from unskew.rows.tables import RowBlock

N_ROWS = 4_000
RANDOM = np.random.default_rng(0)


def gaps(values):
    return pa.array(values, mask=RANDOM.uniform(size=N_ROWS) < 0.1)


TOWNS = np.array(["Ulm", "Bonn", "Kiel"])[RANDOM.integers(0, 3, N_ROWS)]
COLUMNS = {
    "int64": pa.array(RANDOM.integers(-2, 3, N_ROWS)),
    "int64 with gaps": gaps(RANDOM.integers(5, 9, N_ROWS)),
    "int8 at its end": gaps(np.int8(127) - RANDOM.integers(0, 3, N_ROWS).astype(np.int8)),
    "uint64": gaps(RANDOM.integers(0, 4, N_ROWS).astype(np.uint64)),
    "large int64": gaps(2**60 + RANDOM.integers(0, 3, N_ROWS)),
    "bool": gaps(RANDOM.uniform(size=N_ROWS) < 0.5),
    "text": gaps(TOWNS).dictionary_encode(),
    "constant": pa.array(np.full(N_ROWS, 7, dtype=np.int16)),
}


def batch_of(*names):
    return pa.record_batch([COLUMNS[name] for name in names], names=list(names))


class ByValue:
    """A locator that finds a row by its values, and remembers how many rows it was asked for."""

    def __init__(self, known):
        self.known, self.n_cells, self.asked = list(known), len(known), 0

    def locate(self, batch):
        self.asked += batch.num_rows
        rows = [tuple(row.values()) for row in batch.to_pylist()]
        cells = np.array([self.known.index(row) if row in self.known else -1 for row in rows])
        return cells, cells < 0 if (cells < 0).any() else None

    def group_masses(self, batch, weight):
        assert batch.num_rows == len(weight)
        return np.array([weight.sum()])

    def spread(self, masses):
        return np.full(self.n_cells, masses.sum() / self.n_cells)


@pytest.mark.parametrize("names", [(name,) for name in COLUMNS] + [("int64", "text", "bool")])
@pytest.mark.parametrize("weighted", [False, True])
def test_counts_are_those_of_single_rows(names, weighted):
    batch = batch_of(*names)
    weight = RANDOM.integers(0, 5, N_ROWS).astype(float) if weighted else np.ones(N_ROWS)
    rows = [tuple(row.values()) for row in batch.to_pylist()]
    present = sorted(set(rows), key=str)
    known = present[: max(1, len(present) - 1)]  # one combination is in no cell
    locator = ByValue(known)
    counts = CellCounts(locator)
    counts.update(RowBlock(batch, weight, unweighted=not weighted))
    expected = np.zeros(len(known))
    for row, own in zip(rows, weight, strict=True):
        if row in known:
            expected[known.index(row)] += own
    assert counts.covered.tolist() == expected.tolist()
    assert counts.uncovered == weight.sum() - expected.sum()
    assert counts.mass == weight.sum()
    assert locator.asked <= len(present)


def test_a_combination_is_located_once_in_all_blocks_and_copies():
    batch, locator = batch_of("int64", "bool"), ByValue([(0, True)])
    counts = CellCounts(locator)
    for _ in range(3):
        counts.update(RowBlock(batch, np.ones(N_ROWS)))
    assert 0 < locator.asked <= 15


def test_dictionaries_that_differ_are_not_taken_for_each_other():
    first = pa.DictionaryArray.from_arrays(pa.array([0, 1] * 50), pa.array(["a", "b"]))
    second = pa.DictionaryArray.from_arrays(pa.array([0, 1] * 50), pa.array(["b", "a"]))
    counts = CellCounts(ByValue([("a",)]))
    for column in (first, second.slice(0, 99)):
        batch = pa.record_batch({"x": column})
        counts.update(RowBlock(batch, np.ones(len(batch))))
    assert counts.covered.tolist() == [50 + 49]


@pytest.mark.parametrize(
    "column",
    [
        pa.array(RANDOM.normal(size=N_ROWS)),
        pa.array(RANDOM.integers(0, N_ROWS, N_ROWS)),
        pa.array([None] * N_ROWS, pa.int64()),
        pa.array([2**64 - 1] * N_ROWS, pa.uint64()),
        pa.array(TOWNS),  # not in a dictionary
        pa.array([0.0, -0.0] * (N_ROWS // 2)).dictionary_encode(),
    ],
    ids=lambda column: str(column.type),
)
def test_other_columns_have_no_codes(column):
    batch = pa.record_batch({"x": column, "int64": COLUMNS["int64"]})
    assert Combinations.from_batch(batch) is None


def test_combinations_are_fewer_than_rows():
    batch = batch_of("int64", "int64 with gaps")  # 5 values, and 4 with missing ones
    most = 25 * ROWS_A_COMBINATION
    assert Combinations.from_batch(batch.slice(0, most)).size == 25
    assert Combinations.from_batch(batch.slice(0, most - 1)) is None


def test_frequencies_of_files_do_not_depend_on_how_rows_are_counted(tmp_path, monkeypatch):
    table = pa.table({name: COLUMNS[name] for name in ("int64 with gaps", "bool")})
    for place in range(4):
        piece = table.slice(place * 1000, 1000)
        pq.write_table(piece, tmp_path / f"{place}.parquet", row_group_size=300)
    sample = table.slice(0, 12)
    few = FrequencyWeights(overlap="ignore").fit(sample, population=Population(tmp_path))
    monkeypatch.setattr(cell_counts, "ROWS_A_COMBINATION", N_ROWS + 1)  # never
    each = FrequencyWeights(overlap="ignore").fit(sample, population=Population(tmp_path))
    assert few.population_counts_.tolist() == each.population_counts_.tolist()
    assert few.uncovered_ == each.uncovered_ > 0


@pytest.mark.parametrize("share", [0.0, 1e-4, 0.3, 1.0])
def test_lowest_keys_are_those_up_to_the_ceiling(share):
    start, n_rows = 12_345, 150_000
    keys = row_keys(3, start, n_rows)
    ceiling = np.sort(keys)[int(share * (n_rows - 1))]
    rows, lowest = lowest_keys(3, start, n_rows, ceiling)
    assert rows.tolist() == np.flatnonzero(keys <= ceiling).tolist()
    assert np.array_equal(lowest, keys[rows])


@pytest.mark.parametrize("steps", [[10_000], [7] * 1428 + [4], [5000, 1, 4000, 999]])
def test_a_reservoir_holds_the_rows_with_the_smallest_keys(steps):
    values = RANDOM.normal(size=(10_000, 1))
    reservoir, other = Reservoir(100), Reservoir(100)
    start = 0
    for size in steps:
        into = reservoir if start < 6000 else other
        block = pa.record_batch({"x": values[start : start + size, 0]})
        into.update(RowBlock(block, np.ones(size), start=start))
        start += size
    reservoir.merge(other)
    lowest = np.sort(np.argsort(row_keys(0, 0, 10_000))[:100])
    assert reservoir.numbers.tolist() == lowest.tolist()
    assert np.array_equal(reservoir.rows.column(0), values[lowest, 0])
    reservoir.count(np.arange(100))
    assert reservoir.weight.tolist() == list(range(100))
