"""Measure LabelShiftWeights: ``OMP_NUM_THREADS=1 python -m benchmarks.label_shift [PART ...]``.

Parts: tables (shifts of four tables that come with scikit-learn, 50 draws each), and cost (20 M
rows in one pass, against scoring them with the same classifier). Results are stored beside this
file. A strong shift moves at least a quarter of the population to other classes.
"""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.parts import run_parts
from unskew import LabelShiftWeights, Population, Summary

RESULT = Path(__file__).with_name("result.json")
TABLES = {
    "digits": load_digits,
    "wine": load_wine,
    "cancer": load_breast_cancer,
    "iris": load_iris,
}
METHODS = ("mlls", "bbse")
DRAWS = 50
STRONG = 0.25


def shifted(y: Any, shares: Any, random: np.random.Generator) -> tuple[Any, Any]:
    """Return the places of a sample with equal classes, and of a population with these shares.

    They have no row in common; the population draws rows of a class with replacement.
    """
    n_classes = len(shares)
    half = [random.permutation(np.flatnonzero(y == label)) for label in range(n_classes)]
    size = min(map(len, half)) // 2
    sample = np.concatenate([places[:size] for places in half])
    labels = random.choice(n_classes, len(y) // 2, p=shares)
    return sample, np.array([random.choice(half[label][size:]) for label in labels])


def one_draw(X: Any, y: Any, shares: Any, seed: int) -> dict[str, float]:
    """Return the errors of the class weights by each method, and log losses on the population."""
    random = np.random.default_rng(seed)
    sample, population = shifted(y, shares, random)
    hidden, n_classes = y[population], len(shares)
    truth = np.bincount(hidden, minlength=n_classes) / len(hidden)
    result = {}
    for method in METHODS:
        weighter = LabelShiftWeights(method=method)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            weighter.fit(X[sample], y[sample], population=X[population])
        wanted = truth / weighter.sample_shares_
        result[method] = float(((weighter.class_weights_ - wanted) ** 2).mean())
        if method == "mlls":
            model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
            plain = model.fit(X[sample], y[sample]).predict_proba(X[population])
            labels = list(range(n_classes))
            result["plain"] = float(log_loss(hidden, plain, labels=labels))
            better = weighter.adjust_probabilities(plain)
            result["corrected"] = float(log_loss(hidden, np.clip(better, 1e-9, 1), labels=labels))
    return result


def tables() -> dict[str, Any]:
    """Compare the methods, and the corrected model with the plain one, with and without shift."""
    results: dict[str, Any] = {}
    for name, load in TABLES.items():
        X, y = load(return_X_y=True)
        n_classes = int(y.max()) + 1
        results[name] = {"classes": n_classes, "draws": DRAWS}
        for kind in ("strong", "none"):
            draws = []
            for seed in range(DRAWS):
                shares = np.full(n_classes, 1 / n_classes)
                random = np.random.default_rng(1000 + seed)
                while kind == "strong" and np.abs(shares - 1 / n_classes).sum() / 2 < STRONG:
                    shares = random.dirichlet(np.full(n_classes, 0.5))
                draws.append(one_draw(X, y, shares, seed))
            mean = {key: float(np.mean([draw[key] for draw in draws])) for key in draws[0]}
            better = sum(draw["corrected"] < draw["plain"] for draw in draws)
            results[name][kind] = {
                **{key: round(value, 6) for key, value in mean.items()},
                "better": better,
            }
    return results


class Scored(Summary):
    """The mean probabilities of a classifier's classes: scoring the population and no more."""

    shared = frozenset({"models"})
    added = ("sums",)

    def __init__(self, models: list[Any]) -> None:
        self.models = models
        self.sums = np.zeros(2)

    def update(self, rows: Any) -> None:
        """Score a block."""
        X = np.column_stack([column.to_numpy() for column in rows.batch.columns])
        for model in self.models:
            self.sums += model.predict_proba(X).sum(axis=0)


def cost(n_rows: int = 20_000_000) -> dict[str, Any]:
    """Time a fit over many rows, and a pass that only scores them by the same models."""
    random = np.random.default_rng(0)
    y = random.integers(0, 2, 5000)
    X = random.normal(size=(5000, 8)) + y[:, None]
    model = LogisticRegression()
    with tempfile.TemporaryDirectory() as folder:
        for part in range(20):
            hidden = random.uniform(size=n_rows // 20) < 0.1
            rows = random.normal(size=(len(hidden), 8)) + hidden[:, None]
            columns = {f"x{place}": rows[:, place] for place in range(8)}
            pq.write_table(pa.table(columns), f"{folder}/{part:02d}.parquet")
        fits, scorings = [], []
        for _ in range(3):  # in turn, as other work on the machine slows both
            begin = perf_counter()
            weighter = LabelShiftWeights(model).fit(X, y, population=Population(folder))
            fits.append(perf_counter() - begin)
            models = [LogisticRegression().fit(X, y) for _ in range(weighter.cv)]
            begin = perf_counter()
            Population(folder).reduce(Scored(models))
            scorings.append(perf_counter() - begin)
        fitting, scoring = min(fits), min(scorings)
    ratio = round(fitting / scoring, 2)
    shares = weighter.population_shares_.round(4).tolist()
    seconds = {"fit": round(fitting, 1), "scoring": round(scoring, 1), "ratio": ratio}
    return {"rows": n_rows, **seconds, "shares": shares}


PARTS = {"tables": tables, "cost": cost}


if __name__ == "__main__":
    run_parts(PARTS, RESULT, __doc__)
