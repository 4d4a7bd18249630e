"""Tilts without each fold, against the general solver."""

import numpy as np
import pytest

from unskew.numerics.calibration import CalibrationProblem, tilts_without_folds
from unskew.numerics.distances import Raking
from unskew.numerics.row_features import RowFeatures


def solved(features, shares, target, ridge):
    width = features.shape[1]
    problem = CalibrationProblem(
        RowFeatures.from_parts([features - target]),
        shares / shares.sum(),
        Raking(),
        1.0,
        np.zeros(width),
        np.full(width, ridge),
    )
    return problem.solve().multipliers


@pytest.mark.parametrize("n_rows", [400, 403])
@pytest.mark.parametrize("start", [0.0, 0.3])
def test_each_tilt_is_that_of_the_general_solver(n_rows, start):
    random = np.random.default_rng(0)
    features = random.normal(size=(n_rows, 4))
    shares = random.uniform(0.5, 1.5, n_rows)
    shares /= shares.sum()
    targets = random.normal(0.3, 0.05, size=(5, 4))
    found = tilts_without_folds(features, shares, targets, 1e-3, np.full(4, start))
    assert found is not None
    for fold in range(5):
        others = np.arange(n_rows) % 5 != fold
        expected = solved(features[others], shares[others], targets[fold], 1e-3)
        assert np.abs(found[fold] - expected).max() < 1e-5


@pytest.mark.parametrize("case", ["far away", "overflow", "not finite"])
def test_it_admits_where_it_does_not_get_there(case):
    random = np.random.default_rng(0)
    features, targets, start = random.normal(size=(100, 2)), np.zeros((5, 2)), np.zeros(2)
    if case == "far away":
        targets = np.full((5, 2), 40.0)
    elif case == "overflow":
        start = np.full(2, 1e4)
    else:
        features[3, 1] = np.inf
    with np.errstate(all="ignore"):
        assert tilts_without_folds(features, np.full(100, 0.01), targets, 1e-3, start) is None
