"""Stability by relative entropy and margin, and the bound of the discriminative method."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import rbf_kernel

from unskew.errors import InputError, ParameterError
from unskew.theory import (
    discriminative_bound,
    discriminative_distance_bound,
    distance,
    lipschitz_constant,
    stability_coefficient,
)


def gibbs(losses, weights, lam):
    """The minimum of the mean loss plus the relative entropy to the even distribution."""
    logs = -(weights @ losses) / lam
    density = np.exp(logs - logs.max())
    return density / density.sum()


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_relative_entropy_holds_for_gibbs_posteriors(norm):
    random = np.random.default_rng(0)
    for _ in range(50):
        losses = random.uniform(0, 2, size=(7, 5))
        W, V = random.dirichlet(np.ones(7), size=2)
        lam = random.uniform(0.05, 1)
        beta = stability_coefficient(
            regulariser="relative-entropy", lam=lam, largest_loss=2.0, norm=norm, sample_size=7
        )
        new = np.eye(5)[random.integers(5)] * 2  # a loss that only one model suffers
        moved = (gibbs(losses, W, lam) - gibbs(losses, V, lam)) @ np.column_stack([losses.T, new])
        assert np.abs(moved).max() <= beta * distance(W, V, norm=norm)


def test_relative_entropy_is_met_exactly_in_the_limit():
    # Two models, one of which each label's loss falls on; a small change from even weights.
    losses, lam, step = np.array([[2.0, 0.0], [0.0, 2.0]]), 0.7, 1e-4
    W, V = np.array([0.5 + step, 0.5 - step]), np.array([0.5, 0.5])
    moved = np.abs((gibbs(losses, W, lam) - gibbs(losses, V, lam)) @ losses.T).max()
    beta = stability_coefficient(
        regulariser="relative-entropy", lam=lam, largest_loss=2.0, norm="l1"
    )
    assert moved == pytest.approx(beta * distance(W, V, norm="l1"), rel=1e-4)


def test_what_each_regulariser_needs():
    with pytest.raises(ParameterError, match="needs largest_loss"):
        stability_coefficient(regulariser="relative-entropy", lam=1.0, norm="l1")
    with pytest.raises(ParameterError, match="only says that there is one"):
        stability_coefficient(
            regulariser="relative-entropy", lam=1.0, norm="l1", largest_loss=1.0, form="paper"
        )
    with pytest.raises(ParameterError, match="lipschitz must be a number"):
        stability_coefficient(lam=1.0, norm="l1", kappa=1.0)
    with pytest.raises(ParameterError, match="needs margin"):
        lipschitz_constant("margin")
    assert lipschitz_constant("margin", margin=0.5) == 2.0


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_the_distance_of_logistic_weights(norm):
    # Parameters drawn from the normal distribution itself: only the geometry is tested.
    random = np.random.default_rng(0)
    X = random.normal(size=(300, 3))
    root = random.normal(size=(3, 3)) * 0.05
    truth = np.exp(-X @ [0.5, -0.3, 0.1])
    failed = 0
    for _ in range(100):
        weights = truth * np.exp(-X @ (root @ random.normal(size=3)))
        bound = discriminative_distance_bound(
            features=X, weights=weights, covariance=root @ root.T, norm=norm, delta=0.1
        )
        failed += distance(truth, weights, norm=norm) > bound
    assert failed <= 18  # Pr[Bin(100, 0.1) > 18] = 0.005
    assert bound < 5 * distance(truth, weights, norm=norm)


def test_the_risk_of_a_kernel_model():
    random = np.random.default_rng(0)
    X = random.normal(size=(80, 2))
    y = np.clip(X[:, 0] + 0.2 * random.normal(size=80), -2, 2)
    estimate = np.exp(-X @ [0.4, 0.1])
    covariance = np.eye(2) * 1e-3
    truth = estimate * np.exp(X @ [0.02, -0.03])
    lam, total = 0.05, estimate.sum()
    models = [
        KernelRidge(kernel="rbf", gamma=0.5, alpha=lam * total).fit(X, y, sample_weight=w)
        for w in (estimate, truth)
    ]
    sigma = lipschitz_constant("squared", largest_label=2.0, kappa=1.0, lam=lam, total_weight=1.1)
    given = {"features": X, "weights": estimate / total, "covariance": covariance}
    stable = {"kappa": 1.0, "lam": lam, "lipschitz": sigma}
    losses = [(model.predict(X) - y) ** 2 for model in models]
    changed = np.abs(losses[0] - losses[1]).max()
    top = np.linalg.eigvalsh(rbf_kernel(X, gamma=0.5))[-1]
    for norm in ("l1", "l2"):
        assert changed <= discriminative_bound(**given, **stable, norm=norm, lambda_max=top)


def test_bad_input():
    with pytest.raises(InputError, match="covariance has shape"):
        discriminative_distance_bound(
            features=[[1.0, 2.0]], weights=[1.0], covariance=[[1.0]], norm="l1"
        )
    with pytest.raises(InputError, match="features must be a table"):
        discriminative_distance_bound(
            features=[[np.nan]], weights=[1.0], covariance=[[1.0]], norm="l1"
        )
