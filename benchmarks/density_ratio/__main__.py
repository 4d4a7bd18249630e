"""Density ratios on a kernel basis against their peers, each beside us in one process run.

    python -m benchmarks.density_ratio toy      # weights of new rows against a known ratio
    python -m benchmarks.density_ratio agree    # the same basis: coefficients and objectives
    python -m benchmarks.density_ratio cost     # time and memory

``toy`` and ``cost`` leave out peers that are not installed; ``agree`` needs them. ``make
bench-ratio`` makes an environment with requirements.txt of this folder and unskew itself, and runs
them all.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
warnings.simplefilter("ignore")

from unskew import DensityRatioWeights  # noqa: E402

Weigh = Callable[[np.ndarray], np.ndarray]
OURS = {
    "`DensityRatioWeights()`": {},
    '`DensityRatioWeights("kl")`': {"loss": "kl"},
    "`tilt=False`": {"tilt": False},
    '`"kl"`, `tilt=False`': {"loss": "kl", "tilt": False},
    "`relative=0.1`": {"relative": 0.1},
}
GAMMAS = [0.03, 0.1, 0.3, 1.0, 3.0]


def fit_ours(sample: np.ndarray, population: np.ndarray, **options: Any) -> DensityRatioWeights:
    """Fit without the search for uncovered regions, which no peer makes."""
    return DensityRatioWeights(overlap="ignore", **options).fit(sample, population=population)


def has(peer: str) -> bool:
    """Whether a peer is installed."""
    return importlib.util.find_spec(peer) is not None


def methods() -> Iterator[tuple[str, Callable[[np.ndarray, np.ndarray], Weigh]]]:
    """Yield a name and how to fit a weight function to a sample and a population."""
    for name, options in OURS.items():
        yield name, lambda s, u, o=options: fit_ours(s, u, **o).weigh
    if has("densratio"):
        from densratio import densratio

        for method in ("uLSIF", "KLIEP"):
            yield (
                f"densratio {method}",
                lambda s, u, m=method: (
                    densratio(u, s, method=m, verbose=False).compute_density_ratio
                ),
            )
    if has("adapt"):
        from adapt.instance_based import KLIEP, ULSIF

        yield "adapt KLIEP", lambda s, u: _adapted(KLIEP(gamma=GAMMAS, **_QUIET), s, u)
        lambdas = [0.01, 0.1, 1.0]
        yield (
            "adapt uLSIF",
            lambda s, u: _adapted(ULSIF(gamma=GAMMAS, lambdas=lambdas, **_QUIET), s, u),
        )


_QUIET = {"Xt": [[0.0]], "verbose": 0, "random_state": 0}


def _adapted(peer: Any, sample: np.ndarray, population: np.ndarray) -> Weigh:
    peer.fit_weights(sample, population)
    return peer.predict_weights


def toy(n_seeds: int) -> None:
    """Print how near the weights of new rows come to the true ratio."""
    print("| shift | method | correlation: median | smallest | mean weight: median | s |")
    print("|---|---|---|---|---|---|")
    for d, by in ((1, 1.0), (5, 0.5)):
        for name, fit in methods():
            found, seconds = [], time.perf_counter()
            for seed in range(n_seeds):
                random = np.random.default_rng(seed)
                sample, population = random.normal(size=(600, d)), random.normal(by, 1, (400, d))
                new = random.normal(size=(4000, d))
                weights = np.ravel(fit(sample, population)(new))
                truth = np.exp(by * new.sum(axis=1) - d * by**2 / 2)
                found.append((np.corrcoef(weights, truth)[0, 1], weights.mean()))
            seconds = (time.perf_counter() - seconds) / n_seeds
            correlation, mean = np.median(found, axis=0)
            print(
                f"| N(0, 1) to N({by:g}, 1), d = {d} | {name} | {correlation:.3f} "
                f"| {np.min(found, axis=0)[0]:.3f} | {mean:.3f} | {seconds:.2f} |",
                flush=True,
            )


def agree() -> None:
    """Print coefficients and objectives beside those of the peers on the same basis."""
    from adapt.instance_based import KLIEP, ULSIF
    from densratio import densratio

    random = np.random.default_rng(0)
    sample, population = random.normal(size=(400, 2)), random.normal(0.5, 1, (300, 2))
    # Every population row is a centre: then the basis is the same, up to its order. Of the "kl"
    # loss ours uses only centres within three bandwidths of a sample row, so all of them are.
    nearest = np.sqrt(((population[:, None] - sample) ** 2).sum(axis=2)).min(axis=1)
    population = population[nearest < 3 * 0.3]
    size = len(population)
    common = {"n_centres": size, "tilt": False, "scaling": None}
    print("| loss | σ | λ | peer | largest difference of α, relative |")
    print("|---|---|---|---|---|")
    for sigma, smoothing, relative in ((0.5, 0.1, 0.0), (1.0, 0.01, 0.0), (1.0, 0.1, 0.3)):
        ours = fit_ours(
            sample, population, bandwidth=sigma, smoothing=smoothing, relative=relative, **common
        )
        mine = _sorted(ours.centres_, ours.coefficients_)
        peer = densratio(
            population,
            sample,
            method="RuLSIF",
            alpha=relative,
            sigma=[sigma],
            lambda_=[smoothing],
            kernel_num=size,
            verbose=False,
        )
        theirs = _sorted(peer.kernel_info.centers, peer.theta)
        apart = np.abs(np.maximum(mine, 0) - theirs).max() / np.abs(theirs).max()
        print(f"| squared, relative={relative} | {sigma} | {smoothing} | densratio | {apart:.1e} |")
        if not relative:
            other = ULSIF(gamma=1 / (2 * sigma**2), lambdas=smoothing, max_centers=size, **_QUIET)
            other.fit_weights(sample, population)
            theirs = _sorted(other.centers_, other.thetas_.ravel())
            both = [np.maximum(one, 0) for one in (mine, theirs)]  # some versions cut, some do not
            apart = np.abs(both[0] - both[1]).max() / np.abs(both[1]).max()
            print(f"| squared | {sigma} | {smoothing} | adapt | {apart:.1e} |")
    print("\n| σ | ours | duality gap | densratio | adapt, FW | adapt, PG | adapt, original |")
    print("|---|---|---|---|---|---|---|")
    for sigma in (0.3, 0.5, 1.0, 2.0):
        ours = fit_ours(sample, population, loss="kl", bandwidth=sigma, **common)
        assert ours.uncovered_ == 0
        # Not weigh, which is never above the largest weight of the sample.
        own = partial(_sum_of_kernels, ours.centres_, ours.coefficients_, sigma)
        cells = [f"{_likelihood(sample, population, own):.8f}", f"{ours.gap_:.1e}"]
        peer = densratio(
            population, sample, method="KLIEP", sigma=sigma, kernel_num=size, verbose=False
        )
        cells.append(f"{_likelihood(sample, population, peer.compute_density_ratio):.8f}")
        for algorithm in ("FW", "PG", "original"):
            other = KLIEP(
                gamma=1 / (2 * sigma**2), algo=algorithm, max_centers=size, tol=1e-12, **_QUIET
            )
            other.fit_weights(sample, population)
            cells.append(f"{_likelihood(sample, population, other.predict_weights):.8f}")
        print(f"| {sigma} | {' | '.join(cells)} |", flush=True)


def _sum_of_kernels(
    centres: np.ndarray, coefficients: np.ndarray, sigma: float, rows: np.ndarray
) -> np.ndarray:
    squares = ((rows[:, None] - centres) ** 2).sum(axis=2)
    return np.exp(-squares / (2 * sigma**2)) @ coefficients


def _sorted(centres: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
    """Return the coefficients in the order of their centres."""
    return np.ravel(coefficients)[np.lexsort(np.asarray(centres).round(9).T)]


def _likelihood(sample: np.ndarray, population: np.ndarray, weigh: Weigh) -> float:
    """Return KLIEP's objective: the mean log ratio over the population, at a sample mean of one."""
    return float(np.mean(np.log(weigh(population))) - np.log(np.mean(weigh(sample))))


