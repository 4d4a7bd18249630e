from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel
from tests.weighters.shifts import shifted

from unskew import (
    KernelMeanMatching,
    Population,
)
from unskew.numerics.kernels import GaussianKernel, LaplaceKernel

# Selection is strong and samples are small: the warnings of regions without rows are right.
pytestmark = pytest.mark.filterwarnings(
    "ignore:.* not covered by the sample:unskew.errors.OverlapWarning"
)

DATASETS = Path(__file__).resolve().parents[3] / "shared" / "datasets"


def mmd(sample, population, weights, gamma):
    share = weights / weights.sum()
    square = (
        share @ rbf_kernel(sample, gamma=gamma) @ share
        - 2 * share @ rbf_kernel(sample, population, gamma=gamma).mean(axis=1)
        + rbf_kernel(population, gamma=gamma).mean()
    )
    return np.sqrt(max(square, 0.0))


def standardised(sample, population):
    mean, spread = sample.mean(axis=0), sample.std(axis=0)
    return (sample - mean) / spread, (population - mean) / spread


class TestExact:
    @pytest.mark.parametrize(("options", "ridge"), [({"ridge": 0.0}, 0.0), ({}, 1e-3)])
    def test_the_weights_satisfy_the_stated_program(self, options, ridge):
        """Without a ridge it is the paper's."""
        sample, population = shifted()
        weighter = KernelMeanMatching(precision="double", **options).fit(
            sample, population=population
        )
        S, U = standardised(sample, population)
        K = rbf_kernel(S, gamma=1 / 3) + ridge * np.eye(300)
        kappa = 300 / 500 * rbf_kernel(S, U, gamma=1 / 3).sum(axis=1)
        gradient = K @ weighter.weights_ - kappa
        falling = gradient[weighter.weights_ > 0].max()
        certificate = weighter.certificate_
        assert certificate.tolerance == (1e-5 if ridge else 1e-3)
        assert falling - gradient.min() <= certificate.tolerance
        assert certificate.violation == pytest.approx(falling - gradient.min(), abs=1e-9)
        objective = 0.5 * weighter.weights_ @ K @ weighter.weights_ - kappa @ weighter.weights_
        assert certificate.objective == pytest.approx(objective, rel=1e-12)
        assert weighter.weights_.sum() == pytest.approx(300, rel=1e-12)
        assert weighter.bandwidth_ == pytest.approx(np.sqrt(3 / 2))

    def test_single_precision_of_the_population_changes_next_to_nothing(self):
        sample, population = shifted()
        single, double = (
            KernelMeanMatching(precision=p, tolerance=1e-6).fit(sample, population=population)
            for p in ("single", "double")
        )
        assert single.certificate_.objective == pytest.approx(
            double.certificate_.objective, rel=1e-6
        )

    def test_the_estimated_distance_is_near_the_true_one(self):
        sample, population = shifted()
        weighter = KernelMeanMatching().fit(sample, population=population)
        S, U = standardised(sample, population)
        assert weighter.mmd_before_ == pytest.approx(mmd(S, U, np.ones(300), 1 / 3), rel=0.2)
        assert weighter.mmd_after_ == pytest.approx(mmd(S, U, weighter.weights_, 1 / 3), rel=0.4)
        assert weighter.mmd_after_ < 0.2 * weighter.mmd_before_

    def test_the_bound_holds(self):
        sample, population = shifted()
        weighter = KernelMeanMatching(bound=2.0).fit(sample, population=population)
        assert weighter.weights_.max() <= 2.0 * (1 + 1e-9)
        assert weighter.weights_.sum() == pytest.approx(300)
        assert (weighter.weights_ >= 0).all()

    def test_slack_lets_the_mean_move_and_lowers_the_objective(self):
        sample, population = shifted()
        tight = KernelMeanMatching().fit(sample, population=population)
        loose = KernelMeanMatching(slack=0.5).fit(sample, population=population)
        assert loose.certificate_.objective <= tight.certificate_.objective + 1e-9
        assert loose.weights_.sum() == pytest.approx(300)
        assert loose.scale_ != 1.0

    def test_ridge_evens_the_weights(self):
        sample, population = shifted()
        spreads = [
            KernelMeanMatching(ridge=ridge).fit(sample, population=population).weights_.std()
            for ridge in (0.0, 1.0, 100.0, 1e6)
        ]
        assert spreads == sorted(spreads, reverse=True)
        assert spreads[-1] < 0.01

    def test_columns_on_demand_give_the_same_objective(self):
        sample, population = shifted(m=400)
        held = KernelMeanMatching().fit(sample, population=population)
        lean = KernelMeanMatching(memory=4 * 150**2).fit(sample, population=population)
        assert lean.certificate_.converged
        assert lean.certificate_.objective == pytest.approx(held.certificate_.objective, rel=1e-6)

    def test_a_mean_is_matched_where_the_kernel_sees_it(self):
        sample, population = shifted(d=1, m=600, n=400)
        weighter = KernelMeanMatching().fit(sample, population=population)
        gap = np.average(sample[:, 0], weights=weighter.weights_) - population.mean()
        assert abs(gap) < 0.02

    @pytest.mark.parametrize(
        ("kernel", "reference"),
        [
            ("gaussian", lambda A, B: rbf_kernel(A, B, gamma=1 / (2 * 1.3**2))),
            ("laplace", lambda A, B: laplacian_kernel(A, B, gamma=1 / 1.3)),
        ],
    )
    @pytest.mark.parametrize("options", [{}, {"memory": 0}, {"tolerance": 1e-6}])
    def test_kernels_of_your_own(self, kernel, reference, options):
        sample, population = shifted(m=150)
        own = KernelMeanMatching(kernel=reference, scaling=None, **options).fit(
            sample, population=population
        )
        ours = KernelMeanMatching(kernel=kernel, bandwidth=1.3, scaling=None).fit(
            sample, population=population
        )
        assert own.certificate_.objective == pytest.approx(ours.certificate_.objective, rel=1e-5)
        assert np.isnan(own.mmd_after_)

    def test_a_kernel_of_your_own_gets_the_rows_as_they_are(self):
        sample, population = shifted(m=100, n=100)
        seen = []

        def kernel(A, B):
            seen.append(A.min())
            return (A @ B.T + 1) ** 2

        rows, others = sample - sample.min() + 5, population - sample.min() + 5
        weighter = KernelMeanMatching(
            kernel=kernel, scaling=None, precision="double", ridge=0.0
        ).fit(rows, population=others)
        gradient = kernel(rows, rows) @ weighter.weights_
        gradient -= 100 * kernel(rows, others).mean(axis=1)
        assert min(seen) >= 4
        assert weighter.certificate_.converged
        assert gradient[weighter.weights_ > 1e-6].max() - gradient.min() <= 2e-3

    def test_bandwidths(self):
        sample, population = shifted(m=100)
        S, _ = standardised(sample, population)
        pairs = np.sqrt(((S[:, None] - S) ** 2).sum(axis=2))[np.triu_indices(100, 1)]
        median = KernelMeanMatching(bandwidth="median").fit(sample, population=population)
        assert median.bandwidth_ == pytest.approx(np.median(pairs))
        number = KernelMeanMatching(bandwidth=0.7).fit(sample, population=population)
        assert number.bandwidth_ == 0.7


