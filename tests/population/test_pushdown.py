"""Cells counted within an engine are those that reading the rows would count, on every border."""

from __future__ import annotations

from datetime import date, datetime, timedelta

import dask.dataframe as dd
import duckdb
import ibis
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from unskew import (
    ClusterWeights,
    FrequencyWeights,
    HistogramWeights,
    InputError,
    InputTypeError,
    OverlapWarning,
    ParameterError,
    Population,
    TreeWeights,
)
from unskew.population.encode import ColumnCodes
from unskew.population.pushdown import CodeTests

ENGINES = {
    "duckdb": lambda table: duckdb.connect().from_arrow(table),
    "polars": lambda table: pl.from_arrow(table).lazy(),
    "ibis": ibis.memtable,
    "dask": lambda table: dd.from_pandas(
        table.to_pandas(types_mapper=pd.ArrowDtype), npartitions=3, sort=False
    ),
    "narwhals": lambda table: nw.from_native(pl.from_arrow(table).lazy()),
}


def mixed_table(n_rows: int, seed: int) -> pa.Table:
    random = np.random.default_rng(seed)

    def gaps(values, share=0.08):
        return pa.array(values, mask=random.uniform(size=n_rows) < share)

    start = datetime(1969, 12, 30)
    moments = [start + timedelta(seconds=int(s)) for s in random.integers(0, 400_000, n_rows)]
    return pa.table(
        {
            "x": gaps(random.normal(size=n_rows)),
            "nan": np.where(random.uniform(size=n_rows) < 0.1, np.nan, random.normal(size=n_rows)),
            "single": gaps(random.normal(size=n_rows).astype(np.float32)),
            "whole": gaps(random.integers(-3, 4, n_rows)),
            "town": gaps(random.choice(["Ulm", "Bonn", "Kiel", "a'b", "Ä"], n_rows)),
            "owner": gaps(random.uniform(size=n_rows) < 0.5),
            "day": pa.array([moment.date() for moment in moments]),
            "moment": gaps(pd.Series(moments), 0.05).cast(pa.timestamp("us")),
            "w": random.integers(0, 5, n_rows) * 0.25,
        }
    )


SAMPLE = mixed_table(400, 1)
LABELS = (
    np.nan_to_num(SAMPLE["x"].to_numpy(zero_copy_only=False))
    * SAMPLE["whole"].to_pandas().fillna(2)
    + SAMPLE["town"].to_pandas().fillna("").str.len()
    + SAMPLE["moment"].to_pandas().dt.day_of_year.fillna(0) % 5
    + np.sin(7 * np.nan_to_num(SAMPLE["single"].to_numpy(zero_copy_only=False)))
)
WEIGHTERS = {
    "small tree": TreeWeights(max_leaf_nodes=8, empty="drop"),
    "tree": TreeWeights(min_samples_leaf=2, empty="drop"),
    "classes": TreeWeights(task="classification", empty="drop", honest=True),
    "sizes": TreeWeights(min_samples_leaf="bound", empty="drop"),
    "histogram": HistogramWeights(buckets=3, empty="drop"),
    "frequency": FrequencyWeights(empty="drop"),
}


# Dask takes long to plan large trees, and its rows can be read anyway.
TREE_ENGINES = [engine for engine in ENGINES if engine != "dask"]
CASES = [
    (engine, name)
    for engine in ENGINES
    for name in WEIGHTERS
    if engine in TREE_ENGINES or name in ("small tree", "histogram", "frequency")
]


def columns_for(name: str) -> list[str]:
    if name == "frequency":
        return ["whole", "town", "owner"]
    return SAMPLE.column_names[:4] if name == "histogram" else SAMPLE.column_names[:-1]


@pytest.mark.filterwarnings("ignore::unskew.OverlapWarning")
@pytest.mark.parametrize(("engine", "name"), CASES)
def test_counts_are_those_of_reading(engine, name):
    population = mixed_table(5000, 2)
    town = pa.array(
        ["nowhere" if n % 100 == 0 else v.as_py() for n, v in enumerate(population["town"])]
    )
    population = population.set_column(4, "town", town)
    columns = columns_for(name)
    sample = SAMPLE.select(columns)
    labels = LABELS.to_numpy() if name != "classes" else (LABELS > 1).to_numpy()
    options = {"columns": columns, "weight": "w"}

    def fit(data, **more):
        weighter = WEIGHTERS[name]
        weighter.fit(sample, labels, population=Population(data, **options, **more))
        return weighter.population_counts_, weighter.uncovered_, weighter.weights_

    expected = fit(population)
    found = fit(ENGINES[engine](population), pushdown=True)
    assert np.array_equal(found[0], expected[0])  # weights are quarters: sums are exact
    assert found[1] == expected[1]
    assert np.array_equal(found[2], expected[2])
    assert 0 < expected[1] < 1


