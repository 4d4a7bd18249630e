"""The variance of estimates, by linearisation or by bootstrap."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from unskew.errors import InputError
from unskew.estimation.outcome_models import GroupSums, OutcomeModels
from unskew.estimation.results import FEW_ROWS
from unskew.estimation.statistics import Statistic
from unskew.estimation.weighing import Replicates, Weighed
from unskew.numerics.design_variance import Entries, Spread, SurveyDesign, heavy_tail
from unskew.numerics.typing import BoolArray, FloatArray
from unskew.numerics.weight_vectors import effective_sizes
from unskew.population.margins import Margins
from unskew.weighters.base import ask, solve
from unskew.weighters.linearisation import Form, Influence, KnownWeights, Linearisation

MARGIN_STEP = 0.25
MOST_NUMBERS = 1_000_000
"""Of rows times groups that are held at once."""


class Numbers(Protocol):
    """Functions of the weights, with their errors: those of a target, or their bounds."""

    @property
    def models(self) -> OutcomeModels | None: ...
    @property
    def statistic(self) -> Statistic: ...
    def point(self, weights: FloatArray, sums: GroupSums | None) -> FloatArray: ...
    def members(self, numbers: slice) -> Entries: ...
    def deviations(self, weights: FloatArray, numbers: slice) -> FloatArray: ...
    def of_population(
        self, batch: pa.RecordBatch, weights: FloatArray, numbers: slice
    ) -> FloatArray: ...


class VarianceParts(NamedTuple):
    """Variances of the numbers of a target, by where they come from."""

    parts: dict[str, FloatArray]
    degrees: FloatArray
    clustering: FloatArray
    """The design effect of clusters: the variance by them over that of rows drawn one by one."""
    skewness: FloatArray
    heavy: BoolArray
    """Whether the tail of the residuals is so heavy that intervals are short."""
    notes: tuple[str, ...] = ()
    replicated: bool = False

    @property
    def total(self) -> FloatArray:
        """The sum of the parts."""
        return np.sum(list(self.parts.values()), axis=0)


def variance_of(
    target: Numbers, weighed: Weighed, design: SurveyDesign, name: str, options: Any
) -> VarianceParts:
    """Return the variances of a kind: linearised, or between replicates."""
    if name == "bootstrap":
        return bootstrapped(target, weighed, design, options.replicates, options.random_state)
    form: Any = None if name == "orthogonal" else name
    point = target.point(weighed.weights, weighed.sums)
    return linearised(target, weighed, point, design, form)


def linearised(
    target: Numbers, weighed: Weighed, point: FloatArray, design: SurveyDesign, form: Form | None
) -> VarianceParts:
    """Return the variances of the sum of all rows' influence.

    Without a ``form``, weights count as known: with an outcome model that is right, errors of the
    weights are multiplied by its errors.
    """
    line: Linearisation | None = KnownWeights(weighed.weights)
    if form is not None:
        line = weighed.linearisation
    if line is None:
        raise InputError(
            f"The weights of {type(weighed.weighter).__name__} cannot be linearised. Use "
            'variance="bootstrap", or an outcome model.'
        )
    n_rows = len(weighed.weights)
    if weighed.drawn is not None:
        n_rows = max(n_rows, len(weighed.drawn.weight))
    step = max(MOST_NUMBERS // n_rows, 1)  # many groups a few at a time, not rows times groups
    blocks = [slice(begin, begin + step) for begin in range(0, len(point), step)]
    found = [_linearised(target, weighed, point, design, line, form or "hc3", b) for b in blocks]
    parts = {name: np.concatenate([one.parts[name] for one in found]) for name in found[0].parts}
    degrees, clustering, skewness, heavy = map(
        np.concatenate, zip(*(one[1:5] for one in found), strict=True)
    )
    return VarianceParts(parts, degrees, clustering, skewness, heavy, line.cautions)


def _linearised(
    target: Numbers,
    weighed: Weighed,
    point: FloatArray,
    design: SurveyDesign,
    line: Linearisation,
    form: Form,
    numbers: slice,
) -> VarianceParts:
    """Return the variances of some of the numbers."""
    weights, inside = weighed.weights, target.members(numbers)
    values = target.deviations(weights, numbers)
    influence = line.influence(values, form, inside)
    of_sample = influence.sample
    if weighed.census:
        of_sample *= np.sqrt(weighed.beyond_itself)[:, None]
    sizes = _sizes(influence, weights, inside)
    spread = design.spread(of_sample, centred=influence.centred, sizes=sizes, inside=inside)
    clustering = design.clustering(of_sample, weights, inside)
    rows, columns = inside
    residuals = of_sample[rows, columns] / np.where(weights[rows] == 0, 1.0, weights[rows])
    ends = np.searchsorted(columns, np.arange(1, len(clustering)))
    both = zip(np.split(values[rows, columns], ends), np.split(residuals, ends), strict=True)
    heavy = np.array([heavy_tail(one) and heavy_tail(other) for one, other in both])
    parts = {"sample": spread.variance}
    if weighed.drawn is not None:
        noise = _population_spread(target, weighed, point, influence, numbers)
        if noise is not None:
            spread += noise
            parts["population"] = noise.variance
    skewness = spread.third / np.maximum(spread.variance, 1e-200) ** 1.5
    return VarianceParts(parts, spread.degrees, clustering, skewness, heavy)


def _sizes(influence: Influence, weights: FloatArray, inside: Entries) -> FloatArray | None:
    """Return the sizes of the rows' contributions where few rows count, zeros where many do.

    With more rows the residuals say themselves how many count, and need no assumption.
    """
    if influence.sizes is None:
        return None
    rows, columns = inside
    found = np.zeros_like(influence.sample)
    few = effective_sizes(weights[rows], columns, found.shape[1]) < FEW_ROWS
    found[rows, columns] = np.where(few[columns], influence.sizes, 0.0)
    return found if few.any() else None


def _population_spread(
    target: Numbers, weighed: Weighed, point: FloatArray, influence: Influence, numbers: slice
) -> Spread | None:
    """Return the variance that comes from the population's rows, which are a sample themselves."""
    drawn = weighed.drawn
    assert drawn is not None
    of_rows = influence.population
    if (of_rows is None and target.models is None) or drawn.rows is None or len(drawn.weight) < 2:
        return None
    shares = drawn.weight / drawn.weight.sum()

    def spread(deviations: FloatArray, n_rows: float) -> Spread:
        found = SurveyDesign.from_codes(len(shares)).spread(
            shares[:, None] * deviations, centred=influence.centred
        )
        scale = len(shares) / n_rows
        return Spread(found.variance * scale, found.degrees, found.third * scale**2)

    point = point[numbers]
    deviations, further = np.zeros((len(drawn.weight), len(point))), None
    if of_rows is not None:
        deviations += of_rows(weighed.drawn_rows)
        n_fitted = influence.n_population or weighed.n_rows
        if n_fitted < weighed.n_rows:  # the weights have seen a part of the rows
            further = spread(deviations, 1 / (1 / n_fitted - 1 / weighed.n_rows))
    if target.models is not None:
        deviations += target.of_population(drawn.rows, drawn.weight, numbers)
    if target.statistic.needs_size:  # the population's size has an error, too
        deviations += point
    found = spread(deviations, weighed.n_rows)
    return found if further is None else found + further