class TestDesignWeights:
    def test_population_weights_are_repetitions(self):
        sample, population = shifted(m=100, n=80)
        times = np.random.default_rng(1).integers(0, 4, 80)
        weighted = KernelMeanMatching(precision="double", tolerance=1e-8).fit(
            sample, population=Population(population, weight=times)
        )
        repeated = KernelMeanMatching(precision="double", tolerance=1e-8).fit(
            sample, population=np.repeat(population, times, axis=0)
        )
        assert weighted.weights_ == pytest.approx(repeated.weights_, abs=1e-5)

    def test_a_sample_weight_is_a_share_of_the_bound_and_of_the_sum(self):
        sample, population = shifted(m=100)
        design = np.random.default_rng(1).uniform(0.5, 2.0, 100)
        weighter = KernelMeanMatching(bound=1.5).fit(
            sample, population=population, sample_weight=design
        )
        ceiling = 1.5 * design / design.mean()
        assert (weighter.weights_ <= ceiling * (1 + 1e-9)).all()
        assert weighter.weights_.sum() == pytest.approx(100)

    def test_rows_of_weight_zero_take_no_part(self):
        sample, population = shifted(m=100)
        design = np.ones(100)
        design[:30] = 0
        weighter = KernelMeanMatching(scaling=None, precision="double", tolerance=1e-7).fit(
            sample, population=population, sample_weight=design
        )
        without = KernelMeanMatching(scaling=None, precision="double", tolerance=1e-7).fit(
            sample[30:], population=population
        )
        assert (weighter.weights_[:30] == 0).all()
        assert weighter.weights_[30:] == pytest.approx(without.weights_ * 100 / 70, abs=1e-4)


