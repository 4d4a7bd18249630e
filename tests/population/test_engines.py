"""One population in every form gives one answer, to the last bit, on one thread or two."""

from __future__ import annotations

import dask.dataframe as dd
import duckdb
import ibis
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from unskew import CalibrationWeights, Population, TreeWeights
from unskew.population.feature_sums import FeatureSums
from unskew.population.reservoir import Reservoir
from unskew.population.summaries import TotalWeight
from unskew.rows.design import Design, Number, Product
from unskew.rows.encode import ColumnCodes
from unskew.rows.tables import RowBlock, as_rows


class ArrowStream:
    """A stranger that speaks nothing but the Arrow C stream."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


@pytest.fixture(scope="module")
def folder(mixed: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("population")
    mixed.to_parquet(folder / "whole.parquet", row_group_size=9_000, index=False)
    for number, start in enumerate((0, 1, 40_000)):
        stop = (1, 40_000, len(mixed))[number]
        mixed.iloc[start:stop].to_parquet(folder / f"part-{number}.parquet", index=False)
    mixed.to_csv(folder / "whole.csv", index=False)
    mixed.iloc[:30_000].to_csv(folder / "half-0.csv", index=False)
    mixed.iloc[30_000:].to_csv(folder / "half-1.csv.gz", index=False)
    (folder / "hive").mkdir()
    for rooms, rows in mixed.groupby("rooms"):
        (folder / "hive" / f"rooms={rooms}").mkdir()
        rows.drop(columns="rooms").to_parquet(folder / "hive" / f"rooms={rooms}" / "0.parquet")
    return folder


FORMS = {
    "pandas": lambda frame, folder: frame,
    "pandas, odd index": lambda frame, folder: frame.set_index(np.arange(len(frame)) * 7),
    "pandas, columns in another order": lambda frame, folder: frame[sorted(frame.columns)],
    "pandas backed by Arrow": lambda frame, folder: frame.convert_dtypes(dtype_backend="pyarrow"),
    "polars": lambda frame, folder: pl.from_pandas(frame),
    "polars lazy": lambda frame, folder: pl.from_pandas(frame).lazy(),
    "polars scan": lambda frame, folder: pl.scan_parquet(folder / "part-*.parquet"),
    "arrow table": lambda frame, folder: pa.Table.from_pandas(frame, preserve_index=False),
    "arrow batch": lambda frame, folder: pa.RecordBatch.from_pandas(frame, preserve_index=False),
    "arrow dataset": lambda frame, folder: ds.dataset(folder / "whole.parquet"),
    "arrow reader": lambda frame, folder: pa.Table.from_pandas(
        frame, preserve_index=False
    ).to_reader(777),
    "arrow stream": lambda frame, folder: ArrowStream(
        pa.Table.from_pandas(frame, preserve_index=False)
    ),
    "duckdb": lambda frame, folder: duckdb.sql(f"from '{folder}/whole.parquet'"),
    "ibis": lambda frame, folder: ibis.duckdb.connect().read_parquet(folder / "whole.parquet"),
    "ibis table in memory": lambda frame, folder: ibis.memtable(frame),
    "dask": lambda frame, folder: dd.from_pandas(frame, npartitions=5, sort=False),
    "dask scan": lambda frame, folder: dd.read_parquet(
        sorted(map(str, folder.glob("part-*.parquet")))
    ),
    "narwhals lazy": lambda frame, folder: nw.from_native(pl.from_pandas(frame).lazy()),
    "narwhals eager": lambda frame, folder: nw.from_native(frame),
    "parquet": lambda frame, folder: folder / "whole.parquet",
    "parquet glob": lambda frame, folder: str(folder / "part-*.parquet"),
    "parquet list": lambda frame, folder: [
        folder / f"part-{number}.parquet" for number in range(3)
    ],
    "csv": lambda frame, folder: str(folder / "whole.csv"),
    "csv list, one compressed": lambda frame, folder: sorted(folder.glob("half-*")),
    "list of chunks": lambda frame, folder: [frame.iloc[:10], pl.from_pandas(frame.iloc[10:])],
    "generator of chunks": lambda frame, folder: (
        frame.iloc[start : start + 999] for start in range(0, len(frame), 999)
    ),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("threads", [1, 2])
def test_every_form_gives_the_same_tree_weights(mixed, folder, form, threads, monkeypatch):
    monkeypatch.setenv("UNSKEW_THREADS", str(threads))
    sample = mixed.iloc[:600]
    labels = np.arange(600) % 7 + sample["rooms"].to_numpy() * 1.5
    expected = TreeWeights().fit(sample, labels, population=mixed)
    weighter = TreeWeights().fit(sample, labels, population=FORMS[form](mixed, folder))
    assert np.array_equal(weighter.weights_, expected.weights_)
    assert weighter.uncovered_ == expected.uncovered_ == 0
    assert np.array_equal(weighter.population_counts_, expected.population_counts_)
    assert weighter.population_counts_.sum() == len(mixed)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("features", ["auto", "margins"])
def test_every_form_gives_the_same_calibration_weights(mixed, folder, form, features):
    chance = 1 / (1 + np.exp(-mixed["income"].fillna(0) - mixed["rooms"] / 2))
    drawn = np.random.default_rng(0).uniform(size=len(mixed)) < chance
    sample = mixed[drawn].iloc[:600]
    weighter = CalibrationWeights(features=features, overlap="ignore")
    expected = weighter.fit(sample, population=mixed).weights_
    weights = weighter.fit(sample, population=FORMS[form](mixed, folder)).weights_
    assert np.allclose(weights, expected, rtol=1e-12)
    assert np.ptp(weights) > 1


@pytest.mark.parametrize("cut", [1, 2, 3])
def test_sums_of_features_do_not_depend_on_the_cut(cut):
    codes = ColumnCodes().fit(as_rows(pd.DataFrame({"x": [0.0, 1.0]}), name="X").batch)
    features = Design(codes, [Number((0,), ["x"], 0.0, np.nan)])
    parts = []
    for value in (1e16, 1.0, -1e16, 2.0):
        parts.append(FeatureSums(features))
        batch = pa.record_batch({"x": [value]})
        parts[-1].update(RowBlock(batch, np.ones(1)))
    for part in parts[1:cut]:
        parts[0].merge(part)
    for part in parts[cut + 1 :]:
        parts[cut].merge(part)
    parts[0].merge(parts[cut])
    parts[0].finish()
    assert parts[0].sums.tolist() == [[3.0]]


@pytest.mark.parametrize("form", FORMS)
def test_the_reservoir_is_the_same_for_every_form(mixed, folder, form):
    rows = as_rows(mixed.iloc[:100], name="X")
    codes = ColumnCodes().fit(rows.batch)

    def reservoir(data, threads):
        found = Population(data).matched(rows).reduce(Reservoir(50, seed=4), threads=threads)
        return found.numbers, codes.transform(found.rows, side="population").values

    expected = reservoir(mixed, 1)
    found = reservoir(FORMS[form](mixed, folder), 2)
    assert np.array_equal(found[0], expected[0])
    assert np.array_equal(found[1], expected[1], equal_nan=True)
    assert len(found[1]) == 50


def test_numpy_agrees_with_a_dataframe_of_the_same_numbers(shift):
    names = ["a", "b", "c"]
    by_position = TreeWeights().fit(shift.sample, shift.labels, population=shift.population)
    by_name = TreeWeights().fit(
        pd.DataFrame(shift.sample, columns=names),
        shift.labels,
        population=pl.DataFrame(shift.population, schema=names),
    )
    assert np.array_equal(by_position.weights_, by_name.weights_)


@pytest.mark.parametrize("dtype", [np.float32, np.int16, np.bool_, np.float16, ">f8"])
def test_arrays_of_every_number_type(dtype):
    array = (np.arange(40).reshape(20, 2) % 5).astype(dtype)
    weighter = TreeWeights(min_samples_leaf=1, total="population")
    weights = weighter.fit(
        array[:10], np.arange(10.0), population=np.asfortranarray(array)
    ).weights_
    assert weights.sum() == pytest.approx(20)


def test_a_folder_with_hive_partitions_has_their_column(mixed, folder):
    sample = mixed.iloc[:600]
    expected = TreeWeights().fit(sample, sample["rooms"] * 1.5, population=mixed)
    weighter = TreeWeights().fit(sample, sample["rooms"] * 1.5, population=folder / "hive")
    assert np.array_equal(weighter.weights_, expected.weights_)


def test_a_pass_reads_every_row_once(mixed):
    passes = 0

    def chunks():
        nonlocal passes
        passes += 1
        yield mixed.iloc[:40_000]
        yield mixed.iloc[40_000:]

    population = Population(chunks())
    assert population.reduce(TotalWeight()).rows == len(mixed) == population.size
    assert passes == 1


def test_only_the_needed_columns_are_read(mixed, folder):
    broken = mixed.assign(nested=[[1]] * len(mixed))  # a type that could not be compared
    broken.to_parquet(folder / "nested.parquet", index=False)
    columns = list(mixed.columns)
    population = Population(folder / "nested.parquet", columns=columns)
    sample = mixed.iloc[:600]
    expected = TreeWeights().fit(sample, sample["rooms"], population=mixed)
    assert np.array_equal(
        TreeWeights().fit(sample, sample["rooms"], population=population).weights_,
        expected.weights_,
    )


def test_sums_do_not_depend_on_the_threads(mixed):
    rows = as_rows(mixed[["income", "rooms"]].iloc[:50], name="X")
    codes = ColumnCodes().fit(rows.batch)
    numbers = [Number((place,), [name], 0.0, np.nan) for place, name in enumerate(codes.names)]
    terms = [*numbers, *(Product((p, p), [""], one, one) for p, one in enumerate(numbers))]
    population = Population(mixed[["income", "rooms"]]).matched(rows)
    one, two = (
        population.reduce(FeatureSums(Design(codes, terms)), threads=threads) for threads in (1, 2)
    )
    assert np.array_equal(one.sums, two.sums)
    expected = mixed[["income", "rooms"]].dropna().to_numpy()
    expected = np.append(expected.sum(axis=0), (expected**2).sum(axis=0))
    assert one.sums[0] == pytest.approx(expected, rel=1e-12)


def test_a_reservoir_of_raw_rows_keeps_text_apart(folder, mixed):
    rows = Population(folder / "whole.parquet").reduce(Reservoir(200, seed=1))
    frame = rows.rows.to_pandas()
    expected = mixed.iloc[rows.numbers].reset_index(drop=True)
    assert (
        frame["town"].astype(object).fillna("") == expected["town"].astype(object).fillna("")
    ).all()
    assert (frame["grade"].astype(str) == expected["grade"].astype(str)).all()


def test_a_reservoir_is_uniform():
    # Each of 40 rows should be among 10 kept ones with probability 1/4: a chi-square over 4,000
    # seeds has 39 degrees of freedom and stays below 81 with probability 0.9999.
    counts = np.zeros(40)
    batch = pa.record_batch({"x": np.arange(40.0)})
    for seed in range(4000):
        reservoir = Reservoir(10, seed=seed)
        reservoir.update(RowBlock(batch, np.ones(40)))
        counts[reservoir.numbers] += 1
    expected = 4000 / 4
    assert ((counts - expected) ** 2 / (expected * 0.75)).sum() < 81


def test_a_reservoir_larger_than_the_population_keeps_it_all():
    array = np.arange(12.0).reshape(6, 2)
    reservoir = Population(array).reduce(Reservoir(100))
    assert np.array_equal(np.column_stack([c.to_numpy() for c in reservoir.rows.columns]), array)


def test_memory_maps_and_nested_lists(tmp_path):
    np.save(tmp_path / "u.npy", np.arange(20.0).reshape(10, 2))
    mapped = np.load(tmp_path / "u.npy", mmap_mode="r")
    assert Population(mapped).size == 10
    assert Population([[1.0, 2.0], [3.0, 4.0]]).size == 2
    assert Population([np.zeros((3, 2)), np.zeros((4, 2))]).size == 7


def test_pickled_populations_answer_alike(mixed, folder):
    import pickle

    for data in (mixed, folder / "whole.parquet"):
        twin = pickle.loads(pickle.dumps(Population(data)))
        assert twin.reduce(TotalWeight()).rows == len(mixed)


def test_parquet_files_written_in_odd_ways(mixed, tmp_path):
    table = pa.Table.from_pandas(mixed[["income", "town"]], preserve_index=False)
    sample = mixed[["income", "town"]].iloc[:500]
    labels = np.arange(500.0)
    expected = TreeWeights().fit(sample, labels, population=mixed[["income", "town"]]).weights_
    pq.write_table(table, tmp_path / "plain.parquet", use_dictionary=False, row_group_size=100)
    pq.write_table(table, tmp_path / "v1.parquet", version="1.0", compression="gzip")
    with pq.ParquetWriter(tmp_path / "empty-groups.parquet", table.schema) as writer:
        writer.write_table(table.slice(0, 0))
        writer.write_table(table)
    (tmp_path / "no-suffix").write_bytes((tmp_path / "plain.parquet").read_bytes())
    for name in ("plain.parquet", "v1.parquet", "empty-groups.parquet", "no-suffix"):
        weights = TreeWeights().fit(sample, labels, population=tmp_path / name).weights_
        assert np.array_equal(weights, expected), name
