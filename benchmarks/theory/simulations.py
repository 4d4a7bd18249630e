"""Simulations that compare each bound with the truth, in populations whose selection is known.

Each draw makes a population in cells of known mass, selects rows with known probabilities, computes
every bound, and compares it with the realised value. A bound at level δ may fail in a share δ of
the draws.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import rbf_kernel

import unskew
from unskew import theory

__all__ = [
    "CERTIFIED",
    "SETTINGS",
    "Outcome",
    "Setting",
    "Validity",
    "certificate_outcomes",
    "count_outcomes",
    "matching_outcomes",
    "validity_of",
    "weighting_outcomes",
]

Floats = NDArray[np.float64]


class Setting(NamedTuple):
    """Cells of a population: their expected sizes and their probabilities of selection."""

    sizes: Floats
    probabilities: Floats


SETTINGS: Mapping[str, Setting] = {
    "small cells, even": Setting(np.full(40, 25.0), np.full(40, 0.5)),
    "small cells, skewed": Setting(np.geomspace(10, 60, 40), np.linspace(0.1, 0.9, 40)),
    "large cells, even": Setting(np.full(10, 400.0), np.full(10, 0.5)),
    "large cells, skewed": Setting(np.geomspace(1000, 150, 10), np.geomspace(0.05, 0.9, 10)),
}


CERTIFIED: Mapping[str, Setting] = {
    "small cells, even": Setting(np.full(16, 25.0), np.full(16, 0.5)),
    "small cells, skewed": Setting(np.geomspace(15, 60, 12), np.linspace(0.2, 0.9, 12)),
    "large cells, even": Setting(np.full(4, 160.0), np.full(4, 0.5)),
    "large cells, skewed": Setting(np.geomspace(600, 100, 4), np.geomspace(0.1, 0.9, 4)),
}
"""Smaller settings, because each draw trains two models."""


class Outcome(NamedTuple):
    """A bound in one draw, and the realised value that it bounds."""

    bound: float
    realised: float


class Validity(NamedTuple):
    """How often a bound failed, and how tight it was.

    Attributes
    ----------
    rate : float
        The share of the draws in which it failed.
    interval : tuple of float
        Its exact 95 % interval.
    tightness : float
        The median of bound ÷ realised value; infinite where half of the bounds are.
    """

    draws: int
    rate: float
    interval: tuple[float, float]
    tightness: float


def validity_of(outcomes: list[Outcome]) -> Validity:
    """Return how often a bound failed in these draws."""
    failed = sum(realised > bound * (1 + 1e-9) for bound, realised in outcomes)
    interval = stats.binomtest(failed, len(outcomes)).proportion_ci(0.95, method="exact")
    ratios = [bound / realised for bound, realised in outcomes if realised > 0]
    return Validity(
        draws=len(outcomes),
        rate=failed / len(outcomes),
        interval=(float(interval.low), float(interval.high)),
        tightness=float(np.median(ratios)) if ratios else float("nan"),
    )


def count_outcomes(
    setting: Setting, delta: float, draws: int, *, seed: int = 0
) -> dict[str, list[Outcome]]:
    """Return the outcomes of every bound that needs only counts."""
    random = np.random.default_rng(seed)
    total = int(setting.sizes.sum())
    masses = setting.sizes / setting.sizes.sum()
    outcomes: dict[str, list[Outcome]] = {}
    for _ in range(draws):
        population = random.multinomial(total, masses)
        there = population > 0
        population, q = population[there], setting.probabilities[there]
        sample = random.binomial(population, q)
        for name, outcome in _of_counts(population, sample, q, delta, float(masses.min())):
            outcomes.setdefault(name, []).append(outcome)
    return outcomes


def _of_counts(
    population: NDArray[np.int64],
    sample: NDArray[np.int64],
    q: Floats,
    delta: float,
    smallest_mass: float,
) -> Iterator[tuple[str, Outcome]]:
    counts: dict[str, Any] = {"population_counts": population, "sample_counts": sample}
    reached = sample > 0
    m, n, truth = sample[reached], population[reached], q[reached]
    estimate, rows = m / n, sample.sum()
    error = np.abs(1 / truth - 1 / estimate)
    realised = {"l1": m @ error / rows, "l2": np.sqrt(m @ error**2) / rows}
    off = float(np.abs(truth - estimate).max())
    largest = float(max((1 / truth).max(), (1 / estimate).max()))
    known: dict[str, Any] = {"smallest_mass": smallest_mass}
    yield (
        "Lemma 3, printed",
        Outcome(theory.frequency_bound(**counts, delta=delta, form="paper", **known).value, off),
    )
    every = float(np.abs(q - sample / population).max())
    yield "Lemma 3, corrected", Outcome(theory.frequency_bound(**counts, delta=delta).value, every)
    lower, upper = theory.cell_intervals(**counts, delta=delta)
    rates = sample / population
    with np.errstate(divide="ignore", invalid="ignore"):
        depth = np.where(q > rates, (q - rates) / (upper - rates), (rates - q) / (rates - lower))
    yield "exact intervals, all cells", Outcome(1.0, float(np.nanmax(depth)))
    for norm in ("l1", "l2"):
        for name, bound in {
            "Proposition 3, printed": theory.frequency_distance_bound(
                **counts, norm=norm, delta=delta, form="paper", largest_weight=largest, **known
            ),
            "Proposition 3, corrected, B known": theory.frequency_distance_bound(
                **counts, norm=norm, delta=delta, largest_weight=largest
            ),
            "Proposition 3, corrected": theory.frequency_distance_bound(
                **counts, norm=norm, delta=delta
            ),
            "Proposition 5, printed": theory.cluster_distance_bound(
                **counts, norm=norm, delta=delta, form="paper", largest_weight=largest
            ),
            "worst case over the intervals": theory.worst_case_distance(
                **counts, norm=norm, delta=delta, region="box"
            ),
            "worst case over the joint region": theory.worst_case_distance(
                **counts, norm=norm, delta=delta
            ),
        }.items():
            yield f"{name}, {norm}", Outcome(bound.value, float(realised[norm]))


def certificate_outcomes(
    setting: Setting, delta: float, draws: int, *, seed: int = 0
) -> dict[str, list[Outcome]]:
    """Return the outcomes of the certificate, and of Theorem 2, for kernel ridge regression.

    Rows are spread within cells of the line, all of a cell with one probability of selection; the
    model with the perfect weights is trained beside the certified one.
    """
    random = np.random.default_rng(seed)
    total, k = int(setting.sizes.sum()), len(setting.sizes)
    masses = setting.sizes / setting.sizes.sum()
    outcomes: dict[str, list[Outcome]] = {}
    while len(next(iter(outcomes.values()), [])) < draws:
        cells = random.choice(k, size=total, p=masses)
        rows = (cells + random.uniform(size=total))[:, None]
        selected = random.uniform(size=total) < setting.probabilities[cells]
        if len(np.unique(cells[selected])) < len(np.unique(cells)):
            continue  # every cell must be covered: overlap is not what is measured here
        X, places = rows[selected], cells[selected]
        y = np.sin(2 * np.pi * X[:, 0] / k) + 0.3 * random.normal(size=len(X))
        learner = KernelRidge(alpha=1.0, kernel="rbf", gamma=16.0 / k**2)
        buckets = {0: np.arange(1.0, k).tolist()}
        weighter = unskew.HistogramWeights(buckets=buckets, overlap="ignore")
        model = unskew.Reweighted(learner, weighter).fit(X, y, population=rows)
        perfect = model.weighter_.scale_ / setting.probabilities[places]
        other = KernelRidge(alpha=1.0, kernel="rbf", gamma=16.0 / k**2)
        other.fit(X, y, sample_weight=perfect)
        bound = theory.certificate(model, delta, refits=1)
        change = model.predict(X) - other.predict(X)
        K = rbf_kernel(X, gamma=16.0 / k**2)
        moved = other.dual_coef_ - model.estimator_.dual_coef_
        norm = float(np.sqrt(max(moved @ K @ moved, 0.0)))
        mean = float(np.sqrt(np.average(change**2, weights=model.weights_)))
        worst = float(np.abs(change).max())
        for name, bounded, realised in (
            ("certificate, root mean square", bound.value, mean),
            ("certificate, any point", bound.terms["dual certificate, at any single point"], worst),
            (
                "certificate, kernel norm",
                bound.terms["dual certificate, in the kernel's norm"],
                norm,
            ),
            ("Theorem 2, corrected, any point", bound.terms["Theorem 2, corrected"], worst),
            ("Theorem 2, printed, any point", bound.terms["Theorem 2, as printed"], worst),
        ):
            outcomes.setdefault(name, []).append(Outcome(float(bounded), realised))
    return outcomes


def matching_outcomes(delta: float, draws: int, *, seed: int = 0) -> dict[str, list[Outcome]]:
    """Return the outcomes of Proposition 4, for a narrow kernel whose matrix is well conditioned.

    Rows of the unit cube, selected with probability 0.8 in one half and 0.4 in the other.
    """
    random = np.random.default_rng(seed)
    outcomes: dict[str, list[Outcome]] = {}
    gamma = 20.0
    for _ in range(draws):
        population = random.uniform(size=(160, 5))
        probability = np.where(population[:, 0] > 0.5, 0.8, 0.4)
        selected = random.uniform(size=len(population)) < probability
        sample, perfect = population[selected], 0.6 / probability[selected]
        weighter = unskew.KernelMeanMatching(
            bandwidth=float(1 / np.sqrt(2 * gamma)),
            scaling=None,
            bound=4.0,
            ridge=0.0,
            tolerance=1e-8,
            overlap="ignore",  # a kernel as narrow as this leaves rows uncovered
        )
        weights = weighter.fit(sample, population=population).weights_
        K = rbf_kernel(sample, gamma=gamma)
        largest = theory.largest_eigenvalue(K)
        smallest = theory.smallest_eigenvalue(K, largest=largest.upper)
        realised = float(np.linalg.norm(weights - perfect) / len(sample))
        for form in ("paper", "corrected"):
            bound = theory.kmm_distance_bound(
                kappa=1.0,
                lambda_min=smallest.lower,
                lambda_max=largest.upper,
                largest_weight=1.5,
                sample_size=len(sample),
                population_size=len(population),
                delta=delta,
                form=form,
            )
            name = "printed" if form == "paper" else "corrected"
            outcomes.setdefault(f"Proposition 4, {name}", []).append(Outcome(bound.value, realised))
    return outcomes


def weighting_outcomes(delta: float, draws: int, *, seed: int = 0) -> dict[str, list[Outcome]]:
    """Return the outcomes of the bound by the effective sample size, for a fixed hypothesis.

    Two kinds of rows, drawn with probabilities 0.9 and 0.1 instead of 0.5 each; the hypothesis
    errs on the rarer kind with probability 0.4 and on the other with 0.1, so that its risk is 0.25.
    """
    random = np.random.default_rng(seed)
    outcomes: list[Outcome] = []
    for _ in range(draws):
        rare = random.uniform(size=300) < 0.1
        weights = np.where(rare, 0.5 / 0.1, 0.5 / 0.9)
        loss = random.uniform(size=300) < np.where(rare, 0.4, 0.1)
        bound = theory.importance_weighting_bound(
            weights, delta=delta, largest_weight=5.0, second_moment=0.25 / 0.1 + 0.25 / 0.9
        )
        outcomes.append(Outcome(bound.value, 0.25 - float(np.mean(weights * loss))))
    return {"effective sample size (2010)": outcomes}
