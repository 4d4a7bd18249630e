"""The bootstrap region: weights that were solved again, for any weighter that weighs new rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from unskew.errors import InputError, ParameterError
from unskew.estimation.replicates import Replicates
from unskew.estimation.weighing import weigh
from unskew.numerics.design_variance import Design
from unskew.numerics.typing import IntArray
from unskew.population.margins import Margins
from unskew.population.population import Population
from unskew.population.sample import Sample
from unskew.theory.asked import Asked
from unskew.theory.assumption_test import AssumptionTest
from unskew.theory.even_selection import even_selection
from unskew.theory.form_test import FormTest, check_form
from unskew.theory.not_covered import not_covered
from unskew.theory.parameter_region import Parameters
from unskew.theory.regions import BootstrapRegion, order_statistic
from unskew.weighters.cells import CellWeighter
from unskew.weighters.inductive import InductiveWeighter


def read_bootstrap(
    weighter: Any,
    asked: Asked,
    delta: float,
    rows: IntArray,
    *,
    replicates: int,
    random_state: Any,
) -> Parameters:
    """Return the region of weights that are solved again with rows drawn again."""
    name = type(weighter).__name__
    order_statistic(replicates, delta)  # raises if there are too few
    if not isinstance(weighter, InductiveWeighter):
        not_covered(f"a bootstrap needs weights of rows that were not drawn; {name} has none.")
    if not weighter._estimates:
        not_covered(weighter._not_certifiable or f"{name} estimates nothing.")
    if asked.X is None or asked.population is None:
        raise ParameterError("X and population are needed to solve the weights again: pass both.")
    known = (
        asked.population
        if isinstance(asked.population, Margins)
        else Population.of(asked.population)
    )
    weighed = weigh(clone(weighter), Sample.of(asked.X), known, [], None, census=False)
    sample = weighed.fit.sample
    if not np.allclose(weighed.weights, weighter.weights_, rtol=1e-6):
        raise InputError(
            f"{name} does not give the weights of fit again. Pass the X and the population of fit "
            "and set random_state; design weights of the sample are not covered."
        )
    drawn = Replicates(weighed, Design.of(len(sample)), replicates, random_state, of_all_rows=True)
    base = weighter._weigh(sample)
    found = [np.divide(w, base, out=np.ones_like(base), where=base > 0) for w, _ in drawn]
    drawn.check()
    ratios = np.column_stack(found)
    shares = weighter.weights_ / weighter.weights_.sum()
    ratios /= shares @ ratios
    return Parameters(
        BootstrapRegion(ratios[rows], delta),
        len(found),
        (
            f"the errors of {name} are distributed as those of its replicates, without a bias of "
            "the same order, such as that of a penalty or of cells that are too large",
            "rows of sample and population are independent draws",
            *drawn.notes,
        ),
        _tested(weighter, sample, shares, asked),
    )


def _tested(weighter: Any, sample: Sample, shares: Any, asked: Asked) -> AssumptionTest:
    """Return the test of what the weights assume, where there is one."""
    if isinstance(weighter, CellWeighter):
        return even_selection(weighter)
    line = weighter._linearisation(sample)
    if line is None or not asked.has_rows:
        return FormTest(None)
    return check_form(line, sample, shares, asked.rows(weighter.columns_))
