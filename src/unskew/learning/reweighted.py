"""Any learner, trained on a weighted sample."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from functools import partial
from typing import Annotated, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import MetaEstimatorMixin, is_classifier, is_regressor
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from unskew._compat import HasMethods, _num_samples, validate_parameters
from unskew.errors import InputError, LearnerError, ParameterError
from unskew.learning.choose_power import (
    Fold,
    LeafTrees,
    Strength,
    Train,
    choose_power,
    powers_of,
    split,
    tempered,
)
from unskew.learning.trainer import (
    check_whole,
    learner_name,
    multiplicities,
    pipelines_go_inside,
    tags_of_learner,
    train,
    train_by_rejection,
    train_resampled,
    weighter_or_default,
)
from unskew.numerics.typing import FloatArray
from unskew.population.open_sample import named_columns_apart, open_sample
from unskew.population.population import Population, progress_of
from unskew.population.progress import tell, watching
from unskew.population.summaries import OfColumns
from unskew.rows.column_names import fitted_columns, in_fitted_order, remember_columns
from unskew.rows.sample import Sample
from unskew.weighters.base import Weighter, fit_beside, weighed_columns
from unskew.weighters.parameters import (
    AtLeastZero,
    OneOrMore,
    OnUncovered,
    RandomState,
    WithParameters,
)
from unskew.weighters.ratio_models import weight_keyword


def _learner_has(name: str) -> Callable[[Reweighted], bool]:
    def check(model: Reweighted) -> bool:
        getattr(getattr(model, "estimator_", model.estimator), name)
        return True

    return check


def _can_weigh(model: Reweighted) -> bool:
    weighter = getattr(model, "weighter_", model.weighter)
    return weighter is None or hasattr(weighter, "weigh")


class Reweighted(MetaEstimatorMixin, WithParameters):
    """A learner trained on a biased sample with the weights that correct it.

    Fits the weighter, passes its weights to the learner, and predicts as the learner does.

    Parameters
    ----------
    estimator : estimator
        Any scikit-learn learner whose ``fit`` takes ``sample_weight``, also as the last step of a
        pipeline or inside a grid search. Encoders and scalers belong into that pipeline: as a step
        before this one they would transform X and not the population.
    weighter : Weighter, optional
        By default :class:`unskew.AutoWeights`; with :class:`unskew.Margins` as the population,
        :class:`unskew.CalibrationWeights`.
    power : float, "auto" or None, default=None
        The exponent of the weights: 1 uses them as they are, 0 not at all. "auto" decides by the
        learner's own loss, in importance-weighted cross-validation, among not weighting, the
        weights and their square roots, and where the weighter is automatic also the leaves of
        trees on the labels (``TreeWeights`` with 4 and 20 rows a leaf). Not weighting stays unless
        another is better by one standard error. That costs 15 to 25 fits of the learner; none where
        the weights are all equal. None is "auto" where the weighter is automatic, otherwise 1.
    scoring : str or callable, optional
        What ``power="auto"`` compares in place of the learner's own loss: a scorer of scikit-learn.
    n_jobs : int, optional
        How many fits ``power="auto"`` runs at once, in threads.
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
        For resampling, and for the folds of ``power="auto"``, which None takes as 0.

    Attributes
    ----------
    estimator_ : estimator
        The fitted learner; with ``resample="rejection"`` an average of several, its ``members``.
    weighter_ : Weighter
        The fitted weighter.
    weights_ : ndarray of shape (n_samples,)
        The weights with which the learner was trained. Where they are all one, it was trained
        without weights, and is to the last bit what it is without unskew.
    chosen_ : str
        The candidate that ``power="auto"`` chose, such as "not weighting".
    power_ : float
        The exponent that was used.
    strength_ : Strength
        What ``power="auto"`` compared; it prints as a sentence.
    choice_scores_ : dict of str to float
        The candidates' losses.
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

    estimator: Annotated[Any, HasMethods(["fit"])] = field(kw_only=False)
    weighter: Weighter | None = field(default=None, kw_only=False)
    power: AtLeastZero | Literal["auto"] | None = None
    scoring: str | Callable[..., Any] | None = None
    n_jobs: int | None = None
    resample: Literal["multiplicity", "rejection"] | None = None
    resample_size: OneOrMore | None = None
    rounds: OneOrMore = 10
    overlap: OnUncovered | None = None
    random_state: RandomState = None

    def fit(
        self, X: Any, y: Any, *, population: Any = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Weigh the sample and train the learner on it.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_samples, n_features)
            The sample.
        y : array-like of shape (n_samples,), or the name of a column of X
            Its labels.
        population : Population, or anything that :class:`unskew.Population` takes
            An unbiased reference sample of the population; only a weighter that estimates nothing
            (``KnownProbability``) needs none. In cross-validation, wrap one with as many rows as X
            (``Population(U)``), or scikit-learn cuts it into folds.
        sample_weight : array-like of shape (n_samples,), or the name of a column of X, optional
            Design weights of the sample.

        Returns
        -------
        self
        """
        validate_parameters(self)
        train_learner = partial(
            self._train,
            keyword=self._weight_keyword(y),
            random=check_random_state(self.random_state),
        )
        check_whole(X, population)
        X, y, sample_weight = named_columns_apart(X, y, sample_weight)
        for stale in ("multiplicities_", "strength_", "choice_scores_"):
            self.__dict__.pop(stale, None)
        weighter, power = self._weighter_and_power(population)
        power = 1.0 if len(np.asarray(y)) < 2 else power  # the weight of one row is one
        folds = split(self.estimator, y, self._seed()) if power == "auto" else []
        if hasattr(X, "__array__") and not hasattr(X, "__getitem__"):
            X = np.asarray(X)
        with watching(progress_of(population)):
            with pipelines_go_inside(X, "Reweighted"):
                if folds and weighter.traits.is_automatic:
                    given = open_sample(X, y, sample_weight)
                    leaves = _fit_beside_trees(weighter, given, population, folds)
                else:
                    leaves = []
                    weighter.fit(X, y, population=population, sample_weight=sample_weight)
            self.weighter_ = weighter
            base = self._weights_to_train_with()
            design = np.ones(len(base))
            if sample_weight is not None:
                design = np.asarray(sample_weight, dtype=float)
            if power == "auto":
                tell("choosing how strongly to weight, by the learner's loss")
                self.weights_: FloatArray = self._choose(
                    train_learner, X, y, base, design, folds, leaves
                )
            else:
                self.power_ = float(power)
                self.weights_ = tempered(base, design, self.power_)
            tell("training the learner")
            self.estimator_ = train_learner(X, y, self.weights_)
        remember_columns(self, fitted_columns(self.weighter_))
        return self

    def _weights_to_train_with(self) -> FloatArray:
        base: FloatArray = self.weighter_.weights_
        if (base < 0).any():
            raise LearnerError(
                f"{int((base < 0).sum())} weights are negative, and no learner takes such "
                "weights. Use bounds=(0, None) on the weighter."
            )
        return base

    def _weight_keyword(self, y: Any) -> str | None:
        """Return how the learner takes weights; refuse one that cannot be trained with them."""
        if y is None:
            raise InputError("Reweighted requires y to be passed, but the target y is None.")
        learner = self.estimator
        if not (is_regressor(learner) or is_classifier(learner) or hasattr(learner, "predict")):
            raise ParameterError(
                f"The 'estimator' parameter of Reweighted must be a learner that predicts. Got "
                f"{learner} instead."
            )
        keyword = weight_keyword(learner)
        if keyword is None and self.resample is None:
            raise LearnerError(
                f"{learner_name(learner)} takes no sample_weight, so the weights could not "
                'reach it. Pass resample="multiplicity" or resample="rejection" to train it on a '
                "resampled sample, or use a learner that takes weights."
            )
        return keyword

    def _train(
        self,
        X: Any,
        y: Any,
        weights: FloatArray | None,
        *,
        keyword: str | None,
        random: np.random.RandomState,
    ) -> Any:
        """Train the learner, without weights where they are all one."""
        counted = np.ones(_num_samples(X)) if weights is None else weights
        if keyword is not None and self.resample is None:
            plain = bool((counted == 1.0).all())
            return train(self.estimator, X, y, **({} if plain else {keyword: counted}))
        if self.resample == "rejection":
            return train_by_rejection(self.estimator, X, y, counted, self.rounds, random)
        size = self.resample_size or max(1, round(counted.sum()))
        self.multiplicities_ = multiplicities(counted, size, random)
        rows = np.repeat(np.arange(len(counted)), self.multiplicities_)
        return train_resampled(self.estimator, X, y, rows, counted)

    def _weighter_and_power(self, population: Any) -> tuple[Weighter, float | Literal["auto"]]:
        weighter = weighter_or_default(self.weighter, population)
        if self.overlap is not None:
            weighter.set_params(overlap=self.overlap)
        if self.power is not None:
            return weighter, self.power
        return weighter, "auto" if weighter.traits.is_automatic else 1.0

    def _seed(self) -> int:
        return self.random_state if isinstance(self.random_state, int) else 0

    def _choose(
        self,
        train_learner: Train,
        X: Any,
        y: Any,
        base: FloatArray,
        design: FloatArray,
        folds: Sequence[Fold],
        leaves: Sequence[LeafTrees],
    ) -> FloatArray:
        """Return the weights of the candidate that the learner's loss chooses, and say why."""
        candidates = powers_of(type(self.weighter_).__name__, base, design)
        if len(candidates) > 1:
            candidates += filter(None, (trees.weighting() for trees in leaves))
        self.strength_: Strength = choose_power(
            self.estimator,
            train_learner,
            X,
            y,
            candidates,
            base,
            scoring=self.scoring,
            n_jobs=self.n_jobs,
            folds=folds,
        )
        chosen = self.strength_.chosen
        self.chosen_, self.power_ = chosen.name, chosen.power
        self.choice_scores_ = {one.name: one.loss for one in self.strength_.scores}
        return np.ones(len(base)) if chosen.weights is None else chosen.weights

    @property
    def classes_(self) -> NDArray[Any]:
        """The classes, if the learner is a classifier."""
        return np.asarray(self.estimator_.classes_)

    @available_if(_can_weigh)
    def weigh(self, X: Any) -> FloatArray:
        """Return the weights of new rows, drawn as the sample was, by the fitted weighter.

        They are those of the population, whatever ``power`` was used to train the learner.
        """
        check_is_fitted(self)
        return np.asarray(self.weighter_.weigh(X))

    @available_if(_learner_has("predict"))
    def predict(self, X: Any) -> NDArray[Any]:
        """Return the learner's predictions."""
        check_is_fitted(self)
        return np.asarray(self.estimator_.predict(in_fitted_order(self, X)))

    @available_if(_learner_has("predict_proba"))
    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Return the learner's class probabilities."""
        check_is_fitted(self)
        return np.asarray(self.estimator_.predict_proba(in_fitted_order(self, X)))

    @available_if(_learner_has("predict_log_proba"))
    def predict_log_proba(self, X: Any) -> NDArray[Any]:
        """Return the logarithms of the learner's class probabilities."""
        check_is_fitted(self)
        return np.asarray(self.estimator_.predict_log_proba(in_fitted_order(self, X)))

    @available_if(_learner_has("decision_function"))
    def decision_function(self, X: Any) -> NDArray[Any]:
        """Return the learner's decision function."""
        check_is_fitted(self)
        return np.asarray(self.estimator_.decision_function(in_fitted_order(self, X)))

    @available_if(_learner_has("score"))
    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Return the learner's own score on these rows, weighted if weights are given.

        On rows drawn as the sample was, pass ``sample_weight=model.weighter_.weigh(X)`` to
        estimate the learner's score on the population.
        """
        check_is_fitted(self)
        X = in_fitted_order(self, X)
        if sample_weight is None:
            return float(self.estimator_.score(X, y))
        return float(self.estimator_.score(X, y, sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Any:
        return tags_of_learner(super().__sklearn_tags__(), self.estimator)


def _fit_beside_trees(
    weighter: Weighter, given: Sample, population: Any, folds: Sequence[Fold]
) -> list[LeafTrees]:
    """Fit the weighter; have its pass count the leaves of trees that are candidates, too."""
    validate_parameters(weighter)
    population = Population.from_data(population)
    sample, target = weighed_columns(weighter, given, population)
    leaves = LeafTrees.grow(sample, target.about, folds)
    columns = sample.rows.table.column_names
    beside = [OfColumns(columns, question) for one in leaves for question in one.questions]
    fit_beside(weighter, given, population, beside)
    return leaves
