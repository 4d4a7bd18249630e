"""Kernel mean matching against its peers, each beside us in one process run.

    python -m benchmarks.kmm bare        # against scikit-learn's two bare kernel matrices
    python -m benchmarks.kmm peers       # against PIQP, cvxopt, adapt and skada
    python -m benchmarks.kmm sizes       # time and memory against m and n
    python -m benchmarks.kmm toy         # weights against a known ratio

All but ``peers`` need only unskew. It needs an environment with requirements.txt of
this folder and unskew itself: ``make bench-kmm`` makes it and runs them all.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

from unskew import KernelMeanMatching


def shifted(m: int, d: int, n: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return a standardised sample and a population shifted by one in the first column."""
    random = np.random.default_rng(0)
    sample, population = random.normal(size=(m, d)), random.normal(size=(n or 2 * m, d))
    population[:, 0] += 1
    mean, spread = sample.mean(axis=0), sample.std(axis=0)
    return (sample - mean) / spread, (population - mean) / spread


def ours(sample: np.ndarray, population: np.ndarray, **options: Any) -> KernelMeanMatching:
    """Fit the whole of kernel mean matching on data that are scaled already."""
    return KernelMeanMatching(scaling=None, **options).fit(sample, population=population)


def timed(function: Callable[[], Any]) -> tuple[float, Any]:
    """Return seconds and result."""
    started = time.perf_counter()
    result = function()
    return time.perf_counter() - started, result


def objective(sample: np.ndarray, population: np.ndarray, weights: np.ndarray) -> float:
    """Return ½γᵀKγ − κᵀγ in double precision."""
    gamma = 1 / sample.shape[1]
    kappa = len(sample) * rbf_kernel(sample, population, gamma=gamma).mean(axis=1)
    return float(0.5 * weights @ rbf_kernel(sample, gamma=gamma) @ weights - kappa @ weights)


def bare(repeats: int) -> None:
    """Print our whole fit over scikit-learn's two kernel matrices, in one run each."""
    print("| d | m | bare matrices, s | whole fit, s | ratio (range) | violation | relative gap |")
    print("|---|---|---|---|---|---|---|")
    for d in (8, 32):
        for m in (2_000, 5_000, 10_000):
            sample, population = shifted(m, d)
            ours(*shifted(200, d))  # wake the libraries
            pairs = []
            for _ in range(repeats):
                matrices, _ = timed(
                    lambda s=sample, u=population, g=1 / d: (
                        rbf_kernel(s, gamma=g),
                        rbf_kernel(s, u, gamma=g),
                    )
                )
                fit, weighter = timed(lambda s=sample, u=population: ours(s, u))
                pairs.append((matrices, fit))
            ratios = [fit / matrices for matrices, fit in pairs]
            found = weighter.certificate_
            print(
                f"| {d} | {m:,} | {statistics.median(p[0] for p in pairs):.2f} "
                f"| {statistics.median(p[1] for p in pairs):.2f} "
                f"| {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}) "
                f"| {found.violation:.1e} | {found.gap / abs(found.objective):.1e} |",
                flush=True,
            )


def piqp_weights(sample: np.ndarray, population: np.ndarray) -> np.ndarray:
    """Solve the same program with PIQP, a dense interior-point method."""
    import piqp

    m, gamma = len(sample), 1 / sample.shape[1]
    K = rbf_kernel(sample, gamma=gamma)
    kappa = m * rbf_kernel(sample, population, gamma=gamma).mean(axis=1)
    solver = piqp.DenseSolver()
    solver.settings.eps_abs = solver.settings.eps_rel = 1e-9
    solver.setup(
        K,
        -kappa,
        np.ones((1, m)),
        np.array([float(m)]),
        None,
        None,
        None,
        np.zeros(m),
        np.full(m, 1000.0),
    )
    solver.solve()
    return np.asarray(solver.result.x)


def cvxopt_weights(sample: np.ndarray, population: np.ndarray) -> np.ndarray:
    """Solve the same program with cvxopt."""
    from cvxopt import matrix, solvers, spmatrix

    m, gamma = len(sample), 1 / sample.shape[1]
    K = rbf_kernel(sample, gamma=gamma)
    kappa = m * rbf_kernel(sample, population, gamma=gamma).mean(axis=1)
    rows = range(m)
    box = matrix([[spmatrix(1.0, rows, rows), spmatrix(-1.0, rows, rows)]])
    limits = matrix(np.append(np.full(m, 1000.0), np.zeros(m)))
    options = {"show_progress": False, "abstol": 1e-9, "reltol": 1e-9, "feastol": 1e-9}
    found = solvers.qp(
        matrix(K),
        matrix(-kappa),
        box,
        limits,
        matrix(1.0, (1, m)),
        matrix(float(m)),
        options=options,
    )
    return np.array(found["x"]).ravel()


def adapt_weights(sample: np.ndarray, population: np.ndarray) -> np.ndarray:
    """Weigh with adapt's own exact call: no batches."""
    from adapt.instance_based import KMM
    from sklearn.linear_model import LinearRegression

    m = len(sample)
    model = KMM(
        LinearRegression(),
        Xt=population,
        kernel="rbf",
        gamma=1 / sample.shape[1],
        B=1000,
        eps=0.0,
        max_size=10**9,
        verbose=0,
        random_state=0,
    )
    return np.asarray(model.fit_weights(sample, population)).ravel() * 1.0 if m else np.empty(0)


