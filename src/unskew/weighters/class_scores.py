"""A classifier's probabilities, cross-fitted on the sample and calibrated, for any rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold

from unskew.errors import InputError, LearnerError, ParameterError
from unskew.numerics.label_shift import Calibration, fit_calibration
from unskew.numerics.linear_classes import LinearClasses
from unskew.numerics.typing import FloatArray, IntArray
from unskew.population.feature_space import FeatureSpace
from unskew.population.forms import Form
from unskew.population.sample import Sample
from unskew.weighters.weight_keyword import weight_keyword


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

    def rows(self, batch: pa.RecordBatch, *, side: str) -> Any:
        """Return rows as the models take them."""
        if self.form is not None:
            return self.form.of(pa.Table.from_batches([batch]))
        points = self.space.transform(batch, side=side).values
        self.space.check_distances(points, side=side)
        return points

    def raw(self, rows: Any) -> Iterator[FloatArray]:
        """Yield what each model says, as it says it."""
        for model in self.models:
            yield np.asarray(model.predict_proba(rows), dtype=np.float64)[:, self.columns]

    def calibrated(self, probabilities: FloatArray) -> FloatArray:
        """Return calibrated probabilities."""
        return probabilities if self.calibration is None else self.calibration(probabilities)


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
        held_out[rest] = model.predict_proba(_take(rows, table, form, rest))
    return _calibrated(scores, held_out, labels, sample, calibrate)


def score_prefit(
    classifier: Any, sample: Sample, labels: IntArray, classes: Any, *, calibrate: bool
) -> tuple[Scores, FloatArray]:
    """Return the fitted classifier, and the sample's probabilities by it."""
    columns = np.array([list(classifier.classes_).index(label) for label in classes])
    scores = Scores([classifier], columns, sample.form, sample.points("standard").space)
    held_out = next(scores.raw(scores.rows(sample.batch, side="sample")))
    return _calibrated(scores, held_out, labels, sample, calibrate)


def _calibrated(
    scores: Scores, held_out: FloatArray, labels: IntArray, sample: Sample, calibrate: bool
) -> tuple[Scores, FloatArray]:
    if not calibrate:
        return scores, held_out
    calibration = fit_calibration(held_out, labels, sample.design)
    return replace(scores, calibration=calibration), calibration(held_out)


def _take(rows: Any, table: pa.Table, form: Form | None, places: IntArray) -> Any:
    return rows[places] if form is None else form.of(table.take(pa.array(places)))


def _fit(classifier: Any, rows: Any, labels: Any, design: FloatArray) -> Any:
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(max_iter=1000) if classifier is None else clone(classifier)
    name, options = type(model).__name__, {}
    if np.ptp(design) > 1e-9:
        keyword = weight_keyword(model)
        if keyword is None:
            raise LearnerError(
                f"classifier: {name} takes no sample_weight, so the design weights could not reach "
                "it. Use a classifier that takes weights, or rows without them."
            )
        options[keyword] = design
    try:
        model.fit(rows, labels, **options)
    except Exception as error:
        raise LearnerError(
            f"classifier: {name} could not be trained on {len(labels)} rows of the sample "
            f"({type(error).__name__}: {error}). Put encoders of text and missing values into a "
            "pipeline with it."
        ) from error
    return LinearClasses(model.coef_, model.intercept_) if classifier is None else model
