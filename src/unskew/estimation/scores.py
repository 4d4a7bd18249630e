"""Scores of a model on the population, of which the labels are not known.

A score that is a mean over rows (accuracy, log loss, Brier, squared error) is an estimate like any
other, of the rows' own scores, doubly robust by a model of these. One that is not, such as the AUC,
is computed with the weights and has a bootstrap. Predictions are those of a fitted model, or
cross-fitted ones, made once and looked up by scikit-learn's own scorers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.metrics import get_scorer
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.utils.validation import check_is_fitted

from unskew._compat import _safe_indexing
from unskew.errors import InputError, ParameterError
from unskew.estimation.estimate import estimate
from unskew.estimation.inputs import LabelColumns, open_labelled, opened, shared_columns
from unskew.estimation.outcome_models import learner_by_name
from unskew.estimation.results import Estimate
from unskew.estimation.statistics import Statistic
from unskew.learning.trainer import aligned, train
from unskew.numerics.row_keys import Words, hash_rows
from unskew.numerics.typing import FloatArray, IntArray
from unskew.population.open_sample import named_columns_apart
from unskew.rows.encode import ColumnCodes
from unskew.rows.tables import as_rows
from unskew.weighters.auto import default_weighter
from unskew.weighters.base import Weighter

RESPONSES = ("predict", "predict_proba", "decision_function")


class Predictions(BaseEstimator):
    """The responses of a model, or of models that have not seen the row.

    It takes the numbers of rows in place of the rows, so that a scorer takes it for the model.

    Parameters
    ----------
    responses : dict from str to ndarray
        By the method that gives them.
    classes : ndarray or None
    note : str
        Of which model these are.
    models : list of fitted estimators
    folds : ndarray of int
        Which of them predicts at each row.
    """

    def __init__(
        self, responses: dict[str, Any], classes: Any, note: str, models: list[Any], folds: IntArray
    ) -> None:
        self.responses, self.classes, self.note = responses, classes, note
        self.models, self.folds = models, folds
        if classes is not None:
            self.classes_ = classes
        for name, values in responses.items():
            setattr(self, name, _look_up(name, values))

    def fit(self, X: Any, y: Any) -> Self:  # scorers ask whether there is one
        raise NotImplementedError

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "regressor" if self.classes is None else "classifier"
        return tags

    @classmethod
    def from_model(
        cls, model: Any, X: Any, y: Any, population: Any, cv: Any, random_state: Any
    ) -> Predictions:
        """Predict at the rows of X."""
        if cv is None:
            note = "The model is taken not to have seen these rows."
            only = np.zeros(len(y), dtype=np.int64)
            try:
                if is_classifier(model) and not hasattr(model, "classes_"):
                    raise NotFittedError
                classes = np.asarray(model.classes_) if is_classifier(model) else None
                return cls(_responses(model, X, classes), classes, note, [model], only)
            except NotFittedError as error:
                raise ParameterError(
                    f"{type(model).__name__} is not fitted. Fit it on other rows, or use cv=5, "
                    "which fits clones of it."
                ) from error
        classes = np.unique(y) if is_classifier(model) else None
        if classes is not None and len(classes) < 2:
            raise InputError(f"y is {classes[0]} in every row, of which no classifier can learn.")
        parts: dict[str, Any] = {}
        models: list[Any] = []
        folds = np.zeros(len(y), dtype=np.int64)
        for seen, test in _splits(cv, X, y, classes is not None, random_state):
            folds[test] = len(models)
            fitted = train(model, _safe_indexing(X, seen), y[seen], population)
            for name, values in _responses(fitted, _safe_indexing(X, test), classes).items():
                whole = parts.setdefault(
                    name, np.zeros((len(y), *values.shape[1:]), dtype=values.dtype)
                )
                whole[test] = values
            models.append(fitted)
        note = f"The score is that of models of {len(models)} folds."
        return cls(parts, classes, note, models, folds)

    def probabilities(self) -> Any:
        """Return the probability of each class, or raise that there is none."""
        if "predict_proba" not in self.responses:
            raise ParameterError("This score needs a model with predict_proba.")
        return self.responses["predict_proba"]


def _look_up(name: str, values: Any) -> Any:
    def response(places: Any) -> Any:
        return values[places]

    response.__name__ = name  # by which scorers distinguish the responses
    return response


def _splits(cv: Any, X: Any, y: Any, classify: bool, random_state: Any) -> Any:
    if isinstance(cv, Integral):
        if int(cv) < 2:
            raise ParameterError(f"cv must be 2 folds or more; got {cv!r}.")
        family = StratifiedKFold if classify else KFold
        cv = family(int(cv), shuffle=True, random_state=random_state)
    splits = list(cv.split(X, y) if hasattr(cv, "split") else cv)
    tested = np.concatenate([np.asarray(test) for _, test in splits])
    if len(tested) != len(y) or len(np.unique(tested)) != len(y):
        raise ParameterError("cv must put every row into exactly one test fold.")
    return splits


def _responses(model: Any, X: Any, classes: Any) -> dict[str, Any]:
    if not hasattr(model, "predict"):
        raise ParameterError(f"model must predict; got {type(model).__name__}.")
    found = {}
    for name in RESPONSES:
        if not hasattr(model, name):
            continue
        values = np.asarray(getattr(model, name)(X))
        if name == "predict_proba" and classes is not None and values.shape[1] < len(classes):
            values = aligned(values, model.classes_, classes)
        elif name == "decision_function" and len(model.classes_) < len(classes):
            raise InputError("A training fold lacks a class. Use fewer folds.")
        found[name] = values
    return found


class Confidence:
    """A column of numbers for any rows, by models that have not seen them.

    A row of the sample is one of the model's whose test fold it is in; any other row is one of a
    model that its values decide, so that the column has the same meaning on both sides. A mean
    over the models would not: it varies less than one of them.

    Parameters
    ----------
    models : sequence of fitted estimators
    folds : ndarray of int of shape (n_rows,)
        Which of them has not seen a row of the sample.
    X : object
        The sample.
    """

    def __init__(self, models: Sequence[Any], folds: IntArray, X: Any) -> None:
        self._models, self._codes = list(models), ColumnCodes()
        hashes = _hashed(self._codes.fit_transform(as_rows(X, name="X").batch))
        self._known, first = np.unique(hashes, return_index=True)
        self._folds = folds[first]

    @classmethod
    def from_models(cls, models: Sequence[Any], folds: IntArray, X: Any) -> Confidence | None:
        """Return it, or None for classifiers that give classes alone."""
        able = all(_response(model) is not None for model in models)
        return cls(models, folds, X) if able else None

    def __deepcopy__(self, memo: Any) -> Confidence:  # scikit-learn's clones share the models
        return self

    def __call__(self, X: Any) -> FloatArray:
        """Return one column."""
        batch = as_rows(X, name="X").batch
        hashes = _hashed(self._codes.transform(batch, side="new rows").values)
        place = np.minimum(np.searchsorted(self._known, hashes), len(self._known) - 1)
        folds = np.where(
            self._known[place] == hashes,
            self._folds[place],
            (hashes % np.uint64(len(self._models))).astype(np.int64),
        )
        column = np.zeros(len(hashes))
        for number, model in enumerate(self._models):
            own = np.flatnonzero(folds == number)
            if len(own):
                column[own] = _sureness(model, _safe_indexing(X, own))
        return column[:, None]


def _hashed(codes: FloatArray) -> Words:
    return hash_rows([np.ascontiguousarray(column) for column in codes.T])


def _response(model: Any) -> str | None:
    if not is_classifier(model):
        return "predict"
    return next(
        (name for name in ("predict_proba", "decision_function") if hasattr(model, name)), None
    )


def _sureness(model: Any, X: Any) -> FloatArray:
    """Return the largest probability or score of a class, or what a regressor predicts."""
    name = _response(model)
    assert name is not None
    values = np.asarray(getattr(model, name)(X), dtype=float)
    if name == "predict":
        return values.reshape(-1)
    return values.max(axis=1) if values.ndim == 2 else np.abs(values)


Method = Literal["doubly_robust", "control_variate", "weighted"]
OUTCOMES: dict[str, str | None] = {
    "doubly_robust": "boosted",
    "control_variate": "linear",
    "weighted": None,
}


def _log_score(y: Any, known: Predictions) -> FloatArray:
    shares = known.probabilities()
    own = shares[np.arange(len(y)), np.searchsorted(known.classes, y)]
    return np.log(np.clip(own, np.finfo(float).eps, 1.0))


def _brier(y: Any, known: Predictions) -> FloatArray:
    if len(known.classes) != 2:
        raise ParameterError("neg_brier_score is for two classes.")
    return -(((y == known.classes[1]) - known.probabilities()[:, 1]) ** 2)


MEANS: dict[str, Callable[[Any, Predictions], FloatArray]] = {
    "accuracy": lambda y, known: (y == known.responses["predict"]).astype(float),
    "neg_log_loss": _log_score,
    "neg_brier_score": _brier,
    "neg_mean_squared_error": lambda y, known: -((y - known.responses["predict"]) ** 2),
    "neg_mean_absolute_error": lambda y, known: -np.abs(y - known.responses["predict"]),
}
"""Scores that are means over rows of a number of each row."""
WITHOUT_BOUNDS = (
    "{} is not a mean over rows, so that its bounds are not known. Sensitivity is for "
    f"{', '.join(MEANS)}."
)


class WeightedScore(Statistic):
    """A score of the weighted sample that is not a mean over rows.

    Parameters
    ----------
    name : str
    scorer : scorer of scikit-learn
    known : Predictions
    y : ndarray
        The labels of all rows.
    """

    name = "score"
    has_influence = False

    def __init__(self, name: str, scorer: Any, known: Predictions, y: Any) -> None:
        self._name, self._scorer, self._model, self._y = name, scorer, known, y

    @property
    def label(self) -> str:
        return self._name

    def columns(self, labels: Any) -> LabelColumns:
        """Return the number of each row, by which predictions and labels are looked up."""
        return LabelColumns(np.arange(float(len(labels)))[:, None], None, False, labels)

    def point(self, values: FloatArray, weights: FloatArray) -> FloatArray:
        try:
            return np.array([self._of_rows(values[:, 0].astype(np.int64), weights)])
        except ValueError:  # such as of a replicate without a row of a class
            return np.full(1, np.nan)

    def check(self, weights: FloatArray) -> None:
        """Raise why there is no score of all rows."""
        try:
            self._of_rows(np.arange(len(weights)), weights)
        except (ValueError, TypeError) as error:
            raise InputError(f"The score could not be computed: {error}") from error

    def _of_rows(self, places: IntArray, weights: FloatArray) -> float:
        own, counted = places[weights > 0], weights[weights > 0]  # a metric counts zeros as rows
        return float(self._scorer(self._model, own, self._y[own], sample_weight=counted))


def estimate_score(
    model: Any,
    X: Any,
    y: Any,
    *,
    population: Any,
    scoring: str | Callable[..., float],
    method: Method = "doubly_robust",
    cv: Any = None,
    weighter: Weighter | None = None,
    strata: ArrayLike | str | None = None,
    clusters: ArrayLike | str | None = None,
    level: float = 0.95,
    sample_weight: ArrayLike | str | None = None,
    replicates: int = 200,
    random_state: Any = 0,
) -> Estimate:
    """Estimate how good a model is on the population, without its labels.

    The model's score on the biased sample says how good it is there. A score that is a mean over
    rows is estimated as any other number of the population is, by :func:`unskew.estimate`; others
    from the weighted sample, with a bootstrap that solves the weights again.

    Parameters
    ----------
    model : estimator
        Fitted, and on other rows than these: that is assumed, and said. With ``cv``, any estimator:
        clones of it are fitted.
    X : array-like or dataframe of shape (n_samples, n_features)
        The sample; the model predicts from all of its columns.
    y : array-like of shape (n_samples,), or str
        Its labels, or the name of a column of X that has them.
    population : Population, Margins, or anything that :class:`unskew.Population` takes
        An unbiased reference sample of the population.
    scoring : str or callable
        The name of a scorer of scikit-learn, such as "accuracy", "neg_log_loss", "roc_auc" or "r2",
        or a scorer.
    method : {"doubly_robust", "control_variate", "weighted"}, default="doubly_robust"
        How a mean is estimated: from a boosted model of each row's score given the columns and how
        sure the model is (its largest probability of a class, or what it predicts of a number),
        corrected by the model's weighted residuals; the same with a linear model; or from the
        weights alone. With margins, and for scores that are not means, it is "weighted".
    cv : int, splitter or None, default=None
        Score models that are fitted on the other folds; folds of an integer are drawn at random.
    weighter : Weighter, optional
        By default :class:`unskew.AutoWeights` where a model of the score is corrected, of the
        columns that sample and population share. Errors of weights and model are then multiplied,
        so that the nearest ratio counts, not one whose errors are known. Otherwise as in
        :func:`unskew.estimate`.
    strata, clusters, level, sample_weight, replicates, random_state
        As in :func:`unskew.estimate`.

    Returns
    -------
    Estimate
        Its ``unweighted`` is the score on the sample as it is.

    Warns
    -----
    EstimateWarning
        If the effective sample size is below 30.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from unskew import estimate_score
    >>> random = np.random.RandomState(0)
    >>> population = random.normal(size=(4000, 1))
    >>> sample = population[random.uniform(size=4000) < 0.3 / (1 + np.exp(-2 * population[:, 0]))]
    >>> y = random.uniform(size=len(sample)) < np.where(sample[:, 0] > 0, 0.95, 0.5)
    >>> found = estimate_score(LogisticRegression(), sample, y, population=population,
    ...                        scoring="accuracy", cv=5, method="weighted")
    >>> bool(found.value < found.unweighted)  # it is easier where the sample is
    True
    """
    if method not in OUTCOMES:
        raise ParameterError(f"method must be one of {', '.join(OUTCOMES)}; got {method!r}.")
    X, y, sample_weight = named_columns_apart(X, y, sample_weight, refused_by="a score")
    known = opened(population)
    given, _ = open_labelled(X, y, sample_weight, "raise")
    made = Predictions.from_model(model, X, given.labels, known, cv, random_state)
    common = {
        "population": known,
        "weighter": weighter,
        "strata": strata,
        "clusters": clusters,
        "level": level,
        "sample_weight": sample_weight,
        "replicates": replicates,
        "random_state": random_state,
    }
    name = scoring if isinstance(scoring, str) else str(getattr(scoring, "__name__", scoring))
    notes, outcome = [made.note], None
    if scoring in MEANS:
        outcome = None if known.about.margins is not None else OUTCOMES[method]
        if known.about.margins is not None and method != "weighted":
            notes.append("Margins have no rows over which a model could be averaged: weighted.")
        scores = MEANS[str(scoring)](given.labels, made)
        learner = None
        if outcome is not None:
            common["weighter"] = weighter or default_weighter("score")
            # Of right and wrong answers, too: a fold in which all are right has no two classes.
            learner = learner_by_name(
                outcome,
                classify=False,
                random_state=random_state,
                beside=_confidence(made, X, given, known),
            )
        found = estimate(X, scores, outcome=learner, **common)
    else:
        if method != "weighted":
            notes.append(f"{name} is not a mean over rows: weighted, with a bootstrap.")
        statistic = WeightedScore(name, get_scorer(scoring), made, given.labels)
        statistic.check(given.design)
        found = estimate(X, given.labels, statistic=statistic, **common)
    assert isinstance(found, Estimate)
    found = replace(found, statistic=name, outcome=outcome, notes=(*found.notes, *notes))
    return found if scoring in MEANS else replace(found, _basis=WITHOUT_BOUNDS.format(name))


def _confidence(made: Predictions, X: Any, given: Any, population: Any) -> Confidence | None:
    """Return how sure the model is of rows; None where the population lacks columns for it."""
    if len(shared_columns(given, population)) < len(given.rows.table.column_names):
        return None
    return Confidence.from_models(made.models, made.folds, X)


class PopulationScorer:
    """Scores held-out rows with the weights that the fitted model gives them.

    Parameters
    ----------
    scoring : str or scorer
    """

    def __init__(self, scoring: str | Callable[..., float]) -> None:
        self.scoring = scoring
        try:
            self._scorer = get_scorer(scoring)
        except ValueError as error:
            raise ParameterError(str(error)) from error

    def __call__(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the weighted score of a fitted :class:`unskew.Reweighted`."""
        weights = _weigh(estimator)(X)
        if sample_weight is not None:
            weights = weights * np.asarray(sample_weight)
        return float(self._scorer(estimator, X, y, sample_weight=weights))

    def __repr__(self) -> str:
        return f"population_scorer({self.scoring!r})"


