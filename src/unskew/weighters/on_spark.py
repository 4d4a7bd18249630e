"""A sample that is on Spark: fitting with it and weighing it, without bringing it into memory."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np
import pyarrow as pa

from unskew.errors import InputError, OverlapError, ParameterError
from unskew.numerics.weight_vectors import scale_to_total
from unskew.population.population import Population
from unskew.population.sources.spark import with_column
from unskew.population.summaries import Reservoir
from unskew.weighters.rules import RuleTotal, Weighing

__all__ = ["check_marks", "fit_on_spark", "weigh_on_spark"]


def fit_on_spark(
    weighter: Any, X: Any, y: Any, population: Any, sample_weight: Any, subsample: int
) -> Any:
    """Fit a weighter with a sample on Spark and return it.

    One pass over the sample draws the rows that are kept, a weighter of cells counts all of them in
    a second, and a last pass adds up their weights.
    """
    if not hasattr(weighter, "weigh"):
        inductive = ' or, here, method="inductive"' if hasattr(weighter, "method") else ""
        raise InputError(
            f"X is a Spark DataFrame, and this {type(weighter).__name__} weighs only rows in "
            f"memory. Use a weighter that can weigh new rows{inductive}, or bring the sample into "
            "memory: X.toArrow()."
        )
    for parameter, column in (("y", y), ("sample_weight", sample_weight)):
        if column is not None and not (isinstance(column, str) and column in X.columns):
            given = f"'{column}'" if isinstance(column, str) else f"a {type(column).__name__}"
            raise InputError(
                f"X is a Spark DataFrame, so {parameter} must be the name of one of its columns; "
                f"got {given}."
            )
    if not isinstance(subsample, Integral) or subsample < 1:
        raise ParameterError(f"subsample must be a positive whole number; got {subsample!r}.")
    features = [column for column in X.columns if column not in (y, sample_weight)]
    read = features if y is None else [*features, y]
    try:
        kept = Population(X, columns=read, weight=sample_weight).reduce(Reservoir(int(subsample)))
    except InputError as error:
        raise type(error)(f"The sample was to be read as a population is. {error}") from error
    table = pa.Table.from_batches([kept.rows])
    sample = weighter._sample(
        table.select(features),
        None if y is None else table.column(y),
        None if sample_weight is None else kept.weight,
    )
    everyone = Population(X, columns=features, weight=sample_weight)
    matched = Population.of(population).matched(sample.rows, ignored=weighter._own_column_names())
    weighter._fit_and_check_overlap(replace(sample, everyone=everyone), matched)
    weighter.__dict__.pop("weights_", None)
    weighter.subsample_size_ = len(sample)
    total = everyone.reduce(RuleTotal(weighter._rule())).total
    check_marks(matched, everyone.size)
    if not total > 0:
        raise OverlapError("Every sample row would get weight zero: no overlap is left.", 1.0)
    target = float(everyone.size) if weighter.total == "sample" else matched.mass
    weighter.scale_ = scale_to_total(np.array([total]), target)
    return weighter


def weigh_on_spark(weighter: Any, X: Any, name: str) -> Any:
    """Return a Spark DataFrame with a column of weights, to be computed on the executors."""
    columns = list(getattr(weighter, "feature_names_in_", X.columns))
    missing = [column for column in columns if column not in X.columns]
    if missing:
        raise InputError(f"X lacks column '{missing[0]}', which the sample had.")
    if len(columns) != weighter.n_features_in_:  # the sample's columns had no names
        raise InputError(
            f"X has {len(columns)} columns, and the sample had {weighter.n_features_in_} without "
            "names, which are matched by position. Select them."
        )
    names = list(getattr(weighter, "feature_names_in_", [f"x{j}" for j in range(len(columns))]))
    weighing = Weighing(weighter._rule(), names, weighter.scale_)
    return with_column(X, name, columns, weighing, "weigh")


def check_marks(population: Population, n_samples: int) -> None:
    """Refuse marks of fewer rows than the sample has."""
    n_selected = population.n_selected
    if n_selected is not None and n_selected < n_samples:
        raise InputError(
            f"selected marks {n_selected} rows of the population as being in the sample, which has "
            f"{n_samples}. It must mark every row of the sample."
        )
