from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from tests.weighters.shifts import shifted

from unskew import DensityRatioWeights, ParameterError

# Selection is strong and samples are small: the warnings of regions without rows are right.
pytestmark = pytest.mark.filterwarnings("ignore::unskew.OverlapWarning")


def test_new_rows_get_the_ratio():
    sample, population = shifted(d=1, m=600, n=400, seed=0)
    weighter = DensityRatioWeights(constrained=True).fit(sample, population=population)
    new = np.random.default_rng(9).normal(size=(4000, 1))
    weights = weighter.weigh(new)
    assert np.corrcoef(weights, np.exp(new[:, 0] - 0.5))[0, 1] > 0.95
    assert weights.mean() == pytest.approx(1, abs=0.05)
    assert (weights >= 0).all()
    assert weighter.weigh(sample) == pytest.approx(weighter.weights_)


def test_columns_without_a_shift_do_not_blur_the_ratio():
    sample, population = shifted(d=5, m=600, n=400, seed=0)
    weighter = DensityRatioWeights(constrained=True).fit(sample, population=population)
    new = np.random.default_rng(9).normal(size=(4000, 5))
    weights = weighter.weigh(new)
    assert np.corrcoef(weights, np.exp(new[:, 0] - 0.5))[0, 1] > 0.93
    assert weights.mean() == pytest.approx(1, abs=0.1)
    assert np.isinf(weighter.bandwidth_[1:]).all()
    assert weighter.certificate_.converged


def test_means_are_matched():
    sample, population = shifted(d=1, m=600, n=400, seed=0)
    weighter = DensityRatioWeights(constrained=True).fit(sample, population=population)
    weighted = np.average(sample[:, 0], weights=weighter.weights_)
    assert weighted == pytest.approx(population[:, 0].mean(), abs=0.01)


def test_new_rows_are_bounded():
    sample, population = shifted(d=1, m=300)
    weighter = DensityRatioWeights(constrained=True, bandwidth="paper", bound=2.5).fit(
        sample, population=population
    )
    assert weighter.weights_.max() <= 2.5 * (1 + 1e-9)
    assert weighter.weights_.mean() == pytest.approx(1)
    edges = [[sample.max()], [sample.min()]]
    far = weighter.weigh([[100.0], [-100.0], [1e308]])
    assert (far <= 2.5 * (1 + 1e-9)).all()
    assert far[:2] == pytest.approx(weighter.weigh(edges))
    assert far[2] == pytest.approx(far[0])


@pytest.mark.parametrize("bound", [1.0, 1.01, 1.2])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_tight_bounds_are_kept(bound):
    sample, population = shifted()
    weighter = DensityRatioWeights(constrained=True, bandwidth="paper", bound=bound).fit(
        sample, population=population
    )
    assert weighter.weights_.max() <= bound * (1 + 1e-9)
    assert weighter.weights_.mean() == pytest.approx(1)


@pytest.mark.filterwarnings("ignore::unskew.OverlapWarning")
@pytest.mark.parametrize("bound", [1.2, 2.0])
@pytest.mark.parametrize("bandwidth", ["paper", 0.3])
def test_no_certificate_says_converged_while_a_constraint_is_broken(bandwidth, bound):
    broken = 0
    for seed in range(8):
        random = np.random.default_rng(seed)
        sample, population = random.normal(0, 1, (100, 1)), random.normal(2, 1, (100, 1))
        weighter = DensityRatioWeights(
            constrained=True, kernel="laplace", bound=bound, bandwidth=bandwidth, overlap="ignore"
        )
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            weights = weighter.fit(sample, population=population).weights_
        found = weighter.certificate_
        assert weights.max() <= bound * weights.mean() * (1 + 1e-5)
        residual = max(found.bound_residual, found.sum_residual)
        assert found.converged == (not caught)
        assert not found.converged or residual <= 1e-5
        broken += not found.converged
    assert broken < 8  # most problems have a solution


def test_a_bound_that_few_centres_cannot_meet_is_told():
    sample, population = shifted(d=5, m=1000, n=500)
    with pytest.warns(ConvergenceWarning, match="No function of the 5 centres"):
        weighter = DensityRatioWeights(
            constrained=True, n_centres=5, bandwidth=0.3, bound=1.05
        ).fit(sample, population=population)
    assert weighter.weights_.max() <= 1.05 * (1 + 1e-9)


def test_rows_out_of_reach_of_all_centres_keep_a_weight():
    sample, population = shifted(d=30, m=400, n=400, by=0.3)
    weighter = DensityRatioWeights(constrained=True, bandwidth="paper", n_centres=20).fit(
        sample, population=population
    )
    assert np.mean(weighter.weights_ == 0) < 0.1
    assert weighter.weigh(sample) == pytest.approx(weighter.weights_)


def test_dropping_a_row_hardly_moves_the_weights():
    sample, population = shifted(m=300)
    weighter = DensityRatioWeights(constrained=True, bandwidth="paper").fit(
        sample, population=population
    )
    assert weighter.weigh(sample[1:]).mean() == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernel": rbf_kernel}, "'kernel' parameter"),
        ({"bound": 0.5}, "'bound' parameter"),
        ({"bandwidth": -1.0}, "'bandwidth' parameter"),
        ({"n_centres": 0}, "'n_centres' parameter"),
    ],
)
def test_bad_parameters(options, message):
    sample, population = shifted(m=20)
    with pytest.raises(ParameterError, match=message):
        DensityRatioWeights(**options).fit(sample, population=population)