def population_scorer(scoring: str | Callable[..., float]) -> PopulationScorer:
    """Return a scorer that estimates a score on the population, for cross-validation and searches.

    The model must be a :class:`unskew.Reweighted` whose weighter can weigh new rows. The weights of
    a test fold are those that the weighter, fitted on the training fold, gives to its rows.

    Parameters
    ----------
    scoring : str or scorer
        The name of a scorer of scikit-learn, or a scorer; it must take ``sample_weight``.

    Returns
    -------
    callable
        For ``scoring=`` of ``cross_validate`` and ``GridSearchCV``, alone or among others.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import cross_validate
    >>> from unskew import CalibrationWeights, Population, Reweighted, population_scorer
    >>> random = np.random.RandomState(0)
    >>> population = random.normal(size=(2000, 1))
    >>> sample = population[random.uniform(size=2000) < 1 / (1 + np.exp(-2 * population[:, 0]))]
    >>> y = sample[:, 0] > random.normal(size=len(sample))
    >>> model = Reweighted(LogisticRegression(), CalibrationWeights(overlap="ignore"))
    >>> found = cross_validate(model, sample, y, scoring=population_scorer("roc_auc"),
    ...                        params={"population": Population(population)})
    >>> bool(found["test_score"].mean() > 0.7)
    True
    """
    return PopulationScorer(scoring)


def _weigh(estimator: Any) -> Callable[[Any], Any]:
    """Return how a fitted model weighs new rows."""
    weigh = getattr(estimator, "weigh", None)
    if weigh is None:
        if not hasattr(estimator, "weighter"):
            raise ParameterError(
                f"population_scorer is for Reweighted models, whose weighter weighs the test fold; "
                f"got {type(estimator).__name__}."
            )
        check_is_fitted(estimator)
        weigh = getattr(estimator.weighter_, "weigh", None)
        if weigh is None:
            raise ParameterError(
                f"{type(estimator.weighter_).__name__} cannot weigh new rows, such as those of a "
                "test fold. Use a weighter that can, such as CalibrationWeights."
            )
    return weigh
