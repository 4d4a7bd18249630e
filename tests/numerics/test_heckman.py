from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize
from scipy.stats import multivariate_normal, norm
from tests.numerics.heckman_problem import problem

from unskew.numerics.heckman import (
    Basis,
    LinearLikelihood,
    SelectionProblem,
    condition_number,
    fit_probit,
    inverse_mills,
    maximise_linear,
    sandwich,
    two_step,
)
from unskew.numerics.newton import minimise


class TestProbit:
    def test_a_group_each_has_the_probit_of_its_share(self):
        groups = np.repeat([0, 1], [10, 20])
        selected = np.append(np.arange(10) < 3, np.arange(20) < 15)
        fit = fit_probit(np.eye(2)[groups], selected, np.ones(30))
        np.testing.assert_allclose(fit.coef, norm.ppf([0.3, 0.75]), atol=1e-9)
        assert fit.certificate.converged

    def test_mills_ratio_far_out_is_its_asymptote(self):
        t = np.array([-50.0, -300.0])
        np.testing.assert_allclose(inverse_mills(t), -t - 1 / t, rtol=1e-6)

    def test_weights_count_rows(self):
        one = problem()
        counts = np.random.default_rng(1).integers(1, 4, 400)
        weighted = fit_probit(one.selection.columns, one.selected, counts.astype(float))
        repeated = np.repeat(np.arange(400), counts)
        plain = fit_probit(
            one.selection.columns[repeated], one.selected[repeated], np.ones(len(repeated))
        )
        np.testing.assert_allclose(weighted.coef, plain.coef, atol=1e-9)

    def test_perfect_prediction_does_not_converge(self):
        x = np.linspace(-1, 1, 20)
        fit = fit_probit(np.column_stack([np.ones(20), x]), x > 0, np.ones(20))
        assert not fit.certificate.converged


class TestBasis:
    @pytest.mark.parametrize("scale", [1e-8, 1.0, 1e12])
    def test_coefficients_go_back(self, scale):
        random = np.random.default_rng(0)
        X = np.column_stack([np.ones(50), random.normal(size=(50, 3)) * scale + 3 * scale])
        basis = Basis.from_matrix(X)
        np.testing.assert_allclose(X @ basis.back, basis.columns, atol=1e-8)
        np.testing.assert_allclose(basis.columns.T @ basis.columns, 50 * np.eye(4), atol=1e-8)

    def test_dependent_columns_are_left_out_from_the_left(self):
        random = np.random.default_rng(0)
        a, b = random.normal(size=(2, 30))
        X = np.column_stack([np.ones(30), a, 2 * a + 1, b, a - b, np.zeros(30)])
        assert Basis.from_matrix(X).kept.tolist() == [0, 1, 3]

    def test_more_columns_than_rows(self):
        X = np.random.default_rng(0).normal(size=(3, 5))
        assert Basis.from_matrix(X).kept.tolist() == [0, 1, 2]


