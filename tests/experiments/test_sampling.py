from __future__ import annotations

import numpy as np
import pytest

from unskew import InputError
from unskew.experiments.sampling import logistic_selection


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
