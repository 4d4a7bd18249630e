"""Distances, Theorem 1 and what follows at once, against values worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from unskew.errors import InputError, ParameterError
from unskew.theory import (
    distance,
    lambda_of_kernel_ridge,
    lambda_of_svr,
    lipschitz_constant,
    removal_bound,
    risk_bound,
    stability_coefficient,
)


class TestDistance:
    @pytest.mark.parametrize(
        ("norm", "value"),
        [
            ("l1", 0.5),
            ("l2", math.sqrt(0.125)),
            ("relative-entropy", 0.5 * math.log(2) + 0.5 * math.log(2 / 3)),
            ("relative_entropy", 0.5 * math.log(2) + 0.5 * math.log(2 / 3)),
            ("hellinger", math.sqrt(1 - math.sqrt(0.125) - math.sqrt(0.375))),
        ],
    )
    def test_by_hand(self, norm, value):
        assert distance([0.5, 0.5], [0.25, 0.75], norm=norm).value == pytest.approx(
            value, abs=1e-15
        )

    def test_removing_a_row_moves_the_weights_as_the_paper_says(self):
        m = 7
        uniform, removed = np.full(m, 1 / m), np.append(np.full(m - 1, 1 / (m - 1)), 0)
        assert distance(uniform, removed, norm="l1") == pytest.approx(2 / m)
        assert distance(uniform, removed, norm="l2") == pytest.approx(1 / math.sqrt(m * (m - 1)))

    def test_entropy_is_infinite_where_mass_is_lost(self):
        assert distance([0.5, 0.5], [1.0, 0.0], norm="relative-entropy") == math.inf
        assert distance([1.0, 0.0], [0.5, 0.5], norm="relative-entropy") == pytest.approx(
            math.log(2)
        )

    def test_a_weighting_is_at_no_distance_from_itself(self):
        weights = np.random.default_rng(0).dirichlet(np.ones(9))
        for norm in ("l1", "l2", "relative-entropy", "hellinger"):
            assert distance(weights, weights, norm=norm) == 0

    def test_unnormalised_weights_are_fine_for_norms_only(self):
        assert distance([2.0, 2.0], [1.0, 1.0], norm="l1") == 2
        with pytest.raises(InputError, match="V sums to 2"):
            distance([0.5, 0.5], [1.0, 1.0], norm="hellinger")

    def test_normalising_at_most_doubles_the_distance(self):
        # With sums a and b, the normalised distance is at most 2 |W - V|_1 / max(a, b).
        random = np.random.default_rng(1)
        for _ in range(200):
            W, V = random.gamma(0.3, size=(2, 6)) + 1e-3
            apart = distance(W / W.sum(), V / V.sum(), norm="l1")
            assert apart <= 2 * distance(W, V, norm="l1") / max(W.sum(), V.sum()) + 1e-12

    @pytest.mark.parametrize(
        ("W", "V", "message"),
        [
            ([1.0], [0.5, 0.5], "W has 1 weights and V 2"),
            ([-0.5, 1.5], [0.5, 0.5], "W must not be negative; got -0.5 at position 0"),
            ([0.5, 0.5], [math.nan, 0.5], "V must be finite"),
            ([], [], "empty"),
            ([0.0, 0.0], [0.5, 0.5], "W is zero on every row"),
        ],
    )
    def test_bad_weights(self, W, V, message):
        with pytest.raises(InputError, match=message):
            distance(W, V, norm="l1")

    def test_unknown_norm(self):
        with pytest.raises(ParameterError, match='norm must be one of "l1", "l2"'):
            distance([1.0], [1.0], norm="l3")


class TestCoefficient:
    def test_by_hand(self):
        given = {"kappa": 4.0, "lam": 0.5, "lipschitz": 3.0}
        assert stability_coefficient(**given, norm="l1") == 9 * 4 / 1
        assert stability_coefficient(**given, norm="l1", form="paper") == 9 * 16 / 1
        assert stability_coefficient(**given, norm="l2", lambda_max=25.0) == 9 * 2 * 5 / 1
        assert stability_coefficient(**given, norm="l2", lambda_max=25.0, form="paper") == 9 * 4 * 5

    def test_the_largest_eigenvalue_plays_no_part_in_l1(self):
        given = {"kappa": 4.0, "lam": 0.5, "lipschitz": 3.0, "norm": "l1"}
        assert stability_coefficient(**given, lambda_max=7.0) == stability_coefficient(**given)

    @pytest.mark.parametrize("kappa", [0.1, 0.5, 1.0])
    def test_counterexample_to_the_printed_coefficient(self, kappa):
        # One input, labels 1 and -1, absolute loss, all weight on one label or the other.
        lam = 0.8

        def fitted(label):
            # h = c K(x, .): h(x) = c kappa, |h|^2 = c^2 kappa
            objective = lambda h: abs(h - label) + lam * h * h / kappa  # noqa: E731
            return minimize_scalar(
                objective, bounds=(-2, 2), method="bounded", options={"xatol": 1e-10}
            ).x

        W, V = [1.0, 0.0], [0.0, 1.0]
        realised = abs(fitted(1.0) - fitted(-1.0))
        assert realised == pytest.approx(kappa / lam, abs=1e-6)
        lambda_max = 2 * kappa  # of kappa * [[1, 1], [1, 1]]
        for norm, extra in (("l1", {}), ("l2", {"lambda_max": lambda_max})):
            given = {"kappa": kappa, "lam": lam, "lipschitz": 1.0, "norm": norm, **extra}
            apart = distance(W, V, norm=norm)
            assert stability_coefficient(**given) * apart == pytest.approx(realised, abs=1e-6)
            printed = stability_coefficient(**given, form="paper") * apart
            assert (printed < 0.8 * realised) == (kappa < 0.6)

    def test_the_loss_of_random_models_moves_no_more(self):
        from sklearn.kernel_ridge import KernelRidge
        from sklearn.metrics.pairwise import rbf_kernel

        random = np.random.default_rng(0)
        X, y = random.normal(size=(30, 2)), random.uniform(-1, 1, 30)
        K, lam = rbf_kernel(X, gamma=1.0), 0.05
        lambda_max = np.linalg.eigvalsh(K)[-1]
        sigma = lipschitz_constant("squared", largest_label=1.0, kappa=1.0, lam=lam)
        for _ in range(20):
            W, V = random.dirichlet(np.ones(30), size=2)
            h, g = (
                KernelRidge(alpha=lam, kernel="rbf", gamma=1.0)
                .fit(X, y, sample_weight=w)
                .predict(X)
                for w in (W, V)
            )
            moved = np.abs((h - y) ** 2 - (g - y) ** 2).max()
            for norm, extra in (("l1", {}), ("l2", {"lambda_max": lambda_max})):
                beta = stability_coefficient(
                    kappa=1.0, lam=lam, lipschitz=sigma, norm=norm, **extra
                )
                assert moved <= beta * distance(W, V, norm=norm)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"lam": 0.0}, "lam must be positive"),
            ({"lam": -1.0}, "lam must be positive"),
            ({"lam": "x"}, "lam must be a number"),
            ({"kappa": math.inf}, "kappa must be positive and finite"),
            ({"lipschitz": 0.0}, "lipschitz must be positive"),
            ({"norm": "l2"}, "needs lambda_max"),
            ({"kappa": None}, "Gaussian, Laplace"),
            ({"norm": "hellinger"}, "norm must be one of"),
            ({"form": "printed"}, 'form must be one of "paper", "corrected"'),
        ],
    )
    def test_bad_input(self, change, message):
        with pytest.raises(ParameterError, match=message):
            stability_coefficient(
                **{"kappa": 1.0, "lam": 1.0, "lipschitz": 1.0, "norm": "l1", **change}
            )


def test_removing_one_point_is_twice_bousquet_and_elisseeff():
    given = {"kappa": 1.0, "lam": 0.1, "lipschitz": 2.0}
    point = (
        2.0**2 * 1.0 / (2 * 0.1 * 50)
    )  # sigma^2 kappa^2 / (2 lambda m), their K(x, x) <= kappa^2
    assert removal_bound(sample_size=50, **given) == pytest.approx(2 * point)
    l2 = removal_bound(sample_size=50, **given, norm="l2", lambda_max=16.0)
    assert l2 == pytest.approx(4 * 4 / 0.2 / math.sqrt(50 * 49))
    with pytest.raises(ParameterError, match="sample_size"):
        removal_bound(sample_size=1, **given)


def test_risk_changes_by_coefficient_times_distance():
    beta = stability_coefficient(kappa=1.0, lam=1.0, lipschitz=1.0, norm="l1", form="paper")
    bound = risk_bound(coefficient=beta, distance=distance([1, 0], [0, 1], norm="l1"))
    assert bound == 1.0
    assert bound.form == "paper"
    assert risk_bound(coefficient=1.0, distance=math.inf).vacuous


class TestUnits:
    def test_lambda_by_hand(self):
        assert lambda_of_svr(2.0, divisor=100) == 1 / 400
        assert lambda_of_kernel_ridge(3.0, divisor=100) == 0.03

    def test_the_papers_settings(self):
        # C = 1, m = 2000: beta = sigma^2 kappa m C.
        lam = lambda_of_svr(1.0, divisor=2000)
        beta = stability_coefficient(kappa=1.0, lam=lam, lipschitz=1.0, norm="l1")
        assert beta == pytest.approx(2000)

    def test_lipschitz_by_hand(self):
        assert lipschitz_constant("epsilon-insensitive") == 1
        assert lipschitz_constant("hinge") == 1
        assert lipschitz_constant("squared", largest_label=3.0) == 12
        free = lipschitz_constant("squared", largest_label=3.0, kappa=4.0, lam=0.25)
        assert free == 2 * 3 * (1 + 4)
        heavy = lipschitz_constant(
            "squared", largest_label=3.0, kappa=4.0, lam=0.25, total_weight=4.0
        )
        assert heavy == 2 * 3 * (1 + 8)

    def test_bad_input(self):
        with pytest.raises(ParameterError, match="largest_label"):
            lipschitz_constant("squared")
        with pytest.raises(ParameterError, match="both kappa and lam"):
            lipschitz_constant("squared", largest_label=1.0, kappa=1.0)
        with pytest.raises(ParameterError, match="C must be positive"):
            lambda_of_svr(0.0, divisor=1)
