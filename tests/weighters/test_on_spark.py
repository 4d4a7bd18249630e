"""Samples on Spark: weights where the rows are, and fits with samples that are not in memory."""

from __future__ import annotations

import pickle
import runpy
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from unskew import (
    CalibrationWeights,
    DensityRatioWeights,
    FrequencyWeights,
    HistogramWeights,
    KernelMeanMatching,
    KnownProbability,
    SparkSample,
    TreeWeights,
    Unweighted,
)
from unskew.errors import InputError, ParameterError

pytestmark = [
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::unskew.errors.OverlapWarning"),
]

M, N = 400, 1500


@pytest.fixture(scope="module")
def frames() -> tuple[pd.DataFrame, pd.DataFrame]:
    """A sample with labels and design weights, and a population with novel values and gaps."""
    random = np.random.default_rng(8)

    def rows(n, towns):
        return pd.DataFrame(
            {
                "a.b": np.where(
                    random.uniform(size=n) < 0.1, np.nan, random.normal(size=n).round(1)
                ),
                "town": random.choice(towns, n),
            }
        )

    sample = rows(M, ["Ulm", "Bonn"])
    sample["label"] = sample["a.b"].fillna(3) * 2 + (sample["town"] == "Ulm")
    sample["design"] = random.integers(1, 4, M).astype(float)
    sample["p"] = random.uniform(0.1, 1, M)
    return sample, rows(N, ["Ulm", "Ulm", "Bonn", "Kiel"])


@pytest.fixture(scope="module")
def sample_frame(spark, frames):
    return spark.createDataFrame(frames[0]).repartition(3).cache()


FEATURES = ["a.b", "town"]
INDUCTIVE = {
    "calibration": CalibrationWeights(),
    "tree": TreeWeights(),
    "honest": TreeWeights(honest=True),
    "histogram": HistogramWeights(buckets=3),
    "frequency": FrequencyWeights(empty="drop"),
    "ratio": DensityRatioWeights(n_centres=20),
    "unweighted": Unweighted(),
}


@pytest.mark.parametrize("name", INDUCTIVE)
def test_weights_are_added_where_the_rows_are(name, frames, sample_frame):
    sample, population = frames
    weighter = INDUCTIVE[name].fit(sample[FEATURES], sample["label"], population=population)
    weighed = weighter.weigh(sample_frame, name="w")
    assert weighed.columns == [*sample.columns, "w"]
    found = weighed.toArrow().to_pandas()
    expected = weighter.weigh(found[FEATURES])
    assert len(found) == M
    # The least-squares ratio is a difference of kernels, whose sums may round at either place.
    rounding = 1e-9 if name == "ratio" else 1e-12
    assert found["w"].to_numpy() == pytest.approx(expected, rel=rounding)
    if name in ("tree", "histogram"):
        assert np.array_equal(found["w"], expected)


def test_known_probabilities_follow_the_rows_as_a_column(frames, sample_frame):
    sample, population = frames
    columns = [*FEATURES, "p"]
    weighter = KnownProbability("p").fit(sample[columns], population=population)
    found = weighter.weigh(sample_frame).toArrow().to_pandas()
    assert found["weight"].to_numpy() == pytest.approx(weighter.weigh(found[columns]))
    function = KnownProbability(lambda X: np.full(len(X), 0.5))
    function.fit(sample[FEATURES], population=population)
    with pytest.raises(ParameterError, match="Put the probability into a column"):
        function.weigh(sample_frame)


def test_what_weigh_refuses(frames, sample_frame):
    sample, population = frames
    weighter = Unweighted().fit(sample[FEATURES], population=population)
    with pytest.raises(InputError, match="has a column 'TOWN' already"):
        weighter.weigh(sample_frame, name="TOWN")
    with pytest.raises(InputError, match="lacks column 'town'"):
        weighter.weigh(sample_frame.drop("town"))
    nameless = Unweighted().fit(np.zeros((3, 1)), population=np.zeros((3, 1)))
    with pytest.raises(InputError, match="X has 5 columns, and the sample had 1"):
        nameless.weigh(sample_frame)
    assert nameless.weigh(sample_frame.select("p")).count() == M


@pytest.mark.parametrize(
    ("name", "total"),
    [
        *((name, "sample") for name in [*INDUCTIVE, "known"]),
        ("tree", "population"),
        ("known", "population"),
    ],
)
def test_a_sample_that_is_kept_whole_gives_what_memory_gives(name, total, frames, sample_frame):
    weighter = {**INDUCTIVE, "known": KnownProbability("p")}[name].set_params(total=total)
    sample, population = frames
    columns = [*FEATURES, "p"] if name == "known" else FEATURES
    label = None if name in ("known", "unweighted") else "label"
    weighter.fit(
        sample[columns],
        None if label is None else sample[label],
        population=population,
        sample_weight=sample["design"],
    )
    expected = weighter.weigh(sample[columns])
    counts = getattr(weighter, "sample_counts_", np.zeros(0))
    chosen = sample_frame.select(
        "design", *(f"`{c}`" for c in columns), *([label] if label else [])
    )
    on_spark = SparkSample(chosen, subsample=M)
    weighter.fit(on_spark, label, population=population, sample_weight="design")
    assert weighter.subsample_size_ == M
    if name != "honest":  # whose halves depend on the order of the rows
        assert np.array_equal(getattr(weighter, "sample_counts_", np.zeros(0)), counts)
        assert weighter.weigh(sample[columns]) == pytest.approx(expected, rel=1e-9)
    weighed = weighter.weigh(chosen).toArrow().to_pandas()
    target = M if total == "sample" else N
    assert weighed["design"] @ weighed["weight"] == pytest.approx(target, rel=1e-9)
    weighter.set_params(total="sample")