def cost(timeout: float) -> None:
    """Print seconds, processor seconds and peak memory, each fit in a process of its own."""
    print("| method | m | n | d | s | processor, s | peak MB |")
    print("|---|---|---|---|---|---|---|")
    ours = (("squared", ""), ("kl", "loss='kl'"), ("squared, all rows", "centres='sample'"))
    for m, n, d in ((5_000, 5_000, 5), (10_000, 100_000, 20), (100_000, 100_000, 20)):
        for name, options in ours:
            _once(name, f"fit_ours(sample, population, {options})", m, n, d, timeout)
        if m == n and has("adapt"):
            grid = "gamma=[0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0], max_centers=200"
            quiet = "Xt=[[0.0]], verbose=0, random_state=0"
            for name, peer in (
                ("adapt KLIEP, 7 bandwidths", f"KLIEP({grid}, {quiet})"),
                (
                    "adapt uLSIF, 7 bandwidths, 15 λ",
                    f"ULSIF({grid}, lambdas=10.0 ** np.arange(-6, 1.5, 0.5), {quiet})",
                ),
            ):
                code = f"{peer}.fit_weights(sample, population)"
                _once(name, code, m, n, d, timeout)


def _once(name: str, code: str, m: int, n: int, d: int, timeout: float) -> None:
    lines = [
        "import time, resource, numpy as np",
        "from benchmarks.density_ratio.__main__ import fit_ours",
        "from adapt.instance_based import KLIEP, ULSIF" if "adapt" in name else "",
        "random = np.random.default_rng(0)",
        f"sample, population = random.normal(size=({m}, {d})), random.normal(0.3, 1, ({n}, {d}))",
        "fit_ours(sample[:50], population[:50])" if "adapt" not in name else "",  # wake libraries
        "begun, used = time.perf_counter(), time.process_time()",
        code,
        "peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024",
        "seconds, used = time.perf_counter() - begun, time.process_time() - used",
        "print(f'{seconds:.1f} | {used:.1f} | {peak:.0f}')",
    ]
    limit = 24 * 2**30  # a request beyond this fails at once instead of swapping

    def bound_memory() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    try:
        done = subprocess.run(
            [sys.executable, "-c", "\n".join(lines)],
            capture_output=True,
            text=True,
            timeout=timeout,
            preexec_fn=bound_memory,
            check=False,
        )
        failed = done.stderr.strip().rpartition("\n")[2][:90]
        shown = done.stdout.strip() if done.returncode == 0 else f"{failed} | | "
    except subprocess.TimeoutExpired:
        shown = f"stopped after {timeout:.0f} | | "
    print(f"| {name} | {m:,} | {n:,} | {d} | {shown} |", flush=True)


def main() -> None:
    """Run one of the benchmarks from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("which", choices=["toy", "agree", "cost"])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--timeout", type=float, default=600)
    arguments = parser.parse_args()
    if arguments.which == "toy":
        toy(arguments.seeds)
    elif arguments.which == "agree":
        agree()
    else:
        cost(arguments.timeout)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    main()
