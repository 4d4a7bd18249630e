"""Measure the selection models: ``OMP_NUM_THREADS=1 python -m benchmarks.heckman [PART ...]``.

Parts: convergence (200 random designs), coverage (1,000 draws), exclusion (1,000 draws without an
exclusion column) and cost are about HeckmanRegressor; those that begin with "classes" are about
HeckmanClassifier on the same designs, where the outcome is whether the number is positive, σ is 1,
at least 300 rows are seen, and draws of the coverage have 2,000 rows. Results are stored beside
this file.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from benchmarks.heckman.simulate import Draw, random_design, standard_design
from benchmarks.parts import run_parts
from unskew import HeckmanClassifier, HeckmanRegressor

RESULT = Path(__file__).with_name("result.json")
DESIGNS = 200
DRAWS = 1000


def _convergence(draw: Callable[[int], Draw], fitted: Callable[[Draw], Any]) -> dict[str, Any]:
    """Fit each design; count those that end without a warning."""
    clean, steps, warned = 0, [], []
    for number in range(DESIGNS):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = fitted(draw(number))
        steps.append(model.certificate_.steps)
        if model.certificate_.converged and not caught:
            clean += 1
        else:
            rows = f"design {number}, {model.n_selected_} rows seen"
            warned.append(f"{rows}: {'; '.join(str(one.message)[:90] for one in caught)}")
    return {"designs": DESIGNS, "clean": clean, "most_steps": max(steps), "warned": warned}


def _likely(draw: Draw) -> HeckmanRegressor:
    return HeckmanRegressor(outcome=draw.outcome, method="ml").fit(draw.X, draw.y)


def _two_step(draw: Draw) -> HeckmanRegressor:
    return HeckmanRegressor(outcome=draw.outcome).fit(draw.X, draw.y)


def _of_classes(draw: Draw) -> HeckmanClassifier:
    return HeckmanClassifier(outcome=draw.outcome).fit(draw.X, draw.classes)


def convergence() -> dict[str, Any]:
    """Fit each design by maximum likelihood."""
    return _convergence(lambda number: random_design(number, of=DESIGNS), _likely)


def classes_convergence() -> dict[str, Any]:
    """Fit each design by the probit with selection."""

    def draw(number: int) -> Draw:
        return random_design(number, of=DESIGNS, least=300, sigma=1.0)

    return _convergence(draw, _of_classes)


def _coverage(draw: Callable[[int], Draw], fitted: Callable[[Draw], Any]) -> dict[str, Any]:
    """Count how often 95 % intervals of the outcome's coefficients hold the truth."""
    inside, widths, estimates, warned = np.zeros(3), np.zeros(3), [], 0
    for seed in range(DRAWS):
        one = draw(seed)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = fitted(one)
        warned += bool(caught)
        rows = [row for row in model.summary().rows if row.equation == "outcome"]
        truth = [one.intercept, *one.coef]
        inside += [row.low <= true <= row.high for row, true in zip(rows, truth, strict=True)]
        widths += [row.high - row.low for row in rows]
        estimates.append([row.estimate for row in rows])
    return {
        "covered": (inside / DRAWS).round(4).tolist(),
        "mean_width": (widths / DRAWS).round(4).tolist(),
        "standard_deviation": np.std(estimates, axis=0).round(4).tolist(),
        "bias": (np.mean(estimates, axis=0) - truth).round(4).tolist(),
        "warned": warned,
    }


def _both(*, exclusion: bool) -> dict[str, Any]:
    def draw(seed: int) -> Draw:
        return standard_design(seed, exclusion=exclusion)

    methods = {"two-step": _two_step, "ml": _likely}
    return {"draws": DRAWS, **{name: _coverage(draw, fit) for name, fit in methods.items()}}


def coverage() -> dict[str, Any]:
    """Count how often 95 % intervals of the constant and two coefficients hold the truth."""
    return _both(exclusion=True)


def exclusion() -> dict[str, Any]:
    """Count the same where both columns of the selection are in the outcome too."""
    return _both(exclusion=False)


def classes_coverage() -> dict[str, Any]:
    """Count the same for the probit with selection."""
    return {"draws": DRAWS, **_coverage(lambda seed: standard_design(seed, n=2000), _of_classes)}


def _cost(fitted: Callable[[Draw], Any]) -> dict[str, Any]:
    """Time a fit with 10⁵ rows and 20 columns."""
    random = np.random.default_rng(0)
    X = random.normal(size=(100_000, 20))
    first, second = random.normal(size=(2, len(X)))
    y = X[:, :15].sum(axis=1) + 0.6 * first + 0.8 * second
    y[X.sum(axis=1) + first < 0] = np.nan
    draw = Draw(X, y, list(range(15)), 0.0, np.ones(15))
    begin = process_time()  # other work on the machine does not count
    model = fitted(draw)
    seconds = process_time() - begin
    steps, _, converged = model.certificate_
    size = {"rows": len(X), "columns": 20}
    return {**size, "seconds": round(seconds, 2), "steps": steps, "converged": converged}


def cost() -> dict[str, Any]:
    """Time maximum likelihood."""
    return _cost(_likely)


def classes_cost() -> dict[str, Any]:
    """Time the probit with selection."""
    return _cost(_of_classes)


PARTS = {
    part.__name__: part
    for part in (
        convergence,
        coverage,
        exclusion,
        cost,
        classes_convergence,
        classes_coverage,
        classes_cost,
    )
}


if __name__ == "__main__":
    run_parts(PARTS, RESULT, __doc__)
