"""What a selection model warns of once it is fitted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from unskew.numerics.heckman import TwoStep
from unskew.numerics.heckman_likelihood import Maximum

if TYPE_CHECKING:
    from unskew.learning.heckman import HeckmanRegressor

MAX_CONDITION = 20.0
"""The condition number of regressors and inverse Mills ratio above which fitting warns."""


def doubts(model: HeckmanRegressor, found: TwoStep | Maximum) -> Iterator[str]:
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
        if found.at_boundary:
            why = f"it still rises as ρ goes to {np.sign(model.rho_):+.0f}"
        yield (
            f"No maximum of the likelihood was found: {why}. Its standard errors mean nothing. Use "
            'method="two-step", or fewer columns.'
        )
    if isinstance(found, TwoStep) and abs(found.rho) > 1:
        yield (
            f"The two-step estimate of the correlation is {found.rho:.2f}, beyond ±1, as happens "
            'with few rows or a wrong model. Use method="ml".'
        )
