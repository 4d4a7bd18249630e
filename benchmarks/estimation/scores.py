"""How near ``estimate_score`` comes to the score on the population, and how often it contains it.

python -m benchmarks.estimation.scores DATA [--draws 8] [--seconds 400]

The protocol, written before the run; DATA is the folder of the paper's nine sets:

- Tables: the nine sets, and diabetes, breast cancer and digits of scikit-learn. Categories are
  indicators. Regression: a ridge model by its mean absolute error. Classification: a logistic model
  by its accuracy; of a regression set, whether the target is above its median.
- A draw shuffles the rows. The first quarter, at most 2,000, is the population, without labels.
  From the others, about 500 rows, at most a quarter of them, are selected with a probability
  proportional to 1/(1 + exp(-2z)), in one direction of z in even draws and in the other in odd
  ones. z is the rank of a row, scaled to mean 0 and variance 1, and so between -1.73 and 1.73:
  the likeliest row is selected 31 times as often as the least likely one. (In standard deviations
  instead, z is down to -14 in these tables: no row of such a region is ever selected, and not even
  the true probabilities correct that.)
- Ranks are those of the first principal component of the standardised columns ("component"), which
  often has little to do with how hard a row is; or of what a ridge model of the whole table
  predicts ("target"), as where a first model decides which rows are seen; or of what boosted trees
  of the other four fifths of the table predict of the score of each row ("difficulty"), as where
  labels are had of the easy cases, or of the hard ones.
- ``estimate_score(model, sample, labels, population=..., cv=KFold(5))`` with a method and nothing
  else chosen. The naive score is the cross-validated one of the sample. "true probabilities" is the
  doubly robust method with ``KnownProbability``: what remains if weights are known. The truth is
  the mean over all rows of the table of the score of the five models; of a row of the sample, that
  of the one model which has not seen it.
- Errors are absolute, in standard deviations of the rows' scores, and averaged over all draws.
  Selection may have little to do with the score, and then there is nothing to correct: a draw is
  *biased* if the mean of the rows' scores with the probabilities of selection as weights, which is
  what the naive score estimates, is off by more than two standard errors of the naive score.
- 95 % intervals should contain the truth in 93 to 97 %, and the mean error be at most half of the
  naive one. At least five draws of each task and selection; their numbers begin at 3,000.
- Others were used to choose the weights, the size of the boosted model of scores and the bias that
  intervals allow for: draws 1,000 to 1,002, and 2,000 to 2,003 with intervals without such a bias.

A run that is stopped goes on where it was. ``scores.json`` holds the draws.
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
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from unskew import KnownProbability, UnskewError, estimate_score

RESULTS = Path(__file__).with_name("scores.json")
METHODS = ("doubly_robust", "weighted", "true probabilities")
FIRST = 3000
SELECTIONS = ("component", "target", "difficulty")
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
    return _scores(model.predict(X), y, scoring)


def _scores(predicted: Any, y: Any, scoring: str) -> Any:
    return (predicted == y).astype(float) if scoring == "accuracy" else -np.abs(predicted - y)


def direction(task: tuple[pd.DataFrame, Any, Any, str], selection: str) -> Any:
    """Return what selection depends on, as ranks with mean 0 and variance 1."""
    X, y, learner, scoring = task
    standard = ((X - X.mean()) / X.std().where(X.std() > 0, 1.0)).to_numpy()
    if selection == "target":
        z = Ridge().fit(standard, y).predict(standard)
    elif selection == "difficulty":
        folds = KFold(5, shuffle=True, random_state=0)
        predicted = cross_val_predict(clone(learner), X, y, cv=folds)
        scores = _scores(predicted, y, scoring)
        trees = HistGradientBoostingRegressor(max_iter=30, max_leaf_nodes=8, random_state=0)
        z = cross_val_predict(trees, X, scores, cv=KFold(5, shuffle=True, random_state=1))
    else:
        z = standard @ np.linalg.svd(standard, full_matrices=False)[2][0]
    ranks = rankdata(z)
    return (ranks - ranks.mean()) / ranks.std()


def one(task: tuple[pd.DataFrame, Any, Any, str], name: str, number: int, z: Any) -> dict[str, Any]:
    """Return error, naive error, bias and coverage of a draw."""
    X, y, learner, scoring = task
    random = np.random.default_rng([zlib.crc32(name.encode()), number])
    order = random.permutation(len(X))
    population, others = np.split(order, [min(2000, len(X) // 4)])
    lean = 1 / (1 + np.exp(-2 * (-1) ** number * z))
    chance = lean[others] * min(500, len(others) / 4) / lean[others].sum()
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
    truth, naive, unit = scores.mean(), own.mean(), scores.std()
    bias = (lean @ scores / lean.sum() - truth) / (own.std(ddof=1) / len(own) ** 0.5)
    found: dict[str, Any] = {"naive": abs(naive - truth) / unit, "bias": bias}
    for method in METHODS:
        known = method == "true probabilities"
        try:
            made = estimate_score(
                learner,
                mine,
                labels,
                population=X.iloc[population],
                scoring=scoring,
                method="doubly_robust" if known else method,
                weighter=KnownProbability(lean[sample]) if known else None,
                cv=folds,
                random_state=number,
            )
        except UnskewError:
            continue
        low, high = made.interval
        found[method] = [abs(made.value - truth) / unit, float(low <= truth <= high)]
    return {key: np.round(value, 6).tolist() for key, value in found.items()}


def gathered(draws: list[dict[str, Any]], method: str) -> tuple[int, float, float, float]:
    """Return the number of draws, the mean errors, ours and the naive one, and the coverage."""
    made = [draw for draw in draws if method in draw]
    if not made:
        return 0, np.nan, np.nan, np.nan
    errors, covered = np.mean([draw[method] for draw in made], axis=0)
    return len(made), float(errors), float(np.mean([draw["naive"] for draw in made])), covered


def biased(draw: dict[str, Any]) -> bool:
    """Whether the naive score is far off in expectation."""
    return bool(abs(draw["bias"]) > 2)


def summary(results: dict[str, Any]) -> str:
    """Return a line for each selection and method in Markdown."""
    lines = [
        "| draws | method | n | error | naive error | ratio | covered |",
        "|---|---|--:|--:|--:|--:|--:|",
    ]
    every = {
        s: [draw for draws in found.values() for draw in draws] for s, found in results.items()
    }
    together = [draw for draws in every.values() for draw in draws]
    rows = {f"selected by {selection}": draws for selection, draws in every.items()}
    rows["all"] = together
    rows["biased"] = [draw for draw in together if biased(draw)]
    rows["not biased"] = [draw for draw in together if not biased(draw)]
    for name, draws in rows.items():
        for method in METHODS:
            n, error, naive, covered = gathered(draws, method)
            lines.append(
                f"| {name} | {method} | {n} | {error:.3f} | {naive:.3f} | {error / naive:.2f} | "
                f"{covered:.1%} |"
            )
    return "\n".join(lines)


def table(results: dict[str, Any]) -> str:
    """Return a line for each task in Markdown: the errors over the naive one."""
    heads = " | ".join(f"{selection}, {method}" for selection in results for method in METHODS)
    lines = [f"| table, score | {heads} |", "|---" + "|--:" * len(results) * len(METHODS) + "|"]
    for name in next(iter(results.values())):
        cells = []
        for found in results.values():
            for method in METHODS:
                _, error, naive, covered = gathered(found.get(name, []), method)
                cells.append(f"{error / naive:.2f}, {covered:.0%}")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Run what is missing, one draw of every task at a time, and print the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("data", type=Path)
    parser.add_argument("--draws", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=np.inf)
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    results = json.loads(options.results.read_text()) if options.results.exists() else {}
    end, known = time.monotonic() + options.seconds, tasks(options.data)
    leans: dict[tuple[str, str], Any] = {}
    for number in range(options.draws):
        for name, task in known.items():
            for selection in SELECTIONS:
                draws = results.setdefault(selection, {}).setdefault(name, [])
                if len(draws) > number or time.monotonic() > end:
                    continue
                if (name, selection) not in leans:
                    leans[name, selection] = direction(task, selection)
                draws.append(one(task, name, FIRST + number, leans[name, selection]))
            options.results.write_text(json.dumps(results, indent=0) + "\n")
    print(table(results))
    print(summary(results))


if __name__ == "__main__":
    main()
