r"""What Heckman's selection models share: two equations, their rows, and how to read them.

An outcome :math:`y = x^\top\beta + \varepsilon` (or its sign) is seen where
:math:`z^\top\gamma + \nu > 0`. :class:`Equation` makes the regressors of x and of z, and
:class:`SelectionModel` gathers the rows that are selected and those that are not, estimates, warns
of what the estimates rest on, and reports them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr
from scipy.stats import chi2, norm
from sklearn.utils.validation import check_is_fitted

from unskew._compat import validate_parameters
from unskew.errors import InputError, ParameterError, warn_caller, which_there_are
from unskew.numerics.heckman import Basis, Maximum, Probit, SelectionProblem, TwoStep, sandwich
from unskew.numerics.newton import CONVERGED, Certificate
from unskew.numerics.typing import BoolArray, FloatArray, IntArray
from unskew.numerics.weight_vectors import check_design
from unskew.overlap.overlap import warn_of_unseen
from unskew.population.margins import Margins
from unskew.population.open_sample import named_columns_apart
from unskew.population.population import Population
from unskew.population.reservoir import Reservoir
from unskew.rows.column_names import (
    chosen_names,
    remember_columns,
    under_fitted_names,
)
from unskew.rows.design import CONSTANT, Constant, Design, Levels, Term, point_design
from unskew.rows.encode import ColumnCodes
from unskew.rows.labels import by_position, is_labelled, row_codes
from unskew.rows.tables import ColumnLabels, Rows, as_rows, with_plain_values
from unskew.weighters import two_samples
from unskew.weighters.parameters import WithParameters

MAX_CONDITION = 20.0
"""The condition number of regressors and inverse Mills ratio above which fitting warns."""
_WORDS = {
    "selection": ("selected", "which rows are selected"),
    "outcome": ("of the second class", "the class"),
}
"""What a probit is about: the rows that count as one, and what columns may determine."""


class Equation:
    """Rows to regressors, learned from rows.

    Numbers stay as they are; of each column of categories, all but the first become a column of
    zeros and ones; a missing number becomes the mean, and a further column says so.

    Parameters
    ----------
    batch : pyarrow.RecordBatch
        The rows to learn from.

    Examples
    --------
    >>> rows = pa.record_batch({"age": [30, 40], "town": ["Ulm", "Bonn"]})
    >>> equation = Equation(rows)
    >>> equation.names, equation.matrix(rows)
    (['(constant)', 'age', 'town = Ulm'], array([[ 1., 30.,  1.], [ 1., 40.,  0.]]))
    """

    def __init__(self, batch: pa.RecordBatch) -> None:
        codes = ColumnCodes()
        values = codes.fit_transform(batch)
        self.columns: list[str] = codes.names
        learned = point_design(codes, values, scaling=None).terms
        self._design = Design(codes, [Constant(), *map(_without_first, learned)])
        self._used = np.arange(len(self._design))

    @property
    def names(self) -> list[str]:
        """What each regressor is."""
        return [self._design.names[place] for place in self._used]

    def keep(self, kept: IntArray) -> list[str]:
        """Leave out the other regressors from now on, and return what they are."""
        left_out = [name for place, name in enumerate(self.names) if place not in kept]
        self._used = self._used[kept]
        return left_out

    def matrix(self, batch: pa.RecordBatch) -> FloatArray:
        """Return the regressors of rows with these columns."""
        return self._design.transform(batch, side="rows").values[:, self._used]

    def warn_of_unseen(self, batch: pa.RecordBatch, predictions: FloatArray) -> None:
        """Warn of new rows with values that no row had from which the equation was learned."""
        how = "the first category, or the mean, stands for the value"
        warning = warn_of_unseen(self._design.codes, batch, predictions, how, what="prediction")
        if warning is not None:
            warn_caller(warning)


def with_unselected(
    rows: Rows, weight: FloatArray, population: Any, columns: list[str], *, weighted: bool
) -> tuple[Rows, FloatArray]:
    """Return the rows of X, then those of a population that X has not; and their weights."""
    target = population if isinstance(population, Margins) else Population.from_data(population)
    if isinstance(target, Margins) or not target.about.selected:
        raise ParameterError(
            "A model of selection needs the population's rows, and which of them are in X: "
            "population=Population(U, selected=...)."
        )
    if target.is_weighted != weighted:
        lacking = "sample_weight" if target.is_weighted else "Population(U, weight=...)"
        raise ParameterError(
            "Design weights are given on one side alone, and the likelihood needs those of all "
            f"rows: give {lacking} too."
        )
    chosen = replace(rows, table=rows.table.select(columns))
    matched = target.matched(chosen, among=rows.table.column_names)
    most = two_samples.MEMORY // (two_samples.BYTES_PER_VALUE * len(columns))
    drawn = matched.reduce(Reservoir(most))
    if len(drawn.weight) == most:
        raise InputError(
            f"The likelihood needs all rows of the population at once, and {matched.size:,} of "
            f"{len(columns)} columns take more than 1 GB. Give a random part of the rows that were "
            "not selected, with the weights that make up for it."
        )
    if target.n_selected != len(rows):
        raise InputError(
            f"selected marks {target.n_selected} rows of the population, and X has {len(rows)}: "
            "they must be the same rows."
        )
    others = pa.array(~np.asarray(drawn.selected))
    rest = pa.Table.from_batches([drawn.rows]).filter(others)
    parts = [with_plain_values(rows.table), with_plain_values(rest)]
    whole = pa.concat_tables(parts, promote_options="permissive")
    return replace(rows, table=whole), np.append(weight, drawn.weight[others.to_numpy(False)])


def _check_selected_alone(seen: BoolArray, clusters: Any) -> None:
    """Refuse what cannot be with a population: rows of X without an outcome, and clusters."""
    if clusters is not None:
        raise ParameterError(
            "clusters are known of X alone. Give all rows in X, with y missing where it was not "
            "seen, instead of population=."
        )
    if not seen.all():
        raise InputError(
            f"y is missing for {int((~seen).sum())} rows of X. With population=, X has the "
            "selected rows alone, each with its outcome."
        )


def _without_first(term: Term) -> Term:
    """Leave out the first category of a column: with a constant, the others determine it."""
    if not isinstance(term, Levels):
        return term
    return replace(term, names=term.names[1:], outputs=term.outputs - 1)


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

    selection: Sequence[str | int] | NDArray[Any] | None = field(default=None, kw_only=False)
    outcome: Sequence[str | int] | NDArray[Any] | None = field(default=None, kw_only=False)
    covariance: Literal["model", "robust"] = "model"

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
            All rows, those that are not selected included; or the selected rows alone, with
            ``population``.
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
        rows, owner = as_rows(X, name="X"), type(self).__name__
        if y is None:
            raise InputError(f"{owner} requires y to be passed, but the target y is None.")
        selection = _chosen(self.selection, rows.labels, "selection")
        outcome = _chosen(self.outcome, rows.labels, "outcome")
        seen = is_labelled(y)
        if len(seen) != len(rows):
            raise InputError(f"y has {len(seen)} labels for the {len(rows)} rows of X.")
        if not seen.any():
            raise InputError("y is missing for every row of X: there is no outcome to learn from.")
        weight = check_design(sample_weight, name="sample_weight", n_rows=len(rows))
        groups = row_codes(by_position(clusters, X, "clusters"), "clusters", rows.table)
        outcomes = self._outcomes(y, seen)
        remember_columns(self, rows.labels)
        if population is not None:
            _check_selected_alone(seen, clusters)
            known = sample_weight is not None
            rows, weight = with_unselected(rows, weight, population, selection, weighted=known)
            seen = np.arange(len(rows)) < len(seen)
        if seen.all():
            raise InputError(
                f"y is there for every row, and {owner} needs the rows that are not "
                "selected too: give all rows, with y missing where it was not seen, or "
                "population=Population(U, selected=...)."
            )
        counted = weight > 0  # rows of X without weight count for nothing
        table, outcomes = rows.table.filter(pa.array(counted)), outcomes[counted[seen]]
        seen, weight = seen[counted], weight[counted]
        self._covariance_kind: str = self.covariance if sample_weight is None else "robust"
        if groups is not None:
            labels, groups = np.unique(groups[counted], return_inverse=True)
            if len(labels) < 2:
                raise InputError("clusters names a single cluster; at least two are needed.")
            self._covariance_kind = f"clustered ({len(labels):,} clusters)"
        of_all = Rows(table.select(selection), rows.named).batch
        of_seen = Rows(table.filter(pa.array(seen)).select(outcome), rows.named).batch
        self._selection, self._outcome = Equation(of_all), Equation(of_seen)
        z, x = self._selection.matrix(of_all), self._outcome.matrix(of_seen)
        bases = Basis.from_matrix(z), Basis.from_matrix(x)
        problem = SelectionProblem(*bases, seen, outcomes, weight)
        self._leave_out(problem)
        mass, names = float(weight.sum()), self._selection.names
        refuse_separation(problem.probit, seen, mass, problem.selection, names, "selection")
        self._take(self._estimate(problem), problem, groups)
        return self

    @abstractmethod
    def _outcomes(self, y: Any, seen: BoolArray) -> FloatArray:
        """Return the outcomes that are there, as numbers."""

    @abstractmethod
    def predict(self, X: Any, *, given_selected: bool = False) -> Any:
        """Return the expected outcome of rows, or their class."""

    @abstractmethod
    def _estimate(self, problem: SelectionProblem) -> TwoStep | Maximum:
        """Estimate the equations, and set what every model has."""
        self.condition_number_: float
        self.log_likelihood_: float
        self.certificate_: Certificate
        self.rho_: float
        self._independent: float  # the log-likelihood if ρ is zero
        raise NotImplementedError

    @property
    @abstractmethod
    def _method(self) -> str:
        """How the summary names the estimates."""

    @abstractmethod
    def _error_rows(self, errors: FloatArray) -> Iterator[SummaryRow]:
        """Yield the rows of the summary on the errors, given standard errors of ``params_``."""

    def _leave_out(self, problem: SelectionProblem) -> None:
        """Leave out columns that others determine, and see whether there are rows for the rest."""
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

    def _take(
        self, found: TwoStep | Maximum, problem: SelectionProblem, groups: IntArray | None
    ) -> None:
        """Keep the estimates of both equations, in the columns as they are given."""
        n_selection, n_outcome = problem.sizes
        back = problem.back(*[1.0] * (len(found.params) - n_selection - n_outcome))
        covariance = found.covariance
        if self._covariance_kind != "model":
            covariance = sandwich(found.influence, groups)
        self.params_: FloatArray = back @ found.params
        self.covariance_: FloatArray = back @ covariance @ back.T
        self.selection_intercept_ = float(self.params_[0])
        self.selection_coef_: FloatArray = self.params_[1:n_selection]
        self.intercept_ = float(self.params_[n_selection])
        self.coef_: FloatArray = self.params_[n_selection + 1 : n_selection + n_outcome]
        for message in self._doubts(found):
            warn_caller(UserWarning(message))

    def _doubts(self, found: TwoStep | Maximum) -> Iterator[str]:
        """Yield a message for each reason not to trust the estimates."""
        if self.condition_number_ > MAX_CONDITION:
            only = [name for name in self.selection_names_ if name not in self.outcome_names_]
            why = "no column of the selection equation is missing from the outcome equation"
            if only:
                why = f"what is in the selection equation alone ({', '.join(only)}) hardly moves it"
            yield (
                "The inverse Mills ratio is almost a linear function of the outcome's columns "
                f"(condition number {self.condition_number_:.0f}): {why}. The estimates then rest "
                "on the normal distribution alone. Add a column to selection that moves selection "
                "and does not belong in outcome."
            )
        if isinstance(found, Maximum) and not found.certificate.converged:
            steps, gradient, _ = found.certificate
            why = f"after {steps} steps the gradient is {gradient:.1e} standard errors"
            if gradient < CONVERGED:
                why = f"after {steps} steps it is flat in one direction"
            if found.at_boundary:
                why = f"it still rises as ρ goes to {np.sign(self.rho_):+.0f}"
            instead = 'method="two-step", or ' if hasattr(self, "method") else ""
            yield (
                f"No maximum of the likelihood was found: {why}. Its standard errors mean nothing. "
                f"Use {instead}fewer columns."
            )
        if not isinstance(found, Maximum) and abs(self.rho_) > 1:
            yield (
                f"The two-step estimate of the correlation is {self.rho_:.2f}, beyond ±1, as "
                'happens with few rows or a wrong model. Use method="ml".'
            )

    def _linear(self, name: Literal["selection", "outcome"], X: Any) -> FloatArray:
        """Return zᵀγ or xᵀβ of new rows."""
        batch, equation = self._batch(name, X), getattr(self, f"_{name}")
        first = len(self.selection_names_) + 1
        params = self.params_[:first]
        if name == "outcome":
            params = self.params_[first : first + len(self.outcome_names_) + 1]
        return np.asarray(equation.matrix(batch) @ params)

    def predict_selected(self, X: Any) -> FloatArray:
        """Return the probability of each row to be selected."""
        probability: FloatArray = ndtr(self._linear("selection", X))
        self._warn_of_unseen("selection", X, probability)
        return probability

    def _warn_of_unseen(self, name: str, X: Any, predictions: FloatArray) -> None:
        getattr(self, f"_{name}").warn_of_unseen(self._batch(name, X), predictions)

    def summary(self) -> HeckmanSummary:
        """Return both equations with standard errors, as a text or table to print."""
        check_is_fitted(self, "params_")
        errors = np.sqrt(np.maximum(np.diag(self.covariance_), 0.0))
        if not self.certificate_.converged:
            errors = np.full_like(errors, np.nan)
        names = [("selection", name) for name in [CONSTANT, *self.selection_names_]]
        names += [("outcome", name) for name in [CONSTANT, *self.outcome_names_]]
        rows = [
            summary_row(*place, float(value), float(error))
            for place, value, error in zip(names, self.params_, errors, strict=False)
        ]
        with np.errstate(divide="ignore", invalid="ignore"):
            wald = float((self.params_[-1] / errors[-1]) ** 2)
        ratio = None
        if self._method in ("ml", "probit") and self._covariance_kind == "model":
            ratio = ChiSquare.from_statistic(2 * (self.log_likelihood_ - self._independent))
        return HeckmanSummary(
            self._method,
            self._covariance_kind,
            self.n_selected_,
            self.n_unselected_,
            (*rows, *self._error_rows(errors)),
            self.log_likelihood_,
            ChiSquare.from_statistic(wald),
            ratio,
            self.condition_number_,
            self.certificate_,
        )

    def _score(self, metric: Any, truth: Any, X: Any, y: Any, sample_weight: Any) -> float:
        """Return a metric of predictions on the rows whose outcome is there."""
        seen = is_labelled(y)
        weight = None if sample_weight is None else np.asarray(sample_weight)[seen]
        predicted = self.predict(X, given_selected=True)[seen]
        return float(metric(truth(y, seen), predicted, sample_weight=weight))

    def _correlation_row(self, errors: FloatArray) -> SummaryRow:
        """Return ρ, whose interval is that of atanh ρ, transformed."""
        slope = 1 - self.rho_**2
        return transformed_row("ρ", np.tanh, slope, float(self.params_[-1]), float(errors[-1]))

    def _batch(self, name: str, X: Any) -> pa.RecordBatch:
        """Return new rows with the columns of an equation."""
        check_is_fitted(self, "params_")
        columns = getattr(self, f"_{name}").columns
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


def refuse_separation(
    probit: Probit,
    marks: BoolArray,
    mass: float,
    basis: Basis,
    names: list[str],
    equation: str,
) -> None:
    """Refuse a probit without a maximum, because columns separate its two sides.

    Parameters
    ----------
    probit : Probit
        As it was fitted.
    marks : ndarray of bool
        Which rows count as one.
    mass : float
        The sum of the rows' weights.
    basis : Basis
        Of the equation's columns, which have these ``names``.
    equation : {"selection", "outcome"}
    """
    least = np.linalg.eigvalsh(probit.information / mass)[0]
    if probit.certificate.converged and least > 1e-12:
        return
    one, what = _WORDS[equation]
    columns = np.linalg.solve(basis.back.T, basis.columns.T).T.round(9)  # as they were given
    for name, column in zip(names, columns.T, strict=True):
        for value in np.unique(column) if set(np.unique(column)) == {0.0, 1.0} else ():
            there = marks[column == value]
            if there.all() or not there.any():
                which = "every row is" if there.all() else "no row is"
                where = name if value else f"not ({name})"
                raise InputError(
                    f"Where {where}, {which} {one} ({len(there):,} rows), so the probit of "
                    f"{equation} has no maximum. Leave these rows or the column out, or merge "
                    "the category with another."
                )
    raise InputError(
        f"The columns of the {equation} equation determine {what}, so its probit has no maximum. "
        f"Leave out the column that does, by {equation}=[...]."
    )


def _chosen(columns: Any, labels: ColumnLabels, parameter: str) -> list[str]:
    if columns is None:
        return list(labels.names)
    chosen = chosen_names(list(columns), labels, owner="X", parameter=parameter)
    if not chosen or len(set(chosen)) < len(chosen):
        raise ParameterError(f"{parameter} must name columns of X, each once; got {columns!r}.")
    return chosen


LEVEL = 0.95
_HEADER = ("", "estimate", "std. error", "z", "P>|z|", f"[{LEVEL:.0%}", "interval]")
_TITLES = {"outcome": "Outcome", "selection": "Selection (probit)", "errors": "Errors"}
_METHODS = {
    "two-step": "two-step estimates",
    "ml": "maximum likelihood",
    "probit": "probit outcome, maximum likelihood",
}
_LIKELIHOODS = {"two-step": " of the probit"}


class SummaryRow(NamedTuple):
    """One parameter; what has no standard error has NaN."""

    equation: str
    name: str
    estimate: float
    standard_error: float
    z: float
    p_value: float
    low: float
    high: float


class ChiSquare(NamedTuple):
    """A test, whose statistic is χ² with one degree of freedom if its hypothesis holds."""

    statistic: float
    p_value: float

    @classmethod
    def from_statistic(cls, statistic: float) -> Self:
        """Return the test with its p-value."""
        return cls(statistic, float(chi2.sf(statistic, 1)))


@dataclass(frozen=True)
class HeckmanSummary:
    """What ``summary()`` of a selection model returns; it prints as a table.

    Attributes
    ----------
    method : {"two-step", "ml", "probit"}
        "probit" is maximum likelihood with an outcome of two classes.
    covariance : str
    n_selected, n_unselected : int
    rows : tuple of SummaryRow
        Each with equation ("outcome", "selection" or "errors"), name, estimate, standard_error, z,
        p_value, low and high; ``summary["outcome", "age"]`` is one of them.
    log_likelihood : float
    wald : ChiSquare
        Of no correlation between the equations: from atanh ρ, or, with two steps, from λ.
    likelihood_ratio : ChiSquare or None
        The same by the likelihoods, with maximum likelihood and the model's own covariance.
    condition_number : float
    certificate : Certificate

    Examples
    --------
    >>> import numpy as np
    >>> from unskew import HeckmanRegressor
    >>> random = np.random.default_rng(0)
    >>> X = random.normal(size=(500, 2))
    >>> seen = X.sum(axis=1) + random.normal(size=500) > 0
    >>> y = np.where(seen, 3 * X[:, 0] + random.normal(size=500), np.nan)
    >>> summary = HeckmanRegressor(outcome=[0]).fit(X, y).summary()
    >>> round(summary["outcome", "x0"].estimate)
    3
    """

    method: str
    covariance: str
    n_selected: int
    n_unselected: int
    rows: tuple[SummaryRow, ...]
    log_likelihood: float
    wald: ChiSquare
    likelihood_ratio: ChiSquare | None
    condition_number: float
    certificate: Certificate

    def __getitem__(self, place: tuple[str, str]) -> SummaryRow:
        for row in self.rows:
            if (row.equation, row.name) == tuple(place):
                return row
        raise KeyError(place)

    def __str__(self) -> str:
        width = max(14, *(len(row.name) for row in self.rows))
        line = "-" * (width + 68)
        text = [*self._head(), line, _join(_HEADER, width)]
        for title, rows in self._equations():
            text += [line, title, *(_join(_cells(row), width) for row in rows)]
        return "\n".join([*text, line, *self._notes()])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

    def _equations(self) -> Iterator[tuple[str, list[SummaryRow]]]:
        for equation, title in _TITLES.items():
            rows = [row for row in self.rows if row.equation == equation]
            probit = equation == "outcome" and self.method == "probit"
            if rows:
                yield f"{title} (probit)" if probit else title, rows

    def _head(self) -> list[str]:
        n = self.n_selected + self.n_unselected
        return [
            f"Heckman selection model, {_METHODS[self.method]}",
            f"{n:,} rows: {self.n_selected:,} selected, {self.n_unselected:,} not",
            f"Log-likelihood{_LIKELIHOODS.get(self.method, '')} {self.log_likelihood:.6f}; "
            f"standard errors: {self.covariance}",
        ]

    def _notes(self) -> list[str]:
        what = "ρ = 0" if self.method in ("ml", "probit") else "λ = 0"
        notes = [
            f"Wald test of {what}: χ²(1) = {self.wald.statistic:.2f}, p = {self.wald.p_value:.4f}"
        ]
        if self.likelihood_ratio is not None:
            statistic, p_value = self.likelihood_ratio
            notes.append(
                f"Likelihood ratio test of ρ = 0: χ²(1) = {statistic:.2f}, p = {p_value:.4f}"
            )
        condition = f"condition number {self.condition_number:.1f}"
        steps, gradient, converged = self.certificate
        notes.append(
            f"{'Converged' if converged else 'Not converged'} in {steps} steps; gradient "
            f"{gradient:.0e} standard errors; {condition}"
        )
        notes.append(
            "Assumes linear equations, and bivariate normal errors independent of the columns."
        )
        return notes


def transformed_row(
    name: str, back: Callable[[float], float], slope: float, middle: float, error: float
) -> SummaryRow:
    """Return a parameter of the errors whose interval is that of another, transformed ``back``."""
    far = float(norm.ppf(0.5 + LEVEL / 2)) * error
    estimate, low, high = (float(back(one)) for one in (middle, middle - far, middle + far))
    return SummaryRow("errors", name, estimate, slope * error, np.nan, np.nan, low, high)


def summary_row(equation: str, name: str, estimate: float, error: float) -> SummaryRow:
    """Return a parameter with its z statistic and interval."""
    far = float(norm.ppf(0.5 + LEVEL / 2)) * error
    z = estimate / error if error else np.nan
    p_value = float(2 * norm.sf(abs(z)))
    return SummaryRow(equation, name, estimate, error, z, p_value, estimate - far, estimate + far)


def _cells(row: SummaryRow) -> list[str]:
    numbers = (row.estimate, row.standard_error, row.z, row.p_value, row.low, row.high)
    formats = (".6g", ".6g", ".2f", ".3f", ".6g", ".6g")
    shown = (
        "" if np.isnan(number) else format(number, kind)
        for number, kind in zip(numbers, formats, strict=True)
    )
    return [row.name, *shown]


def _join(cells: tuple[str, ...] | list[str], width: int) -> str:
    name, estimate, error, z, p, low, high = cells
    return f"{name:<{width}} {estimate:>12} {error:>12} {z:>8} {p:>7} {low:>12} {high:>12}".rstrip()
