"""Kernel mean matching against its peers, each beside us in one process run.

    python -m benchmarks.kmm bare        # against scikit-learn's two bare kernel matrices
    python -m benchmarks.kmm peers       # against PIQP, cvxopt, adapt and skada
    python -m benchmarks.kmm sizes       # time and memory against m and n, --figure draws them
    python -m benchmarks.kmm features    # landmarks against random frequencies
    python -m benchmarks.kmm large       # a million sample rows, ten million population rows
    python -m benchmarks.kmm toy         # weights against a known ratio
    python -m benchmarks.kmm ridge       # what a ridge costs, and how far it determines weights

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

from unskew import DensityRatioWeights, KernelMeanMatching


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


def peak_memory_of(code: str, *, show: bool = False) -> tuple[float, float]:
    """Run a fit in a process of its own; return its seconds and its peak memory in MB."""
    script = (
        "import time\nfrom benchmarks.kmm.__main__ import *\nours(*shifted(200, 8))\n"
        f"{code}\n"
        "line = next(l for l in open('/proc/self/status') if l.startswith('VmHWM'))\n"
        "print(seconds, int(line.split()[1]) / 1024)\n"
    )
    out = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    if show:
        print(out.stdout, end="")
    seconds, memory = out.stdout.split()[-2:]
    return float(seconds), float(memory)


def sizes(largest: int, figure: Path | None) -> None:
    """Print time and memory against m, exact, and against n; draw them if required."""
    against_m, against_n = [], []
    print("| m, exact | n | s | peak MB |")
    print("|---|---|---|---|")
    for m in (1_000, 2_000, 5_000, 10_000, 20_000, 50_000):
        if m <= largest:
            code = f"seconds, _ = timed(lambda: ours(*shifted({m}, 8), method='exact'))"
            against_m.append((m, *peak_memory_of(code)))
            print(
                "| {:,} | {:,} | {:.3g} | {:.0f} |".format(m, 2 * m, *against_m[-1][1:]), flush=True
            )
    print("\n| m, exact | n, streamed | s | peak MB |")
    print("|---|---|---|---|")
    for n in (100_000, 400_000, 1_600_000, 6_400_000):
        code = (
            f"sample, chunk = shifted(1000, 8, 100_000)\n"
            f"chunks = (chunk for _ in range({n} // 100_000))\n"
            "seconds, _ = timed(lambda: ours(sample, chunks))"
        )
        against_n.append((n, *peak_memory_of(code)))
        print("| 1,000 | {:,} | {:.3g} | {:.0f} |".format(*against_n[-1]), flush=True)
    if figure:
        draw_sizes(against_m, against_n, figure)


def draw_sizes(against_m: list[Any], against_n: list[Any], path: Path) -> None:
    """Draw time and memory against the sample's and the population's size."""
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    for axes, rows, label in (
        (panels[0], against_m, "sample rows m (n = 2m), exact"),
        (panels[1], against_n, "population rows n, streamed (m = 1,000)"),
    ):
        size, seconds, memory = np.array(rows).T
        axes.loglog(size, seconds, "o-", color="#1b6ca8", label="seconds")
        axes.loglog(size, memory / 1024, "s--", color="#c1440e", label="peak memory, GB")
        axes.set_xlabel(label)
        axes.grid(alpha=0.3)
        axes.legend(frameon=False)
    figure.savefig(path, dpi=160)


def features() -> None:
    """Print how well landmarks and random frequencies of the same number give the kernel.

    Errors are root mean squares over pairs of rows, in units of the kernel, whose diagonal is one;
    the last columns are of the mean over the population, which is what is matched.
    """
    from sklearn.kernel_approximation import Nystroem, RBFSampler

    print("| d | features | entry: landmarks | frequencies | mean: landmarks | frequencies |")
    print("|---|---|---|---|---|---|")
    for d in (2, 8, 32):
        sample, population = shifted(2_000, d)
        exact, exact_mean = (rbf_kernel(sample, X, gamma=1 / d) for X in (sample, population))
        for size in (128, 512, 1024):
            errors = []
            for method in (
                Nystroem(gamma=1 / d, n_components=size, random_state=0),
                RBFSampler(gamma=1 / d, n_components=size, random_state=0),
            ):
                mine = method.fit(sample).transform(sample)
                mean = method.transform(population).mean(axis=0)
                off = mine @ mine.T - exact, mine @ mean - exact_mean.mean(axis=1)
                errors.append([float(np.sqrt(np.mean(part**2))) for part in off])
            cells = [f"{error:.4f}" for pair in zip(*errors, strict=True) for error in pair]
            print(f"| {d} | {size:,} | {' | '.join(cells)} |", flush=True)


def large(m: int, n: int) -> None:
    """Print time and memory of a low-rank fit, and its ratio to one bare pass of the features."""
    code = (
        f"sample, chunk = shifted({m}, 8, 100_000)\n"
        f"chunks = lambda: (chunk for _ in range({n} // 100_000))\n"
        "landmarks = sample[:512].astype(np.float32)\n"
        "def bare():\n"
        "    for part in chunks():\n"
        "        rbf_kernel(part.astype(np.float32), landmarks, gamma=1 / 8).sum(axis=0)\n"
        "pass_seconds, _ = timed(bare)\n"
        "print('pass', pass_seconds)\n"
        "seconds, fit = timed(lambda: ours(sample, chunks(), method='low-rank'))\n"
        "print(fit.certificate_, fit.mmd_before_, fit.mmd_after_, fit.mmd_outside_)\n"
        "print('ratio', seconds / pass_seconds)"
    )
    seconds, memory = peak_memory_of(code, show=True)
    print(f"m = {m:,}, n = {n:,}: {seconds:.0f} s, peak {memory:.0f} MB")


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
            for weighter in (KernelMeanMatching(), DensityRatioWeights()):
                weighter.fit(sample, population=population)
                missed = np.average(sample[:, 0], weights=weighter.weights_)
                on_new = hasattr(weighter, "weigh")
                weights = weighter.weigh(new) if on_new else weighter.weights_
                rows = new if on_new else sample
                correlation = np.corrcoef(weights, np.exp(rows[:, 0] - 0.5))[0, 1]
                name = type(weighter).__name__
                print(
                    f"| {d} | {seed} | {name} | {correlation:.2f}{'' if on_new else ' (sample)'} "
                    f"| {weights.mean():.2f} | {missed - population[:, 0].mean():+.3f} |",
                    flush=True,
                )


def ridge() -> None:
    """Print how far weights move with the order and the last digits of the population, by ridge.

    400 rows N(0, 1) and 100,000 N(1, 1), as they are, in another order and rounded to single
    precision, three seeds: the largest movement in l1 over the total weight, medians of the rest.
    """
    print("| ridge | moved by | effective sample | correlation with the ratio | mean missed by |")
    print("|---|---|---|---|---|")
    for size in (0.0, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 1e-1):
        found = []
        for seed in range(3):
            random = np.random.default_rng(seed)
            sample, population = random.normal(size=(400, 1)), random.normal(1, 1, (100_000, 1))
            orders = (population, random.permutation(population), population.astype("f4"))
            weights = [
                KernelMeanMatching(ridge=size, overlap="ignore")
                .fit(sample, population=order)
                .weights_
                for order in orders
            ]
            first = weights[0]
            mean = np.average(sample[:, 0], weights=first) - population[:, 0].mean()
            found.append(
                (
                    max(float(np.abs(other - first).sum()) / first.sum() for other in weights[1:]),
                    first.sum() ** 2 / (first @ first) / len(first),
                    float(np.corrcoef(first, np.exp(sample[:, 0] - 0.5))[0, 1]),
                    float(mean),
                )
            )
        moved = max(one for one, *_ in found)
        _, effective, correlation, missed = np.median(found, axis=0)
        print(
            f"| {size:g} | {moved:.1e} | {effective:.0%} | {correlation:.2f} | {missed:+.3f} |",
            flush=True,
        )


def main() -> None:
    """Run one of the benchmarks from the command line."""
    runs: dict[str, Callable[[argparse.Namespace], None]] = {
        "bare": lambda given: bare(given.repeats),
        "peers": lambda given: peers(given.repeats),
        "sizes": lambda given: sizes(given.largest, given.figure),
        "features": lambda _: features(),
        "large": lambda _: large(1_000_000, 10_000_000),
        "toy": lambda _: toy(),
        "ridge": lambda _: ridge(),
    }
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("which", choices=runs)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--largest", type=int, default=20_000)
    parser.add_argument("--figure", type=Path)
    arguments = parser.parse_args()
    runs[arguments.which](arguments)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    main()
