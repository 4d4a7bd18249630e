"""Outcome models: cross-fitted on the sample, averaged over the population in one pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from sklearn.base import clone, is_classifier
from sklearn.utils import check_random_state

from unskew.errors import InputError, LearnerError
from unskew.estimation.learners import learner_by_name
from unskew.estimation.quantities import Groups, Outcome
from unskew.numerics.typing import FloatArray, IntArray
from unskew.population.rows import Form
from unskew.population.sample import Sample
from unskew.population.summaries import RowBlock, Summary
from unskew.weighters.weight_keyword import weight_keyword


class OutcomeModels:
    """Models of y, one for each fold of the sample, fitted without it.

    Parameters
    ----------
    learner : estimator or str
    sample : Sample
        With all columns of X.
    outcome : Outcome
    columns : sequence of str
        Those that the models may use: the population must have them.
    cv : int or None
        The number of folds; None fits one model on all rows.
    clusters : ndarray of int, optional
        Rows of a cluster are in the same fold.
    random_state : int, RandomState instance or None

    Attributes
    ----------
    of_sample : ndarray of shape (n_rows, n_columns)
        The prediction at each row by the model that has not seen it.
    """

    def __init__(
        self,
        learner: Any,
        sample: Sample,
        outcome: Outcome,
        columns: Sequence[str],
        *,
        cv: int | None,
        clusters: IntArray | None,
        random_state: Any,
    ) -> None:
        self._classes = outcome.classes
        self.columns = list(columns)
        self._form: Form = sample.form
        if isinstance(learner, str):
            learner = learner_by_name(learner, classify=outcome.is_share, random_state=random_state)
        self._classify = is_classifier(learner)
        self._two_valued = outcome.classes is None
        rows = sample.all_rows.table.select(self.columns)
        folds = _folds(sample, cv, clusters, random_state)
        self._members: list[tuple[float, list[Any]]] = []
        self.of_sample = np.zeros_like(outcome.values)
        for fold in range(int(folds.max()) + 1):
            own = np.flatnonzero(folds == fold)
            others = np.flatnonzero(folds != fold) if cv is not None else own
            models = self._fit(learner, rows, outcome, others, sample.design)
            self._members.append((len(own) / len(folds), models))
            self.of_sample[own] = self._predict(models, rows.take(pa.array(own)))

    def _fit(
        self, learner: Any, rows: pa.Table, outcome: Outcome, places: IntArray, design: FloatArray
    ) -> list[Any]:
        """Return one classifier, or a regressor for each column."""
        X = self._form.of(rows.take(pa.array(places)))
        goals = [outcome.labels] if self._classify else list(outcome.values.T)
        keyword, weights = weight_keyword(learner), {}
        if (design != design[0]).any():
            if keyword is None:
                raise LearnerError(
                    f"{type(learner).__name__} takes no sample_weight, and the sample has design "
                    "weights. Use an outcome model that takes weights."
                )
            weights = {keyword: design[places]}
        if self._classify and len(np.unique(outcome.labels[places])) < 2:
            raise InputError(
                "A fold of the sample has one class only, of which no classifier can be trained. "
                "Use a regressor as outcome model, or fewer folds: cv=2."
            )
        return [clone(learner).fit(X, goal[places], **weights) for goal in goals]

    def _predict(self, models: list[Any], rows: pa.Table) -> FloatArray:
        X = self._form.of(rows)
        if not self._classify:
            columns = [np.asarray(model.predict(X), dtype=float).reshape(-1) for model in models]
            predicted = np.column_stack(columns)
        else:
            (model,) = models
            shares, seen = np.asarray(model.predict_proba(X)), np.asarray(model.classes_)
            if self._two_valued:
                predicted = (shares @ seen.astype(float))[:, None]
            else:
                predicted = np.zeros((len(shares), len(self._classes)))
                predicted[:, np.searchsorted(self._classes, seen)] = shares
        if not np.isfinite(predicted).all():
            raise InputError("The outcome model predicts missing or infinite numbers.")
        return predicted

    def mean(self, batch: pa.RecordBatch) -> FloatArray:
        """Return the mean prediction of the models at rows of the population."""
        rows = pa.Table.from_batches([batch]).select(self.columns)
        return np.asarray(
            sum(share * self._predict(models, rows) for share, models in self._members)
        )


class GroupSums(Summary):
    """The weight of each group of the population, and the sums of the models' predictions in it.

    Attributes
    ----------
    mass : ndarray of shape (n_groups,)
    sums : ndarray of shape (n_groups, n_columns)
    elsewhere : float
        The weight of rows in groups without sample rows.
    """

    shared = frozenset({"groups", "models"})
    added = ("mass", "sums", "elsewhere")

    def __init__(self, groups: Groups | None, models: OutcomeModels | None, n_columns: int) -> None:
        self.groups, self.models = groups, models
        n_groups = 1 if groups is None else len(groups)
        self.mass = np.zeros(n_groups)
        self.sums = np.zeros((n_groups, n_columns))
        self.elsewhere = 0.0

    def update(self, rows: RowBlock) -> None:
        """Add the rows of a block."""
        n_groups, weight = len(self.mass), rows.weight
        place = np.zeros(len(rows), np.int64) if self.groups is None else self.groups.of(rows.batch)
        inside = place >= 0
        self.elsewhere += float(weight[~inside].sum())
        self.mass += np.bincount(place[inside], weights=weight[inside], minlength=n_groups)
        if self.models is not None and len(rows):
            predicted = self.models.mean(rows.batch) * weight[:, None]
            for column in range(self.sums.shape[1]):
                self.sums[:, column] += np.bincount(
                    place[inside], weights=predicted[inside, column], minlength=n_groups
                )


def _folds(
    sample: Sample, cv: int | None, clusters: IntArray | None, random_state: Any
) -> IntArray:
    """Return the fold of each row, at random, but the same however the rows are shuffled."""
    if cv is None:
        return np.zeros(len(sample), dtype=np.int64)
    units = sample.order.argsort() if clusters is None else clusters
    n_units = int(units.max()) + 1
    if n_units < cv:
        raise InputError(
            f"cv={cv} folds need as many rows, or clusters; the sample has {n_units}. Use fewer."
        )
    folds = np.arange(n_units) % cv
    check_random_state(random_state).shuffle(folds)
    return folds[units]
