"""Any learner, trained on a weighted sample."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import field
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
import sklearn
from narwhals.stable.v2.dependencies import is_dask_dataframe
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.base import MetaEstimatorMixin, clone, is_classifier, is_regressor
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from unskew._compat import (
    HasMethods,
    Interval,
    StrOptions,
    _num_samples,
    _safe_indexing,
    validate_parameters,
)
from unskew.errors import (
    InputError,
    LearnerError,
    MismatchError,
    ParameterError,
    warn_caller,
)
from unskew.learning.committee import Committee
from unskew.learning.resampling import multiplicities, rejection
from unskew.numerics.typing import FloatArray, IntArray
from unskew.numerics.weight_vectors import effective_sample_size
from unskew.population.rows import is_rows
from unskew.weighters.base import Weighter
from unskew.weighters.parameters import WithParameters
from unskew.weighters.typing import OnUncovered
from unskew.weighters.weight_keyword import weight_keyword

_PIPELINE_GOES_INSIDE = (
    "If X comes from an earlier step of a pipeline, which does not transform the population: put "
    "the pipeline inside, Reweighted(make_pipeline(encoder, learner), weighter)."
)


def _learner_has(name: str) -> Callable[[Reweighted], bool]:
    def check(model: Reweighted) -> bool:
        getattr(getattr(model, "estimator_", model.estimator), name)
        return True

    return check


class Reweighted(MetaEstimatorMixin, WithParameters):
    """A learner trained on a biased sample with the weights that correct it.

    Fits the weighter, passes its weights to the learner, and predicts as the learner does.

    Parameters
    ----------
    estimator : estimator
        Any scikit-learn learner whose ``fit`` takes ``sample_weight``, also as the last step of a
        pipeline or inside a grid search. Encoders and scalers belong into that pipeline: as a step
        before this one they would transform X and not the population.
    weighter : Weighter
        For example :class:`unskew.TreeWeights`.
    resample : {"multiplicity", "rejection"}, optional
        How to train a learner that takes no weights; without it, such a learner is an error.
        "multiplicity" trains on each row as often as its weight asks. "rejection" accepts each row
        with probability ``w / max w``, trains on the accepted rows, does so ``rounds`` times and
        averages the predictions.
    resample_size : int, optional
        The sum of the multiplicities; by default that of the weights, rounded.
    rounds : int, default=10
        How many learners rejection sampling trains.
    overlap : {"warn", "raise", "ignore"} or float, optional
        What to do where the sample does not cover part of the population; replaces the
        weighter's own ``overlap``.
    random_state : int, RandomState instance or None, default=None
        For resampling.

    Attributes
    ----------
    estimator_ : estimator
        The fitted learner; with ``resample="rejection"`` an average of several, its ``members``.
    weighter_ : Weighter
        The fitted weighter.
    weights_ : ndarray of shape (n_samples,)
        The weights with which the learner was trained.
    multiplicities_ : ndarray of int of shape (n_samples,)
        How often each row was used, with ``resample="multiplicity"``.
    classes_ : ndarray
        The classes, if the learner is a classifier.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from unskew import Reweighted, TreeWeights
    >>> random = np.random.RandomState(0)
    >>> population = random.normal(size=(2000, 1))
    >>> selected = random.uniform(size=2000) < 1 / (1 + np.exp(-2 * population[:, 0]))
    >>> sample = population[selected]
    >>> model = Reweighted(LinearRegression(), TreeWeights(min_samples_leaf=20))
    >>> model = model.fit(sample, sample[:, 0] ** 2, population=population)
    >>> bool(model.predict([[0.0]]) > 0.5)
    True

    In cross-validation, wrap the population, so that it is passed through whole:

    >>> from sklearn.model_selection import cross_validate
    >>> from unskew import Population
    >>> folds = cross_validate(model, sample, sample[:, 0] ** 2,
    ...                        params={"population": Population(population)})
    >>> len(folds["test_score"])
    5
    """

    estimator: Any = field(kw_only=False)
    weighter: Weighter = field(kw_only=False)
    resample: Literal["multiplicity", "rejection"] | None = None
    resample_size: int | None = None
    rounds: int = 10
    overlap: OnUncovered | None = None
    random_state: Any = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [HasMethods(["fit"])],
        "weighter": [Weighter],
        "resample": [StrOptions({"multiplicity", "rejection"}), None],
        "resample_size": [Interval(Integral, 1, None, closed="left"), None],
        "overlap": [
            StrOptions({"warn", "raise", "ignore"}),
            Interval(Real, 0, 1, closed="both"),
            None,
        ],
        "rounds": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    def fit(
        self, X: Any, y: Any, *, population: Any, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Weigh the sample and train the learner on it.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_samples, n_features)
            The sample.
        y : array-like of shape (n_samples,)
            Its labels.
        population : Population, or anything that :class:`unskew.Population` takes
            An unbiased reference sample of the population. A table with as many rows as X must be
            a ``Population``: in cross-validation any other may have been cut into folds.
        sample_weight : array-like of shape (n_samples,), optional
            Design weights of the sample.

        Returns
        -------
        self
        """
        validate_parameters(self)
        if y is None:
            raise InputError("Reweighted requires y to be passed, but the target y is None.")
        learner = self.estimator
        if not (is_regressor(learner) or is_classifier(learner) or hasattr(learner, "predict")):
            raise ParameterError(
                f"The 'estimator' parameter of Reweighted must be a learner that predicts. Got "
                f"{self.estimator} instead."
            )
        keyword = weight_keyword(self.estimator)
        if keyword is None and self.resample is None:
            raise LearnerError(
                f"{_name(self.estimator)} takes no sample_weight, so the weights could not reach "
                'it. Pass resample="multiplicity" or resample="rejection" to train it on a '
                "resampled sample, or use a learner that takes weights."
            )
        weighter = clone(self.weighter)
        if self.overlap is not None:
            weighter.set_params(overlap=self.overlap)
        _check_whole(X, population)
        try:
            self.weighter_ = weighter.fit(X, y, population=population, sample_weight=sample_weight)
        except InputError as error:
            if isinstance(error, MismatchError) or issparse(X):
                raise type(error)(f"{error} {_PIPELINE_GOES_INSIDE}") from error
            raise
        self.weights_: FloatArray = self.weighter_.weights_
        if (self.weights_ < 0).any():
            raise LearnerError(
                f"{int((self.weights_ < 0).sum())} weights are negative, and no learner takes such "
                "weights. Use bounds=(0, None) on the weighter."
            )
        for stale in ("multiplicities_", "feature_names_in_"):
            self.__dict__.pop(stale, None)
        random = check_random_state(self.random_state)
        if self.resample == "multiplicity":
            self.estimator_ = self._fit_multiplicity(X, y, random)
        elif self.resample == "rejection":
            self.estimator_ = self._fit_rejection(X, y, random)
        else:
            self.estimator_ = _train(self.estimator, X, y, **{str(keyword): self.weights_})
        self.n_features_in_ = self.weighter_.n_features_in_
        if hasattr(self.weighter_, "feature_names_in_"):
            self.feature_names_in_ = self.weighter_.feature_names_in_
        return self

    def _fit_multiplicity(self, X: Any, y: Any, random: np.random.RandomState) -> Any:
        size = self.resample_size or max(1, round(self.weights_.sum()))
        self.multiplicities_ = multiplicities(self.weights_, size, random)
        rows = np.repeat(np.arange(len(self.weights_)), self.multiplicities_)
        return self._train_resampled(X, y, rows)

    def _fit_rejection(self, X: Any, y: Any, random: np.random.RandomState) -> Committee:
        members, kept = [], list[int]()
        for _ in range(self.rounds):
            rows = np.flatnonzero(rejection(self.weights_, random))  # never none: max w is kept
            kept.append(len(rows))
            members.append(self._train_resampled(X, y, rows))
        self._warn_of_single_rows(kept)
        classes = np.unique(np.asarray(y)) if is_classifier(self.estimator) else None
        return Committee(members, classes)

    def _warn_of_single_rows(self, kept: list[int]) -> None:
        alone = kept.count(1)
        if alone:
            warn_caller(
                UserWarning(
                    f"Rejection sampling kept one row of {len(self.weights_)} in {alone} of "
                    f"{len(kept)} rounds, and a learner of one row knows nothing else: a few "
                    "weights are far larger than the others (the effective sample size is "
                    f'{effective_sample_size(self.weights_):.1f}). Use resample="multiplicity", or '
                    "a weighter with smaller weights."
                )
            )

    def _train_resampled(self, X: Any, y: Any, rows: IntArray) -> Any:
        try:
            return _train(self.estimator, _safe_indexing(X, rows), _safe_indexing(y, rows))
        except ValueError as error:
            raise LearnerError(
                f"{_name(self.estimator)} could not be trained on the {len(np.unique(rows))} "
                f"distinct rows that resampling left of {len(self.weights_)} (their effective "
                f"sample size is {effective_sample_size(self.weights_):.0f}): {error}"
            ) from error

    @property
    def classes_(self) -> NDArray[Any]:
        """The classes, if the learner is a classifier."""
        return np.asarray(self.estimator_.classes_)

    @available_if(_learner_has("predict"))
    def predict(self, X: Any) -> NDArray[Any]:
        """Return the learner's predictions."""
        check_is_fitted(self)
        return np.asarray(self.estimator_.predict(X))

    @available_if(_learner_has("predict_proba"))
    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Return the learner's class probabilities."""
        check_is_fitted(self)
        return np.asarray(self.estimator_.predict_proba(X))

    @available_if(_learner_has("predict_log_proba"))
    def predict_log_proba(self, X: Any) -> NDArray[Any]:
        """Return the logarithms of the learner's class probabilities."""
        check_is_fitted(self)
        return np.asarray(self.estimator_.predict_log_proba(X))

    @available_if(_learner_has("decision_function"))
    def decision_function(self, X: Any) -> NDArray[Any]:
        """Return the learner's decision function."""
        check_is_fitted(self)
        return np.asarray(self.estimator_.decision_function(X))

    @available_if(_learner_has("score"))
    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Return the learner's own score on these rows, weighted if weights are given.

        On rows drawn as the sample was, pass ``sample_weight=model.weighter_.weigh(X)`` to
        estimate the learner's score on the population.
        """
        check_is_fitted(self)
        if sample_weight is None:
            return float(self.estimator_.score(X, y))
        return float(self.estimator_.score(X, y, sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = copy.deepcopy(get_tags(self.estimator))
        for name in ("estimator_type", "classifier_tags", "regressor_tags", "target_tags"):
            setattr(tags, name, getattr(inner, name))
        for name in ("allow_nan", "string", "categorical"):
            setattr(tags.input_tags, name, getattr(inner.input_tags, name))
        tags.target_tags.required = True
        tags.input_tags.sparse = False  # the weighter reads tables
        return tags


def _check_whole(X: Any, population: Any) -> None:
    """Refuse a population that cross-validation may have cut into folds, as it cuts X and y.

    scikit-learn cuts what has as many entries as X, and so do other tools. Afterwards the two still
    have equal lengths, and nothing else tells a part from the whole; only X itself, as the same
    object, was not cut apart from X. A ``Population`` has no length and is never cut.
    """
    if population is X:
        return
    is_table = isinstance(population, list | tuple) or is_rows(population)
    if is_table and not is_dask_dataframe(population) and hasattr(X, "__len__"):
        n_rows = _num_samples(population)
        if n_rows == _num_samples(X):
            raise InputError(
                f"population has as many rows as X ({n_rows}). In cross-validation and searches, "
                "scikit-learn would cut such a table into folds as it cuts X, which cannot be told "
                "from a whole one. Wrap it: population=Population(U)."
            )


def _train(learner: Any, X: Any, y: Any, **weights: FloatArray) -> Any:
    # The keyword names the step that takes the weights; metadata routing would want requests set
    # on every step for the same purpose.
    with sklearn.config_context(enable_metadata_routing=False):
        return clone(learner).fit(X, y, **weights)


def _name(learner: Any) -> str:
    steps = getattr(learner, "steps", None)
    return _name(steps[-1][1]) if steps else type(learner).__name__
