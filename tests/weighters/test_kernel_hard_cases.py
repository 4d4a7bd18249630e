from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from tests.weighters.shifts import shifted

from unskew import DensityRatioWeights, KernelMeanMatching, Population
from unskew.errors import InputError, OverlapWarning, ParameterError

# Selection is strong and samples are small: the warnings of regions without rows are right.
pytestmark = pytest.mark.filterwarnings(
    "ignore:.* not covered by the sample:unskew.errors.OverlapWarning"
)

KERNEL_WEIGHTERS = {
    "exact": KernelMeanMatching(method="exact"),
    "low-rank": KernelMeanMatching(method="low-rank"),
    "squared": DensityRatioWeights(),
    "kl": DensityRatioWeights("kl"),
}


class TestHardCases:
    @pytest.mark.parametrize("slack", [0.1, 0.5])
    def test_low_rank_with_slack(self, slack):
        sample, population = shifted()
        low, exact = (
            KernelMeanMatching(method=method, slack=slack, ridge=1.0).fit(
                sample, population=population
            )
            for method in ("low-rank", "exact")
        )
        assert low.certificate_.converged
        assert low.mmd_after_ == pytest.approx(exact.mmd_after_, abs=0.01)

    @pytest.mark.parametrize("bound", [1.1, 1.3, 3.3])
    def test_low_rank_with_design_weights_and_a_bound(self, bound):
        sample, population = shifted()
        design = np.random.default_rng(0).uniform(0.5, 2, 300)
        weighter = KernelMeanMatching(method="low-rank", bound=bound).fit(
            sample, population=population, sample_weight=design
        )
        assert weighter.certificate_.converged
        assert (weighter.weights_ <= bound * design / design.mean() * (1 + 1e-9)).all()

    @pytest.mark.parametrize("method", KERNEL_WEIGHTERS)
    @pytest.mark.parametrize("value", [1e20, 1e45, 1e300])
    @pytest.mark.filterwarnings("ignore::unskew.errors.OverlapWarning")
    @pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
    def test_a_huge_value_in_the_population(self, method, value):
        sample, population = shifted()
        population[0, 0] = value
        weighter = KERNEL_WEIGHTERS[method].fit(sample, population=population)
        assert np.isfinite(weighter.weights_).all()
        if method == "exact":
            assert np.isfinite([weighter.mmd_before_, weighter.mmd_after_]).all()
            assert weighter.uncovered_ > 0
            assert weighter.certificate_.converged

    @pytest.mark.parametrize("bandwidth", [0.01, 0.001, 0.0001])
    @pytest.mark.filterwarnings("ignore::unskew.errors.OverlapWarning")
    def test_narrow_kernels_are_taken_in_double_precision(self, bandwidth):
        sample, population = shifted(d=1, m=200, n=2000)
        weighter = KernelMeanMatching(bandwidth=bandwidth, scaling=None, ridge=0.0).fit(
            sample, population=population
        )
        assert weighter.precision_ == "double"
        gamma = 1 / (2 * bandwidth**2)
        kappa = 200 * rbf_kernel(sample, population, gamma=gamma).mean(axis=1)
        gradient = rbf_kernel(sample, gamma=gamma) @ weighter.weights_ - kappa
        assert gradient[weighter.weights_ > 1e-6].max() - gradient.min() <= 1.1e-3

    @pytest.mark.parametrize("scale", [1e40, 1e-50])
    def test_the_scale_of_design_weights_does_not_matter(self, scale):
        sample, population = shifted()
        plain, scaled = (
            KernelMeanMatching().fit(
                sample, population=Population(population, weight=np.full(len(population), size))
            )
            for size in (1.0, scale)
        )
        assert scaled.weights_ == pytest.approx(plain.weights_, abs=1e-3)
        assert scaled.mmd_after_ == pytest.approx(plain.mmd_after_)

    def test_repeated_rows(self):
        sample, population = shifted(m=60)
        weighter = KernelMeanMatching().fit(np.vstack([sample] * 3), population=population)
        assert weighter.certificate_.converged
        assert np.isfinite(weighter.weights_).all()

    def test_constant_and_badly_scaled_columns(self):
        sample, population = shifted(m=100)
        ugly = [
            np.column_stack([X * [1e-9, 1e9, 1], np.full(len(X), 7.0)])
            for X in (sample, population)
        ]
        weighter = KernelMeanMatching().fit(ugly[0], population=ugly[1])
        assert weighter.certificate_.converged
        plain = KernelMeanMatching(bandwidth=weighter.bandwidth_).fit(sample, population=population)
        assert weighter.certificate_.objective == pytest.approx(
            plain.certificate_.objective, rel=1e-5
        )

    @pytest.mark.parametrize(("m", "n"), [(1, 1), (1, 50), (50, 1), (2, 2)])
    @pytest.mark.filterwarnings("ignore::unskew.errors.OverlapWarning")
    @pytest.mark.parametrize("method", KERNEL_WEIGHTERS)
    def test_one_row(self, m, n, method):
        sample, population = shifted(m=m, n=n, by=0.1)
        weighter = KERNEL_WEIGHTERS[method].fit(sample, population=population)
        assert np.isfinite(weighter.weights_).all()
        assert weighter.weights_.sum() == pytest.approx(m)

    def test_disjoint_supports(self):
        sample, population = shifted(by=100.0)
        with pytest.warns(OverlapWarning, match=r"100\.0% of the population.*MMD") as caught:
            weighter = KernelMeanMatching().fit(sample, population=population)
        assert caught[0].message.share == weighter.uncovered_ == 1
        assert np.isfinite(weighter.weights_).all()
        assert weighter.weights_.sum() == pytest.approx(300)

    def test_many_columns_and_single_precision_input(self):
        sample, population = shifted(d=500, m=100, n=100)
        weighter = KernelMeanMatching().fit(
            sample.astype(np.float32), population=population.astype(np.float32)
        )
        assert weighter.certificate_.converged

    def test_categories_and_gaps(self):
        random = np.random.default_rng(0)
        frame = pd.DataFrame(
            {
                "age": np.where(random.uniform(size=400) < 0.1, np.nan, random.normal(size=400)),
                "town": random.choice(["a", "b", "c"], 400, p=[0.6, 0.3, 0.1]),
            }
        )
        sample = frame[:150]
        population = frame.assign(town=np.where(np.arange(400) < 200, "c", frame["town"]))
        weighter = KernelMeanMatching().fit(sample, population=population)
        weighted = weighter.weights_[(sample["town"] == "c").to_numpy()].sum() / 150
        assert weighted == pytest.approx((population["town"] == "c").mean(), abs=0.03)

    def test_stopping_early_is_told(self):
        sample, population = shifted()
        with pytest.warns(ConvergenceWarning, match="duality gap of"):
            weighter = KernelMeanMatching(method="low-rank", max_iterations=2, tolerance=1e-9).fit(
                sample, population=population
            )
        assert not weighter.certificate_.converged
        assert weighter.weights_.sum() == pytest.approx(300)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"bound": 0.5}, "bound=0.5 with slack=0.0 cannot be met"),
            ({"bandwidth": "cv"}, "'bandwidth' parameter"),
            ({"bandwidth": -1.0}, "'bandwidth' parameter"),
            ({"slack": 1.0}, "'slack' parameter"),
            ({"method": "magic"}, "'method' parameter"),
        ],
    )
    def test_bad_parameters(self, options, message):
        sample, population = shifted(m=20)
        with pytest.raises(ParameterError, match=message):
            KernelMeanMatching(**options).fit(sample, population=population)

    def test_bad_kernels(self):
        sample, population = shifted(m=20)
        with pytest.raises(ParameterError, match="one value for each pair"):
            KernelMeanMatching(kernel=lambda A, B: np.ones(3)).fit(sample, population=population)
        with pytest.raises(InputError, match="not finite"):
            KernelMeanMatching(kernel=lambda A, B: np.full((len(A), len(B)), np.nan)).fit(
                sample, population=population
            )
