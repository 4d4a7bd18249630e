"""The constrained form of the density ratio: kernel mean matching by a function of the row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import check_random_state

from unskew.numerics.cores import one_blas_thread
from unskew.numerics.inductive import (
    SMOOTHINGS,
    InductiveProblem,
    choose_smoothing,
    column_stretches,
)
from unskew.numerics.kernels import Kernel, WithMeans
from unskew.numerics.typing import FloatArray
from unskew.population.reservoir import Reservoir
from unskew.population.sample import Sample
from unskew.population.summaries import Question, Summaries, Summary
from unskew.weighters.kernel_points import FAMILIES, KernelPoints, median_distance, one_kernel

if TYPE_CHECKING:
    from unskew.weighters.density_ratio import DensityRatioWeights

BANDWIDTH_FACTORS = (0.5, 1.0, 2.0, 4.0)
STRENGTH_OF_MEANS = 10.0
"""The factor of the linear kernel that is added, so that the columns' means are matched first."""
POPULATION_ROWS = 20_000
"""Rows that are drawn for ``population_rows="auto"``: each of them meets every sample row in each
of the kernels among which to choose."""


def ask_constrained(weighter: DensityRatioWeights, points: KernelPoints) -> Summary:
    """Return what to ask: the sums of a kernel, or rows if there are kernels to choose from."""
    if weighter.bandwidth == "cv":
        rows = weighter.population_rows
        return Question(Reservoir(POPULATION_ROWS if rows == "auto" else rows), points)
    random = check_random_state(weighter.random_state)
    kernel = one_kernel(weighter.kernel, weighter.bandwidth, points.points, random)
    return weighter._ask_sums(points, [kernel], weighter.n_centres, random)


def solve_constrained(
    weighter: DensityRatioWeights, sample: Sample, answer: Question[Any]
) -> FloatArray:
    """Solve the program, and return the weights of the sample's rows."""
    if weighter.bandwidth == "cv":
        answer = _ask_drawn(weighter, sample, answer)
    learned, sums = answer.learned, answer.summary.parts
    points, design = learned.points.points, learned.points.design(sample)
    kernels = [
        WithMeans(one, n_columns=points.shape[1], strength=STRENGTH_OF_MEANS)
        for one in learned.kernels
    ]
    means = [
        kernel.means(one.sums / one.mass, points, one.points / one.mass)
        for kernel, one in zip(kernels, sums, strict=True)
    ]
    random = np.random.RandomState()
    random.set_state(learned.state)
    given = weighter.smoothing
    smoothings = SMOOTHINGS if given == "cv" else np.array([float(given)])
    best, weighter.smoothing_ = choose_smoothing(
        kernels, points, means, design, learned.drawn, random, smoothings
    )
    with one_blas_thread():
        weighter.function_, weighter.certificate_ = InductiveProblem(
            kernels[best], points, means[best], design, learned.drawn
        ).solve(weighter.smoothing_, weighter.bound)
    weights = design * weighter.function_.weigh(points)
    weighter._check_certificate()
    return weighter._finish(sample, answer, weights, best)


def _ask_drawn(
    weighter: DensityRatioWeights, sample: Sample, answer: Question[Reservoir]
) -> Question[Summaries]:
    """Ask the population rows that were drawn, with all kernels among which to choose."""
    points, drawn = answer.learned, answer.summary
    random = check_random_state(weighter.random_state)
    kernels = _multiples(weighter.kernel, points.points, 1.0, random)
    # More candidates, in which columns count as much as they differ.
    others = points.locate(drawn.rows, side="population")
    stretches = column_stretches(points.points, points.design(sample), others, drawn.weight)
    if (stretches != stretches[0]).any():
        kernels += _multiples(weighter.kernel, points.points, stretches, random)
    question = weighter._ask_sums(points, kernels, weighter.n_centres, random)
    drawn.answer(question)
    return question


def _multiples(
    kernel: Any, points: FloatArray, stretches: FloatArray | float, random: np.random.RandomState
) -> list[Kernel]:
    middle = median_distance(kernel, points * stretches, random)
    with np.errstate(divide="ignore"):  # a column that does not count is infinitely wide
        return [FAMILIES[kernel](middle * factor / stretches) for factor in BANDWIDTH_FACTORS]