class TestLikelihood:
    def test_it_is_the_probability_of_what_is_seen(self):
        """Against the bivariate normal density, integrated over the selection error."""
        one = problem(n=40)
        n_selection, n_outcome = one.sizes
        gamma, beta = np.array([0.3, -0.5, 0.8]), np.array([0.5, 1.0])
        sigma, rho = 1.7, -0.4
        total = norm.logcdf(-(one.selection.columns[~one.selected] @ gamma)).sum()
        for z, x, y in zip(one.z, one.outcome.columns, one.y, strict=True):
            e = y - x @ beta
            grid = np.linspace(-z @ gamma, 12, 4001)
            joint = multivariate_normal([0, 0], [[1, rho * sigma], [rho * sigma, sigma**2]])
            density = joint.pdf(np.column_stack([grid, np.full(len(grid), e)]))
            total += np.log(np.trapezoid(density, grid))
        params = np.concatenate([gamma, beta, [np.log(sigma), np.arctanh(rho)]])
        assert len(params) == n_selection + n_outcome + 2
        assert LinearLikelihood(one).value(params) == pytest.approx(total, rel=1e-6)

    @pytest.mark.parametrize("tau", [-1.5, 0.0, 0.4])
    def test_derivatives_are_those_of_the_value(self, tau):
        weight = np.random.default_rng(2).uniform(0.5, 2, 400)
        likelihood = LinearLikelihood(problem(weight=weight))
        params = np.array([0.3, -0.5, 0.8, 0.5, 1.0, 0.2, tau])
        gradient = likelihood.derivatives(params)[0]
        np.testing.assert_allclose(
            approx_fprime(params, likelihood.value, 1e-6), gradient, rtol=1e-4, atol=1e-2
        )
        hessian = likelihood.derivatives(params)[1]
        np.testing.assert_allclose(
            approx_fprime(params, lambda p: likelihood.derivatives(p)[0], 1e-6),
            hessian,
            rtol=1e-4,
            atol=1e-2,
        )
        np.testing.assert_allclose(likelihood.scores(params).sum(axis=0), gradient, atol=1e-8)

    @pytest.mark.parametrize("rho", [-0.9, 0.0, 0.7])
    def test_no_other_solver_gets_higher(self, rho):
        one = problem(rho=rho, seed=3)
        found = maximise_linear(one, two_step(one))
        likelihood = LinearLikelihood(one)
        start = np.append(two_step(one).params[:-1], [0.0, 0.0])
        other = minimize(lambda p: -likelihood.value(p), start, method="BFGS")
        assert found.certificate.converged
        assert found.log_likelihood >= -other.fun - 1e-9
        np.testing.assert_allclose(found.params, other.x, atol=2e-4)

    def test_a_likelihood_that_rises_up_to_the_boundary(self):
        random = np.random.default_rng(1)
        z = random.normal(size=60)
        selected = z > 0.1
        y = z[selected]  # the outcome is the selection index itself: ρ is one
        Z = np.column_stack([np.ones(60), random.normal(size=60)])
        one = SelectionProblem(
            Basis.from_matrix(Z), Basis.from_matrix(Z[selected]), selected, y, np.ones(60)
        )
        found = maximise_linear(one, two_step(one))
        assert found.at_boundary
        assert not found.certificate.converged


class TestTwoStep:
    def test_it_is_least_squares_on_the_mills_ratio(self):
        one = problem()
        found = two_step(one)
        mills = norm.pdf(one.z @ found.params[:3]) / norm.cdf(one.z @ found.params[:3])
        regressors = np.column_stack([one.outcome.columns, mills])
        expected = np.linalg.solve(regressors.T @ regressors, regressors.T @ one.y)
        np.testing.assert_allclose(found.params[3:], expected, atol=1e-8)

    def test_influence_is_that_of_the_stacked_estimating_equations(self):
        """The sandwich of probit scores and normal equations, its bread by finite differences."""
        one = problem(weight=np.random.default_rng(4).uniform(0.5, 2, 400))
        found = two_step(one)

        def rows(params):
            index = one.selection.columns @ params[:3]
            sign = np.where(one.selected, 1.0, -1.0)
            score = one.selection.columns * (sign * inverse_mills(sign * index))[:, None]
            mills = inverse_mills(index[one.selected])
            regressors = np.column_stack([one.outcome.columns, mills])
            normal = np.zeros((400, 3))
            normal[one.selected] = regressors * (one.y - regressors @ params[3:])[:, None]
            return one.weight[:, None] * np.hstack([score, normal])

        bread = np.linalg.inv(-approx_fprime(found.params, lambda p: rows(p).sum(axis=0), 1e-7))
        np.testing.assert_allclose(found.influence, rows(found.params) @ bread.T, atol=1e-6)

    def test_clusters_of_one_row_are_the_robust_covariance(self):
        influence = two_step(problem()).influence
        np.testing.assert_allclose(
            sandwich(influence, np.random.default_rng(0).permutation(400)), sandwich(influence)
        )

    def test_repeating_rows_in_clusters_changes_nothing_but_the_factor(self):
        influence = two_step(problem()).influence
        doubled = sandwich(np.repeat(influence / 2, 2, axis=0), np.repeat(np.arange(400), 2))
        np.testing.assert_allclose(doubled, sandwich(influence), rtol=1e-9)

    def test_condition_number_is_that_of_the_matrix(self):
        one = problem()
        mills = inverse_mills(one.z @ two_step(one).params[:3])
        u = np.linalg.svd(one.outcome.columns, full_matrices=False)[0]
        matrix = np.column_stack([u, mills / np.linalg.norm(mills)])
        assert condition_number(one, mills) == pytest.approx(np.linalg.cond(matrix))


def test_newton_reports_a_function_without_maximum():
    end = minimise(lambda x: -float(x[0]), lambda x: (-np.ones(1), -np.ones((1, 1))), np.zeros(1))
    assert not end.certificate.converged
