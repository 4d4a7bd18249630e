"""The peers, each through one small function: `python peers.py kernel|survey FOLDER`.

Runs in the peers' environment, without unskew. For each line that it reads, it takes the draw that
lies in FOLDER and prints, as one line of JSON, each peer's weights and processor seconds, or why it
has none.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import signal
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

SECONDS = 60
GAMMAS = [0.03, 0.1, 0.3, 1.0, 3.0]
LAMBDAS = [0.01, 0.1, 1.0]
Peer = Callable[[np.ndarray, np.ndarray], Any]
SurveyPeer = Callable[[pd.DataFrame, pd.DataFrame], Any]


def kernel_peers() -> dict[str, Peer]:
    """Return peers that take matrices of the sample and of the population."""
    return {**_adapt(), **_densratio(), **_skada()}


def _adapt() -> dict[str, Peer]:
    from adapt.instance_based import IWC, KLIEP, KMM, RULSIF, ULSIF

    def peer(kind: Any, **options: Any) -> Peer:
        def weigh(sample: np.ndarray, population: np.ndarray) -> Any:
            given = dict(options)
            if "gamma" in given:
                given["gamma"] = [gamma / sample.shape[1] for gamma in given["gamma"]]
            model = kind(Xt=population, verbose=0, random_state=0, **given)
            return model.fit_weights(sample, population)

        return weigh

    def matched(sample: np.ndarray, population: np.ndarray) -> Any:
        model = KMM(Xt=population, verbose=0, random_state=0, gamma=1.0 / sample.shape[1])
        return model.fit_weights(sample, population)

    return {
        "adapt IWC": peer(IWC),
        "adapt KLIEP": peer(KLIEP, gamma=GAMMAS),
        "adapt uLSIF": peer(ULSIF, gamma=GAMMAS, lambdas=LAMBDAS),
        "adapt RuLSIF": peer(RULSIF, gamma=GAMMAS, lambdas=LAMBDAS),
        "adapt KMM": matched,
    }


def _densratio() -> dict[str, Peer]:
    from densratio import densratio

    def peer(**options: Any) -> Peer:
        def weigh(sample: np.ndarray, population: np.ndarray) -> Any:
            return densratio(population, sample, verbose=False, **options).compute_density_ratio(
                sample
            )

        return weigh

    return {
        "densratio uLSIF": peer(method="uLSIF"),
        "densratio RuLSIF": peer(method="RuLSIF", alpha=0.1),
        "densratio KLIEP": peer(method="KLIEP"),
    }


def _skada() -> dict[str, Peer]:
    import skada

    def peer(name: str, **options: Any) -> Peer:
        def weigh(sample: np.ndarray, population: np.ndarray) -> Any:
            rows = np.vstack([sample, population])
            domain = np.repeat([1, -2], [len(sample), len(population)])
            given = {key: value(sample.shape[1]) for key, value in options.items()}
            adapter = getattr(skada, f"{name}ReweightAdapter")(**given)
            adapter.fit(rows, sample_domain=domain)
            return adapter.compute_weights(rows, sample_domain=domain)[: len(sample)]

        return weigh

    grid = {"gamma": lambda d: [gamma / d for gamma in GAMMAS]}
    return {
        "skada Gaussian": peer("Gaussian"),
        "skada Density": peer("Density"),
        "skada Discriminator": peer("Discriminator"),
        "skada KLIEP": peer("KLIEP", **grid),
        "skada NearestNeighbor": peer("NearestNeighbor"),
        "skada KMM": peer("KMM", gamma=lambda d: 1.0 / d),
    }


def survey_peers() -> dict[str, SurveyPeer]:
    """Return peers that take tables."""
    from balance import Sample

    def peer(method: str) -> SurveyPeer:
        def weigh(sample: pd.DataFrame, population: pd.DataFrame) -> Any:
            frames = [
                Sample.from_frame(rows.assign(id=np.arange(len(rows)).astype(str)), id_column="id")
                for rows in (sample, population)
            ]
            adjusted = frames[0].adjust(frames[1], method=method).df
            return adjusted.set_index(adjusted["id"].astype(int))["weight"].sort_index()

        return weigh

    return {f"balance {method}": peer(method) for method in ("ipw", "cbps", "rake")}


def draw_of(kind: str, folder: Path) -> tuple[Any, Any]:
    """Read the draw that lies in a folder."""
    if kind == "kernel":
        with np.load(folder / "draw.npz") as kept:
            return kept["sample"], kept["population"]
    sample, population = (pd.read_csv(folder / f"{name}.csv") for name in ("sample", "population"))
    texts = json.loads((folder / "texts.json").read_text())
    return tuple(rows.astype(dict.fromkeys(texts, str)) for rows in (sample, population))


def weigh(peer: Callable[..., Any], sample: Any, population: Any) -> Any:
    """Return a peer's weights and processor seconds, or what went wrong."""

    def stop(*_: Any) -> None:
        raise TimeoutError(f"stopped after {SECONDS} s")

    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)  # of the processor: the machine may be shared
    begun = time.process_time()
    try:
        weights = np.asarray(peer(sample.copy(), population.copy()), dtype=float).ravel()
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:200]
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return [float(f"{weight:.6g}") for weight in weights], time.process_time() - begun


def main() -> None:
    """Answer lines until there are no more."""
    kind, folder = sys.argv[1], Path(sys.argv[2])
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a peer prints is no answer
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    peers: dict[str, Any] = kernel_peers() if kind == "kernel" else survey_peers()
    for _ in sys.stdin:
        draw = draw_of(kind, folder)
        with warnings.catch_warnings(), contextlib.redirect_stdout(sys.stderr):
            warnings.simplefilter("ignore")
            found = {name: weigh(peer, *draw) for name, peer in peers.items()}
        answers.write(json.dumps(found) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
