"""Boosted trees as a model of the density ratio."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np

from unskew.numerics.cores import one_thread
from unskew.numerics.ratio_loss import ratio_loss, softplus
from unskew.numerics.row_keys import quantile_borders
from unskew.numerics.typing import FloatArray, IntArray
from unskew.population.progress import tell
from unskew.rows.design import ValueGroups
from unskew.rows.kinds import Kind
from unskew.weighters.logistic_models import FoldFits
from unskew.weighters.ratio_models import RatioModels
from unskew.weighters.selection_features import (
    frequent_groups,
    selection_design,
    selection_features,
)
from unskew.weighters.two_samples import TwoSamples

MAX_TREES = 80
N_BINS = 254
MAX_CATEGORIES = 200
FEW_ENTRIES = 200_000
"""Below this many numbers, trees are grown by one thread."""
TILT_PENALTIES = (0.1, 0.01, 0.001)
MOST_COLUMNS = 200
"""Of more columns, trees see those whose means, or squares, differ most outside of their fold."""


class BoostedModels(RatioModels):
    """Boosted trees that separate sample from population, then tilted.

    1. As many trees as give the least held-out loss.
    2. Trees are constant beyond the last border, and shrunk. A logistic model of the held-out
       scores and the columns, ``ScoreTilt``, corrects both, if the held-out loss says so.
    """

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def fit(self, rows: TwoSamples) -> FloatArray:
        """Grow trees outside of each fold, and choose how many of them to use."""
        with one_thread(when=rows.values.size < FEW_ENTRIES):
            return self._fit(rows)

    def _fit(self, rows: TwoSamples) -> FloatArray:
        from sklearn.ensemble import HistGradientBoostingClassifier

        self.bins = TreeBins().fit(rows)
        encoded = self.bins.transform(rows.values)
        self.n_models, self.models, self.chosen = rows.n_folds, list[Any](), list[IntArray]()
        shares = np.concatenate(rows.shares)
        losses = np.zeros(MAX_TREES + 1)
        for number in range(rows.n_folds):
            tell(f"boosting trees, {number + 1} of {rows.n_folds}")
            train, inside = rows.outside(number), rows.inside(number)
            columns = _most_different(encoded, rows, train)
            self.chosen.append(columns)
            model = HistGradientBoostingClassifier(
                max_iter=MAX_TREES,
                max_leaf_nodes=8,
                min_samples_leaf=20,
                learning_rate=0.1,
                l2_regularization=1.0,
                early_stopping=False,
                categorical_features=self.bins.is_category[columns],
                random_state=self.seed,
            )
            known = encoded[np.ix_(train, columns)]
            model.fit(known, ~rows.is_sample[train], rows.balanced(train))
            self.models.append(model)
            sign = np.where(rows.is_sample[inside], 1.0, -1.0)
            losses[0] += np.log(2.0) * shares[inside].sum()
            few = encoded[np.ix_(inside, columns)]
            stages = model.staged_decision_function(few) if len(inside) else ()
            for stage, score in enumerate(stages, start=1):
                losses[stage] += softplus(sign * score) @ shares[inside]
        self.n_trees = MAX_TREES if rows.n_folds == 1 else int(np.argmin(losses))
        scores = np.zeros(len(encoded))
        for number in range(rows.n_folds):
            inside = rows.inside(number)
            scores[inside] = self._scores(number, encoded[inside])
        self.tilt = ScoreTilt()
        return self.tilt.fit(rows, scores)

    def predict(self, number: int, encoded: FloatArray) -> FloatArray:
        """Return the log odds after the chosen number of trees, tilted."""
        return self.tilt.of(number, encoded, self._scores(number, self.bins.transform(encoded)))

    def _scores(self, number: int, bins: FloatArray) -> FloatArray:
        """Return the log odds of rows after the chosen number of trees."""
        if not self.n_trees or not len(bins):
            return np.zeros(len(bins))
        stages = self.models[number].staged_decision_function(bins[:, self.chosen[number]])
        with one_thread(when=bins.size < FEW_ENTRIES):
            return np.asarray(next(islice(stages, self.n_trees - 1, None)))


def _most_different(bins: FloatArray, rows: TwoSamples, train: IntArray) -> IntArray:
    """Return the columns in which the sides differ most, among the rows that train a model."""
    if bins.shape[1] <= MOST_COLUMNS:
        return np.arange(bins.shape[1])
    known = bins[train]
    weight = rows.balanced(train) * np.where(rows.is_sample[train], 2.0, -2.0) / len(train)
    found = np.zeros(bins.shape[1])
    for _ in range(2):
        known -= known.mean(axis=0)
        spread = np.maximum(known.std(axis=0), 1e-12)
        found = np.maximum(found, np.abs(weight @ known) / spread)
        known *= known
    return np.sort(np.argsort(-found, kind="stable")[:MOST_COLUMNS])


class TreeBins:
    """Numbers as quantile bins of all rows, and categories by their rank in frequency, from one on.

    A missing value is zero. The boosted trees would bin by themselves, but with weights they sort
    the rows once for each border, which takes far longer than growing the trees.
    """

    def fit(self, rows: TwoSamples) -> TreeBins:
        """Learn borders from all rows, and categories from the sample's."""
        kinds = rows.codes.kinds
        self.places = rows.columns  # of columns that separate alike, trees take the first
        self.is_category = np.array([kinds[place] == Kind.CATEGORY for place in self.places])
        self.columns: list[Any] = []
        for place, category in zip(self.places, self.is_category, strict=True):
            if category:
                self.columns.append(frequent_groups(int(place), rows, MAX_CATEGORIES))
                continue
            self.columns.append(quantile_borders(rows.values[:, place], N_BINS))
        return self

    def transform(self, codes: FloatArray) -> FloatArray:
        """Return the bins of rows."""
        bins = np.zeros(codes.shape)
        for place, learned in enumerate(self.columns):
            column = codes[:, self.places[place]]
            if isinstance(learned, ValueGroups):
                bins[:, place] = learned.of(column) + 1
            else:
                here = ~np.isnan(column)
                bins[here, place] = np.searchsorted(learned, column[here]) + 1.0
        return bins


