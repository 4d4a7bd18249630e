"""The figures of docs/selection-on-the-label.md: ``python -m docs.label_stories`` prints them.

Three simulated stories of which the truth is known: wages of those who work, loans that were
granted, and a class that becomes rarer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import log_loss

from unskew import (
    CalibrationWeights,
    HeckmanClassifier,
    HeckmanRegressor,
    LabelShiftWeights,
    Reweighted,
    split_labelled,
)

__all__ = ["clinic_and_screening", "loans", "wages"]


class Wages(NamedTuple):
    """Everyone, the logarithm of wages as they are seen, and as they would be."""

    people: pd.DataFrame
    seen: pd.Series
    truth: pd.Series


def wages(n_rows: int = 5000, *, seed: int = 0) -> Wages:
    """Return people of whom those with a good offer work; young children keep some from it."""
    random = np.random.default_rng(seed)
    education = random.normal(13, 2.5, n_rows).round()
    experience = random.gamma(2, 6, n_rows).round()
    children = random.poisson(0.6, n_rows)
    luck = random.normal(size=n_rows)  # what an employer sees, and no file has
    offer = 0.6 + 0.09 * education + 0.015 * experience + 0.5 * luck
    wish = 0.8 * luck + 0.6 * random.normal(size=n_rows)
    works = -2.0 + 0.15 * education + 0.02 * experience - 0.8 * children + wish > 0
    people = pd.DataFrame({"education": education, "experience": experience, "children": children})
    truth = pd.Series(offer)
    return Wages(people, truth.where(works), truth)


def loans(n_rows: int = 20_000, *, hidden: float = 0.0, seed: int = 0) -> Wages:
    """Return applications; those with a good score are granted, and only they can default.

    ``hidden`` is how much an officer's impression, which no column holds, counts as well. Where
    the queue is long, fewer are granted.
    """
    random = np.random.default_rng(seed)
    income = random.normal(size=n_rows)
    debt = random.normal(size=n_rows)
    impression = random.normal(size=n_rows)
    default = random.uniform(size=n_rows) < 1 / (1 + np.exp(2 + income - debt + impression))
    score = income - debt + hidden * impression + random.logistic(size=n_rows)
    queue = random.normal(size=n_rows)
    applications = pd.DataFrame({"income": income, "debt": debt, "queue": queue})
    truth = pd.Series(default.astype(float))
    return Wages(applications, truth.where(score - 1.5 * queue > 0), truth)


class Shift(NamedTuple):
    """The clinic's patients and their diagnoses, and people screened later."""

    X: np.ndarray
    y: np.ndarray
    screened: np.ndarray
    hidden: np.ndarray


def clinic_and_screening(*, seed: int = 0) -> Shift:
    """Return patients of whom half are ill, and screened people of whom one in twenty is."""
    random = np.random.default_rng(seed)
    y, hidden = random.uniform(size=2000) < 0.5, random.uniform(size=20_000) < 0.05
    X, screened = (random.normal(size=(len(ill), 3)) + ill[:, None] for ill in (y, hidden))
    return Shift(X, y.astype(int), screened, hidden.astype(int))


def lines() -> Iterator[str]:
    """Yield the rows of the page's tables."""
    yield from wage_lines()
    yield from loan_lines()
    yield from shift_lines()


def wage_lines() -> Iterator[str]:
    """Yield what each method says of wages."""
    people, seen, truth = wages()
    everyone = LinearRegression().fit(people[["education"]], truth)
    yield f"| everyone, as only a simulation knows | {_pair(everyone.coef_[0], truth.mean())} |"
    X, y, population = split_labelled(people, seen)
    plain = LinearRegression().fit(X[["education"]], y)
    yield f"| those who work | {_pair(plain.coef_[0], y.mean())} |"
    model = Reweighted(LinearRegression(), CalibrationWeights()).fit(X, y, population=population)
    weighted = LinearRegression().fit(X[["education"]], y, sample_weight=model.weights_)
    mean = np.average(y, weights=model.weights_)
    yield f"| weighted by education, experience and children | {_pair(weighted.coef_[0], mean)} |"
    heckman = HeckmanRegressor(outcome=["education", "experience"], method="ml").fit(people, seen)
    fitted = heckman.predict(people)
    slope = LinearRegression().fit(people[["education"]], fitted).coef_[0]
    yield f"| `HeckmanRegressor`, without children in the outcome | {_pair(slope, fitted.mean())} |"


def loan_lines() -> Iterator[str]:
    """Yield the rate of default, by how much the officer's impression counts."""
    for hidden, name in ((0.0, "by the columns alone"), (1.0, "by an impression too")):
        applications, seen, truth = loans(hidden=hidden)
        X, y, population = split_labelled(applications, seen)
        model = Reweighted(LogisticRegression(), CalibrationWeights()).fit(
            X, y, population=population
        )
        heckman = HeckmanClassifier(outcome=["income", "debt"]).fit(applications, seen)
        said = (one.predict_proba(applications)[:, 1].mean() for one in (model, heckman))
        rates = y.mean(), *said, truth.mean()
        yield f"| {name} | " + " | ".join(f"{rate:.1%}" for rate in rates) + " |"


def shift_lines() -> Iterator[str]:
    """Yield how well models predict who is ill among the screened."""
    X, y, screened, hidden = clinic_and_screening()
    plain = LogisticRegression().fit(X, y)
    weighter = LabelShiftWeights().fit(X, y, population=screened)
    says = plain.predict_proba(screened)
    better = weighter.adjust_probabilities(says)
    model = Reweighted(LogisticRegression(), LabelShiftWeights()).fit(X, y, population=screened)
    for name, p in (
        ("the clinic's model", says),
        ("`adjust_probabilities`", better),
        ("`Reweighted` with `LabelShiftWeights`", model.predict_proba(screened)),
    ):
        yield f"| {name} | {p[:, 1].mean():.1%} | {log_loss(hidden, p):.3f} |"
    yield f"| true share of the ill | {hidden.mean():.1%} | |"


def _pair(slope: float, mean: float) -> str:
    return f"{slope:.3f} | {mean:.2f}"


if __name__ == "__main__":
    print("\n".join(lines()))