@pytest.mark.filterwarnings("ignore::unskew.OverlapWarning")
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "values",
    [
        pa.array([1.0, None, np.inf, None]),
        pa.array(["a", None, "b", None]),
        pa.array([date(2020, 1, 1), None, date(2021, 1, 1), None]),
    ],
    ids=lambda values: str(values.type),
)
def test_any_value_is_novel_where_the_sample_has_only_gaps(engine, values):
    sample = pa.table({"x": np.arange(40.0), "e": pa.nulls(40, values.type)})
    table = pa.table({"x": np.arange(40.0), "e": pa.concat_arrays([values] * 10)})
    population = ENGINES[engine](table)
    weighters = [TreeWeights(empty="drop", max_leaf_nodes=5), HistogramWeights(empty="drop")]
    for weighter in [*weighters, FrequencyWeights(empty="drop")]:
        weighter.fit(sample, np.arange(40.0), population=table)
        expected, uncovered = weighter.population_counts_, weighter.uncovered_
        weighter.fit(sample, np.arange(40.0), population=Population(population, pushdown=True))
        assert weighter.uncovered_ == uncovered == 0.5
        assert np.array_equal(weighter.population_counts_, expected)


def around(values, dtype) -> list[float]:
    """Each value and its neighbours of both precisions, and half-way between those of float32."""
    with np.errstate(over="ignore"):
        return np.array([*_around(values)], dtype=dtype)


def _around(values):
    for value in np.asarray(values, dtype=np.float64):
        single = np.float32(value)
        for near in (single, np.nextafter(single, -np.inf), np.nextafter(single, np.inf)):
            for far in (np.nextafter(near, -np.inf), np.nextafter(near, np.inf)):
                half = (np.float64(near) + np.float64(far)) / 2
                yield from (near, half, np.nextafter(half, -np.inf), np.nextafter(half, np.inf))
        yield from (value, np.nextafter(value, -np.inf), np.nextafter(value, np.inf))


