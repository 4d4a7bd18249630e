"""The results of a selection model, as an econometrician expects to read them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.stats import chi2, norm

from unskew.learning.equation import CONSTANT
from unskew.numerics.newton import Certificate

if TYPE_CHECKING:
    from unskew.learning.heckman import HeckmanRegressor

LEVEL = 0.95
_HEADER = ("", "estimate", "std. error", "z", "P>|z|", f"[{LEVEL:.0%}", "interval]")
_TITLES = {"outcome": "Outcome", "selection": "Selection (probit)", "errors": "Errors"}


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


@dataclass(frozen=True)
class HeckmanSummary:
    """What :meth:`unskew.HeckmanRegressor.summary` returns; it prints as a table.

    Attributes
    ----------
    method, covariance : str
    n_selected, n_unselected : int
    rows : tuple of SummaryRow
        Each with equation ("outcome", "selection" or "errors"), name, estimate, standard_error, z,
        p_value, low and high; ``summary["outcome", "age"]`` is one of them.
    log_likelihood : float
    wald : ChiSquare
        Of no correlation between the equations: from atanh ρ, or, with two steps, from λ.
    likelihood_ratio : ChiSquare or None
        The same by the likelihoods, with ``method="ml"`` and the model's own covariance.
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

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        head = "".join(f"<th style='text-align:right'>{escape(cell)}</th>" for cell in _HEADER)
        body = []
        for title, rows in self._equations():
            span = f"colspan='{len(_HEADER)}' style='text-align:left'"
            body.append(f"<tr><th {span}>{escape(title)}</th></tr>")
            for name, *numbers in map(_cells, rows):
                cells = "".join(
                    f"<td style='text-align:right'>{escape(one)}</td>" for one in numbers
                )
                body.append(f"<tr><td style='text-align:left'>{escape(name)}</td>{cells}</tr>")
        above = "<br>".join(map(escape, self._head()))
        below = "<br>".join(map(escape, self._notes()))
        return (
            f"<div><p>{above}</p><table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}"
            f"</tbody></table><p>{below}</p></div>"
        )

    def _equations(self) -> Iterator[tuple[str, list[SummaryRow]]]:
        for equation, title in _TITLES.items():
            yield title, [row for row in self.rows if row.equation == equation]

    def _head(self) -> list[str]:
        n = self.n_selected + self.n_unselected
        names = {"two-step": "two-step estimates", "ml": "maximum likelihood"}
        of = "of the probit" if self.method == "two-step" else ""
        return [
            f"Heckman selection model, {names[self.method]}",
            f"{n:,} rows: {self.n_selected:,} selected, {self.n_unselected:,} not",
            f"Log-likelihood {of}".rstrip() + f" {self.log_likelihood:.6f}; standard errors: "
            f"{self.covariance}",
        ]

    def _notes(self) -> list[str]:
        what = "ρ = 0" if self.method == "ml" else "λ = 0"
        notes = [
            f"Wald test of {what}: χ²(1) = {self.wald.statistic:.2f}, p = {self.wald.p_value:.4f}"
        ]
        if self.likelihood_ratio is not None:
            statistic, p_value = self.likelihood_ratio
            notes.append(
                f"Likelihood ratio test of ρ = 0: χ²(1) = {statistic:.2f}, p = {p_value:.4f}"
            )
        steps, gradient, converged = self.certificate
        notes.append(
            f"{'Converged' if converged else 'Not converged'} in {steps} steps; gradient "
            f"{gradient:.0e} standard errors; condition number {self.condition_number:.1f}"
        )
        notes.append(
            "Assumes linear equations, and bivariate normal errors independent of the columns."
        )
        return notes


def summarise(model: HeckmanRegressor) -> HeckmanSummary:
    """Return the summary of a fitted model."""
    errors = np.sqrt(np.maximum(np.diag(model.covariance_), 0.0))
    if not model.certificate_.converged:
        errors = np.full_like(errors, np.nan)
    n_selection = len(model.selection_coef_) + 1
    n_outcome = len(model.coef_) + 1
    names = [
        *(("selection", name) for name in [CONSTANT, *model.selection_names_]),
        *(("outcome", name) for name in [CONSTANT, *model.outcome_names_]),
    ]
    rows = [
        _row(*place, float(value), float(error))
        for place, value, error in zip(names, model.params_, errors, strict=False)
    ]
    ratio = None
    if model.method == "ml":
        rows += _error_rows(model, errors)
        statistic = 2 * (model.log_likelihood_ - model._independent)
        if model._kind == "model":
            ratio = ChiSquare(float(statistic), float(chi2.sf(statistic, 1)))
    else:
        rows += [
            _row("errors", "λ", model.mills_coef_, float(errors[n_selection + n_outcome])),
            _row("errors", "σ", model.sigma_, np.nan),
            _row("errors", "ρ", model.rho_, np.nan),
        ]
    with np.errstate(divide="ignore", invalid="ignore"):
        wald = float((model.params_[-1] / errors[-1]) ** 2)
    return HeckmanSummary(
        model.method,
        model._kind,
        model.n_selected_,
        model.n_unselected_,
        tuple(rows),
        model.log_likelihood_,
        ChiSquare(wald, float(chi2.sf(wald, 1))),
        ratio,
        model.condition_number_,
        model.certificate_,
    )


def _error_rows(model: HeckmanRegressor, errors: np.ndarray) -> Iterator[SummaryRow]:
    """Yield σ, ρ and λ = ρσ, with standard errors by the delta method.

    The intervals of σ and ρ are those of log σ and atanh ρ, transformed.
    """
    log_sigma, atanh_rho = model.params_[-2:]
    sigma, rho = model.sigma_, model.rho_
    far = norm.ppf(0.5 + LEVEL / 2)
    for name, value, middle, error, back, slope in (
        ("σ", sigma, log_sigma, errors[-2], np.exp, sigma),
        ("ρ", rho, atanh_rho, errors[-1], np.tanh, 1 - rho**2),
    ):
        low, high = back(middle - far * error), back(middle + far * error)
        yield SummaryRow(
            "errors", name, value, float(slope * error), np.nan, np.nan, float(low), float(high)
        )
    by = np.array([sigma * rho, sigma * (1 - rho**2)])  # of λ, by log σ and atanh ρ
    variance = by @ model.covariance_[-2:, -2:] @ by if np.isfinite(errors[-1]) else np.nan
    yield _row("errors", "λ", model.mills_coef_, float(np.sqrt(variance)))


def _row(equation: str, name: str, estimate: float, error: float) -> SummaryRow:
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
