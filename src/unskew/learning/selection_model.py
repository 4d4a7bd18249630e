"""What Heckman's selection models share: two equations, their rows, and how to read them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike
from scipy.special import ndtr
from sklearn.utils.validation import check_is_fitted

from unskew._compat import StrOptions, validate_parameters
from unskew.errors import InputError, ParameterError, warn_caller
from unskew.learning.equation import Equation
from unskew.learning.heckman_doubts import doubts, refuse_separation
from unskew.learning.heckman_rows import HeckmanRows
from unskew.learning.heckman_summary import HeckmanSummary, SummaryRow, summarise
from unskew.numerics.heckman import Basis, Problem, TwoStep, sandwich
from unskew.numerics.newton import Certificate
from unskew.numerics.selection_likelihood import Maximum
from unskew.numerics.typing import BoolArray, FloatArray
from unskew.population.column_names import (
    chosen_names,
    remember_columns,
    under_fitted_names,
    which_there_are,
)
from unskew.population.labels import by_position, is_labelled
from unskew.population.open_sample import named_columns_apart
from unskew.population.rows import ColumnLabels, Rows, as_rows
from unskew.weighters.parameters import WithParameters


class Columns(NamedTuple):
    """The columns of both equations, as they are given, with a constant."""

    selection: FloatArray
    outcome: FloatArray


class SelectionModel(WithParameters):
    """An outcome that is seen only for some rows, which it decides itself.

    Parameters
    ----------
    selection : list of columns, optional
        The names (or positions) of the columns :math:`z` that decide who is seen; by default all.
    outcome : list of columns, optional
        The columns :math:`x` on which the outcome depends; by default all. At least one column
        should be in ``selection`` alone, an *exclusion*: something that moves people into the
        sample and does not change the outcome. Without one, the correction rests on normality.
    covariance : {"model", "robust"}, default="model"
        From which standard errors follow: the model's own, or the sandwich, which allows for
        unequal variances. With ``sample_weight`` or ``clusters`` it is always the sandwich.

    Attributes
    ----------
    coef_, intercept_ : ndarray, float
        Of the outcome equation, in the order of ``outcome_names_``.
    selection_coef_, selection_intercept_ : ndarray, float
        Of the selection equation, in the order of ``selection_names_``.
    outcome_names_, selection_names_ : list of str
        What the coefficients belong to: a column of text has one for each category but the first,
        a number with missing values a second one that says where they are.
    covariance_ : ndarray
        Of ``params_``.
    condition_number_ : float
        Of the constant and the outcome's columns, made orthonormal, and the inverse Mills ratio.
        Above 20, the ratio is almost a linear function of the columns, and little is identified.
    n_selected_, n_unselected_ : int
    """

    selection: Sequence[str] | Sequence[int] | None = field(default=None, kw_only=False)
    outcome: Sequence[str] | Sequence[int] | None = field(default=None, kw_only=False)
    covariance: Literal["model", "robust"] = "model"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "selection": [list, tuple, np.ndarray, None],
        "outcome": [list, tuple, np.ndarray, None],
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
        X, y, sample_weight = named_columns_apart(X, y, sample_weight)
        given = as_rows(X, name="X")
        chosen = {
            "selection": _chosen(self.selection, given.labels, "selection"),
            "outcome": _chosen(self.outcome, given.labels, "outcome"),
        }
        owner = type(self).__name__
        if y is None:
            raise InputError(f"{owner} requires y to be passed, but the target y is None.")
        clusters = by_position(clusters, X, "clusters")
        rows = HeckmanRows.of(
            given,
            is_labelled(y),
            population,
            chosen["selection"],
            sample_weight,
            clusters,
            outcomes=lambda seen: self._outcomes(y, seen),
            owner=owner,
        )
        remember_columns(self, given.labels)
        seen_rows = rows.first.table.filter(pa.array(rows.selected[: len(rows.first)]))
        batch = Rows(seen_rows.select(chosen["outcome"]), given.named).batch
        self._selection = Equation(rows.batches(chosen["selection"]))
        self._outcome = Equation([batch])
        z = np.vstack([self._selection.matrix(one) for one in rows.batches(chosen["selection"])])
        x = self._outcome.matrix(batch)
        problem = Problem(Basis.of(z), Basis.of(x), rows.selected, rows.y, rows.weight)
        self._leave_out(problem)
        n_outcome = len(problem.outcome.kept)
        if len(problem.y) <= n_outcome + 1:
            raise InputError(
                f"y is there for {len(problem.y)} rows, and the outcome equation has "
                f"{n_outcome} coefficients and the inverse Mills ratio: more rows are needed."
            )
        self.n_selected_ = len(problem.y)
        self.n_unselected_ = int((~problem.selected).sum())
        self.selection_names_ = self._selection.names[1:]
        self.outcome_names_ = self._outcome.names[1:]
        z, x = z[:, problem.selection.kept], x[:, problem.outcome.kept]
        self._estimate(problem, rows, Columns(z, x))
        return self

    @abstractmethod
    def _outcomes(self, y: Any, seen: BoolArray) -> FloatArray:
        """Return the outcomes that are there, as numbers."""

    @abstractmethod
    def _estimate(self, problem: Problem, rows: HeckmanRows, columns: Columns) -> None:
        """Estimate the equations, and set what every model has."""
        self.condition_number_: float
        self.log_likelihood_: float
        self.certificate_: Certificate
        self.rho_: float
        self._independent: float  # the log-likelihood if ρ is zero

    @property
    @abstractmethod
    def _method(self) -> str:
        """How the summary names the estimates."""

    @abstractmethod
    def _error_rows(self, errors: FloatArray) -> Iterator[SummaryRow]:
        """Yield the rows of the summary on the errors, given standard errors of ``params_``."""

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

    def _check_selection(self, problem: Problem, z: FloatArray) -> None:
        """Refuse selection that its columns determine."""
        mass = float(problem.weight.sum())
        names = self._selection.names
        refuse_separation(problem.probit, problem.selected, mass, z, names, "selection")

    def _take(self, found: TwoStep | Maximum, problem: Problem, rows: HeckmanRows) -> None:
        """Keep the estimates of both equations, in the columns as they are given."""
        n_selection, n_outcome = problem.sizes
        back = problem.back(*[1.0] * (len(found.params) - n_selection - n_outcome))
        self._keep(found.params, back, found.influence, rows, found.covariance)
        self.selection_intercept_ = float(self.params_[0])
        self.selection_coef_: FloatArray = self.params_[1:n_selection]
        self.intercept_ = float(self.params_[n_selection])
        self.coef_: FloatArray = self.params_[n_selection + 1 : n_selection + n_outcome]
        for message in doubts(self, found):
            warn_caller(UserWarning(message))

    def _keep(
        self,
        params: FloatArray,
        back: FloatArray,
        influence: FloatArray,
        rows: HeckmanRows,
        covariance: FloatArray | None = None,
    ) -> None:
        """Keep parameters and their covariance: the model's own if it is given and asked for."""
        asked = "robust" if covariance is None else self.covariance
        self._covariance_kind = rows.covariance_kind(asked)
        if covariance is None or self._covariance_kind != "model":
            covariance = sandwich(influence, rows.groups)
        self.params_: FloatArray = back @ params
        self.covariance_: FloatArray = back @ covariance @ back.T

    def _fit_of(self, X: Any) -> tuple[FloatArray, pa.RecordBatch]:
        """Return xᵀβ of rows, and the rows."""
        batch = self._batch(X, self._equation("_outcome").columns)
        return self.intercept_ + self._outcome.matrix(batch)[:, 1:] @ self.coef_, batch

    def predict_selected(self, X: Any) -> FloatArray:
        """Return the probability of each row to be selected."""
        batch = self._batch(X, self._equation("_selection").columns)
        probability = self._probability(batch)
        self._selection.warn_of_unseen(batch, probability)
        return probability

    def summary(self) -> HeckmanSummary:
        """Return both equations with standard errors, as a text or table to print."""
        self._equation("_outcome")
        return summarise(self)

    def _equation(self, name: str) -> Equation:
        check_is_fitted(self, "params_")
        equation: Equation = getattr(self, name)
        return equation

    def _probability(self, batch: pa.RecordBatch) -> FloatArray:
        """Return the probability of being selected, of rows with the selection's columns."""
        probability: FloatArray = ndtr(self._index(batch))
        return probability

    def _index(self, batch: pa.RecordBatch) -> FloatArray:
        """Return zᵀγ of rows with the selection's columns."""
        matrix = self._selection.matrix(batch)[:, 1:]
        return self.selection_intercept_ + matrix @ self.selection_coef_

    def _batch(self, X: Any, columns: list[str]) -> pa.RecordBatch:
        """Return new rows with the columns of an equation."""
        rows = as_rows(X, name="X")
        table = under_fitted_names(self, rows, exact=False)
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


def _chosen(columns: Any, labels: ColumnLabels, parameter: str) -> list[str]:
    if columns is None:
        return list(labels.names)
    chosen = chosen_names(list(columns), labels, owner="X", parameter=parameter)
    if not chosen or len(set(chosen)) < len(chosen):
        raise ParameterError(f"{parameter} must name columns of X, each once; got {columns!r}.")
    return chosen
