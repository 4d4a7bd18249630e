"""Heckman's selection models: an outcome that decides itself whether it is seen.

:class:`HeckmanRegressor` is for a number, :class:`HeckmanClassifier`, a probit with sample
selection, for two classes. What they share is in :mod:`unskew.learning.selection_model`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_ndtr, ndtr
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score, r2_score

from unskew.errors import InputError, InputTypeError, refuse_removed
from unskew.learning.selection_model import (
    SelectionModel,
    SummaryRow,
    refuse_separation,
    summary_row,
    transformed_row,
)
from unskew.numerics.heckman import (
    Maximum,
    SelectionProblem,
    TwoStep,
    condition_number,
    independent_log_likelihood,
    inverse_mills,
    log_bivariate_ndtr,
    maximise_linear,
    maximise_probit,
    outcome_probit,
    two_step,
)
from unskew.numerics.typing import BoolArray, FloatArray


class HeckmanRegressor(RegressorMixin, SelectionModel):
    r"""Linear regression for an outcome that is seen only for some rows, which it decides itself.

    Wages are seen of those who work, and who works depends on the wage. No weights by columns
    correct that. Heckman's model does: an outcome equation :math:`y = x^\top\beta + \varepsilon`,
    and a selection equation: y is seen where :math:`z^\top\gamma + \nu > 0`. It assumes that both
    equations are linear and that :math:`(\varepsilon, \nu)` is bivariate normal with correlation
    :math:`\rho`, independent of all columns.

    Parameters
    ----------
    <SelectionModel parameters>
    method : {"two-step", "ml"}, default="two-step"
        "two-step" is a probit, then least squares with the inverse Mills ratio as a regressor; it
        does not need :math:`\varepsilon` itself to be normal. "ml" is maximum likelihood, which is
        more precise if the model is right.

    Attributes
    ----------
    <SelectionModel attributes>
    sigma_, rho_, mills_coef_ : float
        σ, ρ and their product, the coefficient of the inverse Mills ratio.
    params_ : ndarray
        Both equations, constants first, then ``mills_coef_`` ("two-step") or log σ and atanh ρ
        ("ml").
    log_likelihood_ : float
        Of the probit ("two-step") or of the model ("ml").
    certificate_ : Certificate
        The number of Newton steps, the gradient that is left in units of standard errors, and
        whether that is a maximum: of the probit, or of the model's likelihood.

    See Also
    --------
    HeckmanClassifier : The same for an outcome of two classes.
    split_labelled : For one table in which some labels are missing, and selection by the columns.

    References
    ----------
    J. Heckman, "Sample selection bias as a specification error", Econometrica 47 (1979).

    Examples
    --------
    >>> import numpy as np
    >>> from unskew import HeckmanRegressor
    >>> random = np.random.default_rng(0)
    >>> x, z = random.normal(size=(2, 3000))
    >>> error, other = random.multivariate_normal([0, 0], [[1, 0.8], [0.8, 1]], 3000).T
    >>> y = np.where(x + z + other > 0, 1 + 2 * x + error, np.nan)  # seen where the sum is large
    >>> model = HeckmanRegressor(outcome=[0], method="ml").fit(np.column_stack([x, z]), y)
    >>> round(model.intercept_, 1), round(float(model.coef_[0]), 1)
    (1.0, 2.0)
    """

    method: Literal["two-step", "ml"] = "two-step"
    selection_model: Any = None

    def _outcomes(self, y: Any, seen: BoolArray) -> FloatArray:
        column = y.to_numpy() if hasattr(y, "to_numpy") else np.asarray(y)
        try:
            values = np.asarray(column.reshape(len(seen), -1)[seen, 0], dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InputTypeError(
                f"y must hold numbers, missing where it was not seen: {error}. HeckmanRegressor is "
                "for a numeric outcome; for two classes use HeckmanClassifier."
            ) from error
        if np.isinf(values).any():
            raise InputError("y contains infinity. Replace it, or leave those rows out.")
        return values

    def _estimate(self, problem: SelectionProblem) -> TwoStep | Maximum:
        refuse_removed(
            "selection_model", self.selection_model, "The equation of selection is a probit"
        )
        start = two_step(problem)
        self.condition_number_ = start.condition
        found: TwoStep | Maximum = start
        if self.method == "ml":
            if start.sigma <= 1e-12 * np.abs(problem.y).max():
                raise InputError(
                    "The outcome is a linear function of its columns, without any error, so the "
                    "likelihood has no maximum. Leave out the column that determines it, by "
                    "outcome=[...]."
                )
            found = maximise_linear(problem, start)
            self.sigma_ = float(np.exp(found.params[-2]))
            self.rho_ = float(np.tanh(found.params[-1]))
            self.log_likelihood_, self.certificate_ = found.log_likelihood, found.certificate
        else:
            self.sigma_, self.rho_ = start.sigma, start.rho
            self.log_likelihood_ = problem.probit.log_likelihood
            self.certificate_ = problem.probit.certificate
        self.mills_coef_ = self.sigma_ * self.rho_
        self._independent = independent_log_likelihood(problem)
        return found

    @property
    def _method(self) -> str:
        return self.method

    def _error_rows(self, errors: FloatArray) -> Iterator[SummaryRow]:
        if self.method == "two-step":
            yield summary_row("errors", "λ", self.mills_coef_, float(errors[-1]))
            yield summary_row("errors", "σ", self.sigma_, np.nan)
            yield summary_row("errors", "ρ", self.rho_, np.nan)
            return
        # The interval of σ is that of log σ, transformed; the error of λ = ρσ is by the delta
        # method, with its derivatives by log σ and atanh ρ.
        sigma, rho = self.sigma_, self.rho_
        yield transformed_row("σ", np.exp, sigma, float(self.params_[-2]), float(errors[-2]))
        yield self._correlation_row(errors)
        by = np.array([sigma * rho, sigma * (1 - rho**2)])
        variance = by @ self.covariance_[-2:, -2:] @ by if np.isfinite(errors[-1]) else np.nan
        yield summary_row("errors", "λ", self.mills_coef_, float(np.sqrt(variance)))

    def predict(self, X: Any, *, given_selected: bool = False) -> FloatArray:
        """Return the expected outcome of rows.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_rows, n_features)
            A dataframe needs only the columns of the equations that are used.
        given_selected : bool, default=False
            Whether to expect the outcome of rows that are known to be selected. By default it is
            that of the population, whether it would be seen or not.

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        predictions = self._linear("outcome", X)
        if given_selected:
            predictions += self.mills_coef_ * inverse_mills(self._linear("selection", X))
        self._warn_of_unseen("outcome", X, predictions)
        return predictions

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Return R² of ``predict(X, given_selected=True)`` on the rows whose outcome is there.

        These are selected rows, so it says nothing about rows that are not.
        """
        return self._score(r2_score, self._outcomes, X, y, sample_weight)


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

    def _estimate(self, problem: SelectionProblem) -> TwoStep | Maximum:
        outcome = outcome_probit(problem)
        mass, names = float(problem.seen.sum()), self._outcome.names
        refuse_separation(outcome, problem.y > 0, mass, problem.outcome, names, "outcome")
        mills = inverse_mills(problem.z @ problem.probit.coef)
        self.condition_number_ = condition_number(problem, mills)
        found = maximise_probit(problem, outcome)
        self.rho_ = float(np.tanh(found.params[-1]))
        self.log_likelihood_, self.certificate_ = found.log_likelihood, found.certificate
        self._independent = problem.probit.log_likelihood + outcome.log_likelihood
        return found

    @property
    def _method(self) -> str:
        return "probit"

    def _error_rows(self, errors: FloatArray) -> Iterator[SummaryRow]:
        yield self._correlation_row(errors)

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
        fit = self._linear("outcome", X)
        second = ndtr(fit)
        if given_selected:
            index = self._linear("selection", X)
            rho = np.full(len(fit), self.rho_)
            second = np.exp(log_bivariate_ndtr(index, fit, rho) - log_ndtr(index))
        self._warn_of_unseen("outcome", X, second)
        return np.column_stack([1 - second, second])

    def predict(self, X: Any, *, given_selected: bool = False) -> NDArray[Any]:
        """Return the more probable class of each row, as :meth:`predict_proba` has it."""
        second = self.predict_proba(X, given_selected=given_selected)[:, 1] > 0.5
        return self.classes_[second.astype(int)]

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Return the accuracy of ``predict(X, given_selected=True)`` where the class is there.

        These are selected rows, so it says nothing about rows that are not.
        """
        return self._score(accuracy_score, self._labels, X, y, sample_weight)
