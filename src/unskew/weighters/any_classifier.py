"""Any scikit-learn classifier as a model of the density ratio."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from scipy.special import logit
from sklearn.base import clone

from unskew.errors import LearnerError
from unskew.numerics.typing import FloatArray, IntArray
from unskew.population.forms import Form
from unskew.weighters.ratio_models import RatioModels, outside, take
from unskew.weighters.two_samples import TwoSamples
from unskew.weighters.weight_keyword import weight_keyword

NEAREST = 1e-12
"""How near to zero or one a predicted probability counts as such."""


class ClassifierModels(RatioModels):
    """Clones of a classifier that predicts whether a row is the population's.

    Its rows are as the caller gave X. It sees the two sides as often as they have rows, and odds
    are corrected for that: with a share c of sample rows, the ratio is c / (1 - c) · p / (1 - p).

    Parameters
    ----------
    classifier : estimator
        With ``predict_proba``, or with ``decision_function``, whose scores are only ranked.
    form : Form
        Of X.
    """

    def __init__(self, classifier: Any, form: Form) -> None:
        self.classifier = classifier
        self.form = form
        self.has_probabilities = hasattr(classifier, "predict_proba")

    def fit(self, rows: TwoSamples, dealt: IntArray, n_folds: int) -> FloatArray:
        """Train a clone outside of each fold."""
        frame = rows.in_form(self.form)
        weight = self._weight(rows)
        self.n_models = n_folds
        self.models, self.shift = list[Any](), list[float]()
        log_ratio = np.zeros(len(rows.values))
        for number in range(n_folds):
            train = outside(rows, dealt, number, n_folds)
            mine = float(weight[train][rows.is_mine[train]].sum())
            self.shift.append(float(np.log(mine / (weight[train].sum() - mine))))
            self.models.append(self._train(rows, frame, train, weight))
            inside = np.flatnonzero(dealt == number) if n_folds > 1 else train
            if len(inside):
                log_ratio[inside] = self.predict(number, take(frame, inside))
        return log_ratio

    def _weight(self, rows: TwoSamples) -> FloatArray:
        """Return design weights with a mean of one on either side."""
        return np.concatenate([side * len(side) for side in rows.shares])

    def _train(self, rows: TwoSamples, frame: Any, train: IntArray, weight: FloatArray) -> Any:
        name = type(self.classifier).__name__
        options = {}
        if np.ptp(weight) > 1e-9:
            keyword = weight_keyword(self.classifier)
            if keyword is None:
                raise LearnerError(
                    f"classifier: {name} takes no sample_weight, so the design weights could not "
                    "reach it. Use a classifier that takes weights, or rows without them."
                )
            options[keyword] = weight[train]
        labels = np.where(rows.is_mine[train], 0, 1)
        try:
            return clone(self.classifier).fit(take(frame, train), labels, **options)
        except Exception as error:
            raise LearnerError(
                f"classifier: {name} could not be trained to tell the sample's {rows.n_mine} rows "
                f"from {len(rows.shares.theirs)} of the population "
                f"({type(error).__name__}: {error}). Put encoders of text and missing values into "
                "a pipeline with it."
            ) from error

    def encode(self, codes: FloatArray, table: pa.Table) -> Any:  # noqa: ARG002
        """Return the rows as the caller gave X."""
        return self.form.of(table)

    def predict(self, number: int, encoded: Any) -> FloatArray:
        """Return the logarithm of the ratio; a score, if there are no probabilities."""
        model = self.models[number]
        if not self.has_probabilities:
            return np.asarray(model.decision_function(encoded), dtype=float)
        chance = np.asarray(model.predict_proba(encoded), dtype=float)[:, -1]
        return logit(np.clip(chance, NEAREST, 1 - NEAREST)) + self.shift[number]
