"""What the theory says about the weights of this sample, in a sentence for each bound."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from unskew.diagnostics.diagnosis import BoundStatement
from unskew.numerics.typing import FloatArray
from unskew.theory import cluster_distance_bound, importance_weighting_bound
from unskew.theory.assumption_tests import even_selection
from unskew.weighters.cells import CellWeighter


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
