"""A population on Spark answers as one in memory does, whatever happens to its tasks."""

from __future__ import annotations

import copy
import datetime as dt
import os
import signal
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.cluster import BisectingKMeans

from unskew import (
    ClusterWeights,
    DensityRatioWeights,
    FrequencyWeights,
    HistogramWeights,
    KernelMeanMatching,
    KnownProbability,
    Population,
    TreeWeights,
    Unweighted,
    diagnose,
)
from unskew.errors import InputError, InputTypeError, OverlapWarning, ParameterError
from unskew.population.feature_sums import FeatureSums
from unskew.population.reading import PassTotals
from unskew.population.reservoir import Reservoir
from unskew.population.sources import spark as spark_source
from unskew.population.sources.spark import pack, unpack
from unskew.population.summaries import TotalWeight
from unskew.results import Summary
from unskew.rows.sample import Sample
from unskew.rows.tables import RowBlock, as_rows

pytestmark = [
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

N_ROWS = 6_000


@pytest.fixture(scope="module")
def people(mixed) -> pa.Table:
    """Columns of every kind, with gaps, with names that Spark finds hard."""
    frame = mixed.iloc[:N_ROWS]
    return pa.table(
        {
            "in.come": pa.array(frame["income"], from_pandas=True),
            "rooms `n`": pa.array(frame["rooms"], pa.int32()),
            "town": pa.array(frame["town"], pa.string()),
            "grade": pa.array(frame["grade"].astype(str), pa.string()),
            "owner": pa.array(frame["owner"]),
            "moved": pa.array(frame["moved"]).cast(pa.timestamp("us", tz="UTC")),
            "born": pa.array(frame["moved"].dt.date),
            "rent": pa.array([Decimal(int(n)) / 100 for n in frame["rooms"] * 7013]).cast(
                pa.decimal128(12, 2)
            ),
        }
    )


@pytest.fixture(scope="module")
def on_spark(spark, people, tmp_path_factory):
    """The same rows in seven partitions, two of them empty."""
    folder = tmp_path_factory.mktemp("people")
    import pyarrow.parquet as pq

    pq.write_table(people, folder / "people.parquet")
    frame = spark.read.parquet(str(folder / "people.parquet"))
    keys = frame.selectExpr("*", "pmod(hash(`in.come`), 5) as k").repartitionByRange(7, "k")
    return keys.drop("k").cache()


@pytest.fixture(scope="module")
def sample(people):
    return people.take(np.arange(0, N_ROWS, 12)).to_pandas().astype({"grade": "category"})


@pytest.fixture(scope="module")
def labels():
    return np.random.default_rng(5).normal(size=N_ROWS // 12)


CELLS = {
    "tree": TreeWeights(),
    "tree by the bound": TreeWeights(min_samples_leaf="bound"),
    "honest tree": TreeWeights(honest=True, empty="drop"),
    "clusters": ClusterWeights(),
    "histogram": HistogramWeights(buckets=2, empty="drop"),
    "frequency": FrequencyWeights(empty="drop"),
    "unweighted": Unweighted(total="population"),
}


@pytest.mark.parametrize("name", CELLS)
@pytest.mark.filterwarnings("ignore::unskew.errors.OverlapWarning")
def test_counts_are_those_of_the_rows_in_memory_to_the_last_bit(
    name, sample, labels, people, on_spark
):
    weighter = CELLS[name]
    expected = weighter.fit(sample, labels, population=people).weights_.copy()
    counts = getattr(weighter, "population_counts_", np.zeros(0)).copy()
    weighter.fit(sample, labels, population=on_spark)
    assert np.array_equal(weighter.weights_, expected)
    assert np.array_equal(getattr(weighter, "population_counts_", np.zeros(0)), counts)


def test_uncovered_rows_are_merged_without_scipy(sample, labels, people, on_spark):
    part = sample[sample["town"] != "Kiel"]
    weighter = FrequencyWeights()
    with pytest.warns(OverlapWarning):
        expected = weighter.fit(part, population=people).weights_.copy()
    with pytest.warns(OverlapWarning) as caught:
        weighter.fit(part, population=on_spark)
    assert __file__ in [one.filename for one in caught]
    assert weighter.weights_ == pytest.approx(expected, rel=1e-12)
    assert 0.2 < weighter.uncovered_ < 1


def test_sums_are_those_of_the_rows_in_memory(sample, people, on_spark):
    few = sample.iloc[:60]
    for weighter in (
        KernelMeanMatching(precision="double"),
        DensityRatioWeights(smoothing=0.1, relative=0.1),
    ):
        expected = weighter.fit(few, population=people).weights_.copy()
        found = weighter.fit(few, population=on_spark).weights_
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-9)  # the solver's own tolerance
    space = Sample.from_data(sample).points()[0]
    in_memory, far_away = (
        Population(data).matched(as_rows(sample, name="X")).reduce(FeatureSums(space))
        for data in (people, on_spark)
    )
    assert far_away.mass == pytest.approx(in_memory.mass, rel=1e-12)
    assert far_away.sums == pytest.approx(in_memory.sums, rel=1e-12, abs=1e-9)


@pytest.mark.parametrize("partitions", [1, 30])
def test_the_partitioning_does_not_matter(sample, labels, people, on_spark, partitions):
    weighter = TreeWeights()
    expected = weighter.fit(sample, labels, population=people).weights_.copy()
    found = weighter.fit(sample, labels, population=on_spark.coalesce(1).repartition(partitions))
    assert np.array_equal(found.weights_, expected)


def test_design_weights_and_marks(spark, sample, labels):
    random = np.random.default_rng(2)
    frame = pd.DataFrame({"a": random.normal(size=900).round(1), "w": random.integers(0, 4, 900)})
    frame["chosen"] = np.arange(900) < 300
    data = spark.createDataFrame(frame).repartition(3)
    rows, y = frame[["a"]].iloc[:300], random.normal(size=300)
    expected, found = (
        TreeWeights().fit(rows, y, population=Population(U, weight="w", selected="chosen"))
        for U in (frame, data)
    )
    assert np.array_equal(found.weights_, expected.weights_)
    population = Population(data, columns=["a"], weight="w", selected="chosen")
    assert (population.size, population.mass, population.n_selected) == (900, frame["w"].sum(), 300)
    with pytest.raises(InputError, match="marks 300 rows of the population"):
        TreeWeights().fit(frame[["a"]], np.zeros(900), population=population)
    with pytest.raises(ParameterError, match="weight must be the name of a column"):
        Population(data, weight=np.ones(900))
    with pytest.raises(InputTypeError, match="'t' holds text"):
        Population(data.selectExpr("a", "'x' as t"), weight="t").reduce(TotalWeight())
    with pytest.raises(InputError, match="'w' must not be negative; got -[1-4]"):
        Population(data.selectExpr("a", "w - 4 as w"), weight="w").reduce(TotalWeight())
    with pytest.raises(InputError, match="weight is zero on every row"):
        Population(data.selectExpr("a", "0.0 as w"), weight="w").reduce(TotalWeight())


def test_a_reservoir_holds_the_rows_that_its_numbers_name(spark, on_spark):
    frame = on_spark.selectExpr("*", "monotonically_increasing_id() as number")
    kept = Population(frame).reduce(Reservoir(50, seed=3))
    assert kept.rows.column("number").to_pylist() == kept.numbers.tolist()
    assert len(set(kept.numbers.tolist())) == 50
    assert len({number >> 33 for number in kept.numbers.tolist()}) > 2
    again = Population(frame).reduce(Reservoir(50, seed=3))
    assert again.rows.equals(kept.rows)
    alone = frame.coalesce(1)
    local = Population(alone.toArrow()).reduce(Reservoir(50, seed=3))
    assert Population(alone).reduce(Reservoir(50, seed=3)).numbers.tolist() == list(local.numbers)


def test_moments_in_time_are_the_same_in_every_zone(spark, sample, labels, people, on_spark):
    expected = TreeWeights().fit(sample, labels, population=people).weights_
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        found = TreeWeights().fit(sample, labels, population=on_spark).weights_
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
    assert np.array_equal(found, expected)
    naive = sample.assign(moved=sample["moved"].dt.tz_localize(None))
    with pytest.raises(InputTypeError, match="Column 'moved'"):
        TreeWeights().fit(naive, labels, population=on_spark)


def test_types_are_checked_before_anything_runs(spark, sample):
    frame = spark.range(5).selectExpr(
        "id", "array(id) as list", "cast(null as void) as nothing", "timestamp_ntz '2020-01-01' t"
    )
    assert Population(frame).columns == ["id", "list", "nothing", "t"]
    with pytest.raises(InputTypeError, match="Column 'list' .*array<bigint>"):
        Unweighted().fit(pd.DataFrame({"list": [1.0]}), population=frame.select("list"))
    with pytest.raises(InputTypeError, match="Column 'id' holds text"):
        Unweighted().fit(pd.DataFrame({"id": ["x"]}), population=frame.select("id"))
    with pytest.raises(InputError, match="lacks column 'other'"):
        Unweighted().fit(pd.DataFrame({"id": [1], "other": [1]}), population=frame.select("id"))
    moments = pd.DataFrame({"t": pd.to_datetime(["2020-01-01", "2020-01-02"]), "nothing": np.nan})
    weighter = HistogramWeights(total="population")
    weights = weighter.fit(moments, population=frame.select("t", "nothing")).weights_
    assert weights.tolist() == [5.0, 0.0]


def test_only_the_needed_columns_are_read(spark):
    frame = spark.range(4).selectExpr("id", "raise_error('read') as trap")
    population = Population(frame, columns=["id"])
    assert Unweighted().fit(pd.DataFrame({"id": [1]}), population=population).weights_ == [1.0]
    with pytest.raises(InputError, match="Spark could not read the population"):
        Population(frame).reduce(TotalWeight())


def test_names_that_spark_cannot_tell_apart_are_an_error_of_ours(spark):
    frame = spark.sql("select 1 as a, 2 as A, 3 as b")
    with pytest.raises(InputError, match="Spark could not read the population: .*AMBIGUOUS"):
        Population(frame).reduce(TotalWeight())


def test_bad_values_are_named(spark):
    frame = spark.range(4).selectExpr("if(id = 3, double('inf'), id) as a")
    with pytest.raises(InputError, match="Column 'a' of the population holds inf"):
        TreeWeights().fit(pd.DataFrame({"a": [1.0] * 8}), np.arange(8.0), population=frame)


@pytest.mark.parametrize(
    "rows", ["range(0)", "(select * from range(9) where id > 9)"], ids=["empty", "all filtered"]
)
def test_no_rows_is_an_error_and_one_is_enough(spark, rows):
    sample = pd.DataFrame({"id": [0, 1]})
    with pytest.raises(InputError, match="The population has no rows"):
        Unweighted().fit(sample, population=spark.sql(f"select * from {rows}"))
    one = FrequencyWeights(total="population").fit(sample, population=spark.range(1))
    assert one.weights_.tolist() == [1.0, 0.0]


@pytest.mark.parametrize("how", ["raise", "kill"])
def test_tasks_that_fail_are_not_counted(spark, how, tmp_path):
    """Each partition's first attempt ends after some of its rows are counted."""

    class FailsAtFirst(Summary):
        def __init__(self) -> None:
            self.rows = 0

        def update(self, rows):
            from pyspark import TaskContext

            self.rows += len(rows)
            if TaskContext.get().attemptNumber() == 0:
                open(f"{tmp_path}/{TaskContext.get().partitionId()}", "w").close()
                if how == "kill":
                    os.kill(os.getpid(), signal.SIGKILL)
                raise RuntimeError("the first attempt fails")

        def merge(self, other):
            self.rows += other.rows

    found = Population(spark.range(1000).repartition(3)).reduce(FailsAtFirst())
    assert found.rows == 1000
    assert len(list(tmp_path.iterdir())) == 3


def test_merging_in_stages_gives_what_the_driver_alone_gives(
    sample, labels, on_spark, people, monkeypatch
):
    expected = Population(people).matched(as_rows(sample, name="X")).reduce(TotalWeight()).rows
    rows, space = as_rows(sample, name="X"), Sample.from_data(sample).points()[0]
    frame = on_spark.repartition(9)
    answers = []
    for small, large, steps in ((2**30, 2**30, 0), (0, 2**30, 1), (0, 0, 2)):
        monkeypatch.setattr(spark_source, "SMALL", small)
        monkeypatch.setattr(spark_source, "LARGE", large)
        monkeypatch.setattr(spark_source, "FAN_IN", 3)  # so that both steps have something to do
        summary = FeatureSums(space)
        assert spark_source._merging_steps(summary) == steps
        population = Population(frame).matched(rows)
        answers.append(population.reduce(summary))
        assert population.size == expected
    for found in answers[1:]:
        assert found.mass.tolist() == answers[0].mass.tolist()
        assert found.sums == pytest.approx(answers[0].sums, rel=1e-12, abs=1e-9)


@pytest.mark.parametrize(
    ("meddle", "message"),
    [
        (lambda answers: answers[1:], "no answer of partition 0 of the population"),
        (lambda answers: answers[:2] + answers[3:], "no answer of partition 2 of the population"),
        (lambda answers: answers[:-1], "no answer of partition 4 of the population"),
        (lambda answers: answers[:1], "no answer of partition 1 of the population"),
        (lambda answers: [*answers, answers[1]], "partition 1 of the population twice"),
    ],
)
def test_every_partition_answers_exactly_once(spark, monkeypatch, meddle, message):
    frame = spark.range(0, 1000, 1, 5).where("id < 700")  # the last partition is empty
    assert Population(frame).reduce(TotalWeight()).rows == 700
    ask = spark_source.SparkSource._answers

    def meddled(self, *arguments):
        answers, last_part = ask(self, *arguments)
        assert len(answers) == 5
        return meddle(sorted(answers)), last_part

    monkeypatch.setattr(spark_source.SparkSource, "_answers", meddled)
    with pytest.raises(InputError, match=message):
        Population(frame).reduce(TotalWeight())


@pytest.mark.parametrize(
    ("parts", "message"),
    [([9, 10, 11], None), ([9, 11], "no answer of partition 10"), ([10], "no answer of .*n 9")],
)
def test_a_step_that_merges_notices_a_gap(parts, message):
    filled = TotalWeight()
    filled.update(RowBlock(range(5), np.ones(5)))
    answers = [
        spark_source._Merged(
            TotalWeight(), filled, PassTotals(rows=5, mass=5.0), part, part
        ).record()
        for part in parts
    ]
    step = spark_source._Pass(TotalWeight(), None).merge_buckets(answers, 3)
    if message is None:
        (merged,) = step
        assert merged.select(["first_part", "last_part", "rows"]).to_pylist() == [
            {"first_part": 9, "last_part": 11, "rows": 15}
        ]
        return
    with pytest.raises(InputError, match=message):
        list(step)


def test_what_all_copies_share_does_not_travel(sample, people):
    rows = as_rows(sample, name="X")
    space = Sample.from_data(sample).points()[0]
    empty = FeatureSums(space)
    filled = copy.deepcopy(empty)
    filled.update(RowBlock(rows.batch, np.ones(len(rows))))
    packed = pack(filled, empty)
    assert len(packed) < 1200
    again = unpack(packed, empty)
    assert again.features is space
    assert type(again) is FeatureSums
    assert np.array_equal(again.sums, filled.sums)


def test_a_clusterer_that_executors_lack_is_named(sample, on_spark):
    clusterer = BisectingKMeans(3, random_state=0)
    with pytest.raises(InputError, match="executors' Python lacks a module.*sklearn"):
        ClusterWeights(clusterer).fit(sample, population=on_spark)


def test_a_table_in_memory_is_asked_for_where_one_is_needed(spark):
    with pytest.raises(InputTypeError, match="must be a table or array in memory"):
        as_rows(spark.range(3), name="X")


def test_known_probabilities_need_only_the_size(spark, sample, on_spark):
    known = KnownProbability([0.5] * len(sample), total="population")
    assert known.fit(sample, population=on_spark).weights_.sum() == pytest.approx(N_ROWS)


def test_dates_are_days(spark):
    frame = spark.sql("select explode(sequence(date '2020-01-01', date '2020-01-10')) as day")
    sample = pd.DataFrame({"day": [dt.date(2020, 1, 2), dt.date(2020, 1, 9)]})
    weighter = HistogramWeights(buckets=2, total="population")
    assert weighter.fit(sample, population=frame).weights_.tolist() == [5.0, 5.0]


def test_a_diagnosis_asks_spark_too(sample, people, on_spark):
    local, found = diagnose(sample, people), diagnose(sample, on_spark)
    assert found.population_rows == local.population_rows
    assert found.verdict.status == local.verdict.status
    theirs = {feature.name: feature for feature in local.bias.features}
    for feature in found.bias.features:
        other = theirs[feature.name]
        assert feature.lines[0].before == pytest.approx(other.lines[0].before, rel=1e-9)
        assert feature.before.missing == pytest.approx(other.before.missing, abs=1e-12)
    assert found.overlap.uncovered == pytest.approx(local.overlap.uncovered, abs=0.02)
