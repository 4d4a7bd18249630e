"""How tight the certificates are for kernel ridge regression, on the nine data sets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import rbf_kernel

from benchmarks.theory.data import Draw, draws
from unskew import ClusterWeights, Reweighted, TreeWeights, theory

ALPHA = 1.0


def print_tightness(datasets: Path, number: int) -> None:
    """Print one table with the true weights given, and one with the counts alone."""
    print(
        f"Medians of {number} draws. KernelRidge(alpha={ALPHA:g}), Gaussian kernel, gamma = 1/d.\n"
    )
    print(
        "The true weights given, tree weights with at least 4 rows a leaf; in the kernel's norm:\n"
    )
    print(
        "| set | selection | m | realised | dual ÷ realised | the same without curvature "
        "| printed β, true distance ÷ dual | printed theorem ÷ dual |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for path in sorted(datasets.glob("*.parquet")):
        for by_cell in (False, True):
            found = [_known(draw) for draw in draws(path, number, by_cell=by_cell)]
            m, realised, dual, plain, exact, printed = np.median(found, axis=0)
            rule = "by cell" if by_cell else "the paper's"
            print(
                f"| {path.stem} | {rule} | {m:.0f} | {realised:.3g} | {dual:.2g} | {plain:.2g} "
                f"| {exact:.3g} | {printed:.3g} |",
                flush=True,
            )
    print(
        "\nThe counts alone (δ = 0.05), cells fixed beforehand; root mean square of predictions:\n"
    )
    print(
        "| set | m | cells | fewest rows | spread | realised | certificate | ÷ realised | ÷ spread "
        "| refit spread | any point | printed theorem |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|---|")
    for path in sorted(datasets.glob("*.parquet")):
        found = [_unknown(draw) for draw in draws(path, number, by_cell=True)]
        m, cells, fewest, spread, realised, bound, refit, anywhere, printed = np.median(
            found, axis=0
        )
        print(
            f"| {path.stem} | {m:.0f} | {cells:.0f} | {fewest:.0f} | {spread:.2f} | {realised:.4f} "
            f"| {bound:.3f} | {bound / realised:.1f} | {bound / spread:.2f} | {refit:.4f} "
            f"| {anywhere:.2f} | {printed:.3g} |",
            flush=True,
        )


def _learner(rows: np.ndarray) -> KernelRidge:
    return KernelRidge(alpha=ALPHA, kernel="rbf", gamma=1 / rows.shape[1])


def _fitted(draw: Draw, weighter: Any) -> tuple[Any, Any, np.ndarray]:
    """Return the model, the one with the perfect weights in the same scale, and these weights."""
    X, y = draw.rows[draw.selected], draw.labels[draw.selected]
    model = Reweighted(_learner(X), weighter).fit(X, y, population=draw.rows)
    perfect = model.weighter_.scale_ / draw.probabilities[draw.selected]
    return model, _learner(X).fit(X, y, sample_weight=perfect), perfect


def _known(draw: Draw) -> list[float]:
    model, other, perfect = _fitted(draw, TreeWeights())
    learner, X = model.estimator_, model.estimator_.X_fit_
    K = rbf_kernel(X, gamma=1 / X.shape[1])
    moved = other.dual_coef_ - learner.dual_coef_
    realised = float(np.sqrt(moved @ K @ moved))
    bound = theory.dual_certificate(
        coefficients=learner.dual_coef_,
        kernel_matrix=K,
        weights=model.weights_,
        other_weights=perfect,
        alpha=ALPHA,
    )
    plain = bound.terms["norm of the gradient over 2 lambda"]
    # Before its last step Theorem 1, as printed, has |Δh|_K <= σ κ l1 / (2 λ); κ is 1.
    sigma = theory.lipschitz_constant("squared", largest_label=float(np.abs(draw.labels).max()))
    distance = theory.distance(model.weights_, perfect, norm="l1")
    exact = sigma * distance / (2 * ALPHA)
    weighter = model.weighter_
    used = weighter.sample_counts_ > 0
    estimated = theory.frequency_distance_bound(
        population_counts=weighter.population_counts_[used],
        sample_counts=weighter.sample_counts_[used],
        norm="l1",
        form="paper",
    )
    printed = sigma * estimated * len(X) * weighter.scale_ / (2 * ALPHA)
    ratios = bound / realised, plain / realised, exact / bound, printed / bound
    return [len(X), realised, *ratios]


def _unknown(draw: Draw) -> list[float]:
    weighter = ClusterWeights(draw.partition, scaling=None)
    model, other, _ = _fitted(draw, weighter)
    X = model.estimator_.X_fit_
    bound = theory.certificate(model)
    change = other.predict(X) - model.predict(X)
    realised = float(np.sqrt(np.average(change**2, weights=model.weights_)))
    counts = model.weighter_.sample_counts_
    return [
        len(X),
        (counts > 0).sum(),
        counts[counts > 0].min(),
        bound.terms["spread of the predictions"],
        realised,
        bound.value,
        bound.terms["refit spread (an estimate, no bound)"],
        bound.terms["dual certificate, at any single point"],
        float(bound.terms["Theorem 2, as printed"]),
    ]
