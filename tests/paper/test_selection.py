from __future__ import annotations

import numpy as np
import pytest

from unskew.errors import InputError, ParameterError
from unskew.paper.selection import (
    MECHANISMS,
    label_selection,
    logistic_selection,
    quadratic_selection,
    threshold_selection,
)


def test_probabilities_follow_the_papers_formula():
    X = np.random.default_rng(0).normal(3.0, 2.0, size=(500, 4))
    w = np.array([0.5, -1.0, 0.0, 0.2])
    mask, probabilities = logistic_selection(X, direction=w, random_state=0)
    projected = (X - X.mean(axis=0)) @ w
    v = 4 * projected / projected.std()
    assert probabilities == pytest.approx(np.exp(v) / (1 + np.exp(v)))
    assert mask.dtype == bool
    assert mask.shape == (500,)


def test_rows_are_selected_with_their_probability():
    X = np.random.default_rng(0).normal(size=(100_000, 2))
    mask, probabilities = logistic_selection(X, random_state=1)
    for low in np.arange(0, 1, 0.25):
        bin_ = (probabilities >= low) & (probabilities < low + 0.25)
        assert mask[bin_].mean() == pytest.approx(probabilities[bin_].mean(), abs=0.015)


def test_directions_are_uniform_on_the_cube():
    # Recover the direction of 2,000 draws from the log-odds at the unit vectors.
    X = np.vstack([np.eye(2), -np.eye(2)])
    slopes = []
    for seed in range(2000):
        probabilities = logistic_selection(X, random_state=seed).probabilities
        v = np.log(probabilities / (1 - probabilities))
        slopes.append(np.arctan2(v[1], v[0]))
    quadrants = np.histogram(slopes, bins=np.linspace(-np.pi, np.pi, 5))[0]
    assert (np.abs(quadrants - 500) < 90).all()


def test_a_seed_repeats_the_draw():
    X = np.random.default_rng(0).normal(size=(50, 2))
    first, second = (logistic_selection(X, random_state=3) for _ in range(2))
    assert np.array_equal(first.mask, second.mask)


def test_equal_rows_have_even_odds():
    assert (logistic_selection(np.ones((4, 2))).probabilities == 0.5).all()


@pytest.mark.parametrize("X", [np.ones(3), np.empty((0, 2)), [[np.nan]]])
def test_bad_rows(X):
    with pytest.raises(InputError, match="table of finite numbers"):
        logistic_selection(X)


def test_a_direction_of_another_length():
    with pytest.raises(InputError, match="each of the 2 columns"):
        logistic_selection(np.ones((3, 2)), direction=[1.0])


def test_quadratic_selection_follows_its_formula():
    X = np.random.default_rng(0).normal(3.0, 2.0, size=(500, 3))
    w = np.array([0.5, -1.0, 0.2])
    squares = ((X - X.mean(axis=0)) @ w) ** 2
    odds = np.exp(2 * (squares - squares.mean()) / squares.std())
    mask, probabilities = quadratic_selection(X, direction=w, random_state=0)
    assert probabilities == pytest.approx(odds / (1 + odds))
    assert mask.mean() == pytest.approx(probabilities.mean(), abs=0.06)


def test_threshold_selection_knows_one_column_and_two_probabilities():
    X = np.random.default_rng(0).normal(size=(501, 3))
    for sign in (1.0, -1.0):
        chances = threshold_selection(X, direction=[0.3, sign, -0.9], random_state=0).probabilities
        above = X[:, 1] > np.median(X[:, 1])
        often = above if sign > 0 else ~above
        assert chances[often] == pytest.approx(np.exp(2) / (1 + np.exp(2)))
        assert chances[~often] == pytest.approx(1 / (1 + np.exp(2)))


def test_a_threshold_at_the_largest_value_still_splits():
    chances = threshold_selection([[0.0], [1.0], [1.0]], direction=[1.0]).probabilities
    assert chances[0] < 0.5 < chances[1] == chances[2]


def test_label_selection_follows_its_formula_and_needs_labels():
    random = np.random.default_rng(0)
    X, y = random.normal(size=(400, 2)), random.exponential(size=400)
    odds = np.exp((y - y.mean()) / y.std())
    probabilities = label_selection(X, y, random_state=0).probabilities
    assert probabilities == pytest.approx(odds / (1 + odds))
    with pytest.raises(InputError, match="y is None"):
        label_selection(X)
    with pytest.raises(InputError, match="each of the 400 rows"):
        label_selection(X, y[:-1])


@pytest.mark.parametrize("name", MECHANISMS)
def test_every_mechanism_has_one_signature(name):
    random = np.random.default_rng(0)
    X, y = random.normal(size=(20_000, 3)), random.normal(size=20_000)
    select = MECHANISMS[name]
    first, second = (select(X, y, direction=[1.0, 0.5, 0.0], random_state=1) for _ in range(2))
    assert np.array_equal(first.mask, second.mask)
    assert (first.probabilities > 0).all()
    # Horvitz and Thompson: the inverse probabilities of the selected rows estimate the whole.
    weights = 1 / first.probabilities[first.mask].clip(0.01)
    assert weights.sum() == pytest.approx(20_000, rel=0.1)
    with pytest.raises(ParameterError, match="slope"):
        select(X, y, slope=np.inf)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"direction": [np.nan]}, InputError),
        ({"direction": ["up"]}, InputError),
        ({"slope": np.nan}, ParameterError),
    ],
)
def test_selection_along_nonsense(options, error):
    with pytest.raises(error):
        logistic_selection([[1.0], [2.0]], **options)
    with pytest.raises(InputError), np.errstate(all="ignore"):
        logistic_selection([[1e300], [-1e300]])
    with pytest.raises(InputError):
        logistic_selection([["a"]])


def test_an_outlier_selects_without_a_warning():
    X = np.append(np.zeros(1_000_000), 1.0).reshape(-1, 1)
    assert logistic_selection(X, direction=[-1.0]).probabilities[-1] >= 0
