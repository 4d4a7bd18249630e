"""Whatever the caller gives as X, as a sample."""

from __future__ import annotations

from typing import Any

from unskew.population.rows import is_spark_frame
from unskew.population.sample import Sample
from unskew.population.spark_sample import SparkRows, SparkSample, open_spark_sample


def open_sample(X: Any, y: Any = None, sample_weight: Any = None) -> Sample:
    """Return the sample with all columns of X, checked."""
    if is_spark_frame(X):
        X = SparkSample(X)
    if isinstance(X, SparkSample):
        return open_spark_sample(X, y, sample_weight)
    return Sample.of(X, y, sample_weight)


def open_new_rows(X: Any) -> Sample | SparkRows:
    """Return rows to be weighed."""
    if is_spark_frame(X) or isinstance(X, SparkSample):
        return SparkRows(X.frame if isinstance(X, SparkSample) else X)
    return Sample.of(X)
