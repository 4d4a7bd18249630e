"""The figures of docs/guarantees.md."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression

from unskew import HistogramWeights, Reweighted, TreeWeights
from unskew.theory import certificate

RATES = np.array([0.15, 0.25, 0.4, 0.5, 0.6, 0.7])
BOUND, TRUE, SPREAD, ESTIMATE = "#c1440e", "#1b6ca8", "#7f8c8d", "#2a9d5c"


def survey(n_people: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return ages, who answered, the labels of those who did, and their response rates."""
    random = np.random.default_rng(seed)
    band = random.integers(0, 6, size=n_people)
    ages = (20 + 10 * (band + random.uniform(size=n_people)))[:, None]
    answers = random.uniform(size=n_people) < RATES[band]
    labels = np.sin(ages[answers, 0] / 10) + 0.3 * random.normal(size=answers.sum())
    return ages, answers, labels, RATES[band][answers]


def draw_guarantees(path: Any) -> None:
    """Draw the certificate against the truth, and the bound that chooses the leaf size."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
    _against_truth(left)
    _against_leaf_size(right)
    figure.savefig(path, dpi=160)


FLIPS = "share of the population whose prediction could flip"


def draw_flips(path: Any) -> None:
    """Draw the certified flips of a classifier against the cells' size.

    Letters stay legible on a phone.
    """
    with plt.rc_context({"font.size": 12}):
        figure, axes = plt.subplots(figsize=(5, 3.4), layout="constrained")
        _flips_by_size(axes)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize="small")
        figure.savefig(path, dpi=160)


def _owners(n_people: int, seed: int) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return a fitted classifier of who owns a home, ages, the sample, its labels and rates."""
    ages, answers, _, rates = survey(n_people, seed)
    random = np.random.default_rng([seed, 1])
    sample = ages[answers]
    owns = sample[:, 0] + 15 * random.logistic(size=len(sample)) > 50
    weighter = HistogramWeights(buckets={0: [30.0, 40.0, 50.0, 60.0, 70.0]})
    model = Reweighted(LogisticRegression(), weighter).fit(sample, owns, population=ages)
    return model, ages, sample, owns, rates


def _flips_by_size(axes: Axes) -> None:
    rows = []
    for size in np.geomspace(300, 12_000, 7).astype(int):
        found = []
        for seed in range(5):
            model, ages, sample, owns, rates = _owners(size, seed)
            bound = certificate(model, X=sample, y=owns, population=ages)
            other = LogisticRegression().fit(
                sample, owns, sample_weight=model.weighter_.scale_ / rates
            )
            flipped = np.mean(other.predict(ages) != model.predict(ages))
            found.append([model.weighter_.sample_counts_.min(), bound.terms[FLIPS], flipped])
        rows.append(np.mean(found, axis=0))
    fewest, certified, flipped = np.array(rows).T
    axes.plot(fewest, 100 * certified, color=BOUND, marker="o", label="certified, 95 %")
    axes.plot(fewest, 100 * flipped, color=TRUE, marker="o", label="flipped")
    axes.axhline(10, color=SPREAD, linestyle="--", linewidth=1)
    axes.set(
        xscale="log",
        xlabel="sample rows in the smallest cell",
        ylabel="% of the population",
        title="Estimating the weights",
        ylim=(0, None),
    )
    axes.set_xticks([10, 30, 100, 300], labels=["10", "30", "100", "300"])
    axes.minorticks_off()


def _learner() -> KernelRidge:
    return KernelRidge(kernel="rbf", gamma=0.01)


def _against_truth(axes: Axes) -> None:
    sizes, rows = np.geomspace(300, 6_000, 7).astype(int), []
    for size in sizes:
        found = []
        for seed in range(3):
            ages, answers, labels, rates = survey(size, seed)
            sample = ages[answers]
            model = Reweighted(
                _learner(), HistogramWeights(buckets={0: [30.0, 40.0, 50.0, 60.0, 70.0]})
            ).fit(sample, labels, population=ages)
            perfect = _learner().fit(sample, labels, sample_weight=model.weighter_.scale_ / rates)
            change = perfect.predict(sample) - model.predict(sample)
            realised = np.sqrt(np.average(change**2, weights=model.weights_))
            bound = certificate(model)
            terms = bound.terms
            found.append(
                [
                    bound.value,
                    realised,
                    terms["refit spread (an estimate, no bound)"],
                    terms["spread of the predictions"],
                    float(terms["Theorem 2, as printed"]),
                    model.weighter_.sample_counts_.min(),
                ]
            )
        rows.append(np.median(found, axis=0))
    bounds, realised, refits, spread, printed, fewest = np.array(rows).T
    axes.loglog(fewest, printed, color=BOUND, linestyle=":", label="published theorem")
    axes.loglog(fewest, spread, color=SPREAD, linestyle="--", label="spread of the predictions")
    axes.loglog(fewest, bounds, color=BOUND, marker="o", markersize=4, label="certificate, 95 %")
    axes.loglog(fewest, refits, color=ESTIMATE, label="refits (an estimate, not a bound)")
    axes.loglog(fewest, realised, color=TRUE, marker="o", markersize=4, label="realised change")
    axes.set(
        xlabel="sample rows in the smallest cell",
        ylabel="change of the predictions",
        title="Effect of estimating the weights",
    )
    axes.legend(frameon=False, fontsize="x-small", loc=(0.02, 0.55))
    axes.spines[["top", "right"]].set_visible(False)


def _against_leaf_size(axes: Axes) -> None:
    found = []
    for seed in range(5):
        ages, answers, labels, rates = survey(6000, seed)
        sample, perfect = ages[answers], 1 / rates
        choice = TreeWeights(min_samples_leaf="bound").fit(sample, labels, population=ages)
        errors = []
        for size in choice.leaf_sizes_:
            weights = TreeWeights(min_samples_leaf=size)
            weights = weights.fit(sample, labels, population=ages).weights_
            errors.append(np.abs(weights / weights.sum() - perfect / perfect.sum()).sum())
        parts = np.array(list(choice.leaf_sizes_.values()))
        found.append(np.column_stack([list(choice.leaf_sizes_), parts, errors]))
    sizes, open_, smoothed, errors = np.mean(
        [rows[: min(map(len, found))] for rows in found], axis=0
    ).T
    total = open_ + smoothed
    axes.loglog(sizes, total, color=BOUND, marker="o", markersize=4, label="sum: the bound")
    axes.loglog(sizes, open_, color=BOUND, linestyle=":", label="uncertainty of the counts")
    axes.loglog(sizes, smoothed + 1e-9, color=SPREAD, linestyle="--", label="bias from smoothing")
    axes.loglog(sizes, errors, color=TRUE, marker="o", markersize=4, label="measured error")
    best = int(np.argmin(total))
    axes.axvline(sizes[best], color="#cccccc", zorder=0)
    axes.set(
        xlabel="minimum number of sample rows per leaf",
        ylabel="relative error of the weights",
        title='TreeWeights(min_samples_leaf="bound")',
        ylim=(0.02, 10),
    )
    axes.legend(frameon=False, fontsize="x-small")
    axes.spines[["top", "right"]].set_visible(False)
