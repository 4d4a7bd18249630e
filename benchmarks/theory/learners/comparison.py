"""The paper's last comparison with a third column: cells, kernel mean matching, discriminative."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import rbf_kernel

from benchmarks.theory.data import draws
from unskew import theory

KAPPA, LAMBDA, SIGMA = 1.0, 1.0, 1.0
"""Of the learner, for weights that sum to one. The bounds are proportional to σ²/λ."""

ROWS = 1000
"""Of the population, for the eigenvalues of kernel mean matching."""


def comparison(path: Path) -> dict[str, float]:
    """Return the corrected bounds on the change of risk, with δ = 0.05."""
    one = next(iter(draws(path, 1, by_cell=True)))
    selected = one.selected[:ROWS]
    population = one.rows[:ROWS]
    X = population[selected]
    m, n = len(X), len(population)
    places = one.partition.predict(population)
    everyone, mine = (
        np.bincount(part, minlength=places.max() + 1) for part in (places, places[selected])
    )
    counts = {"population_counts": everyone[mine > 0], "sample_counts": mine[mine > 0]}
    # The paper's weights n_C / (m m_C) sum to n / m.
    cells = theory.cluster_bound(
        **counts, kappa=KAPPA, lam=LAMBDA * n / m, lipschitz=SIGMA, cells="points"
    )
    exact = theory.worst_case_distance(**counts, norm="l1", delta=0.05)
    K = rbf_kernel(X, gamma=1 / X.shape[1])
    matching = theory.kmm_bound(
        kappa=KAPPA,
        lam=LAMBDA,
        lipschitz=SIGMA,
        lambda_min=max(theory.smallest_eigenvalue(K).lower, 0.0),
        lambda_max=theory.largest_eigenvalue(K).upper,
        largest_weight=float((1 / one.probabilities).max() * m / n),
        sample_size=m,
        population_size=n,
    )
    features, weights, covariance = _discriminative(X, population[~selected])
    discriminative = theory.discriminative_bound(
        features=features,
        weights=weights / weights.sum(),
        covariance=covariance,
        kappa=KAPPA,
        lam=LAMBDA,
        lipschitz=SIGMA,
    )
    beta = KAPPA * SIGMA**2 / (2 * LAMBDA)
    found = {
        "cells, Theorem 2": cells,
        "cells, the counts themselves": beta * exact * m / n,
        "kernel mean matching, Theorem 4": matching,
        "discriminative": discriminative,
    }
    return {name: float(f"{float(value):.3g}") for name, value in found.items()}


def _discriminative(
    sample: np.ndarray, others: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return features, weights 1/p and the covariance of a logistic model of selection."""
    rows = np.concatenate([sample, others])
    mine = np.repeat([1, 0], [len(sample), len(others)])
    model = LogisticRegression(C=1e6, max_iter=5000).fit(rows, mine)
    chance = model.predict_proba(rows)[:, 1]
    features = np.column_stack([np.ones(len(rows)), rows])
    information = features.T @ ((chance * (1 - chance))[:, None] * features)
    own = slice(len(sample))
    inverse = np.linalg.pinv(information, hermitian=True, rcond=1e-10)
    return features[own], 1 / chance[own], inverse
