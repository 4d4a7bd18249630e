"""How often 95 % intervals of ``estimate_score`` contain the score on the population.

python -m benchmarks.estimation.scores DATA [--selection target] [--draws 20] [--seconds 400]

The protocol, written before the run; DATA is the folder of the paper's nine sets:

- Tables: the nine sets, and diabetes, breast cancer and digits of scikit-learn. Categories are
  indicators. Regression: a ridge model by its mean absolute error. Classification: a logistic model
  by its accuracy; of a regression set, whether the target is above its median.
- A draw shuffles the rows. The first quarter, at most 2,000, is the population, without labels.
  From the others, about 500 rows, at most a quarter of them, are selected with a probability
  proportional to 1/(1 + exp(-2z)), in one direction of z in even draws and in the other in odd
  ones. z, in standard deviations, is the first principal component of the standardised columns
  ("component"), which often has little to do with how hard a row is; or what a ridge model of the
  whole table predicts ("target"), as where a first model decides which rows are seen. "target" was
  added after four draws of "component", which had hardly biased the scores.
- ``estimate_score(model, sample, labels, population=..., cv=KFold(5))`` with each method and
  nothing else chosen. The naive score is the cross-validated one of the sample. The truth is the
  mean over all rows of the table of the score of the five models; of a row of the sample, that of
  the one model which has not seen it.
- 95 % intervals should contain the truth in 93 to 97 %, and the mean absolute error be at most half
  of the naive one.

A run that is stopped goes on where it was. ``scores.json`` holds the sums.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from unskew import UnskewError, estimate_score

RESULTS = Path(__file__).with_name("scores.json")
METHODS = ("doubly_robust", "control_variate", "weighted")
BUNDLED = {"diabetes": load_diabetes, "breast cancer": load_breast_cancer, "digits": load_digits}
CLASSES = ("breast cancer", "digits")


def tables(folder: Path) -> dict[str, tuple[pd.DataFrame, Any]]:
    """Return columns and target of each table."""
    found = {}
    for path in sorted(folder.glob("*.parquet")):
        rows = pd.read_parquet(path)
        found[path.stem] = (
            pd.get_dummies(rows.iloc[:, :-1], dtype=float).astype(float),
            rows.iloc[:, -1].to_numpy(float),
        )
    for name, load in BUNDLED.items():
        bunch = load(as_frame=True)
        found[name] = (bunch.data.astype(float), bunch.target.to_numpy())
    return found


def tasks(folder: Path) -> dict[str, tuple[pd.DataFrame, Any, Any, str]]:
    """Return columns, labels, learner and score by the names of table and task."""
    found = {}
    for name, (X, y) in tables(folder).items():
        if name not in CLASSES:
            ridge = make_pipeline(StandardScaler(), Ridge())
            found[f"{name}, absolute error"] = (X, y, ridge, "neg_mean_absolute_error")
            y = (y > np.median(y)).astype(int)
        logistic = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
        found[f"{name}, accuracy"] = (X, y, logistic, "accuracy")
    return found


def row_scores(model: Any, X: pd.DataFrame, y: Any, scoring: str) -> Any:
    """Return the score of each row."""
    predicted = model.predict(X)
    return (predicted == y).astype(float) if scoring == "accuracy" else -np.abs(predicted - y)


def direction(X: pd.DataFrame, y: Any, selection: str) -> Any:
    """Return what selection depends on, in standard deviations."""
    standard = ((X - X.mean()) / X.std().where(X.std() > 0, 1.0)).to_numpy()
    if selection == "target":
        z = Ridge().fit(standard, y).predict(standard)
    else:
        z = standard @ np.linalg.svd(standard, full_matrices=False)[2][0]
    return (z - z.mean()) / z.std()


def one(
    task: tuple[pd.DataFrame, Any, Any, str], name: str, number: int, selection: str
) -> dict[str, Any]:
    """Return error, naive error, whether it covers, and effective size of each method in a draw."""
    X, y, learner, scoring = task
    random = np.random.default_rng([zlib.crc32(name.encode()), number])
    order = random.permutation(len(X))
    population, others = np.split(order, [min(2000, len(X) // 4)])
    lean = (-1) ** number * direction(X, y, selection)
    chance = 1 / (1 + np.exp(-2 * lean[others]))
    chance *= min(500, len(others) / 4) / chance.sum()
    sample = others[random.uniform(size=len(others)) < chance]
    mine, labels = X.iloc[sample], y[sample]
    folds = KFold(5, shuffle=True, random_state=number)
    scores = np.zeros(len(X))
    own = np.zeros(len(sample))
    for train, test in folds.split(mine):
        model = clone(learner).fit(mine.iloc[train], labels[train])
        each = row_scores(model, X, y, scoring)
        scores += each / 5
        own[test] = each[sample[test]]
    scores[sample] = own
    truth, naive = scores.mean(), own.mean()
    found: dict[str, Any] = {}
    for method in METHODS:
        try:
            made = estimate_score(
                learner,
                mine,
                labels,
                population=X.iloc[population],
                scoring=scoring,
                method=method,
                cv=folds,
                random_state=number,
            )
        except UnskewError:
            found[method] = None
            continue
        low, high = made.interval
        covered = float(low <= truth <= high)
        errors = abs(made.value - truth), abs(naive - truth)
        found[method] = (*errors, covered, made.effective_sample_size)
    return found


def add(totals: dict[str, Any], found: dict[str, Any]) -> None:
    """Add a draw to the sums of a task."""
    totals["draws"] = totals.get("draws", 0) + 1
    for method, numbers in found.items():
        names = ("error", "naive", "covered", "effective")
        sums = totals.setdefault(method, {"made": 0, **dict.fromkeys(names, 0.0)})
        if numbers is not None:
            sums["made"] += 1
            for name, value in zip(names, numbers, strict=True):
                sums[name] += value


def summary(results: dict[str, Any]) -> str:
    """Return a line for each selection and method in Markdown."""
    lines = [
        "| selection by | method | draws | error over the naive one, median of the tasks | "
        "tasks at a half or less | covered |",
        "|---|---|--:|--:|--:|--:|",
    ]
    for selection, found in results.items():
        for method in METHODS:
            each = [totals[method] for totals in found.values()]
            ratios = np.array([sums["error"] / sums["naive"] for sums in each])
            made = sum(sums["made"] for sums in each)
            covered = sum(sums["covered"] for sums in each) / made
            lines.append(
                f"| {selection} | {method} | {made} | {np.median(ratios):.2f} | "
                f"{(ratios <= 0.5).sum()} of {len(ratios)} | {covered:.1%} |"
            )
    return "\n".join(lines)


def table(found: dict[str, Any]) -> str:
    """Return a line for each task of a selection in Markdown."""
    heads = " | ".join(f"{method} | covered" for method in METHODS)
    lines = [f"| table, score | draws | effective rows | {heads} |"]
    lines.append("|---|--:|--:" + "|--:" * 2 * len(METHODS) + "|")
    for name, totals in found.items():
        cells = [
            f"{totals[method]['error'] / totals[method]['naive']:.2f} | "
            f"{totals[method]['covered'] / totals[method]['made']:.0%}"
            for method in METHODS
        ]
        size = totals["weighted"]["effective"] / totals["weighted"]["made"]
        lines.append(f"| {name} | {totals['draws']} | {size:.0f} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Run what is missing, one draw of every task at a time, and print the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("data", type=Path)
    parser.add_argument("--selection", choices=["component", "target"], default="component")
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=np.inf)
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    results = json.loads(options.results.read_text()) if options.results.exists() else {}
    end, known = time.monotonic() + options.seconds, tasks(options.data)
    found = results.setdefault(options.selection, {})
    for number in range(options.draws):
        for name, task in known.items():
            totals = found.setdefault(name, {"draws": 0})
            if totals["draws"] > number or time.monotonic() > end:
                continue
            add(totals, one(task, name, number, options.selection))
            options.results.write_text(json.dumps(results, indent=1) + "\n")
    print(table({name: totals for name, totals in found.items() if totals["draws"]}))
    if all(totals["draws"] for found in results.values() for totals in found.values()):
        print(summary(results))


if __name__ == "__main__":
    main()
