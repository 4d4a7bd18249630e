"""A small demonstration: a biased sample, four sets of weights, the true error of each.

Each draw makes a fresh population and a fresh direction of bias, so that no seed is a lucky one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray
from scipy import stats
from sklearn.linear_model import LinearRegression
from sklearn.preprocessing import StandardScaler

import unskew
from unskew.experiments.clinic import make_clinic
from unskew.experiments.sampling import logistic_selection

METHODS = ("unweighted", "ideal", "tree", "auto")

N_POPULATION = 4_000
N_TEST = 4_000


@dataclass(frozen=True)
class Draw:
    """One biased sample, and the weights and error of each method.

    ``covered`` is the share of the population that the sample covers.
    """

    population: NDArray[np.float64]
    sample: NDArray[np.float64]
    labels: NDArray[np.float64]
    weights: Mapping[str, NDArray[np.float64]]
    errors: Mapping[str, float]
    covered: float


@dataclass(frozen=True)
class Outcome:
    """The results of one set of weights over all draws.

    Attributes
    ----------
    error, spread : float
        Mean and standard deviation over draws of the true test error, as a share of the variance
        of the labels.
    change : tuple of float
        Mean difference from the unweighted error in the same draw, and the half-width of its 95 %
        interval.
    better : int
        In how many draws the error was below the unweighted one.
    effective : float
        Mean effective sample size as a share of the sample.
    """

    method: str
    error: float
    spread: float
    change: tuple[float, float]
    better: int
    effective: float


def auto_weights() -> unskew.AutoWeights:
    """Return the automatic weights, as ``unskew weigh`` makes them; nothing is refused."""
    return unskew.AutoWeights(overlap=1.0)


def demonstrate(
    draws: int, *, seed: int = 0, jobs: int = 1, more: Mapping[str, Any] | None = None
) -> Iterator[Draw]:
    """Yield one draw after the other, made in as many processes.

    ``more`` are weighters to compare with the four, by name.
    """
    if jobs == 1:
        yield from (_draw(seed, number, more or {}) for number in range(draws))
        return
    with joblib.parallel_config(backend="loky", inner_max_num_threads=1):
        parallel = joblib.Parallel(n_jobs=jobs, return_as="generator")
        yield from parallel(
            joblib.delayed(_draw)(seed, number, more or {}) for number in range(draws)
        )


def _draw(seed: int, number: int, more: Mapping[str, Any]) -> Draw:
    random = np.random.RandomState([seed, number])
    population, labels = make_clinic(N_POPULATION, random_state=random)
    test, test_labels = make_clinic(N_TEST, random_state=random)
    standardised = StandardScaler().fit_transform(population)
    mask, probabilities = logistic_selection(standardised, random_state=random)
    sample, sample_labels = population[mask], labels[mask]
    weighters: dict[str, Any] = {
        "unweighted": unskew.Unweighted(),
        "ideal": unskew.KnownProbability(probabilities[mask]),
        "tree": unskew.TreeWeights(overlap="ignore"),  # the errors below show what that costs
        "auto": auto_weights(),
        **more,
    }
    models: dict[str, Any] = {
        method: unskew.Reweighted(LinearRegression(), weighter, power=1).fit(
            sample, sample_labels, population=population
        )
        for method, weighter in weighters.items()
    }
    variance = test_labels.var()
    return Draw(
        population=population,
        sample=sample,
        labels=sample_labels,
        weights={method: model.weights_ for method, model in models.items()},
        errors={
            method: float(np.mean((model.predict(test) - test_labels) ** 2) / variance)
            for method, model in models.items()
        },
        covered=1.0 - models["auto"].weighter_.overlap_.uncovered,
    )


def summarise(draws: list[Draw]) -> list[Outcome]:
    """Return the outcome of each set of weights over all draws."""
    return [_outcome(method, draws) for method in METHODS]


def _outcome(method: str, draws: list[Draw]) -> Outcome:
    errors = np.array([draw.errors[method] for draw in draws])
    change = errors - np.array([draw.errors["unweighted"] for draw in draws])
    n_draws = len(draws)
    margin = (
        stats.t.ppf(0.975, n_draws - 1) * change.std(ddof=1) / np.sqrt(n_draws)
        if n_draws > 1
        else np.nan
    )
    effective = [
        unskew.effective_sample_size(draw.weights[method]) / len(draw.sample) for draw in draws
    ]
    return Outcome(
        method=method,
        error=float(errors.mean()),
        spread=float(errors.std(ddof=1)) if n_draws > 1 else float("nan"),
        change=(float(change.mean()), float(margin)),
        better=int((change < 0).sum()),
        effective=float(np.mean(effective)),
    )
