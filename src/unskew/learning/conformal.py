"""What conformal regressors and classifiers share: splits, weights, and the mass at infinity.

Training rows teach the learner, the weighter and the cells; the scores of calibration rows, which
none of them has seen, say how far labels lie from predictions. So that their weighted quantile
holds on the population, a calibration row counts with its weight, and so does the row to predict.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import field
from numbers import Integral, Real
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, MetaEstimatorMixin, clone, is_regressor
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from unskew._compat import HasMethods, Interval, validate_parameters
from unskew.errors import InfiniteIntervalWarning, InputError, ParameterError, warn_caller
from unskew.learning.choose_power import split
from unskew.learning.trainer import (
    Committee,
    TrainingRows,
    aligned,
    check_whole,
    learner_name,
    pipelines_go_inside,
    tags_of_learner,
    weighs_itself,
    weighter_or_default,
)
from unskew.numerics.conformal import ROUNDING, CrossedScores, ScoreDistribution, adaptive_scores
from unskew.numerics.typing import BoolArray, FloatArray, IntArray
from unskew.numerics.weight_vectors import check_design, effective_sample_size
from unskew.population.margins import Margins
from unskew.population.open_sample import named_columns_apart
from unskew.population.population import Population
from unskew.rows.column_names import in_fitted_order, remember_columns
from unskew.rows.labels import checked_labels
from unskew.rows.tables import as_rows
from unskew.weighters.base import Weighter
from unskew.weighters.cells import CellWeighter
from unskew.weighters.parameters import OneOrMore, RandomState, TwoOrMore, WithParameters

WEIGH_NEW_ROWS = (
    "AutoWeights, ClassifierWeights, DensityRatioWeights, CalibrationWeights, TreeWeights, "
    "ClusterWeights, HistogramWeights, FrequencyWeights, KnownProbability with a column or a "
    "function, Tempered of these, and Unweighted"
)
"""The weighters that can weigh new rows, for the message."""


class ConformalSplit(NamedTuple):
    """What one split of the sample gave.

    Attributes
    ----------
    model : object
        What a conformal estimator fits on the training rows.
    weighter : object with ``weigh``, or None
        None counts all rows alike.
    cells : CellWeighter or None
        Whose cells are calibrated each by itself.
    scores : ScoreDistribution
        Of the calibration rows.
    """

    model: Any
    weighter: Any
    cells: CellWeighter | None
    scores: ScoreDistribution


class Conformal(MetaEstimatorMixin, WithParameters, ABC):
    """Calibrates a learner's predictions on rows that it has not seen.

    Parameters
    ----------
    weighter : Weighter, optional
        One that can weigh new rows. By default :class:`unskew.AutoWeights`; with
        :class:`unskew.Margins` as the population, :class:`unskew.CalibrationWeights`. A learner
        that weighs the sample itself (:class:`unskew.Reweighted`) lends its own; with ``groups``,
        there is none by default.
    method : {"split", "cv+"}, default="split"
        "split" trains on some rows and calibrates on the others, at the cost of one fit. "cv+"
        trains on all but one of ``cv`` folds and calibrates on that one, for each: every row is
        used for both, at the cost of ``cv`` fits of the learner and of the weighter.
    calibration_size : float or int, default=0.5
        The share or number of rows that "split" calibrates on.
    cv : int, default=5
        The number of folds of "cv+".
    groups : TreeWeights, ClusterWeights, HistogramWeights or FrequencyWeights, optional
        Calibrates each of its cells by itself, so that the coverage holds within every cell. That
        needs no weights if selection is even within cells; a weighter, if given as well, weighs
        within them. For "split" only.
    random_state : int, RandomState instance or None, default=0
        Controls how rows are split.

    Attributes
    ----------
    estimator_ : estimator
        The learner that predicts: that of the training rows, or an average of those of the folds.
    weighters_ : list
        What weighs rows: one, or one for each fold; None where all count alike.
    calibration_rows_ : ndarray of int
        Which rows of X were calibrated on.
    effective_sample_size_ : float
        That of the calibration rows' weights.
    infinite_share_ : float
        Of the rows last predicted, the share about which nothing can be said with the coverage
        that was asked for: the interval is infinite, or the set holds every class.
    """

    estimator: Annotated[Any, HasMethods(["fit"]), tuple, list] = field(kw_only=False)
    weighter: Weighter | None = field(default=None, kw_only=False)
    method: Literal["split", "cv+"] = "split"
    calibration_size: Annotated[float, Interval(Real, 0, 1, closed="neither")] | OneOrMore = 0.5
    cv: TwoOrMore = 5
    groups: Weighter | None = None
    random_state: RandomState = 0

    _nothing_known: ClassVar[str]
    """What becomes of a row about which the calibration rows say nothing."""

    @abstractmethod
    def _check_learner(self) -> None:
        """Refuse a learner that cannot predict what is needed."""

    @abstractmethod
    def _labels(self, labels: NDArray[Any]) -> NDArray[Any]:
        """Return the labels as the scores need them."""

    @abstractmethod
    def _fit_model(self, rows: TrainingRows) -> Any:
        """Return what scores rows, fitted."""

    @abstractmethod
    def _scores(self, model: Any, X: Any, labels: NDArray[Any]) -> FloatArray:
        """Return the conformity scores of rows: the larger, the stranger."""

    @abstractmethod
    def _learner(self, model: Any) -> Any:
        """Return what predicts as the user's learner does."""

    def fit(
        self, X: Any, y: Any, *, population: Any = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Train the learner on some rows, weigh and calibrate it on the others.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_samples, n_features)
            The sample.
        y : array-like of shape (n_samples,), or the name of a column of X
            Its labels.
        population : Population, Margins, or anything that :class:`unskew.Population` takes
            An unbiased reference sample of the population; only a weighter that estimates nothing
            (``KnownProbability``) needs none. In cross-validation, wrap one with as many rows as X
            (``Population(U)``), or scikit-learn cuts it into folds.
        sample_weight : array-like of shape (n_samples,), or the name of a column of X, optional
            Design weights of the sample. A row to predict counts with their mean.

        Returns
        -------
        self
        """
        validate_parameters(self)
        name = type(self).__name__
        if y is None:
            raise InputError(f"{name} requires y to be passed, but the target y is None.")
        self._check_learner()
        self._check_weighters()
        check_whole(X, population)
        X, y, sample_weight = named_columns_apart(X, y, sample_weight)
        with pipelines_go_inside(X, name):
            given = as_rows(X, name="X")
        labels = checked_labels(y, len(given))
        if labels.ndim != 1:
            raise InputError(
                f"y has {labels.shape[1]} columns, and may have one. Fit one for each."
            )
        labels = self._labels(labels)
        design = None
        if sample_weight is not None:
            design = check_design(sample_weight, name="sample_weight", n_rows=len(given))
            design = design / design.mean()
        self.__dict__.pop("infinite_share_", None)
        splits = self._splits(labels)
        known = population
        if population is not None and not isinstance(population, Margins):
            known = Population.from_data(population)
        readers = weighs_itself(self.estimator) + (self.weighter is not None)
        readers = max(1, readers + (self.groups is not None))
        if isinstance(known, Population) and readers * len(splits) > 1:
            known.check_rereadable(name)
        if hasattr(X, "__array__") and not hasattr(X, "__getitem__"):
            X = np.asarray(X)
        rows = TrainingRows(X, labels, design, known)
        with pipelines_go_inside(X, name):
            found = [self._part(rows, *places) for places in splits]
        self.parts_ = [part for part, _ in found]
        self.weighters_ = [part.weighter for part in self.parts_]
        learners = [self._learner(part.model) for part in self.parts_]
        self.estimator_ = learners[0]
        if len(learners) > 1:
            self.estimator_ = Committee(learners, getattr(self, "classes_", None))
        self.calibration_rows_: IntArray = np.concatenate([places for _, places in splits])
        weights = np.concatenate([weights for _, weights in found])
        self.effective_sample_size_ = effective_sample_size(weights) if weights.any() else 0.0
        remember_columns(self, given.labels)
        return self

    def _check_weighters(self) -> None:
        for weighter in (self.weighter, getattr(self.estimator, "weighter", None)):
            used = weighter is self.weighter or (self.weighter is None and self.groups is None)
            if isinstance(weighter, Weighter) and used and not hasattr(weighter, "weigh"):
                raise ParameterError(
                    f"{type(weighter).__name__} as it was given cannot weigh new rows, and "
                    f"{type(self).__name__} weighs every row that it predicts. Those that can are "
                    f"{WEIGH_NEW_ROWS}."
                )
        if self.groups is None:
            return
        if not isinstance(self.groups, CellWeighter):
            raise ParameterError(
                f"groups must be a weighter that has cells: TreeWeights, ClusterWeights, "
                f"HistogramWeights or FrequencyWeights. Got {type(self.groups).__name__} instead."
            )
        if self.method == "cv+":
            raise ParameterError(
                'groups needs method="split": in each fold of "cv+" the cells would be others.'
            )

    def _splits(self, labels: NDArray[Any]) -> list[tuple[IntArray, IntArray]]:
        """Return training and calibration rows, once or for each fold."""
        n_rows = len(labels)
        if n_rows < 2:
            raise InputError(
                f"X has {n_rows} sample(s) (n_samples={n_rows}) while a minimum of 2 is required: "
                "one to train on and one to calibrate on."
            )
        random = check_random_state(self.random_state)
        if self.method == "cv+":
            return split(self.estimator, labels, random.randint(2**31 - 1), self.cv)
        size = self.calibration_size
        if isinstance(size, Integral):
            if size >= n_rows:
                raise ParameterError(
                    f"calibration_size={size} leaves none of the {n_rows} rows to train on."
                )
        else:
            size = min(max(round(size * n_rows), 1), n_rows - 1)
        order = random.permutation(n_rows)
        return [(np.sort(order[size:]), np.sort(order[:size]))]

    def _part(
        self, rows: TrainingRows, training: IntArray, calibration: IntArray
    ) -> tuple[ConformalSplit, FloatArray]:
        """Return what one split gives, and the weights of its calibration rows."""
        train, rest = rows.take(training), rows.take(calibration)
        cells = None
        if self.groups is not None:
            cells = self._fit_weighter(clone(self.groups), train)
        weighter: Any = None
        lent = self.weighter is None and weighs_itself(self.estimator)
        if not lent and (self.weighter is not None or cells is None):
            chosen = weighter_or_default(self.weighter, rows.population)
            weighter = self._fit_weighter(chosen, train)
        model = self._fit_model(train)
        if lent and cells is None:
            weighter = self._learner(model)
            weighter = getattr(weighter, "members", [weighter])[0]
        scores = self._scores(model, rest.X, rest.y)
        weights = _weigh(weighter, rest.X, len(calibration))
        if rest.design is not None:
            weights = weights * rest.design
        if cells is None:
            distribution = ScoreDistribution.from_scores(scores, weights)
        else:
            n_cells = len(cells.sample_counts_)
            distribution = ScoreDistribution.from_scores(
                scores, weights, cells.locate(rest.X), n_cells
            )
        return ConformalSplit(model, weighter, cells, distribution), weights

    def _fit_weighter(self, weighter: Any, rows: TrainingRows) -> Any:
        return weighter.fit(rows.X, rows.y, population=rows.population, sample_weight=rows.design)

    @property
    def _crossed(self) -> CrossedScores:
        return CrossedScores([part.scores for part in self.parts_])

    def _new_rows(self, X: Any, coverage: float) -> tuple[FloatArray, IntArray | None]:
        """Return weights and cells of rows to predict; say of how many nothing is known."""
        check_is_fitted(self)
        if isinstance(coverage, bool) or not isinstance(coverage, Real) or not 0 < coverage < 1:
            raise ParameterError(f"coverage must lie between 0 and 1, as 0.9 does; got {coverage}.")
        n_rows = len(as_rows(X, name="X"))
        own = np.mean([_weigh(part.weighter, X, n_rows) for part in self.parts_], axis=0)
        first, total, cells = self.parts_[0], self._crossed.total, None
        if first.cells is None:
            finite_up_to = np.divide(total, total + own, out=0 * own, where=total + own > 0)
        else:
            cells = first.cells.locate(X)
            finite_up_to = first.scores.finite_up_to(own, cells)
        infinite = finite_up_to < coverage * (1 - ROUNDING)
        self.infinite_share_: float = float(infinite.mean()) if n_rows else 0.0
        if infinite.any():
            self._warn_of_infinite(own, finite_up_to, coverage, in_cells=cells is not None)
        return own, cells

    def _warn_of_infinite(
        self, own: FloatArray, finite_up_to: FloatArray, coverage: float, *, in_cells: bool
    ) -> None:
        text = (
            f"{self.infinite_share_:.1%} of the {self._nothing_known}: with coverage {coverage:g}, "
            "the calibration rows say nothing of these rows. "
        )
        if in_cells:
            needed = int(np.ceil(coverage / (1 - coverage) * (1 - 1e-9)))
            text += (
                f"Their cells hold too little: {needed} calibration rows of equal weights are "
                "needed in each. Use larger cells."
            )
        else:
            least = np.floor(1e4 * finite_up_to.min()) / 1e4
            text += (
                "For a row of weight w the coverage can be at most W / (W + w), where "
                f"W = {self._crossed.total:.4g} is the sum of the calibration rows' weights. The "
                f"largest weight of these rows is {own.max():.4g}, so {least:.4f} can be had "
                "for all. Or give more rows where the sample has few, or cap the weights, at the "
                "price of the guarantee: Tempered(weighter, max_weight=20)."
            )
        warn_caller(InfiniteIntervalWarning(text, self.infinite_share_))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the learner's predictions."""
        check_is_fitted(self)
        return np.asarray(self.estimator_.predict(in_fitted_order(self, X)))

    def __sklearn_tags__(self) -> Any:
        learner = self.estimator
        first = learner[0] if is_pair(learner) else learner
        tags = tags_of_learner(super().__sklearn_tags__(), first)
        tags.target_tags.multi_output = False
        return tags


