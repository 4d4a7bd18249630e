"""Numbers of the population are read as the sample's type, wherever they come from."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from unskew import (
    ClusterWeights,
    DensityRatioWeights,
    FrequencyWeights,
    HistogramWeights,
    KernelMeanMatching,
    Population,
    TreeWeights,
)

WIDE = np.round(np.random.default_rng(0).normal(size=(200, 2)), 3)
FRAME = pd.DataFrame(WIDE, columns=["a", "b"])


def in_csv(folder):
    FRAME.to_csv(folder / "population.csv", index=False)
    return folder / "population.csv"


def in_parquet(folder):
    pq.write_table(pa.Table.from_pandas(FRAME, preserve_index=False), folder / "p.parquet")
    return folder / "p.parquet"


def in_dataset(folder):
    return ds.dataset(in_parquet(folder))


SOURCES = {
    "csv": in_csv,
    "parquet": in_parquet,
    "dataset": in_dataset,
    "pandas": lambda _: FRAME,
    "polars": lambda _: pl.from_pandas(FRAME),
    "lazy": lambda _: pl.from_pandas(FRAME).lazy(),
    "arrow": lambda _: pa.Table.from_pandas(FRAME, preserve_index=False),
    "chunks": lambda _: iter([FRAME[:50], FRAME[50:]]),
}


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("precision", ["float32", "float16"])
def test_the_same_values_in_double_precision_are_covered(source, precision, tmp_path):
    sample = FRAME[:100].astype(precision)
    weighter = FrequencyWeights(empty="drop", overlap="ignore")
    weighter.fit(sample, population=Population(SOURCES[source](tmp_path)))
    assert weighter.uncovered_ <= 0.5  # the other hundred rows; half precision makes some equal
    assert (weighter.weights_ > 0).all()


@pytest.mark.parametrize("precision", [np.float32, np.float16])
def test_an_array_and_a_frame_agree(precision):
    weighter = FrequencyWeights(empty="drop", overlap="ignore")
    by_name = weighter.fit(FRAME[:100].astype(precision), population=FRAME).weights_
    by_position = weighter.fit(WIDE[:100].astype(precision), population=WIDE).weights_
    assert np.array_equal(by_name, by_position)


@pytest.mark.filterwarnings("ignore::unskew.errors.OverlapWarning")
@pytest.mark.parametrize(
    "weighter",
    [
        ClusterWeights(),
        DensityRatioWeights(),
        DensityRatioWeights("kl"),
        FrequencyWeights(),
        HistogramWeights(),
        KernelMeanMatching(),
        TreeWeights(honest=True),
    ],
    ids=lambda weighter: type(weighter).__name__,
)
def test_every_weighter_reads_them_alike(weighter):
    """A population in double precision weighs as one that was rounded beforehand."""
    sample, labels = FRAME[:100].astype(np.float32) + np.float32(0.25), np.arange(100.0)
    wide = weighter.fit(sample, labels, population=FRAME).weights_
    narrow = weighter.fit(sample, labels, population=FRAME.astype(np.float32)).weights_
    assert np.array_equal(wide, narrow)


def test_new_rows_are_read_alike():
    weighter = FrequencyWeights(overlap="ignore").fit(FRAME.astype(np.float32), population=FRAME)
    assert np.array_equal(weighter.weigh(FRAME), weighter.weights_)


def test_categories_that_are_numbers_are_read_alike():
    sample = pd.DataFrame({"a": pd.Categorical(np.array([0.1, 0.2, 0.2], dtype=np.float32))})
    population = pd.DataFrame({"a": [0.1, 0.1, 0.2]})
    weighter = FrequencyWeights(empty="raise", total="population")
    assert weighter.fit(sample, population=population).weights_.tolist() == [2, 0.5, 0.5]


def test_what_the_samples_type_cannot_hold_stays_as_it_is():
    def uncovered(sample, population):
        weighter = FrequencyWeights(empty="drop", overlap="ignore", total="population")
        return weighter.fit(
            pd.DataFrame({"x": sample}), population=pd.DataFrame({"x": population})
        ).uncovered_

    small = np.array([1, 2, 255], dtype=np.uint8)
    assert uncovered(small, [1.0, 1.5, 2.0, 255.0]) == 0.25  # a fraction is not cut off
    assert uncovered(small, [1, -1, 257, 2]) == 0.5  # nothing wraps around
    single = np.array([1.0, 2.0], dtype=np.float32)
    assert uncovered(single, [1.0, 1e300, 2.0, 2.0]) == 0.25  # nothing becomes infinite
    assert uncovered(single, np.array([1, 2, 3, 2**40])) == 0.5
