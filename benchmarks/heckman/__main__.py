"""Measure HeckmanRegressor: ``OMP_NUM_THREADS=1 python -m benchmarks.heckman [PART ...]``.

Parts: convergence (200 random designs), coverage (1,000 draws), exclusion (1,000 draws without an
exclusion column) and cost. Their results are stored beside this file.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.heckman.simulate import random_design, standard_design
from benchmarks.parts import run_parts
from unskew import HeckmanRegressor

RESULT = Path(__file__).with_name("result.json")
DESIGNS = 200
DRAWS = 1000


def convergence() -> dict[str, Any]:
    """Fit each design by maximum likelihood; count those that end without a warning."""
    clean, steps, warned = 0, [], []
    for number in range(DESIGNS):
        draw = random_design(number, of=DESIGNS)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = HeckmanRegressor(outcome=draw.outcome, method="ml").fit(draw.X, draw.y)
        steps.append(model.certificate_.steps)
        if model.certificate_.converged and not caught:
            clean += 1
        else:
            rows = f"design {number}, {model.n_selected_} rows seen"
            warned.append(f"{rows}: {'; '.join(str(one.message)[:90] for one in caught)}")
    return {"designs": DESIGNS, "clean": clean, "most_steps": max(steps), "warned": warned}


def _coverage(*, exclusion: bool) -> dict[str, Any]:
    result: dict[str, Any] = {"draws": DRAWS}
    for method in ("two-step", "ml"):
        inside, widths, estimates, warned = np.zeros(3), np.zeros(3), [], 0
        for seed in range(DRAWS):
            draw = standard_design(seed, exclusion=exclusion)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                model = HeckmanRegressor(outcome=draw.outcome, method=method)
                model.fit(draw.X, draw.y)
            warned += bool(caught)
            summary = model.summary()
            rows = [row for row in summary.rows if row.equation == "outcome"]
            truth = [draw.intercept, *draw.coef]
            inside += [row.low <= true <= row.high for row, true in zip(rows, truth, strict=True)]
            widths += [row.high - row.low for row in rows]
            estimates.append([row.estimate for row in rows])
        result[method] = {
            "covered": (inside / DRAWS).round(4).tolist(),
            "mean_width": (widths / DRAWS).round(4).tolist(),
            "standard_deviation": np.std(estimates, axis=0).round(4).tolist(),
            "bias": (np.mean(estimates, axis=0) - truth).round(4).tolist(),
            "warned": warned,
        }
    return result


def coverage() -> dict[str, Any]:
    """Count how often 95 % intervals of the constant and two coefficients hold the truth."""
    return _coverage(exclusion=True)


def exclusion() -> dict[str, Any]:
    """Count the same where both columns of the selection are in the outcome too."""
    return _coverage(exclusion=False)


def cost() -> dict[str, Any]:
    """Time maximum likelihood with 10⁵ rows and 20 columns."""
    random = np.random.default_rng(0)
    X = random.normal(size=(100_000, 20))
    first, second = random.normal(size=(2, len(X)))
    y = X[:, :15].sum(axis=1) + 0.6 * first + 0.8 * second
    y[X.sum(axis=1) + first < 0] = np.nan
    begin = perf_counter()
    model = HeckmanRegressor(outcome=list(range(15)), method="ml").fit(X, y)
    seconds = perf_counter() - begin
    return {"rows": len(X), "columns": 20, "seconds": round(seconds, 2), **_steps(model)}


def _steps(model: HeckmanRegressor) -> dict[str, Any]:
    return {"steps": model.certificate_.steps, "converged": model.certificate_.converged}


PARTS = {"convergence": convergence, "coverage": coverage, "exclusion": exclusion, "cost": cost}


if __name__ == "__main__":
    run_parts(PARTS, RESULT, __doc__)
