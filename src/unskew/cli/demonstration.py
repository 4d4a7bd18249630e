"""The data and the computation of ``unskew demo``: synthetic patients, a biased sample, its errors.

Patients are drawn from the formulas below, so that they are part of the package, come in any
number and with the true answer. Yearly cost follows J-shaped curves in age and body mass index, as
risks in medicine often do, so that a straight line fitted to some of the patients is wrong about
the others.

Each draw makes a fresh population and a fresh direction of bias, so that no seed is a lucky one;
four sets of weights are compared by the true error of a straight line that is trained with them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import joblib
import numpy as np
from numpy.typing import NDArray
from scipy import stats
from sklearn.linear_model import LinearRegression
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state

import unskew
from unskew.paper.selection import logistic_selection

COLUMNS = ("age", "body_mass_index", "blood_pressure", "active_hours", "smoker")
METHODS = ("unweighted", "ideal", "tree", "auto")

N_POPULATION = 4_000
N_TEST = 4_000


class Clinic(NamedTuple):
    """Patients and their yearly cost."""

    patients: NDArray[np.float64]
    cost: NDArray[np.float64]


def make_clinic(n_patients: int, *, random_state: Any = None) -> Clinic:
    """Draw patients at random, with their yearly cost in thousands.

    Examples
    --------
    >>> patients, cost = make_clinic(100, random_state=0)
    >>> patients.shape, cost.shape
    ((100, 5), (100,))
    """
    random = check_random_state(random_state)
    age = random.gamma(9.0, 5.0, n_patients).clip(18, 95)
    body_mass_index = random.normal(26.0, 4.5, n_patients)
    blood_pressure = random.normal(115 + 0.35 * (age - 45), 14.0)
    active_hours = random.gamma(2.0, 2.0, n_patients)
    smoker = (random.uniform(size=n_patients) < 0.22).astype(np.float64)
    cost = (
        1.2 * ((age - 40) / 20) ** 2
        + ((body_mass_index - 23) / 6) ** 2
        + 0.8 * np.maximum(0, (blood_pressure - 125) / 15)
        + 1.2 * np.exp(-active_hours / 2)
        + 0.9 * smoker * (age > 50)
        + random.normal(0, 0.6, n_patients)
    )
    patients = np.column_stack([age, body_mass_index, blood_pressure, active_hours, smoker])
    return Clinic(patients, cost)


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
class ErrorSummary:
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


def demonstrate(draws: int, *, seed: int = 0, jobs: int = 1) -> Iterator[Draw]:
    """Yield one draw after the other, made in as many processes."""
    if jobs == 1:
        yield from (_draw(seed, number) for number in range(draws))
        return
    with joblib.parallel_config(backend="loky", inner_max_num_threads=1):
        parallel = joblib.Parallel(n_jobs=jobs, return_as="generator")
        yield from parallel(joblib.delayed(_draw)(seed, number) for number in range(draws))


def _draw(seed: int, number: int) -> Draw:
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


def summarise(draws: list[Draw]) -> list[ErrorSummary]:
    """Return the outcome of each set of weights over all draws."""
    return [_outcome(method, draws) for method in METHODS]


def _outcome(method: str, draws: list[Draw]) -> ErrorSummary:
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
    return ErrorSummary(
        method=method,
        error=float(errors.mean()),
        spread=float(errors.std(ddof=1)) if n_draws > 1 else float("nan"),
        change=(float(change.mean()), float(margin)),
        better=int((change < 0).sum()),
        effective=float(np.mean(effective)),
    )
