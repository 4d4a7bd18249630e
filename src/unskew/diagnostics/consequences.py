"""What the theory says about the weights of this sample, in a sentence for each bound."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from unskew.diagnostics.diagnosis import BoundStatement, Outcome
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
from unskew.theory import cluster_distance_bound, importance_weighting_bound
from unskew.theory.assumption_tests import even_selection
from unskew.weighters.base import Fit, Weighter
from unskew.weighters.calibration import CalibrationWeights
from unskew.weighters.cells import CellWeighter
from unskew.weighters.histogram import FrequencyWeights


def state_bounds(weights: FloatArray, weighter: Any) -> tuple[BoundStatement, ...]:
    """Return the bounds that apply to weights and the weighter that made them, if any."""
    bound = importance_weighting_bound(weights)
    above = (
        f"If the weights are correct, the error rate in the population of a model that was chosen "
        f"without these {len(weights):,} rows is, with probability 95 %, at most "
        f"{100 * bound.value:.2g} percentage points above its weighted error rate on them."
    )
    statements = [replace(_statement(bound, above), of_learner=True)]
    counts = _cell_counts(weighter)
    if counts is not None:
        population, sample = counts
        bound = cluster_distance_bound(
            population_counts=population, sample_counts=sample, norm="l1"
        )
        # The l1 norm of the weights is their mean, in the units of the bound.
        relative = bound.value * sample.sum() / population.sum()
        apart = (
            "With probability 95 %, the weights differ from the inverse of the true probabilities "
            f"of selection by at most {100 * relative:.2g} % of the mean weight, on average over "
            "the sample's rows."
        )
        statements.append(_statement(bound, even_selection(weighter).headline(apart)))
    return tuple(statements)


def _statement(bound: Any, meaning: str) -> BoundStatement:
    if bound.vacuous:
        meaning = f"This theorem says nothing about this sample: {bound.reason}."
    return BoundStatement(bound.reference, meaning, bound.value, bound.vacuous, bound.assumptions)


def _cell_counts(weighter: Any) -> FloatArray | None:
    """Return the counts of population and sample in the cells with sample rows.

    None unless the sample can be a part of the population, without design weights.
    """
    if not isinstance(weighter, CellWeighter):
        return None
    counts = np.stack([weighter.population_counts_, weighter.sample_counts_])
    population, sample = counts = counts[:, counts[1] > 0]
    if (sample <= population).all() and (counts == np.round(counts)).all():
        return counts
    return None


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
    made, _ = each_estimate(target, weighed, SurveyDesign.from_codes(len(labels)), options, None)
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