def skada_weights(sample: np.ndarray, population: np.ndarray) -> np.ndarray:
    """Weigh with skada's default solver."""
    from skada import KMMReweightAdapter

    X = np.vstack([sample, population])
    domain = np.append(np.ones(len(sample), dtype=int), np.full(len(population), -2))
    adapter = KMMReweightAdapter(gamma=1 / sample.shape[1], B=1000.0)
    adapter.fit(X, sample_domain=domain)
    return np.asarray(adapter.source_weights_).ravel()[: len(sample)]


PEERS: list[tuple[str, Callable[..., np.ndarray], tuple[int, ...]]] = [
    ("PIQP", piqp_weights, (500, 1_000, 2_000)),
    ("cvxopt", cvxopt_weights, (500, 1_000, 2_000)),
    ("adapt, exact", adapt_weights, (500, 1_500)),
    ("skada, default", skada_weights, (1_000, 5_000)),
]


def peers(repeats: int) -> None:
    """Print each peer's time over ours, and the objectives."""
    warnings.simplefilter("ignore")
    print("| peer | m | peer, s | ours, s | peer / ours | our objective − peer's, relative |")
    print("|---|---|---|---|---|---|")
    ours(*shifted(200, 8))
    for name, peer, sizes in PEERS:
        for m in sizes:
            sample, population = shifted(m, 8)
            runs = 1 if name.startswith("adapt") and m > 1000 else repeats
            try:
                pairs = [
                    (
                        timed(lambda p=peer, s=sample, u=population: p(s, u)),
                        timed(lambda s=sample, u=population: ours(s, u)),
                    )
                    for _ in range(runs)
                ]
            except ImportError as error:
                print(f"| {name} | not installed: {error} |")
                break
            (_, theirs), (_, weighter) = pairs[-1]
            theirs = theirs * (m / theirs.sum())
            mine, other = (objective(sample, population, w) for w in (weighter.weights_, theirs))
            ratios = [a[0] / b[0] for a, b in pairs]
            print(
                f"| {name} | {m:,} | {statistics.median(a[0] for a, _ in pairs):.2f} "
                f"| {statistics.median(b[0] for _, b in pairs):.3f} "
                f"| {statistics.median(ratios):.0f} | {(mine - other) / abs(other):+.1e} |",
                flush=True,
            )


def peak_memory_of(code: str) -> tuple[float, float]:
    """Run a fit in a process of its own; return its seconds and its peak memory in MB."""
    script = (
        "import time\nfrom benchmarks.kmm.__main__ import *\nours(*shifted(200, 8))\n"
        f"{code}\n"
        "line = next(l for l in open('/proc/self/status') if l.startswith('VmHWM'))\n"
        "print(seconds, int(line.split()[1]) / 1024)\n"
    )
    out = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    seconds, memory = out.stdout.split()[-2:]
    return float(seconds), float(memory)


def sizes(largest: int) -> None:
    """Print time and memory against m, exact, and against n."""
    print("| m, exact | n | s | peak MB |")
    print("|---|---|---|---|")
    for m in (1_000, 2_000, 5_000, 10_000, 20_000, 50_000):
        if m <= largest:
            code = f"seconds, _ = timed(lambda: ours(*shifted({m}, 8), method='exact'))"
            seconds, memory = peak_memory_of(code)
            print(f"| {m:,} | {2 * m:,} | {seconds:.1f} | {memory:.0f} |", flush=True)
    print("\n| m, exact | n, streamed | s | peak MB |")
    print("|---|---|---|---|")
    for n in (100_000, 400_000, 1_600_000):
        code = (
            f"sample, chunk = shifted(1000, 8, 100_000)\n"
            f"chunks = (chunk for _ in range({n} // 100_000))\n"
            "seconds, _ = timed(lambda: ours(sample, chunks))"
        )
        seconds, memory = peak_memory_of(code)
        print(f"| 1,000 | {n:,} | {seconds:.1f} | {memory:.0f} |", flush=True)


def toy() -> None:
    """Print how near weights come to the true ratio on a shift from N(0, 1) to N(1, 1)."""
    warnings.simplefilter("ignore")
    print("| d | seed | method | correlation, new rows | mean weight, new rows | mean missed by |")
    print("|---|---|---|---|---|---|")
    for d in (1, 5):
        for seed in range(3):
            random = np.random.default_rng(seed)
            sample, population = random.normal(size=(600, d)), random.normal(size=(400, d))
            population[:, 0] += 1
            new = random.normal(size=(2000, d))
            for name, options in (("exact", {}), ("inductive, cv", {"bandwidth": "cv"})):
                weighter = KernelMeanMatching(**options).fit(sample, population=population)
                missed = np.average(sample[:, 0], weights=weighter.weights_)
                weights = weighter.weigh(new) if options else weighter.weights_
                rows = new if options else sample
                correlation = np.corrcoef(weights, np.exp(rows[:, 0] - 0.5))[0, 1]
                print(
                    f"| {d} | {seed} | {name} | {correlation:.2f}{'' if options else ' (sample)'} "
                    f"| {weights.mean():.2f} | {missed - population[:, 0].mean():+.3f} |",
                    flush=True,
                )


def main() -> None:
    """Run one of the benchmarks from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("which", choices=["bare", "peers", "sizes", "toy"])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--largest", type=int, default=20_000)
    arguments = parser.parse_args()
    if arguments.which == "bare":
        bare(arguments.repeats)
    elif arguments.which == "peers":
        peers(arguments.repeats)
    elif arguments.which == "sizes":
        sizes(arguments.largest)
    else:
        toy()


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    main()
