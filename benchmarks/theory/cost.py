"""What the certificate costs, against the fit of the model that it certifies."""

from __future__ import annotations

import statistics
import time

import numpy as np
from sklearn.kernel_ridge import KernelRidge
from sklearn.svm import SVR

from unskew import Reweighted, TreeWeights, theory


def print_cost(rows: int, repeats: int) -> None:
    """Print a line for each learner and leaf size, fit and certificate alternating."""
    random = np.random.default_rng(0)
    population = random.normal(size=(2 * rows, 8))
    order = population[:, 0] + random.logistic(size=2 * rows)
    sample = population[np.sort(np.argsort(order)[-rows:])]
    labels = np.sin(sample[:, 0]) + sample[:, 1] * sample[:, 2] + 0.3 * random.normal(size=rows)
    print("| learner | m | leaf | fit, s | certificate, s | ratio (range) |")
    print("|---|---|---|---|---|---|")
    for learner in (KernelRidge(kernel="rbf", gamma=1 / 8), SVR(gamma=1 / 8)):
        for leaf in (60, 4):
            model = Reweighted(learner, TreeWeights(min_samples_leaf=leaf))
            fits, checks = [], []
            for _ in range(repeats):
                started = time.perf_counter()
                model.fit(sample, labels, population=population)
                between = time.perf_counter()
                theory.certificate(model)
                fits.append(between - started)
                checks.append(time.perf_counter() - between)
            ratios = [check / fit for check, fit in zip(checks, fits, strict=True)]
            print(
                f"| {type(learner).__name__} | {rows:,} | {leaf} | {statistics.median(fits):.2f} "
                f"| {statistics.median(checks):.2f} | {statistics.median(ratios):.2f} "
                f"({min(ratios):.2f} to {max(ratios):.2f}) |",
                flush=True,
            )
