"""Bounds of weighted means against enumeration and a reference solver of linear programs."""

from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog

from unskew.numerics.sharp_bounds import (
    CellProgram,
    FeatureProgram,
    MeanProgram,
    proxy_moments,
    quantile_regression,
)


def rows_of(kind, m, width, seed=0):
    """Return y, w, s and features of a kind."""
    random = np.random.default_rng([seed, m])
    x = random.normal(size=(m, width))
    w = np.exp(0.7 * x[:, 0]) + 0.1
    y = x @ random.normal(size=width) + random.normal(size=m) * np.exp(0.3 * x[:, -1])
    s = w
    if kind == "nested":
        w = 3 * w
        s = np.maximum(w - 1, 0)
    elif kind == "binary":
        y = (y > 1).astype(float)
    elif kind == "tied":
        y, x = y.round(), x.round()
    elif kind == "heavy":
        y = random.standard_cauchy(m)
    elif kind == "collinear":
        x = np.column_stack([x, x[:, 0] - x[:, 1], np.ones(m)])
    return y, w, s, x


def largest_by_highs(y, w, s, x, odds):
    features = np.column_stack([np.ones(len(y)), x])
    found = linprog(
        -y * s, A_eq=(features * s[:, None]).T, b_eq=s @ features, bounds=(1 / odds, odds)
    )
    return -found.fun + (w - s) @ y


@pytest.mark.parametrize("kind", ["ratio", "nested", "binary", "tied"])
def test_plain_bounds_are_the_largest_of_all_choices_of_factors(kind):
    y, w, s, _ = rows_of(kind, 9, 2)
    for odds in (1.1, 2.0, 7.0):
        corners = np.array(list(product([1 / odds, odds], repeat=len(y))))
        weights = w + s * (corners - 1)
        expected = (weights @ y / weights.sum(axis=1)).max()
        found = MeanProgram(y, w, s).largest(odds)
        assert found.value == pytest.approx(expected, rel=1e-12)
        assert w @ found.pseudo / w.sum() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("kind", ["ratio", "nested", "binary"])
def test_the_breakdown_is_where_the_bound_reaches_the_threshold(kind):
    y, w, s, _ = rows_of(kind, 300, 2)
    program = MeanProgram(y, w, s)
    for odds in (1.05, 1.5, 4.0):
        assert program.breakdown(program.largest(odds).value) == pytest.approx(odds, rel=1e-9)
    assert program.breakdown(w @ y / w.sum() - 0.1) == 1.0
    assert np.isinf(MeanProgram(y, w, w).breakdown(y.max() + 1))


@pytest.mark.parametrize("kind", ["ratio", "nested", "binary", "tied", "heavy", "collinear"])
@pytest.mark.parametrize("m", [12, 400, 3500])
def test_sharp_bounds_are_those_of_a_reference_solver(kind, m):
    y, w, s, x = rows_of(kind, m, 3)
    program = FeatureProgram(y, w, s, x)
    for odds in (1.05, 2.0) if m < 3000 else (1.5,):
        found = program.largest(odds)
        expected = largest_by_highs(y, w, s, x, odds)
        scale = w.sum() * y.std()
        assert found.value == pytest.approx(expected, abs=1e-9 * scale)
        assert 0 <= found.gap <= 1e-9 * scale
        assert w @ found.pseudo == pytest.approx(found.value)


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_bounds_where_many_rows_lie_on_the_plane(sign):
    # With the sign -1 most rows lie on the plane, which is then the same for all odds.
    y, w, s, x = rows_of("binary", 5000, 3)
    program = FeatureProgram(sign * y, w, s, x)
    for odds in (1.1, 1.3, 1.5, 1.8, 1.45):
        found, scale = program.largest(odds), w.sum() * y.std()
        assert found.value == pytest.approx(
            largest_by_highs(sign * y, w, s, x, odds), abs=1e-9 * scale
        )
        assert found.gap <= 1e-9 * scale


@pytest.mark.parametrize("kind", ["ratio", "nested", "binary", "tied"])
def test_cells_are_features_of_zeros_and_ones(kind):
    y, w, s, x = rows_of(kind, 500, 2)
    cells = (x[:, 0] > 0) + 2 * (x[:, 1] > 0.5).astype(int)
    for odds in (1.2, 1.5, 4.0):
        found = CellProgram(y, w, s, cells).largest(odds).value
        dummies = np.eye(4)[cells]
        assert found == pytest.approx(FeatureProgram(y, w, s, dummies).largest(odds).value)


@pytest.mark.parametrize("seed", range(20))
def test_sharp_bounds_lie_inside_the_plain_ones_and_grow_with_the_odds(seed):
    kind = ["ratio", "nested", "binary", "tied", "heavy"][seed % 5]
    y, w, s, x = rows_of(kind, 60 + 20 * seed, 1 + seed % 4, seed)
    cells = (x[:, 0] > 0).astype(int)
    mean, before, tiny = w @ y / w.sum(), w @ y / w.sum(), 1e-9 * np.abs(y).max()
    for odds in (1.01, 1.3, 2.0, 8.0, 50.0):
        plain = MeanProgram(y, w, s).largest(odds).value
        for program in (FeatureProgram(y, w, s, x), CellProgram(y, w, s, cells)):
            sharp = program.largest(odds).value / w.sum()
            assert mean - tiny <= sharp <= plain + tiny
        assert plain >= before - tiny
        before = plain


def test_more_features_narrow_the_bounds():
    y, w, s, x = rows_of("ratio", 400, 4)
    found = [FeatureProgram(y, w, s, x[:, :width]).largest(2.0).value for width in range(1, 5)]
    assert found == sorted(found, reverse=True)
    assert found[-1] < found[0]


def test_quantile_regression_of_a_line_through_noise():
    random = np.random.default_rng(0)
    x = random.uniform(size=4000)
    y = 1 + 2 * x + (1 + x) * random.uniform(-1, 1, 4000)  # quantile q is 2q + (1 + 2q) x
    for q in (0.25, 0.5, 0.9):
        beta, _ = quantile_regression(y, np.column_stack([np.ones(4000), x]), 1 - q)
        assert beta == pytest.approx([2 * q, 1 + 2 * q], abs=0.1)


def test_survey_bias_of_a_proxy():
    random = np.random.default_rng(0)
    x = random.normal(size=(500, 2))
    y = x @ [1.0, -2.0] + random.normal(size=500)
    moments = proxy_moments(y, np.ones(500), x, np.array([0.3, 0.1]))
    r, d = moments.correlation, moments.distance
    found = [moments.standardised_bias(phi) for phi in (0.0, 0.5, 1.0)]
    assert found == pytest.approx([r * d, d, d / r])
    # With selection by the proxy alone it is what the regression estimator corrects.
    line = np.linalg.lstsq(np.column_stack([np.ones(500), x]), y, rcond=None)[0]
    corrected = line @ [1.0, 0.3, 0.1]
    assert moments.spread * found[0] == pytest.approx(y.mean() - corrected)
    assert proxy_moments(np.ones(500), np.ones(500), x, np.zeros(2)) is None