def is_pair(learner: Any) -> bool:
    """Whether learners of a lower and an upper quantile were given."""
    return isinstance(learner, tuple | list)


def _weigh(weighter: Any, X: Any, n_rows: int) -> FloatArray:
    """Return the weights of new rows, one for each where nothing weighs them."""
    if weighter is None:
        return np.ones(n_rows)
    weights = np.asarray(weighter.weigh(X))
    if (weights < 0).any():
        raise ParameterError(
            f"{int((weights < 0).sum())} weights of {learner_name(weighter)} are negative, and a "
            "negative weight counts no score. Use bounds=(0, None) on it."
        )
    return weights


class ConformalClassifier(ClassifierMixin, Conformal):
    r"""Sets of classes that hold the true one for a given share of the population.

    As :class:`ConformalRegressor`, with a score for each class: a class belongs to the set if it is
    not stranger than a weighted quantile of the calibration rows' own classes.

    Parameters
    ----------
    estimator : classifier with ``predict_proba``
        Trained without weights; ``Reweighted(learner)`` trains with them, and then also weighs the
        calibration rows. ``FrozenEstimator(model)`` is a model that is trained already, on other
        rows.
    <Conformal parameters>
    conformity_score : {"lac", "aps"}, default="lac"
        How strange a class is at a row. "lac": one minus its probability; the sets are the smallest
        on average (Sadinle, Lei and Wasserman 2019). "aps": the probability of all classes that are
        more probable, and a random part of its own; sets are larger where the learner is less
        certain (Romano, Sesia and Candès 2020). The part is a function of the row's probabilities,
        so that a row always has the same set.

    Attributes
    ----------
    <Conformal attributes>
    classes_ : ndarray
        The classes, in the order of the sets' columns.

    See Also
    --------
    ConformalRegressor : Intervals for numbers.

    Notes
    -----
    A set may be empty: no class is as probable as those of nearly all calibration rows are. It
    counts as a set that does not hold the true class.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from unskew import ConformalClassifier
    >>> random = np.random.default_rng(0)
    >>> population = random.normal(size=(4000, 2))
    >>> labels = np.where(population[:, 0] + random.normal(size=4000) > 0, "buys", "leaves")
    >>> selected = random.uniform(size=4000) < 1 / (1 + np.exp(-population[:, 0]))
    >>> model = ConformalClassifier(LogisticRegression())
    >>> model = model.fit(population[selected], labels[selected], population=population)
    >>> sets = model.predict_set(population, coverage=0.9)
    >>> model.classes_, sets.shape
    (array(['buys', 'leaves'], dtype='<U6'), (4000, 2))
    >>> held = sets[np.arange(4000), np.searchsorted(model.classes_, labels)]
    >>> round(float(held.mean()), 1)
    0.9
    """

    conformity_score: Literal["lac", "aps"] = "lac"

    _nothing_known = "sets hold every class"

    def _check_learner(self) -> None:
        learner = self.estimator
        if is_pair(learner) or not hasattr(learner, "predict_proba"):
            hint = "A classifier without it gets it by CalibratedClassifierCV(classifier)."
            if is_regressor(learner):
                hint = "For numbers use ConformalRegressor."
            raise ParameterError(
                "The 'estimator' parameter of ConformalClassifier must be a classifier with "
                f"predict_proba. Got {learner_name(learner)} instead. {hint}"
            )

    def _labels(self, labels: NDArray[Any]) -> NDArray[Any]:
        try:
            check_classification_targets(labels)
        except ValueError as error:
            raise InputError(f"y: {error} For numbers use ConformalRegressor.") from error
        self.classes_: NDArray[Any] = np.unique(labels)
        return labels

    def _fit_model(self, rows: TrainingRows) -> Any:
        return rows.train(self.estimator)

    def _scores(self, model: Any, X: Any, labels: NDArray[Any]) -> FloatArray:
        places = np.searchsorted(self.classes_, labels)
        return self._class_scores(model, X)[np.arange(len(labels)), places]

    def _class_scores(self, model: Any, X: Any) -> FloatArray:
        """Return the conformity score of each class at each row."""
        chances = aligned(np.asarray(model.predict_proba(X)), model.classes_, self.classes_)
        return 1.0 - chances if self.conformity_score == "lac" else adaptive_scores(chances)

    def _learner(self, model: Any) -> Any:
        return model

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the learner's class probabilities."""
        check_is_fitted(self)
        chances = np.asarray(self.estimator_.predict_proba(in_fitted_order(self, X)))
        return aligned(chances, self.estimator_.classes_, self.classes_)

    def predict_set(self, X: Any, coverage: float = 0.9) -> BoolArray:
        """Return which classes are in the set of each row.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_rows, n_features)
        coverage : float, default=0.9
            The share of the population whose class is to be in the set; between 0 and 1.

        Returns
        -------
        ndarray of bool of shape (n_rows, n_classes)
            In the order of ``classes_``. Every class is in the set where the calibration rows say
            nothing of a row with this coverage, which ``infinite_share_`` counts.

        Warns
        -----
        InfiniteIntervalWarning
            If there are such rows; it says why, and with which coverage there are none.
        """
        X = in_fitted_order(self, X)
        own, cells = self._new_rows(X, coverage)
        scores = [self._class_scores(part.model, X) for part in self.parts_]
        if len(scores) == 1:
            most = self.parts_[0].scores.quantile(coverage, own, cells)
            return np.asarray(scores[0] <= most[:, None])
        crossed = self._crossed
        below = sum(crossed.mass_below(fold, one) for fold, one in enumerate(scores))
        return np.asarray(below < crossed.wanted(coverage, own)[:, None])