def bootstrapped(
    target: Numbers, weighed: Weighed, design: SurveyDesign, n_replicates: int, random_state: object
) -> VarianceParts:
    """Return the variances between replicates whose weights were solved again."""
    replicates = Replicates(weighed, design, n_replicates, random_state)
    points = [target.point(weights, sums) for weights, sums in replicates]
    variance = np.nanvar(np.array(points), axis=0, ddof=1)
    lost = int(np.isnan(points).all(axis=1).sum())
    notes = replicates.notes
    if lost:
        what = target.statistic.name
        notes += (f"{lost} of {len(points)} replicates have no such {what} and are left out.",)
    parts = {"sample and population" if weighed.drawn is not None else "sample": variance}
    if not target.statistic.has_influence:
        ones = np.ones(len(variance))
        return VarianceParts(parts, np.inf * ones, ones, 0 * ones, ones < 1, notes, True)
    # Beside the variance: as linearised, or as if weights were known, whose skewness is another.
    form: Form | None = None if weighed.linearisation is None else "hc3"
    point = target.point(weighed.weights, weighed.sums)
    known = linearised(target, weighed, point, design, form)
    skewness = known.skewness * (form is not None)
    return known._replace(parts=parts, skewness=skewness, notes=notes, replicated=True)


def with_margins(
    variance: VarianceParts, target: Numbers, weighed: Weighed, point: FloatArray
) -> VarianceParts:
    """Return the variance with that of margins which are estimates themselves.

    Weights are solved again for each independent error of the margins, a quarter as large.
    """
    known, sample = weighed.fit.target, weighed.fit.sample
    if not isinstance(known, Margins) or not known.standard_errors:
        return variance
    of_share = target.statistic.is_of_shares and not variance.replicated  # as Woodruff's are
    errors = target.deviations(weighed.weights, slice(None)) if of_share else None
    found = np.zeros(len(point))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they repeat what the fit has said
        for moved in known.moved(sample.rows, MARGIN_STEP):
            asked = ask(weighed.weighter, sample, moved.about)
            answer = None if asked is None else moved.reduce(asked)
            weights = solve(weighed.weighter, sample, answer)
            change = target.point(weights, None) - point if errors is None else weights @ errors
            found += (change / (weights.sum() if of_share else 1.0) / MARGIN_STEP) ** 2
    share = variance.total / np.maximum(variance.total + found, 1e-300)
    return variance._replace(
        parts={**variance.parts, "margins": found},
        degrees=variance.degrees / np.maximum(share, 1e-150) ** 2,
        skewness=variance.skewness * share**1.5,
    )
