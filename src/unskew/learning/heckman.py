"""Heckman's selection model: regression where the outcome decides whether it is seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any, ClassVar, Literal, Self

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike
from scipy.special import ndtr
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from unskew._compat import StrOptions, validate_parameters
from unskew.errors import InputError, ParameterError, warn_caller
from unskew.learning.equation import Equation
from unskew.learning.heckman_doubts import doubts
from unskew.learning.heckman_rows import HeckmanRows, numbers
from unskew.learning.heckman_summary import HeckmanSummary, summarise
from unskew.numerics.heckman import (
    Basis,
    Problem,
    TwoStep,
    independent_log_likelihood,
    sandwich,
    two_step,
)
from unskew.numerics.heckman_likelihood import Maximum, maximise
from unskew.numerics.probit import inverse_mills
from unskew.numerics.typing import FloatArray
from unskew.population.column_names import chosen_names, which_there_are
from unskew.population.labels import is_labelled
from unskew.population.rows import Rows, as_rows
from unskew.weighters.parameters import WithParameters

Covariance = Literal["model", "robust"]


class HeckmanRegressor(RegressorMixin, WithParameters):
    r"""Linear regression for an outcome that is seen only for some rows, which it decides itself.

    Wages are seen of those who work, and who works depends on the wage. No weights by columns
    correct that. Heckman's model does: an outcome equation :math:`y = x^\top\beta + \varepsilon`,
    and a selection equation: y is seen where :math:`z^\top\gamma + \nu > 0`. It assumes that both
    equations are linear and that :math:`(\varepsilon, \nu)` is bivariate normal with correlation
    :math:`\rho`, independent of all columns.

    Parameters
    ----------
    selection : list of columns, optional
        The names (or positions) of the columns :math:`z` that decide who is seen; by default all.
    outcome : list of columns, optional
        The columns :math:`x` on which the outcome depends; by default all. At least one column
        should be in ``selection`` alone, an *exclusion*: something that moves people into the
        sample and does not change the outcome. Without one, the correction rests on normality.
    method : {"two-step", "ml"}, default="two-step"
        "two-step" is a probit, then least squares with the inverse Mills ratio as a regressor; it
        does not need :math:`\varepsilon` itself to be normal. "ml" is maximum likelihood, which is
        more precise if the model is right.
    covariance : {"model", "robust"}, default="model"
        From which standard errors follow: the model's own, with what estimating :math:`\gamma`
        adds, or the sandwich, which allows for unequal variances. With ``sample_weight`` or
        ``clusters`` it is always the sandwich.

    Attributes
    ----------
    coef_, intercept_ : ndarray, float
        Of the outcome equation, in the order of ``outcome_names_``.
    selection_coef_, selection_intercept_ : ndarray, float
        Of the selection equation, in the order of ``selection_names_``.
    outcome_names_, selection_names_ : list of str
        What the coefficients belong to: a column of text has one for each category but the first,
        a number with missing values a second one that says where they are.
    sigma_, rho_, mills_coef_ : float
        σ, ρ and their product, the coefficient of the inverse Mills ratio.
    params_ : ndarray
        Both equations, constants first, then ``mills_coef_`` ("two-step") or log σ and atanh ρ
        ("ml").
    covariance_ : ndarray
        Of ``params_``.
    log_likelihood_ : float
        Of the probit ("two-step") or of the model ("ml").
    certificate_ : Certificate
        The number of Newton steps, the gradient that is left in units of standard errors, and
        whether that is a maximum: of the probit, or of the model's likelihood.
    condition_number_ : float
        Of the constant and the outcome's columns, made orthonormal, and the inverse Mills ratio.
        Above 20, the ratio is almost a linear function of the columns, and little is identified.
    n_selected_, n_unselected_ : int

    See Also
    --------
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

    selection: Sequence[str] | Sequence[int] | None = field(default=None, kw_only=False)
    outcome: Sequence[str] | Sequence[int] | None = field(default=None, kw_only=False)
    method: Literal["two-step", "ml"] = "two-step"
    covariance: Covariance = "model"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "selection": [list, tuple, np.ndarray, None],
        "outcome": [list, tuple, np.ndarray, None],
        "method": [StrOptions({"two-step", "ml"})],
        "covariance": [StrOptions({"model", "robust"})],
    }

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        population: Any = None,
        sample_weight: ArrayLike | None = None,
        clusters: ArrayLike | None = None,
    ) -> Self:
        """Estimate both equations.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_rows, n_features)
            All rows; or those that are selected, with ``population``.
        y : array-like of shape (n_rows,)
            The outcome, missing (NaN or None) for rows that are not selected.
        population : Population, optional
            ``Population(U, selected=...)`` with the selection's columns, in which marks say which
            rows X has. Its other rows are held in memory.
        sample_weight : array-like of shape (n_rows,), optional
            Design weights. If the population has weights, X needs them too.
        clusters : array-like of shape (n_rows,), optional
            Groups of rows whose errors may depend on one another, such as households.

        Returns
        -------
        self

        Warns
        -----
        UserWarning
            If the model is hardly identified (``condition_number_``), if a column depends linearly
            on earlier ones and is left out, or if the likelihood has no maximum.
        """
        validate_parameters(self)
        given = as_rows(X, name="X")
        names = given.table.column_names
        chosen = {
            "selection": _chosen(self.selection, names, "selection"),
            "outcome": _chosen(self.outcome, names, "outcome"),
        }
        rows = HeckmanRows.of(given, y, population, chosen["selection"], sample_weight, clusters)
        self.n_features_in_ = len(names)
        self.__dict__.pop("feature_names_in_", None)
        if given.named:
            self.feature_names_in_ = np.array(names, dtype=object)
        seen = rows.first.table.filter(pa.array(rows.selected[: len(rows.first)]))
        seen_rows = Rows(seen.select(chosen["outcome"]), given.named).batch
        self._selection = Equation(rows.batches(chosen["selection"]))
        self._outcome = Equation([seen_rows])
        z = np.vstack([self._selection.matrix(one) for one in rows.batches(chosen["selection"])])
        x = self._outcome.matrix(seen_rows)
        problem = Problem(Basis.of(z), Basis.of(x), rows.selected, rows.y, rows.weight)
        self._leave_out(problem)
        self._check_rows(problem, z[:, problem.selection.kept])
        self._estimate(problem, rows)
        return self

    def _leave_out(self, problem: Problem) -> None:
        for name, equation, basis in (
            ("selection", self._selection, problem.selection),
            ("outcome", self._outcome, problem.outcome),
        ):
            left_out = equation.keep(basis.kept)
            if left_out:
                listed = ", ".join(f"'{label}'" for label in left_out)
                warn_caller(
                    UserWarning(
                        f"Left out of the {name} equation, because the constant and earlier "
                        f"columns determine it: {listed}."
                    )
                )

    def _check_rows(self, problem: Problem, z: FloatArray) -> None:
        """Refuse too few rows, and selection that the columns determine."""
        n_outcome = len(problem.outcome.kept)
        if len(problem.y) <= n_outcome + 1:
            raise InputError(
                f"y is there for {len(problem.y)} rows, and the outcome equation has "
                f"{n_outcome} coefficients and the inverse Mills ratio: more rows are needed."
            )
        information = problem.probit.information / problem.weight.sum()
        if problem.probit.certificate.converged and np.linalg.eigvalsh(information)[0] > 1e-12:
            return
        for name, column in zip(self._selection.names, z.T, strict=True):
            for value in np.unique(column) if set(np.unique(column)) == {0.0, 1.0} else ():
                marks = problem.selected[column == value]
                if marks.all() or not marks.any():
                    which = "every row is" if marks.all() else "no row is"
                    where = name if value else f"not ({name})"
                    raise InputError(
                        f"Where {where}, {which} selected ({len(marks):,} rows), so the probit of "
                        "selection has no maximum. Leave these rows or the column out, or merge "
                        "the category with another."
                    )
        raise InputError(
            "The columns of the selection equation determine which rows are selected, so its "
            "probit has no maximum. Leave out the column that does, by selection=[...]."
        )

    def _estimate(self, problem: Problem, rows: HeckmanRows) -> None:
        start = two_step(problem)
        self.condition_number_ = start.condition
        self.n_selected_ = len(problem.y)
        self.n_unselected_ = int((~problem.selected).sum())
        self._kind = rows.covariance_kind(self.covariance)
        found: TwoStep | Maximum = start
        if self.method == "ml":
            if start.sigma <= 1e-12 * np.abs(problem.y).max():
                raise InputError(
                    "The outcome is a linear function of its columns, without any error, so the "
                    "likelihood has no maximum. Leave out the column that determines it, by "
                    "outcome=[...]."
                )
            found = maximise(problem, start)
            back = problem.back(1.0, 1.0)
            self.sigma_, self.rho_ = (
                float(np.exp(found.params[-2])),
                float(np.tanh(found.params[-1])),
            )
            self.log_likelihood_, self.certificate_ = found.log_likelihood, found.certificate
        else:
            back = problem.back(1.0)
            self.sigma_, self.rho_ = start.sigma, start.rho
            self.log_likelihood_ = problem.probit.log_likelihood
            self.certificate_ = problem.probit.certificate
        self.mills_coef_ = self.sigma_ * self.rho_
        raw = found.covariance if self._kind == "model" else sandwich(found.influence, rows.groups)
        self.params_: FloatArray = back @ found.params
        self.covariance_: FloatArray = back @ raw @ back.T
        self._independent = independent_log_likelihood(problem)
        n_selection, n_outcome = problem.sizes
        self.selection_intercept_ = float(self.params_[0])
        self.selection_coef_ = self.params_[1:n_selection]
        self.intercept_ = float(self.params_[n_selection])
        self.coef_ = self.params_[n_selection + 1 : n_selection + n_outcome]
        self.selection_names_ = self._selection.names[1:]
        self.outcome_names_ = self._outcome.names[1:]
        for message in doubts(self, found):
            warn_caller(UserWarning(message))

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
        batch = self._batch(X, self._equation("_outcome").columns)
        predictions = self.intercept_ + self._outcome.matrix(batch)[:, 1:] @ self.coef_
        if given_selected:
            predictions = predictions + self.mills_coef_ * inverse_mills(self._index(X))
        self._outcome.warn_of_unseen(batch, predictions)
        return predictions

    def predict_selected(self, X: Any) -> FloatArray:
        """Return the probability of each row to be selected."""
        batch = self._batch(X, self._equation("_selection").columns)
        probability: FloatArray = ndtr(self._index(X))
        self._selection.warn_of_unseen(batch, probability)
        return probability

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Return R² of ``predict(X, given_selected=True)`` on the rows whose outcome is there.

        These are selected rows, so it says nothing about rows that are not.
        """
        seen = is_labelled(y)
        weight = None if sample_weight is None else np.asarray(sample_weight)[seen]
        truth = numbers(y, seen)
        return float(
            r2_score(truth, self.predict(X, given_selected=True)[seen], sample_weight=weight)
        )

    def summary(self) -> HeckmanSummary:
        """Return both equations with standard errors, as a text or table to print."""
        self._equation("_outcome")
        return summarise(self)

    def _equation(self, name: str) -> Equation:
        check_is_fitted(self, "params_")
        equation: Equation = getattr(self, name)
        return equation

    def _index(self, X: Any) -> FloatArray:
        batch = self._batch(X, self._selection.columns)
        return (
            self.selection_intercept_ + self._selection.matrix(batch)[:, 1:] @ self.selection_coef_
        )

    def _batch(self, X: Any, columns: list[str]) -> pa.RecordBatch:
        """Return new rows with the columns of an equation."""
        rows = as_rows(X, name="X")
        table, fitted = rows.table, hasattr(self, "feature_names_in_")
        if not (rows.named and fitted):
            if table.num_columns != self.n_features_in_:
                raise InputError(
                    f"X has {table.num_columns} features, but HeckmanRegressor is expecting "
                    f"{self.n_features_in_} features as input."
                )
            names = (
                self.feature_names_in_ if fitted else [f"x{j}" for j in range(table.num_columns)]
            )
            table = table.rename_columns([str(name) for name in names])
        lacking = [name for name in columns if name not in table.column_names]
        if lacking:
            raise InputError(
                f"X lacks column '{lacking[0]}', which the equation needs."
                f"{which_there_are(lacking[0], table.column_names)}"
            )
        return Rows(table.select(columns), rows.named).batch

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.target_tags.required = True
        return tags


def _chosen(columns: Any, names: list[str], parameter: str) -> list[str]:
    if columns is None:
        return list(names)
    chosen = chosen_names(list(columns), names, owner="X")
    if not chosen or len(set(chosen)) < len(chosen):
        raise ParameterError(f"{parameter} must name columns of X, each once; got {columns!r}.")
    return chosen
