"""Sets of classes that hold on the population."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, is_regressor
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from unskew._compat import StrOptions
from unskew.errors import InputError, ParameterError
from unskew.learning.conformal import Conformal
from unskew.learning.conformal_regressor import is_pair
from unskew.learning.trainer import TrainingRows, aligned, learner_name
from unskew.numerics.conformal import ROUNDING, adaptive_scores
from unskew.numerics.typing import BoolArray, FloatArray
from unskew.rows.column_names import in_fitted_order


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
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Conformal._parameter_constraints,
        "conformity_score": [StrOptions({"lac", "aps"})],
    }

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
        if labels.ndim != 1:
            raise InputError(
                f"y has {labels.shape[1]} columns; a set holds classes of one. Fit one for each."
            )
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
        new = self._new_rows(X, coverage)
        scores = [self._class_scores(part.model, X) for part in self.parts_]
        infinite = new.finite_up_to < coverage * (1 - ROUNDING)
        if len(scores) == 1:
            most = self.parts_[0].scores.quantile(coverage, new.own, new.cells)
            sets = scores[0] <= most[:, None]
        else:
            crossed = self._crossed
            below = sum(crossed.mass_below(fold, one) for fold, one in enumerate(scores))
            sets = below < crossed.wanted(coverage, new.own)[:, None]
        self._report_infinite(infinite, new, coverage)
        return np.asarray(sets)