class TestLowRank:
    def test_with_all_rows_as_landmarks_it_is_exact(self):
        sample, population = shifted(m=200)
        exact = KernelMeanMatching(ridge=0.1).fit(sample, population=population)
        full = KernelMeanMatching(
            ridge=0.1, method="low-rank", n_components=200, max_iterations=5000
        ).fit(sample, population=population)
        assert full.method_ == "low-rank"
        S, U = standardised(sample, population)
        distances = [mmd(S, U, w.weights_, 1 / 3) for w in (exact, full)]
        assert distances[1] == pytest.approx(distances[0], rel=0.02)

    @pytest.mark.skipif(not DATASETS.exists(), reason="the nine data sets are not here")
    @pytest.mark.parametrize("scaling", ["standard", "range"])
    @pytest.mark.parametrize("name", sorted(path.stem for path in DATASETS.glob("*.parquet")))
    def test_it_agrees_with_the_exact_distance_on_real_data(self, name, scaling):
        frame = pd.read_parquet(DATASETS / f"{name}.parquet").iloc[:1500, :-1]
        frame = frame.select_dtypes("number")
        random = np.random.default_rng(0)
        score = frame.rank().sum(axis=1).rank(pct=True)
        sample = frame[random.uniform(size=len(frame)) < 0.2 + 0.6 * score]
        exact = KernelMeanMatching(scaling=scaling).fit(sample, population=frame)
        low = KernelMeanMatching(method="low-rank", scaling=scaling).fit(sample, population=frame)
        assert low.mmd_after_ == pytest.approx(exact.mmd_after_, abs=0.005)
        assert low.mmd_outside_ <= low.mmd_after_

    def test_auto_says_what_it_chose(self, monkeypatch):
        import unskew.weighters.kernel_mean_matching as module

        sample, population = shifted(m=100)
        assert KernelMeanMatching().fit(sample, population=population).method_ == "exact"
        monkeypatch.setattr(module, "MOST_ROWS_EXACT", 50)
        weighter = KernelMeanMatching().fit(sample, population=population)
        assert weighter.method_ == "low-rank"
        assert not hasattr(weighter, "weigh")


def test_the_population_may_have_any_form(tmp_path):
    sample, population = shifted(m=100, n=30_000)
    frame = pd.DataFrame(population, columns=["a", "b", "c"])
    frame.to_parquet(tmp_path / "u.parquet", row_group_size=7_000)
    sample = pd.DataFrame(sample, columns=["a", "b", "c"])
    expected = KernelMeanMatching().fit(sample, population=frame).certificate_.objective
    for form in (tmp_path / "u.parquet", (frame[i : i + 999] for i in range(0, 30_000, 999))):
        found = KernelMeanMatching().fit(sample, population=form).certificate_.objective
        assert found == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("kernel", [GaussianKernel(0.8), LaplaceKernel(0.8)])
def test_frequencies_are_the_kernels_own(kernel):
    """Bochner: the mean of cos(ω·(x − y)) is the kernel."""
    random = np.random.RandomState(0)
    points = random.normal(size=(6, 2))
    frequencies = kernel.draw_frequencies(2, 200_000, random)
    prepared = kernel.prepare(points)
    values = kernel.block(prepared, prepared)
    for i in range(6):
        mean = np.cos((points[i] - points) @ frequencies).mean(axis=1)
        assert mean == pytest.approx(values[i], abs=0.01)


@pytest.mark.parametrize("after", [0.1, 0.6, 1.5])
def test_it_can_be_interrupted(after):
    """Control-C ends a fit soon, whatever it is at, and BLAS has its threads back."""
    code = """
import numpy as np, threadpoolctl, unskew
random = np.random.default_rng(0)
sample, population = random.normal(size=(9000, 8)), random.normal(0.5, 1, (60000, 8))
unskew.KernelMeanMatching().fit(sample[:50], population=population[:50])
before = [pool["num_threads"] for pool in threadpoolctl.threadpool_info()]
print("ready", flush=True)
try:
    while True:
        unskew.KernelMeanMatching().fit(sample, population=population)
except KeyboardInterrupt:
    after = [pool["num_threads"] for pool in threadpoolctl.threadpool_info()]
    print("interrupted", before == after)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as fit:
        assert fit.stdout.readline() == "ready\n"
        time.sleep(after)
        fit.send_signal(signal.SIGINT)
        assert fit.communicate(timeout=60)[0] == "interrupted True\n"
    assert fit.returncode == 0


def test_blas_keeps_its_threads():
    from threadpoolctl import threadpool_info, threadpool_limits

    sample, population = shifted(m=50)
    with threadpool_limits(2, user_api="blas"):
        before = [library["num_threads"] for library in threadpool_info()]
        KernelMeanMatching().fit(sample, population=population)
        assert [library["num_threads"] for library in threadpool_info()] == before
    assert 2 in before
