"""Density ratios on a kernel basis from population rows that were drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from unskew.errors import warn_caller
from unskew.numerics.cores import one_blas_thread
from unskew.numerics.density_ratio import (
    MOST_COLUMNS_TILTED,
    Candidate,
    Side,
    maximise_likelihood,
    minimise_squared,
    sum_basis,
    tilt_towards,
)
from unskew.numerics.kernels import Kernel
from unskew.numerics.kliep import TOLERANCE
from unskew.numerics.point_folds import PointFolds
from unskew.numerics.typing import FloatArray
from unskew.population.reservoir import Reservoir
from unskew.population.sample import Sample
from unskew.population.summaries import Question
from unskew.weighters.kernel_points import KernelPoints
from unskew.weighters.reservoir_size import reservoir_rows

if TYPE_CHECKING:
    from unskew.weighters.density_ratio import DensityRatioWeights

N_TILTED = 4
"""How many of the kernels are also tried with a tilt, the widest: a narrow kernel makes up any
smooth function by itself."""
MOST_PAIRS = 5 * 10**7
"""Pairs of population and sample rows at most on which coverage and distances are measured."""


def ask_rows(weighter: DensityRatioWeights, points: KernelPoints) -> Question[Reservoir]:
    """Return the question for rows of the population."""
    n_columns = points.space.n_features
    if weighter.loss == "kl":  # which holds the basis at all rows, and copies of it
        n_columns += 4 * weighter.n_centres
    rows = reservoir_rows(weighter.population_rows, len(points.rows), n_columns)
    return Question(Reservoir(rows), points)


def solve_rows(
    weighter: DensityRatioWeights, sample: Sample, answer: Question[Reservoir]
) -> FloatArray:
    """Fit the function, and return the weights of the sample's rows."""
    # 1) Both sides, centres, and what there is to choose from.
    points, drawn = answer.learned, answer.summary
    random = check_random_state(weighter.random_state)
    folds = PointFolds.learn(points.points, np.bincount(points.place), random)
    mine = Side.of(points.points, points.design(sample), folds)
    theirs = Side.of(points.locate(drawn.rows, side="population"), drawn.weight, folds)
    centres = (theirs if weighter.centres == "population" else mine).points[: weighter.n_centres]
    candidates = _candidates(weighter, points.points, random)
    bounds = mine.points.min(axis=0), mine.points.max(axis=0)
    task, losses = weighter._task, None
    with one_blas_thread():
        # 2) Choose among them.
        if len(candidates) * len(task.smoothings) > 1:
            losses = task.held_out(candidates, centres, mine, theirs, bounds)
        choice = weighter._choose(candidates, losses)
        plain, tilted = candidates[choice.candidate]
        kernel = tilt_towards(plain, mine, theirs, bounds) if tilted else plain
        # 3) Solve.
        if weighter.loss == "kl":
            alpha = _solve_likelihood(weighter, plain, kernel, centres, mine, theirs)
        else:
            sums = (
                sum_basis(kernel, centres, mine, squares=True),
                sum_basis(kernel, centres, theirs, squares=weighter.relative > 0),
            )
            alpha = minimise_squared(*sums, weighter.relative, choice.smoothing)
    weights = weighter._make_function(points, sample, kernel, centres, alpha)
    # 4) How much is covered, and how far apart the means are.
    few = Reservoir(max(1, MOST_PAIRS // len(points.points)))
    few.merge(drawn)
    question = weighter._ask_sums(points, [plain], 0, random)
    few.answer(question)
    return weighter._finish(sample, question, weights)


def _candidates(
    weighter: DensityRatioWeights, points: FloatArray, random: np.random.RandomState
) -> list[Candidate]:
    kernels = weighter._kernels(points, random)
    plain = [Candidate(kernel, False) for kernel in kernels]
    if not weighter.tilt or points.shape[1] > MOST_COLUMNS_TILTED:
        return plain
    tilted = [Candidate(kernel, True) for kernel in kernels[-N_TILTED:]]
    return tilted if weighter.tilt is True else plain + tilted


def _solve_likelihood(
    weighter: DensityRatioWeights,
    plain: Kernel,
    kernel: Kernel,
    centres: FloatArray,
    mine: Side,
    theirs: Side,
) -> FloatArray:
    found = maximise_likelihood(plain, kernel, centres, mine, theirs)
    weighter.gap_, weighter.objective_ = found.gap, found.objective
    if found.coefficients.any() and not found.converged:
        warn_caller(
            ConvergenceWarning(
                f"The likelihood was maximised to a duality gap of {found.gap:.2g} in "
                f"{found.iterations} steps, short of {TOLERANCE:.0e}. Use fewer centres "
                "(n_centres=) or a larger bandwidth=."
            )
        )
    return found.coefficients