@pytest.mark.parametrize("engine", TREE_ENGINES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_numbers_on_the_borders_of_a_tree(engine, dtype):
    random = np.random.default_rng(0)
    scale = 10.0 ** random.integers(-20, 20, 300)
    x = np.concatenate([random.normal(size=300) * scale, [0.1, -0.0, 16_777_216.0, 16_777_217.0]])
    missing = x.copy()
    missing[::9] = np.nan  # so that the tree learns a side for them
    sample = pa.table({"x": missing})
    labels = random.normal(size=len(x))
    weighter = TreeWeights(min_samples_leaf=1).fit(sample, labels, population=sample)
    thresholds = weighter.tree_.tree_.threshold[weighter.tree_.tree_.feature >= 0]
    assert np.isinf(thresholds).any()  # where a tree parts missing values from all others
    values = around(thresholds[np.isfinite(thresholds)], dtype)
    population = pa.table({"x": pa.array(np.concatenate([values, [np.nan] * 3]))})
    population = pa.concat_tables(
        [population, pa.table({"x": pa.array([None] * 2, population["x"].type)})]
    )
    expected = weighter.fit(sample, labels, population=population).population_counts_
    found = weighter.fit(
        sample, labels, population=Population(ENGINES[engine](population), pushdown=True)
    ).population_counts_
    assert np.array_equal(found, expected)
    assert found.sum() == len(population)


@pytest.mark.parametrize("engine", ENGINES)
def test_numbers_on_the_borders_of_buckets(engine):
    borders = [0.1, 0.3, 2.0 / 3.0, 1e15 / 3, 1e-300]
    sample = pa.table({"x": [*borders, -1.0, 0.2, 0.5, 7.0, 1e16, None]})
    values = np.concatenate([around(borders, np.float64), [np.nan]])
    weighter = HistogramWeights(buckets={"x": borders}, empty="drop")
    expected = weighter.fit(sample, population=pa.table({"x": values})).population_counts_
    lazy = ENGINES[engine](pa.table({"x": values}))
    weighter.fit(sample, population=Population(lazy, pushdown=True))
    assert np.array_equal(weighter.population_counts_, expected)


@pytest.mark.parametrize("engine", TREE_ENGINES)
def test_moments_on_the_borders_of_a_tree(engine):
    random = np.random.default_rng(0)
    micro = random.integers(-(10**15), 2 * 10**15, 200)
    sample = pa.table(
        {
            "t": pa.array(micro, pa.timestamp("us")),
            "d": pa.array(micro // 10**11, pa.int32()).cast(pa.date32()),
        }
    )
    labels = random.normal(size=200)
    weighter = TreeWeights(min_samples_leaf=1, overlap="ignore")
    tree = weighter.fit(sample, labels, population=sample).tree_.tree_
    tests = CodeTests(
        ColumnCodes(dtype=np.float32).fit(sample.to_batches()[0]), ["t", "d"], sample.schema
    )
    origins = [code.origin for code in tests._encoder.columns]
    near = [
        tests._last_moment(origins[f], t) + step
        for f, t in zip(tree.feature, tree.threshold, strict=True)
        for step in (-1, 0, 1, 86_400_000_000)
        if f >= 0
    ]
    population = pa.table(
        {
            "t": pa.array(near, pa.timestamp("us")),
            "d": pa.array([n // 86_400_000_000 for n in near], pa.int32()).cast(pa.date32()),
        }
    )
    expected = weighter.fit(sample, labels, population=population).population_counts_
    lazy = Population(ENGINES[engine](population), pushdown=True)
    assert np.array_equal(
        weighter.fit(sample, labels, population=lazy).population_counts_, expected
    )


def test_borders_move_to_the_last_double_of_a_side():
    tests = CodeTests(
        ColumnCodes(dtype=np.float32).fit(pa.record_batch({"x": [1.0]})),
        ["x"],
        pa.schema([("x", pa.float64())]),
    )
    random = np.random.default_rng(3)
    thresholds = [0.0, -0.0, 1.0, 1e-45, -1e-45, 16_777_217.0, 1e38, 3.4e38, -3.4e38]
    thresholds += (random.normal(size=300) * 10.0 ** random.integers(-44, 38, 300)).tolist()
    for threshold in thresholds:
        last = tests._last_number(threshold)
        after = float(np.float32(np.nextafter(last, np.inf)))
        assert float(np.float32(last)) <= threshold < after


class TestRefusals:
    FRAME = pl.DataFrame({"x": [1.0, 2.0, 3.0], "town": ["a", "b", "a"], "w": [1.0, 1.0, 2.0]})

    def fit(self, data, weighter=None, **options):
        weighter = weighter or TreeWeights(min_samples_leaf=1)
        sample = self.FRAME.select(["x", "town"])
        population = Population(data, pushdown=True, columns=["x", "town"], **options)
        return weighter.fit(sample, [1.0, 2.0, 3.0], population=population)

    def test_questions_that_need_the_rows(self):
        with pytest.raises(ParameterError, match="counts cells of columns or of a tree"):
            self.fit(self.FRAME.lazy(), ClusterWeights())

    def test_populations_that_have_no_engine(self):
        with pytest.raises(ParameterError, match="pushdown=True is for lazy frames"):
            Population(self.FRAME, pushdown=True)
        with pytest.raises(ParameterError, match="weight must be the name of a column"):
            Population(self.FRAME.lazy(), pushdown=True, weight=[1.0, 1.0, 1.0])

    def test_uncovered_rows_cannot_be_merged_from_afar(self):
        lazy = pl.concat([self.FRAME, self.FRAME.with_columns(town=pl.lit("new"))]).lazy()
        with pytest.raises(InputError, match=r'50.0% of the population .* use empty="drop"'):
            self.fit(lazy)
        with pytest.warns(OverlapWarning):
            weighter = self.fit(lazy, TreeWeights(min_samples_leaf=1, empty="drop"))
        assert weighter.uncovered_ == 0.5

    @pytest.mark.parametrize("engine", ENGINES)
    def test_numbers_that_reading_would_refuse(self, engine):
        for value in (np.inf, -np.inf, 1e39):
            table = self.FRAME.with_columns(x=pl.Series([1.0, value, np.nan])).to_arrow()
            with pytest.raises(InputError, match="Column 'x' of the population holds infinity"):
                self.fit(ENGINES[engine](table), TreeWeights(min_samples_leaf=1, empty="drop"))

    @pytest.mark.parametrize("weight", [-1.0, float("nan"), None, float("inf")])
    def test_weights_that_reading_would_refuse(self, weight):
        lazy = self.FRAME.with_columns(w=pl.Series([1.0, weight, 1.0])).lazy()
        with pytest.raises(InputError, match="weight column 'w' has 1 entries that are negative"):
            self.fit(lazy, weight="w")

    @pytest.mark.parametrize("engine", ENGINES)
    @pytest.mark.parametrize("marks", [[2, 0, 1], [None, 1, 0], [0.5, 0.0, 1.0], [-1, 0, 1]])
    def test_marks_that_reading_would_refuse(self, engine, marks):
        table = self.FRAME.with_columns(s=pl.Series(marks)).to_arrow()
        with pytest.raises(InputError, match="'s' given as selected has 1 entries that are miss"):
            self.fit(ENGINES[engine](table), selected="s")

    @pytest.mark.parametrize("engine", ENGINES)
    @pytest.mark.parametrize(
        "marks", [[True, False, True], [1, 0, 1], [1.0, 0.0, 1.0]], ids=["bool", "int", "float"]
    )
    def test_marks_of_any_number_type(self, engine, marks):
        table = self.FRAME.with_columns(s=pl.Series(marks)).to_arrow()
        assert Population(ENGINES[engine](table), pushdown=True, selected="s").n_selected == 2

    @pytest.mark.parametrize("engine", ENGINES)
    @pytest.mark.parametrize("role", ["weight", "selected"])
    def test_text_that_an_engine_might_take_for_numbers(self, engine, role):
        table = self.FRAME.with_columns(t=pl.Series(["1", "0", "1"])).to_arrow()
        with pytest.raises(InputTypeError, match=f"'t' given as {role} holds text"):
            self.fit(ENGINES[engine](table), **{role: "t"})

    @pytest.mark.parametrize("engine", ENGINES)
    def test_whole_numbers_that_come_as_floating_point(self, engine):
        sample = pa.table({"id": [1, 2, 2**53 - 1]})
        weighter = FrequencyWeights(empty="drop")
        for last, fits in ((2.0**53 - 1, True), (2.0**53, False), (-(2.0**53), False)):
            lazy = ENGINES[engine](pa.table({"id": [1.0, 2.0, last]}))
            population = Population(lazy, pushdown=True)
            if fits:
                assert weighter.fit(sample, population=population).weights_.tolist() == [1, 1, 1]
                continue
            with pytest.raises(InputError, match=r"'id' of the population .*beyond 2\*\*53"):
                weighter.fit(sample, population=population)

    def test_types_that_engines_compare_in_their_own_way(self):
        lazy = self.FRAME.with_columns(x=pl.col("x").cast(pl.Decimal(10, 2))).lazy()
        with pytest.raises(InputError, match="Column 'x' .* cannot be compared within the engine"):
            self.fit(lazy)

    def test_no_rows(self):
        with pytest.raises(InputError, match="no rows"):
            self.fit(self.FRAME.head(0).lazy())


def test_size_mass_and_marks_come_from_the_engine():
    lazy = TestRefusals.FRAME.with_columns(s=pl.Series([True, False, True])).lazy()
    population = Population(lazy, pushdown=True, weight="w", selected="s")
    assert (population.size, population.mass, population.n_selected) == (3, 4.0, 2)


def test_days_are_compared_as_days():
    sample = pa.table({"d": [date(2020, 1, 1), date(2020, 1, 2), date(2020, 1, 3)]})
    weighter = TreeWeights(min_samples_leaf=1, total="population")
    lazy = Population(pl.from_arrow(sample).lazy(), pushdown=True)
    assert weighter.fit(sample, [1.0, 2.0, 3.0], population=lazy).weights_.tolist() == [1, 1, 1]
