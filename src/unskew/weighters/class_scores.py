"""A classifier's probabilities, cross-fitted on the sample and calibrated, for any rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold
from sklearn.utils.validation import has_fit_parameter

from unskew.errors import InputError, LearnerError, ParameterError
from unskew.numerics.label_shift import Calibration, fit_calibration
from unskew.numerics.typing import FloatArray, IntArray
from unskew.population.encode import Encoded
from unskew.population.feature_space import FeatureSpace
from unskew.population.forms import Form
from unskew.population.sample import Sample


@dataclass(frozen=True)
class Scores:
    """What each of several models says of rows.

    Attributes
    ----------
    models : list of fitted classifiers
    columns : ndarray of int
        Which of a model's classes each class of the sample is.
    form : Form or None
        The form in which the models take rows; None for points of ``space``.
    space : FeatureSpace
    calibration : Calibration or None
    """

    models: list[Any]
    columns: IntArray
    form: Form | None
    space: FeatureSpace
    calibration: Calibration | None = None

    def of(self, model: Any, batch: pa.RecordBatch, points: FloatArray) -> FloatArray:
        """Return the probabilities of one model."""
        if self.form is None:
            raw = model.predict_proba(points)
        else:
            raw = model.predict_proba(self.form.of(pa.Table.from_batches([batch])))
        probabilities = np.asarray(raw, dtype=np.float64)[:, self.columns]
        return probabilities if self.calibration is None else self.calibration(probabilities)


@dataclass(frozen=True)
class ScoredRows:
    """Encodes rows as the probabilities of every model, and features less what these explain.

    Attributes
    ----------
    scores : Scores
    explained : ndarray of shape (n_classes, n_features)
        The features' means by class, as a linear function of mean probabilities.
    """

    scores: Scores
    explained: FloatArray

    def transform(self, batch: pa.RecordBatch, *, side: str) -> Encoded:
        """Return the rows as numbers."""
        points, unseen = self.scores.space.transform(batch, side=side)
        self.scores.space.check_distances(points, side=side)
        each = [self.scores.of(model, batch, points) for model in self.scores.models]
        left = points - np.mean(each, axis=0) @ self.explained
        return Encoded(np.hstack([*each, left]), unseen)


def check_classifier(classifier: Any, classes: Any, *, prefit: bool) -> None:
    """Refuse what gives no probabilities, or not of these classes."""
    name = type(classifier).__name__
    if not hasattr(classifier, "predict_proba"):
        raise LearnerError(
            f"{name} has no predict_proba, and LabelShiftWeights needs probabilities. Wrap it in "
            "scikit-learn's CalibratedClassifierCV."
        )
    if not prefit:
        return
    known = getattr(classifier, "classes_", None)
    if known is None:
        raise ParameterError(f"prefit=True needs a fitted classifier; this {name} is not.")
    unknown = [label for label in classes if label not in known]
    if unknown:
        raise InputError(f"The classifier does not know the class '{unknown[0]}' of y.")


def cross_fit(
    classifier: Any, sample: Sample, labels: IntArray, n_folds: int, seed: Any, *, calibrate: bool
) -> tuple[Scores, FloatArray]:
    """Fit a model for each fold; return them, and the sample's probabilities by models without it.

    Without a classifier, it is a logistic regression in the sample's feature space.
    """
    space, points = sample.points("standard")
    form = None if classifier is None else sample.form
    table = pa.Table.from_batches([sample.batch])
    rows = points if form is None else form.of(table)
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
    scores = Scores([], np.arange(int(labels.max()) + 1), form, space)
    held_out = np.empty((len(labels), len(scores.columns)))
    for train, rest in folds.split(np.zeros(len(labels)), labels):
        rows_of_fold = _take(rows, table, form, train)
        model = _fit(classifier, rows_of_fold, sample.labels[train], sample.design[train])
        scores.models.append(model)
        held_out[rest] = scores.of(model, sample.batch.take(pa.array(rest)), points[rest])
    return _calibrated(scores, held_out, labels, sample, calibrate)


def score_prefit(
    classifier: Any, sample: Sample, labels: IntArray, classes: Any, *, calibrate: bool
) -> tuple[Scores, FloatArray]:
    """Return the fitted classifier, and the sample's probabilities by it."""
    space, points = sample.points("standard")
    columns = np.array([list(classifier.classes_).index(label) for label in classes])
    scores = Scores([classifier], columns, sample.form, space)
    return _calibrated(
        scores, scores.of(classifier, sample.batch, points), labels, sample, calibrate
    )


def _calibrated(
    scores: Scores, held_out: FloatArray, labels: IntArray, sample: Sample, calibrate: bool
) -> tuple[Scores, FloatArray]:
    if not calibrate:
        return scores, held_out
    calibration = fit_calibration(held_out, labels, sample.design)
    models, columns, form, space = scores.models, scores.columns, scores.form, scores.space
    return Scores(models, columns, form, space, calibration), calibration(held_out)


def _take(rows: Any, table: pa.Table, form: Form | None, places: IntArray) -> Any:
    return rows[places] if form is None else form.of(table.take(pa.array(places)))


def _fit(classifier: Any, rows: Any, labels: Any, design: FloatArray) -> Any:
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(max_iter=1000) if classifier is None else clone(classifier)
    if has_fit_parameter(model, "sample_weight"):
        return model.fit(rows, labels, sample_weight=design)
    return model.fit(rows, labels)
