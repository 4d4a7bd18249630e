"""A probit with sample selection: two classes, where the class decides whether it is seen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_ndtr, ndtr
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score

from unskew.errors import InputError
from unskew.learning.heckman_doubts import refuse_separation
from unskew.learning.heckman_rows import HeckmanRows
from unskew.learning.heckman_summary import SummaryRow, correlation_row
from unskew.learning.selection_model import Columns, SelectionModel
from unskew.numerics.bivariate_normal import log_bivariate_ndtr
from unskew.numerics.heckman import Problem, condition_number
from unskew.numerics.heckman_probit import maximise, outcome_probit
from unskew.numerics.probit import inverse_mills
from unskew.numerics.typing import BoolArray, FloatArray
from unskew.population.labels import is_labelled


class HeckmanClassifier(ClassifierMixin, SelectionModel):
    r"""A probit for two classes that are seen only for some rows, which the class decides itself.

    Defaults are seen of loans that were granted, and an officer who grants them knows more than
    the columns hold. The second class is where :math:`x^\top\beta + \varepsilon > 0`, and the class
    is seen where :math:`z^\top\gamma + \nu > 0`. It assumes that :math:`(\varepsilon, \nu)` is
    bivariate normal with variances of one and correlation :math:`\rho`, independent of all columns.
    Estimates are those of maximum likelihood.

    Parameters
    ----------
    <SelectionModel parameters>

    Attributes
    ----------
    <SelectionModel attributes>
    classes_ : ndarray
        The two classes; coefficients are about the second.
    rho_ : float
    params_ : ndarray
        Both equations, constants first, then atanh ρ.
    log_likelihood_ : float
    certificate_ : Certificate
        The number of Newton steps, the gradient that is left in units of standard errors, and
        whether that is a maximum.

    See Also
    --------
    HeckmanRegressor : The same for an outcome that is a number.
    LabelShiftWeights : Where the class alone decides, and columns do not.

    References
    ----------
    W. van de Ven and B. van Praag, "The demand for deductibles in private health insurance: a
    probit model with sample selection", Journal of Econometrics 17 (1981).

    Examples
    --------
    >>> import numpy as np
    >>> from unskew import HeckmanClassifier
    >>> random = np.random.default_rng(0)
    >>> x, z = random.normal(size=(2, 5000))
    >>> error, other = random.multivariate_normal([0, 0], [[1, 0.8], [0.8, 1]], 5000).T
    >>> y = np.where(x + z + other > 0, x + error > 0.5, np.nan)  # seen where the sum is large
    >>> model = HeckmanClassifier(outcome=[0]).fit(np.column_stack([x, z]), y)
    >>> round(model.intercept_, 1), round(float(model.coef_[0]), 1)
    (-0.5, 1.0)
    """

    def _outcomes(self, y: Any, seen: BoolArray) -> FloatArray:
        labels = self._labels(y, seen)
        try:
            self.classes_: NDArray[Any] = np.unique(labels)
        except TypeError as error:
            raise InputError(f"y mixes labels of several types ({error}).") from error
        if len(self.classes_) != 2:
            found = f"{len(self.classes_)} values" if len(self.classes_) > 2 else "a single class"
            raise InputError(
                f"y must hold two classes where it is seen, and holds {found}. For a number use "
                "HeckmanRegressor; of several classes, ask of one whether it is that one."
            )
        return (labels == self.classes_[1]).astype(np.float64)

    @staticmethod
    def _labels(y: Any, seen: BoolArray) -> NDArray[Any]:
        column = y.to_numpy() if hasattr(y, "to_numpy") else np.asarray(y)
        labels = column.reshape(len(seen), -1)[seen, 0]
        if labels.dtype == object and not isinstance(labels[0], str):
            labels = np.array(labels.tolist())  # None beside numbers makes them objects
        return np.asarray(labels)

    def _estimate(self, problem: Problem, rows: HeckmanRows, columns: Columns) -> None:
        self._check_selection(problem, columns.selection)
        outcome = outcome_probit(problem)
        mass, names = float(problem.seen.sum()), self._outcome.names
        refuse_separation(outcome, problem.y > 0, mass, columns.outcome, names, "outcome")
        mills = inverse_mills(problem.z @ problem.probit.coef)
        self.condition_number_ = condition_number(problem, mills)
        found = maximise(problem, outcome)
        self.rho_ = float(np.tanh(found.params[-1]))
        self.log_likelihood_, self.certificate_ = found.log_likelihood, found.certificate
        self._independent = problem.probit.log_likelihood + outcome.log_likelihood
        self._take(found, problem, rows)

    @property
    def _method(self) -> str:
        return "probit"

    def _error_rows(self, errors: FloatArray) -> Iterator[SummaryRow]:
        yield correlation_row(self, errors)

    def predict_proba(self, X: Any, *, given_selected: bool = False) -> FloatArray:
        """Return the probabilities of both classes.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_rows, n_features)
            A dataframe needs only the columns of the equations that are used.
        given_selected : bool, default=False
            Whether rows are known to be selected. By default the probabilities are those of the
            population, whether the class would be seen or not.

        Returns
        -------
        ndarray of shape (n_rows, 2)
            In the order of ``classes_``.
        """
        fit, batch = self._fit_of(X)
        second = ndtr(fit)
        if given_selected:
            index = self._index(self._batch(X, self._selection.columns))
            rho = np.full(len(fit), self.rho_)
            second = np.exp(log_bivariate_ndtr(index, fit, rho) - log_ndtr(index))
        self._outcome.warn_of_unseen(batch, second)
        return np.column_stack([1 - second, second])

    def predict(self, X: Any, *, given_selected: bool = False) -> NDArray[Any]:
        """Return the more probable class of each row, as :meth:`predict_proba` has it."""
        second = self.predict_proba(X, given_selected=given_selected)[:, 1] > 0.5
        return self.classes_[second.astype(int)]

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Return the accuracy of ``predict(X, given_selected=True)`` where the class is there.

        These are selected rows, so it says nothing about rows that are not.
        """
        seen = is_labelled(y)
        weight = None if sample_weight is None else np.asarray(sample_weight)[seen]
        predicted = self.predict(X, given_selected=True)[seen]
        return float(accuracy_score(self._labels(y, seen), predicted, sample_weight=weight))
