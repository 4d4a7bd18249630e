"""The variance of estimates, by linearisation or by bootstrap."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from unskew.errors import InputError
from unskew.estimation.outcome_models import GroupSums, OutcomeModels
from unskew.estimation.replicates import Replicates
from unskew.estimation.results import FEW_ROWS
from unskew.estimation.weighing import Weighed, scaled_to_population
from unskew.numerics.design_variance import Design, Spread
from unskew.numerics.typing import FloatArray
from unskew.weighters.linearisation import Form, Influence, KnownWeights, Linearisation


class Numbers(Protocol):
    """Functions of the weights, with their errors: those of a target, or their bounds."""

    @property
    def models(self) -> OutcomeModels | None: ...
    @property
    def statistic(self) -> str: ...
    def point(self, weights: FloatArray, sums: GroupSums | None) -> FloatArray: ...
    def deviations(self, weights: FloatArray, point: FloatArray) -> FloatArray: ...
    def of_population(self, batch: pa.RecordBatch, sums: GroupSums) -> FloatArray: ...


class Variance(NamedTuple):
    """Variances of the numbers of a target, by where they come from."""

    parts: dict[str, FloatArray]
    degrees: FloatArray
    notes: tuple[str, ...] = ()

    @property
    def total(self) -> FloatArray:
        """The sum of the parts."""
        return np.sum(list(self.parts.values()), axis=0)


def linearised(
    target: Numbers,
    weighed: Weighed,
    point: FloatArray,
    design: Design,
    form: Form | None,
    *,
    finite: bool,
) -> Variance:
    """Return the variances of the sum of all rows' influence.

    Without a ``form``, weights count as known: with an outcome model that is right, errors of the
    weights are multiplied by its errors.
    """
    weights = weighed.weights
    line: Linearisation | None = KnownWeights(weights)
    if form is not None:
        line = weighed.linearisation
    if line is None:
        raise InputError(
            f"The weights of {type(weighed.weighter).__name__} cannot be linearised. Use "
            'variance="bootstrap", or an outcome model.'
        )
    values = target.deviations(weights, point)
    influence = line.influence(values, form or "hc3")
    of_sample = influence.sample
    if finite:  # a row that stands for itself alone adds nothing
        beyond = np.maximum(1.0 - 1.0 / np.maximum(scaled_to_population(weighed), 1e-300), 0.0)
        of_sample = of_sample * np.sqrt(beyond)[:, None]
    sizes = _sizes(influence, weights, values)
    spread = design.spread(of_sample, centred=influence.centred, sizes=sizes)
    parts = {"sample": spread.variance}
    if weighed.drawn is not None:
        noise = _population_spread(target, weighed, point, influence)
        if noise is not None:
            spread += noise
            parts["population"] = noise.variance
    return Variance(parts, spread.degrees, line.cautions)


def _sizes(influence: Influence, weights: FloatArray, values: FloatArray) -> FloatArray | None:
    """Return the sizes of the rows' contributions where few rows count, zeros where many do.

    With more rows the residuals say themselves how many count, and need no assumption.
    """
    if influence.sizes is None:
        return None
    own = weights[:, None] * (values != 0)  # other rows are of other groups
    with np.errstate(divide="ignore", invalid="ignore"):
        few = own.sum(axis=0) ** 2 / (own**2).sum(axis=0) < FEW_ROWS
    return np.where(few, influence.sizes[:, None] * (values != 0), 0.0) if few.any() else None


def _population_spread(
    target: Numbers, weighed: Weighed, point: FloatArray, influence: Influence
) -> Spread | None:
    """Return the variance that comes from the population's rows, which are a sample themselves."""
    drawn = weighed.drawn
    assert drawn is not None
    of_rows = influence.population
    if (of_rows is None and target.models is None) or drawn.rows is None or len(drawn.weight) < 2:
        return None
    shares = drawn.weight / drawn.weight.sum()

    def spread(deviations: FloatArray, n_rows: float) -> Spread:
        found = Design.of(len(shares)).spread(
            shares[:, None] * deviations, centred=influence.centred
        )
        return Spread(found.variance * (len(shares) / n_rows), found.degrees)

    deviations, further = np.zeros((len(drawn.weight), len(point))), None
    if of_rows is not None:
        deviations += of_rows(weighed.narrow(drawn.rows))
        n_fitted = influence.n_population or weighed.n_rows
        if n_fitted < weighed.n_rows:  # the weights have seen a part of the rows
            further = spread(deviations, 1 / (1 / n_fitted - 1 / weighed.n_rows))
    if target.models is not None:
        assert weighed.sums is not None
        deviations += target.of_population(drawn.rows, weighed.sums)
    if target.statistic == "total":  # the population's size has an error, too
        deviations += point
    found = spread(deviations, weighed.n_rows)
    return found if further is None else found + further


def bootstrapped(
    target: Numbers, weighed: Weighed, design: Design, n_replicates: int, random_state: object
) -> Variance:
    """Return the variances between replicates whose weights were solved again."""
    replicates = Replicates(weighed, design, n_replicates, random_state)
    points = [target.point(weights, sums) for weights, sums in replicates]
    replicates.check()
    variance = np.nanvar(np.array(points), axis=0, ddof=1)
    return Variance(
        {"sample and population" if weighed.drawn is not None else "sample": variance},
        np.full(len(variance), np.inf),
        replicates.notes,
    )
