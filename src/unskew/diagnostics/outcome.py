"""What weights do to the mean of the labels, or to the shares of their classes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from unskew.diagnostics.diagnosis import Outcome
from unskew.errors import InputError
from unskew.estimation.estimate import Options, each_estimate
from unskew.estimation.inputs import LabelColumns
from unskew.estimation.statistics import Mean, Target
from unskew.estimation.weighing import Weighed
from unskew.numerics.design_variance import SurveyDesign
from unskew.numerics.typing import FloatArray
from unskew.population.margins import Margins
from unskew.population.population import Population
from unskew.population.reservoir import Reservoir
from unskew.rows.labels import checked_labels
from unskew.rows.sample import Sample
from unskew.weighters.base import Fit, Weighter
from unskew.weighters.calibration import CalibrationWeights
from unskew.weighters.histogram import FrequencyWeights

MAX_CLASSES = 20
MAX_COLUMNS = 10
"""Up to so many columns are left out in turn, to compare hidden selection with; a fit for each."""


def measure_outcome(
    y: Any, before: FloatArray, after: FloatArray | None, weighed: Weighed | None
) -> Outcome | None:
    """Return mean or shares of the labels; with ``weighed``, how certain the weighted ones are."""
    labels = checked_labels(y, len(before))
    if np.asarray(y).dtype.kind in "mM":
        return None
    if labels.ndim > 1:
        raise InputError(f"y must be one label per row; got shape {labels.shape}.")
    distinct, place = np.unique(labels, return_inverse=True)
    is_class = labels.dtype.kind not in "fiu" or (labels.dtype.kind in "iu" and len(distinct) <= 2)
    if is_class:
        common = np.argsort(-np.bincount(place), kind="stable")[:MAX_CLASSES]
        columns = (place[:, None] == common).astype(np.float64)
        names = tuple(str(distinct[rank]) for rank in common)
        if len(common) < len(distinct):
            columns = np.column_stack([columns, 1.0 - columns.sum(axis=1)])
            names = (*names, "(other)")
    else:
        columns, names = labels.astype(np.float64)[:, None], ("mean",)
    mean, error = _weighted_means(columns, before)
    weighted = (None, None) if after is None else _weighted_means(columns, after)
    found = Outcome("shares" if is_class else "mean", names, mean, error, *weighted)
    if weighed is None or len(labels) < 2:
        return found
    target = Target(LabelColumns(columns, np.array(names), is_class, labels), Mean())
    counted = weighed.linearisation is not None  # otherwise weights are taken as known
    options = Options("hc3" if counted else "orthogonal", 0.95, 2, finite=False, random_state=0)
    made, _ = each_estimate(target, weighed, SurveyDesign.from_codes(len(labels)), options)
    estimates = list(made.values())
    if len(np.unique(columns[:, 0])) > 1 and len(estimates) <= 2:  # of two classes, the larger
        compare = isinstance(weighed.weighter, CalibrationWeights | FrequencyWeights)
        compare &= len(weighed.weighter.columns_) <= MAX_COLUMNS
        hidden = estimates[0].sensitivity(sharp=False, benchmark=compare)
        found = replace(found, sensitivity=hidden)
    if not counted:
        return found
    return replace(
        found,
        after_error=tuple(one.standard_error for one in estimates),
        after_interval=tuple(one.interval for one in estimates),
    )


def as_estimated(
    weighter: Any,
    after: FloatArray | None,
    sample: Sample,
    population: Population | Margins,
    drawn: Reservoir | None,
) -> Weighed | None:
    """Return the weights as an estimate knows them, if they are a fit's and none is negative."""
    if after is None or not isinstance(weighter, Weighter) or (after < 0).any():
        return None
    if not np.allclose(weighter.weights_, after):
        return None
    size = population.size if isinstance(population, Population) else 0
    return Weighed(weighter, Fit(sample, population, None), None, drawn, size)


def _weighted_means(
    columns: FloatArray, weight: FloatArray
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    share = weight / weight.sum()
    mean = share @ columns
    error = np.sqrt(share**2 @ (columns - mean) ** 2)  # of a ratio, to first order
    return tuple(mean.tolist()), tuple(error.tolist())
