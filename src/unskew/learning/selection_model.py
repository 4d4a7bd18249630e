r"""What Heckman's selection models share: two equations, their rows, and how to read them.

An outcome :math:`y = x^\top\beta + \varepsilon` (or its sign) is seen where
:math:`z^\top\gamma + \nu > 0`. :class:`HeckmanRows` gathers the rows that are selected and those
that are not, :class:`Equation` makes the regressors of x and of z, and :class:`SelectionModel`
estimates, warns of what the estimates rest on, and reports them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike
from scipy.special import ndtr
from sklearn.utils.validation import check_is_fitted

from unskew._compat import StrOptions, validate_parameters
from unskew.errors import InputError, ParameterError, warn_caller
from unskew.learning.heckman_summary import (
    ChiSquare,
    HeckmanSummary,
    SummaryRow,
    summary_row,
    transformed_row,
)
from unskew.numerics.heckman import Basis, Maximum, Probit, SelectionProblem, TwoStep, sandwich
from unskew.numerics.newton import CONVERGED, Certificate
from unskew.numerics.typing import BoolArray, FloatArray, IntArray
from unskew.numerics.weight_vectors import check_design
from unskew.overlap import warn_of_unseen
from unskew.population.margins import Margins
from unskew.population.open_sample import named_columns_apart
from unskew.population.population import Population
from unskew.population.reservoir import Reservoir
from unskew.rows.column_names import (
    chosen_names,
    remember_columns,
    under_fitted_names,
    which_there_are,
)
from unskew.rows.encode import ColumnCodes
from unskew.rows.feature_space import FeatureSpace
from unskew.rows.labels import by_position, is_labelled
from unskew.rows.tables import ColumnLabels, Rows, as_rows
from unskew.weighters import two_samples
from unskew.weighters.parameters import WithParameters

CONSTANT = "(constant)"
MAX_CONDITION = 20.0
"""The condition number of regressors and inverse Mills ratio above which fitting warns."""
_WORDS = {
    "selection": ("selected", "which rows are selected"),
    "outcome": ("of the second class", "the class"),
}
"""What a probit is about: the rows that count as one, and what columns may determine."""


@dataclass(frozen=True)
class HeckmanRows:
    """All rows: those of X, then those of a population that X has not.

    Attributes
    ----------
    first : Rows
        The rows of X.
    rest : pyarrow.RecordBatch or None
        Further rows that are not selected, with the selection's columns alone.
    selected : ndarray of bool
        Of the rows of both.
    y : ndarray of float
        Of the selected rows.
    weight : ndarray
    groups : ndarray of int or None
        The cluster of each row, numbered from 0.
    weighted : bool
        Whether there are design weights.
    """

    first: Rows
    rest: pa.RecordBatch | None
    selected: BoolArray
    y: FloatArray
    weight: FloatArray
    groups: IntArray | None
    weighted: bool

    @classmethod
    def from_given(
        cls,
        given: Rows,
        seen: BoolArray,
        population: Any,
        selection: list[str],
        sample_weight: ArrayLike | None,
        clusters: ArrayLike | None,
        *,
        outcomes: Callable[[BoolArray], FloatArray],
        owner: str,
    ) -> Self:
        """Check what was given, and read the rest of the population if there is one.

        ``outcomes`` returns the outcomes of the rows that have one, as numbers; ``owner`` is who
        asks, for messages.
        """
        if len(seen) != len(given):
            raise InputError(f"y has {len(seen)} labels for the {len(given)} rows of X.")
        if not seen.any():
            raise InputError("y is missing for every row of X: there is no outcome to learn from.")
        weight = check_design(sample_weight, name="sample_weight", n_rows=len(given))
        groups = None if clusters is None else _groups(clusters, len(given))
        rows = cls(given, None, seen, outcomes(seen), weight, groups, sample_weight is not None)
        if population is not None:
            rows = rows._with_rest(population, selection, owner)
        elif seen.all():
            raise InputError(
                f"y is there for every row, and {owner} needs the rows that are not "
                "selected too: give all rows, with y missing where it was not seen, or "
                "population=Population(U, selected=...)."
            )
        return rows._without_zeros()

    def _with_rest(self, population: Any, selection: list[str], owner: str) -> Self:
        if isinstance(population, Margins):
            raise InputError(f"{owner} needs the population's rows; Margins has none.")
        target = Population.of(population)
        if not target.about.selected:
            raise ParameterError(
                f"{owner} needs to know which rows of the population are in X: "
                "Population(U, selected=...)."
            )
        if not self.selected.all():
            raise InputError(
                f"y is missing for {int((~self.selected).sum())} rows of X. With population=, X "
                "has the selected rows alone, each with its outcome."
            )
        if self.groups is not None:
            raise ParameterError(
                "clusters are known of X alone. Give all rows in X, with y missing where it was "
                "not seen, instead of population=."
            )
        if target.is_weighted != self.weighted:
            lacking = "sample_weight" if target.is_weighted else "Population(U, weight=...)"
            raise ParameterError(
                "Design weights are given on one side alone, and the likelihood needs those of all "
                f"rows: give {lacking} too."
            )
        names = self.first.table.column_names
        chosen = replace(self.first, table=self.first.table.select(selection))
        matched = target.matched(chosen, among=names)
        most = two_samples.MEMORY // (two_samples.BYTES_PER_VALUE * len(selection))
        drawn = matched.reduce(Reservoir(most))
        if len(drawn.weight) == most:
            raise InputError(
                f"The likelihood needs all rows of the population at once, and {matched.size:,} of "
                f"{len(selection)} columns take more than 1 GB. Give a random part of the rows "
                "that were not selected, with the weights that make up for it."
            )
        marks = np.asarray(drawn.selected)
        if target.n_selected != len(self.first):
            raise InputError(
                f"selected marks {target.n_selected} rows of the population, and X has "
                f"{len(self.first)}: they must be the same rows."
            )
        if marks.all():
            raise InputError(
                "Every row of the population is selected: there is nothing to correct."
            )
        rest = drawn.rows.filter(pa.array(~marks))
        return replace(
            self,
            rest=rest,
            selected=np.append(self.selected, np.zeros(len(rest), dtype=bool)),
            weight=np.append(self.weight, drawn.weight[~marks]),
        )

    def _without_zeros(self) -> Self:
        """Leave out rows of X without weight, which count for nothing."""
        kept = self.weight[: len(self.first)] > 0
        if kept.all():
            return self
        further = np.ones(len(self.selected) - len(kept), dtype=bool)
        everywhere = np.append(kept, further)
        return replace(
            self,
            first=replace(self.first, table=self.first.table.filter(pa.array(kept))),
            selected=self.selected[everywhere],
            y=self.y[kept[self.selected[: len(kept)]]],
            weight=self.weight[everywhere],
            groups=None if self.groups is None else _numbered(self.groups[kept]),
        )

    def batches(self, columns: Sequence[str]) -> list[pa.RecordBatch]:
        """Return these columns of all rows, in one or two parts."""
        first = replace(self.first, table=self.first.table.select(list(columns))).batch
        return [first] if self.rest is None else [first, self.rest]

    def covariance_kind(self, asked: str) -> str:
        """Return which covariance these rows allow: the model's own holds only for equal rows."""
        if self.groups is not None:
            return f"clustered ({int(self.groups.max()) + 1:,} clusters)"
        return "robust" if self.weighted else asked


