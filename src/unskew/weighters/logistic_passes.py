"""The logistic model of selection over all population rows, by a pass for each Newton step."""

from __future__ import annotations

from typing import Any

import numpy as np

from unskew.numerics.calibration import solve_psd
from unskew.numerics.row_features import weighted_moments
from unskew.numerics.softplus import softplus
from unskew.numerics.typing import FloatArray
from unskew.population.encode import ColumnCodes
from unskew.population.population import Population
from unskew.population.sample import Sample
from unskew.population.summaries import RowBlock, Summary
from unskew.weighters.ratio_models import LogisticModels
from unskew.weighters.selection_features import SelectionFeatures
from unskew.weighters.two_samples import hash_values
from unskew.weighters.value_folds import ValueFolds

MAX_PASSES = 30
TOLERANCE = 1e-9
MOST_AT_ONCE = 20_000
"""Rows whose features are held at a time."""


class LogisticSums(Summary):
    """Loss, gradient and Hessian of the models' likelihoods, each outside of its fold.

    Attributes
    ----------
    mass : ndarray of shape (n_models,)
    losses : ndarray of shape (n_models,)
    gradients : ndarray of shape (n_models, n_features)
    hessians : ndarray of shape (n_models, n_features, n_features)
    """

    shared = frozenset({"codes", "features", "folds", "coefficients", "leaves_marked_out"})
    added = ("mass", "losses", "gradients", "hessians")

    def __init__(
        self,
        codes: ColumnCodes,
        features: SelectionFeatures,
        folds: ValueFolds,
        coefficients: FloatArray,
        *,
        leaves_marked_out: bool,
    ) -> None:
        self.codes, self.features, self.folds = codes, features, folds
        self.coefficients, self.leaves_marked_out = coefficients, leaves_marked_out
        n_models, width = coefficients.shape
        self.mass, self.losses = np.zeros(n_models), np.zeros(n_models)
        self.gradients = np.zeros((n_models, width))
        self.hessians = np.zeros((n_models, width, width))

    def update(self, rows: RowBlock) -> None:
        """Add the rows of a block; those with unseen values count for nothing."""
        values, unseen = self.codes.transform(rows.batch, side="population")
        weight = np.array(rows.weight, dtype=float)
        if unseen is not None:
            weight[unseen] = 0.0
        if self.leaves_marked_out and rows.selected is not None:
            weight[rows.selected] = 0.0
        for begin in range(0, len(values), MOST_AT_ONCE):
            part = slice(begin, begin + MOST_AT_ONCE)
            self.add(values[part], weight[part])

    def add(self, values: FloatArray, weight: FloatArray) -> None:
        """Add rows of codes."""
        features = self.features.transform(values)
        numbers = self.folds.number(hash_values(values))
        for model, beta in enumerate(self.coefficients):
            own = weight if self.folds.n_folds == 1 else np.where(numbers == model, 0.0, weight)
            scores = features @ beta
            chances = np.exp(-softplus(-scores))
            self.mass[model] += own.sum()
            self.losses[model] += own @ softplus(scores)
            self.gradients[model] += (own * chances) @ features
            self.hessians[model] += weighted_moments(features, own * chances * (1 - chances)).gram


def fit_by_passes(
    models: LogisticModels,
    sample: Sample,
    population: Population,
    folds: ValueFolds,
    *,
    marked: bool,
) -> int:
    """Move the models' coefficients to their minimum over all rows; return the number of passes.

    Newton's method from the coefficients on the rows that were drawn; a step that raises the loss
    is halved.
    """
    codes, penalty = sample.codes, float(models.penalty)
    pooled = models.rate == "odds"
    rate = models.mixture if pooled else float(models.rate)

    def ask(at: FloatArray) -> LogisticSums:
        return LogisticSums(codes, models.features, folds, at, leaves_marked_out=marked)

    features = models.features.transform(sample.values)
    numbers = folds.number(hash_values(sample.values))
    means = []
    for model in range(models.n_models):
        design = np.where((numbers == model) & (folds.n_folds > 1), 0.0, sample.design)
        means.append(design @ features / design.sum())
    ridge = np.full(features.shape[1], penalty)
    ridge[0] = 0.0

    def objective(at: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return values, gradients and Hessians, from one pass."""
        theirs = population.reduce(ask(at))
        parts = [(1.0, theirs)]
        if pooled:
            mine = ask(at)
            mine.add(sample.values, sample.design)
            parts = [(1.0 - rate, theirs), (rate, mine)]
        value, slope, curve = np.zeros(len(at)), np.zeros_like(at), 0.0 * theirs.hessians
        for share, sums in parts:
            value += share * sums.losses / sums.mass
            slope += share * sums.gradients / sums.mass[:, None]
            curve += share * sums.hessians / sums.mass[:, None, None]
        value += -rate * (at * means).sum(axis=1) + (at**2 @ ridge) / 2
        slope += -rate * np.array(means) + ridge * at
        return value, slope, curve + np.diag(ridge + 1e-14)

    at = np.array(models.coefficients)
    value, slope, curve = objective(at)
    passes, size = 1, np.ones(len(at))
    step = _steps(slope, curve)
    while np.abs(slope).max() > TOLERANCE and passes < MAX_PASSES and size.min() > 1e-6:
        new = at + size[:, None] * step
        reached, new_slope, new_curve = objective(new)
        passes += 1
        worse = reached > value + 1e-12 * np.maximum(np.abs(value), 1.0)
        if worse.any():
            size = np.where(worse, size / 2, size)
            continue
        at, value, slope, size = new, reached, new_slope, np.ones(len(at))
        curve = new_curve
        step = _steps(slope, curve)
    models.coefficients, models.curvatures = list(at), list(curve)
    return passes


def _steps(slope: FloatArray, curve: Any) -> FloatArray:
    return np.array([-solve_psd(h, g) for g, h in zip(slope, curve, strict=True)])