def test_a_part_grows_the_tree_and_all_rows_are_counted(frames, sample_frame):
    sample, population = frames
    features = sample_frame.select("`a.b`", "town", "label")
    for honest in (False, True):
        weighter = TreeWeights(min_samples_leaf=10, honest=honest)
        on_spark = SparkSample(features, subsample=100)
        weighter.fit(on_spark, "label", population=population)
        assert weighter.subsample_size_ == 100 == weighter.cells_.size
        grown = weighter.tree_.tree_.n_node_samples[0]
        assert grown == (50 if honest else 100)
        assert weighter.sample_counts_.sum() == pytest.approx(M - (50 if honest else 0))
        assert weighter.population_counts_.sum() == pytest.approx(N)
        weighed = weighter.weigh(features).toArrow().to_pandas()
        assert weighed["weight"].sum() == pytest.approx(M)
        again = pickle.loads(pickle.dumps(weighter))
        assert np.array_equal(again.weigh(weighed[FEATURES]), weighter.weigh(weighed[FEATURES]))
        with pytest.raises(AttributeError, match="not held in memory"):
            weighter.weights_  # noqa: B018
    weighter.fit(sample[FEATURES], sample["label"], population=population)
    assert len(weighter.weights_) == M
    assert not hasattr(weighter, "subsample_size_")


@pytest.mark.parametrize("options", [{}, {"features": "margins", "max_weight": 3.0}], ids=str)
def test_calibration_says_what_its_subsample_leaves(options, spark, frames, sample_frame):
    _, population = frames
    rows = sample_frame.select("`a.b`", "town", "design")
    weighter = CalibrationWeights(**options, overlap="ignore")
    weighter.fit(SparkSample(rows, subsample=150), population=population, sample_weight="design")
    assert weighter.certificate_.imbalance < 1e-9  # of the subsample
    weighed = weighter.weigh(rows).toArrow().to_pandas()
    w = weighed["design"] * weighed["weight"]
    ulm = np.average(weighed["town"] == "Ulm", weights=w)
    place = weighter.features_.index("town=Ulm")
    spread = weighter.tilt_.spread[place]
    assert abs(weighter.imbalance_[place]) > 1e-6
    expected = (ulm - weighter.targets_[place]) / spread
    assert weighter.imbalance_[place] == pytest.approx(expected, rel=1e-9)
    # A population on Spark gives the same.
    there = CalibrationWeights(**options, overlap="ignore").fit(
        SparkSample(rows, subsample=150),
        population=spark.createDataFrame(population),
        sample_weight="design",
    )
    again = there.weigh(weighed[FEATURES])
    assert np.allclose(again, weighed["weight"], rtol=1e-12)


def test_the_population_may_be_on_spark_as_well(spark, frames, sample_frame):
    _, population = frames
    features = sample_frame.select("`a.b`", "town", "label")
    on_spark = spark.createDataFrame(population)
    weighters = [TreeWeights().fit(features, "label", population=U) for U in (population, on_spark)]
    # Rows of Kiel, which the sample lacks, are shared out in fractions, and these are added up.
    first, second = (weighter.population_counts_ for weighter in weighters)
    assert second == pytest.approx(first, rel=1e-12)


def test_what_a_fit_refuses(spark, frames, sample_frame):
    _, population = frames
    features = sample_frame.select("`a.b`", "town", "label")
    with pytest.raises(InputError, match="weighs only rows in memory. Use a weighter"):
        KernelMeanMatching().fit(features.drop("label"), population=population)
    with pytest.raises(InputError, match="y must be the name of one of its columns; got a Series"):
        TreeWeights().fit(features, pd.Series([1.0]), population=population)
    with pytest.raises(InputError, match="sample_weight must be the name .*; got 'none'"):
        TreeWeights().fit(features, "label", population=population, sample_weight="none")
    with pytest.raises(ParameterError, match="subsample must be a positive"):
        SparkSample(features, subsample=0)
    with pytest.raises(ParameterError, match="takes a Spark DataFrame; got a DataFrame"):
        SparkSample(population)
    with pytest.raises(InputError, match="The sample could not be read.* no rows"):
        TreeWeights().fit(features.limit(0), "label", population=population)


EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "spark_weights.py"


@pytest.mark.skipif(not EXAMPLE.exists(), reason="runs in the repository only")
def test_the_example_trains_a_better_model_with_weights(spark, capsys):
    errors = runpy.run_path(str(EXAMPLE))["main"](n_rows=20_000)
    assert errors["with weights"] < 0.7 * errors["without weights"]
    assert "mean spending" in capsys.readouterr().out
