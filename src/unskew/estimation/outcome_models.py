"""Outcome models: cross-fitted on the sample, averaged over the population in one pass.

Each fold's model predicts the rows that it has not seen, and the mean of all models is summed over
the population. Models by name ("boosted", "linear") take any table, with text, categories and
missing values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.utils import check_random_state, get_tags

from unskew.errors import InputError, LearnerError, ParameterError
from unskew.estimation.inputs import Groups, LabelColumns
from unskew.numerics.typing import BoolArray, FloatArray, IntArray
from unskew.population.summaries import Summary
from unskew.rows.design import Design, point_design
from unskew.rows.encode import ColumnCodes
from unskew.rows.kinds import Kind
from unskew.rows.sample import Sample
from unskew.rows.tables import Form, RowBlock, as_rows
from unskew.weighters.ratio_models import weight_keyword

NAMES = ("boosted", "linear")
Columns = Callable[[Any], FloatArray]
MOST_CATEGORIES = 255


def learner_by_name(
    name: str, *, classify: bool, random_state: Any, beside: Columns | None = None
) -> Any:
    """Return an outcome model.

    Parameters
    ----------
    name : {"boosted", "linear"}
        Boosted trees on codes, or a linear or logistic model on standardised columns.
    classify : bool
        Whether it predicts probabilities of classes.
    random_state : int, RandomState instance or None
    beside : callable, optional
        Takes rows, and returns further columns of numbers to predict from.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    from sklearn.linear_model import LinearRegression, LogisticRegression

    if name not in NAMES:
        raise ParameterError(
            f"outcome must be a learner or one of {', '.join(NAMES)}; got {name!r}."
        )
    if name == "linear":
        inner = LogisticRegression(max_iter=1000) if classify else LinearRegression()
    else:
        family = HistGradientBoostingClassifier if classify else HistGradientBoostingRegressor
        # Small leaves and many trees learn the rows by heart; these are for samples of hundreds,
        # and for scores, which columns hardly predict (fewer err less than 100 there).
        inner = family(max_iter=30, learning_rate=0.1, max_leaf_nodes=8, random_state=random_state)
    return OnTable(inner, beside)


class OnTable(BaseEstimator):
    """A learner of numbers that is given tables."""

    def __init__(self, learner: Any, beside: Columns | None = None) -> None:
        self.learner = learner
        self.beside = beside

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Encode the table and fit the learner."""
        batch = as_rows(X, name="X").batch
        self.codes_ = ColumnCodes()
        values = self.codes_.fit_transform(batch)
        learner = clone(self.learner)
        if "categorical_features" in learner.get_params():
            categories = self._categories(values)
            width = 0 if self.beside is None else self.beside(X).shape[1]
            learner.set_params(categorical_features=np.append(categories, np.zeros(width, bool)))
            self.space_: Design | None = None
        else:
            self.space_ = point_design(self.codes_, values)
        self.learner_ = learner.fit(self._numbers(values, X), y, sample_weight=sample_weight)
        return self

    def _categories(self, values: FloatArray) -> BoolArray:
        few = [
            self.codes_.n_categories(place) <= MOST_CATEGORIES for place in range(values.shape[1])
        ]
        return np.array([kind == Kind.CATEGORY for kind in self.codes_.kinds]) & np.array(few)

    def _numbers(self, values: FloatArray, X: Any) -> FloatArray:
        if self.space_ is not None:
            numbers = self.space_.of_codes(values)
        else:
            categories = [kind == Kind.CATEGORY for kind in self.codes_.kinds]
            numbers = np.where((values < 0) & np.array(categories), np.nan, values)  # unseen ones
        return numbers if self.beside is None else np.column_stack([numbers, self.beside(X)])

    def _points(self, X: Any) -> FloatArray:
        batch = as_rows(X, name="X").batch
        return self._numbers(self.codes_.transform(batch, side="new rows").values, X)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the learner's predictions."""
        return np.asarray(self.learner_.predict(self._points(X)))

    def predict_proba(self, X: Any) -> FloatArray:
        """Return a classifier's probabilities."""
        return np.asarray(self.learner_.predict_proba(self._points(X)))

    @property
    def classes_(self) -> NDArray[Any]:
        """The classes of a classifier."""
        return np.asarray(self.learner_.classes_)

    def __sklearn_tags__(self) -> Any:
        return get_tags(self.learner)


class OutcomeModels:
    """Models of y, one for each fold of the sample, fitted without it.

    Parameters
    ----------
    learner : estimator or str
    sample : Sample
        With all columns of X.
    outcome : LabelColumns
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
        outcome: LabelColumns,
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
        self,
        learner: Any,
        rows: pa.Table,
        outcome: LabelColumns,
        places: IntArray,
        design: FloatArray,
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
        place = (
            np.zeros(len(rows), np.int64) if self.groups is None else self.groups.codes(rows.batch)
        )
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