class Equation:
    """Rows to regressors, learned from rows.

    Numbers stay as they are; of each column of categories, all but the first become a column of
    zeros and ones; a missing number becomes the mean, and a further column says so.

    Parameters
    ----------
    batches : sequence of pyarrow.RecordBatch
        The rows to learn from, with the same columns.

    Examples
    --------
    >>> rows = pa.record_batch({"age": [30, 40], "town": ["Ulm", "Bonn"]})
    >>> equation = Equation([rows])
    >>> equation.names, equation.matrix(rows)
    (['(constant)', 'age', 'town = Ulm'], array([[ 1., 30.,  1.], [ 1., 40.,  0.]]))
    """

    def __init__(self, batches: Sequence[pa.RecordBatch]) -> None:
        codes = ColumnCodes().fit(batches[0])
        for batch in batches[1:]:
            codes = codes.joined(batch)
        self.columns: list[str] = codes.names
        values = np.vstack([codes.transform(batch, side="rows").values for batch in batches])
        self._space = FeatureSpace(scaling=None).fit_codes(codes, values)
        self._used = np.setdiff1d(np.arange(self._space.n_features), self._space.first_categories())
        self._labels = [CONSTANT, *np.array(self._space.labels(), dtype=object)[self._used]]

    @property
    def names(self) -> list[str]:
        """What each regressor is."""
        return list(self._labels)

    def keep(self, kept: IntArray) -> list[str]:
        """Leave out the other regressors from now on, and return what they are."""
        left_out = [name for place, name in enumerate(self._labels) if place not in kept]
        self._labels = [self._labels[place] for place in kept]
        self._used = self._used[kept[kept > 0] - 1]  # the constant always stays: it is the first
        return left_out

    def matrix(self, batch: pa.RecordBatch) -> FloatArray:
        """Return the regressors of rows with these columns."""
        points = self._space.transform(batch, side="rows").values
        return np.column_stack([np.ones(len(points)), points[:, self._used]])

    def warn_of_unseen(self, batch: pa.RecordBatch, predictions: FloatArray) -> None:
        """Warn of new rows with values that no row had from which the equation was learned."""
        how = "the first category, or the mean, stands for the value"
        warning = warn_of_unseen(self._space.codes, batch, predictions, how, what="prediction")
        if warning is not None:
            warn_caller(warning)


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
        rows = HeckmanRows.from_given(
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
        problem = SelectionProblem(
            Basis.from_matrix(z), Basis.from_matrix(x), rows.selected, rows.y, rows.weight
        )
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
    def _estimate(self, problem: SelectionProblem, rows: HeckmanRows, columns: Columns) -> None:
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

    def _leave_out(self, problem: SelectionProblem) -> None:
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

    def _check_selection(self, problem: SelectionProblem, z: FloatArray) -> None:
        """Refuse selection that its columns determine."""
        mass = float(problem.weight.sum())
        names = self._selection.names
        refuse_separation(problem.probit, problem.selected, mass, z, names, "selection")

    def _take(self, found: TwoStep | Maximum, problem: SelectionProblem, rows: HeckmanRows) -> None:
        """Keep the estimates of both equations, in the columns as they are given."""
        n_selection, n_outcome = problem.sizes
        back = problem.back(*[1.0] * (len(found.params) - n_selection - n_outcome))
        self._covariance_kind = rows.covariance_kind(self.covariance)
        covariance = found.covariance
        if self._covariance_kind != "model":
            covariance = sandwich(found.influence, rows.groups)
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

    def _fit_of(self, X: Any) -> tuple[FloatArray, pa.RecordBatch]:
        """Return xᵀβ of rows, and the rows."""
        batch = self._batch(X, self._equation("_outcome").columns)
        return self.intercept_ + self._outcome.matrix(batch)[:, 1:] @ self.coef_, batch

    def predict_selected(self, X: Any) -> FloatArray:
        """Return the probability of each row to be selected."""
        batch = self._batch(X, self._equation("_selection").columns)
        probability: FloatArray = ndtr(self._index(batch))
        self._selection.warn_of_unseen(batch, probability)
        return probability

    def summary(self) -> HeckmanSummary:
        """Return both equations with standard errors, as a text or table to print."""
        self._equation("_outcome")
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

    def _correlation_row(self, errors: FloatArray) -> SummaryRow:
        """Return ρ, whose interval is that of atanh ρ, transformed."""
        slope = 1 - self.rho_**2
        return transformed_row("ρ", np.tanh, slope, float(self.params_[-1]), float(errors[-1]))

    def _equation(self, name: str) -> Equation:
        check_is_fitted(self, "params_")
        equation: Equation = getattr(self, name)
        return equation

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


def refuse_separation(
    probit: Probit,
    marks: BoolArray,
    mass: float,
    columns: FloatArray,
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
    columns : ndarray of shape (n_rows, n_columns)
        Of the equation, as they are given, with ``names``.
    equation : {"selection", "outcome"}
    """
    least = np.linalg.eigvalsh(probit.information / mass)[0]
    if probit.certificate.converged and least > 1e-12:
        return
    one, what = _WORDS[equation]
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


def _groups(clusters: Any, n_rows: int) -> IntArray:
    values = clusters.to_numpy() if hasattr(clusters, "to_numpy") else np.asarray(clusters)
    if values.shape != (n_rows,):
        raise InputError(
            f"clusters must have one entry for each of the {n_rows} rows; got shape {values.shape}."
        )
    if not is_labelled(clusters).all():
        raise InputError("clusters has missing values; every row needs a cluster.")
    return _numbered(values)


def _numbered(values: Any) -> IntArray:
    labels, groups = np.unique(values, return_inverse=True)
    if len(labels) < 2:
        raise InputError("clusters names a single cluster; at least two are needed.")
    return np.asarray(groups, dtype=np.int64)


def _chosen(columns: Any, labels: ColumnLabels, parameter: str) -> list[str]:
    if columns is None:
        return list(labels.names)
    chosen = chosen_names(list(columns), labels, owner="X", parameter=parameter)
    if not chosen or len(set(chosen)) < len(chosen):
        raise ParameterError(f"{parameter} must name columns of X, each once; got {columns!r}.")
    return chosen
