"""The results of a selection model, as an econometrician expects to read them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import escape
from typing import NamedTuple, Self

import numpy as np
from scipy.stats import chi2, norm

from unskew.numerics.newton import Certificate

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
