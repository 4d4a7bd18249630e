"""What a selection model refuses, and what it warns of once it is fitted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from unskew.errors import InputError
from unskew.numerics.heckman import TwoStep
from unskew.numerics.newton import CONVERGED
from unskew.numerics.probit import Probit
from unskew.numerics.selection_likelihood import Maximum
from unskew.numerics.typing import BoolArray, FloatArray

if TYPE_CHECKING:
    from unskew.learning.selection_model import SelectionModel

MAX_CONDITION = 20.0
"""The condition number of regressors and inverse Mills ratio above which fitting warns."""
_WORDS = {
    "selection": ("selected", "which rows are selected"),
    "outcome": ("of the second class", "the class"),
}
"""What a probit is about: the rows that count as one, and what columns may determine."""


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


def doubts(model: SelectionModel, found: TwoStep | Maximum) -> Iterator[str]:
    """Yield a message for each reason not to trust the estimates."""
    if model.condition_number_ > MAX_CONDITION:
        only = [name for name in model.selection_names_ if name not in model.outcome_names_]
        why = "no column of the selection equation is missing from the outcome equation"
        if only:
            why = f"what is in the selection equation alone ({', '.join(only)}) hardly moves it"
        yield (
            "The inverse Mills ratio is almost a linear function of the outcome's columns "
            f"(condition number {model.condition_number_:.0f}): {why}. The estimates then rest on "
            "the normal distribution alone. Add a column to selection that moves selection and "
            "does not belong in outcome."
        )
    if isinstance(found, Maximum) and not found.certificate.converged:
        steps, gradient, _ = found.certificate
        why = f"after {steps} steps the gradient is {gradient:.1e} standard errors"
        if gradient < CONVERGED:
            why = f"after {steps} steps it is flat in one direction"
        if found.at_boundary:
            why = f"it still rises as ρ goes to {np.sign(model.rho_):+.0f}"
        instead = 'method="two-step", or ' if hasattr(model, "method") else ""
        yield (
            f"No maximum of the likelihood was found: {why}. Its standard errors mean nothing. Use "
            f"{instead}fewer columns."
        )
    if not isinstance(found, Maximum) and abs(model.rho_) > 1:
        yield (
            f"The two-step estimate of the correlation is {model.rho_:.2f}, beyond ±1, as happens "
            'with few rows or a wrong model. Use method="ml".'
        )
