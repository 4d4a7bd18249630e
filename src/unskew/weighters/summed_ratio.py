"""Density ratios of the squared loss from sums over all rows of the population, in one pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from sklearn.utils import check_random_state

from unskew.numerics.cores import one_blas_thread
from unskew.numerics.density_ratio import (
    Candidate,
    Side,
    minimise_squared,
    sum_basis,
)
from unskew.numerics.point_folds import N_FOLDS, PointFolds
from unskew.numerics.typing import FloatArray
from unskew.population.fold_sums import FoldSums
from unskew.population.sample import Sample
from unskew.population.summaries import Question, Summaries
from unskew.weighters.kernel_points import N_FREQUENCIES, KernelPoints, Learned

if TYPE_CHECKING:
    from unskew.weighters.density_ratio import DensityRatioWeights


def ask_sums(weighter: DensityRatioWeights, points: KernelPoints) -> Question[Summaries]:
    """Return the question for the sums of each kernel at centres among the sample's points."""
    random = check_random_state(weighter.random_state)
    folds = PointFolds.learn(points.points, np.bincount(points.place), random)
    kernels = weighter._kernels(points.points, random)
    order = np.argsort(folds.hash(points.points), kind="stable")  # which is a random one
    drawn = np.sort(order[: weighter.n_centres])
    sums = [
        FoldSums(
            points.space,
            kernel,
            points.points[drawn],
            points.centre,
            folds=folds,
            squares=weighter.relative > 0,
            frequencies=kernel.draw_frequencies(points.points.shape[1], N_FREQUENCIES, random),
        )
        for kernel in kernels
    ]
    return Question(Summaries(sums), Learned(points, kernels, drawn, "double", folds))


def solve_sums(
    weighter: DensityRatioWeights, sample: Sample, answer: Question[Summaries]
) -> FloatArray:
    """Fit the function, and return the weights of the sample's rows."""
    learned, task = answer.learned, weighter._task
    points, folds = learned.points, learned.state
    centres = points.points[learned.drawn]
    mine = Side.of(points.points, points.design(sample), folds)
    candidates = [Candidate(kernel, False) for kernel in learned.kernels]
    losses, totals = np.empty((len(candidates), len(task.smoothings), N_FOLDS)), []
    with one_blas_thread():
        for place, theirs in enumerate(answer.summary.parts):
            kernel = learned.kernels[place]
            totals.append((sum_basis(kernel, centres, mine, squares=True), theirs.total()))
            for fold in range(N_FOLDS):
                held_out = mine._replace(weight=mine.held_out(fold)[1]).counting()
                tested = sum_basis(kernel, centres, held_out, squares=True), theirs.held_out(fold)
                trained = totals[-1][0] - tested[0], totals[-1][1] - tested[1]
                losses[place, :, fold] = task.losses_of_sums(trained, tested)
        choice = weighter._choose(candidates, losses if losses[..., 0].size > 1 else None)
        alpha = minimise_squared(*totals[choice.candidate], weighter.relative, choice.smoothing)
    kernel = learned.kernels[choice.candidate]
    weights = weighter._make_function(points, sample, kernel, centres, alpha)
    return weighter._finish(sample, answer, weights, choice.candidate)