class ScoreTilt:
    r"""Log ratios :math:`a + b s + \lambda^\top \varphi(x)` of scores s and the columns' features.

    Fitted on held-out scores outside of each fold, by the balanced log loss with a ridge on λ. If
    no ridge lowers the held-out loss, scores stay as they are.
    """

    def fit(self, rows: TwoSamples, scores: FloatArray) -> FloatArray:
        """Choose the ridge, and return the tilted held-out log ratios."""
        self.coefficients: list[FloatArray] = []
        if rows.n_folds == 1:
            return scores
        self.features = selection_design(rows, hinges=False)
        inputs = self._inputs(rows.values, scores)
        fits = FoldFits(rows, inputs, 0.5, n_free=2)
        best, least = scores, ratio_loss(rows.split(scores), rows.shares).value
        for penalty in TILT_PENALTIES:
            fitted, tilted = fits.fit(penalty, "odds", tol=1e-8)
            loss = ratio_loss(rows.split(tilted), rows.shares).value
            if loss < least:
                best, least, self.coefficients = tilted, loss, fitted
        return best

    def of(self, number: int, codes: FloatArray, scores: FloatArray) -> FloatArray:
        """Return the log ratios of rows with these scores by the model of this number."""
        if not self.coefficients:
            return scores
        return -self._inputs(codes, scores) @ self.coefficients[number]

    def _inputs(self, codes: FloatArray, scores: FloatArray) -> FloatArray:
        """Return one and the score, which have no penalty, and the other features."""
        features = selection_features(self.features, codes)
        return np.insert(features, 1, scores, axis=1)
