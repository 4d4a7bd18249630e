"""From a target and weights to an estimate: point, variance, interval, words."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
from scipy.stats import t as student

from unskew.errors import EstimateWarning, ParameterError, warn_caller
from unskew.estimation.hidden_selection import HiddenSelection
from unskew.estimation.results import FEW_ROWS, Estimate, Estimates
from unskew.estimation.statistics import Target, Uncertainty
from unskew.estimation.variances import VarianceParts, bootstrapped, linearised, with_margins
from unskew.estimation.weighing import Weighed
from unskew.numerics.design_variance import Design, half_width
from unskew.numerics.typing import FloatArray
from unskew.overlap import LIMIT, Overlap
from unskew.rows.column_names import listing
from unskew.rows.doubtful_columns import determined_by

VarianceName = Literal["auto", "linear", "m_estimator", "hc3", "orthogonal", "bootstrap"]
MATTERS = 0.4
"""Standard errors; a bias as large leaves 93 % of intervals of 95 % that hold."""
VARIANCES = ("auto", "linear", "m_estimator", "hc3", "orthogonal", "bootstrap")


@dataclass(frozen=True)
class Options:
    """How the variance and the interval are made."""

    variance: VarianceName
    level: float
    replicates: int
    finite: bool
    random_state: Any

    def check(self, has_models: bool) -> None:
        """Refuse values that are out of range, or do not fit together."""
        if self.variance not in VARIANCES:
            raise ParameterError(
                f"variance must be one of {', '.join(VARIANCES)}; got {self.variance!r}."
            )
        if self.variance == "orthogonal" and not has_models:
            raise ParameterError('variance="orthogonal" needs an outcome model: outcome=.')
        if not isinstance(self.level, Real) or not 0 < float(self.level) < 1:
            raise ParameterError(f"level must lie between 0 and 1; got {self.level!r}.")
        if not isinstance(self.replicates, Integral) or int(self.replicates) < 2:
            raise ParameterError(f"replicates must be 2 or more; got {self.replicates!r}.")

    def chosen(self, target: Target, weighed: Weighed) -> VarianceName:
        """Return what "auto" is."""
        if not target.statistic.has_influence and self.variance not in ("auto", "bootstrap"):
            raise ParameterError(
                f'A {target.statistic.name} has no variance but variance="bootstrap"; got '
                f"{self.variance!r}."
            )
        if self.variance != "auto":
            return self.variance
        if target.statistic.has_influence and weighed.linearisation is not None:
            return "hc3"
        return "bootstrap" if target.models is None else "orthogonal"


def assemble(
    target: Target,
    weighed: Weighed,
    design: Design,
    options: Options,
    learner: str | None,
    notes: tuple[str, ...],
) -> Estimate | Estimates:
    """Return the estimate, or one for each group and class."""
    found, cautions = each_estimate(target, weighed, design, options, learner)
    _warn_of_few_rows(found)
    hint = None
    if target.statistic.has_influence:
        hint = determined_by(weighed.fit.sample, target.outcome.values)
    about = (*target.outcome.notes, *filter(None, [hint]), *notes)
    of_weights = getattr(weighed.weighter, "notes_", ())
    return _shown(target, weighed, found, (*about, *of_weights, *cautions))


def each_estimate(
    target: Target, weighed: Weighed, design: Design, options: Options, learner: str | None = None
) -> tuple[dict[Any, Estimate], tuple[str, ...]]:
    """Return the estimates by their labels, and what to know of their variance."""
    weights = weighed.weights
    point = target.point(weights, weighed.sums)
    variance_name = options.chosen(target, weighed)
    variance = _variance(target, weighed, point, design, variance_name, options)
    variance = with_margins(variance, target, weighed, point)
    design_weights = weighed.fit.sample.design
    unweighted = target.plain().point((design_weights > 0).astype(float), None)
    by_design = target.plain().point(design_weights, None)
    has_design = np.ptp(design_weights[design_weights > 0]) > 0
    sizes = target.effective_sizes(weights) / variance.clustering
    doubts: FloatArray = np.zeros(len(point))
    cautions = (*weighed.weighter.rounded_, *variance.notes)
    if variance_name == "orthogonal" and target.models is not None:
        doubts = target.disagreements(weights, point, weighed.sums)
        cautions += (
            "The interval allows for a bias as large as the difference from what the weights, or "
            "the outcome model, say alone.",
        )
    if target.statistic.needs_size and weighed.fit.target.about.weighted:
        counted = "counted" if "population" in variance.parts else "not counted: it is as known"
        cautions += (
            f"The population's size, {target.size:,.0f}, is the sum of its weights. The error that "
            f"it has if it is not known is {counted}.",
        )
    errors, ends = intervals(target, weights, point, variance, options.level, sizes, doubts)
    spread = target.spread(weights)
    if not target.statistic.has_influence:
        spread = float((errors * np.sqrt(sizes)).max())
    cautions += uncovered_notes(weighed.weighter.overlap_, spread, errors, sizes)
    own = _own_notes(target, variance)
    found: dict[Any, Estimate] = {}
    kept: dict[Any, Any] = {}
    for number, label in enumerate(target.labels):
        found[label] = Estimate(
            value=float(point[number]),
            standard_error=float(errors[number]),
            interval=ends[number],
            level=float(options.level),
            unweighted=float(unweighted[number]),
            statistic=target.statistic.label,
            parts={name: float(part[number]) for name, part in variance.parts.items()},
            effective_sample_size=float(sizes[number]),
            degrees_of_freedom=float(variance.degrees[number]),
            bias_allowed=float(doubts[number]),
            design_weighted=float(by_design[number]) if has_design else None,
            n_rows=len(weights),
            weighter=weighed.weighter,
            weights=weights,
            outcome=learner,
            variance=variance_name,
            assumptions=assumptions(weighed, learner),
            notes=own[number],
            is_share=target.outcome.is_share,
            _basis=HiddenSelection(target, number, weighed, design, options, variance_name, kept),
        )
    return found, cautions


def described_learner(outcome: Any) -> str | None:
    """Return the name of an outcome model."""
    return None if outcome is None else outcome if isinstance(outcome, str) else str(outcome)


def _variance(
    target: Target,
    weighed: Weighed,
    point: FloatArray,
    design: Design,
    name: VarianceName,
    options: Options,
) -> VarianceParts:
    if name == "bootstrap":
        return bootstrapped(target, weighed, design, options.replicates, options.random_state)
    form: Any = None if name == "orthogonal" else name
    return linearised(target, weighed, point, design, form)


def intervals(
    target: Target,
    weights: FloatArray,
    point: FloatArray,
    variance: VarianceParts,
    level: float,
    sizes: FloatArray,
    doubts: FloatArray,
) -> tuple[FloatArray, list[tuple[float, float]]]:
    """Return standard errors and intervals."""
    errors = np.where(variance.degrees < 1, np.nan, np.sqrt(variance.total))
    triples = zip(errors, variance.degrees, doubts, strict=True)
    halves = np.array([half_width(*one[:2], level, one[2]) for one in triples])
    factor: FloatArray = np.asarray(student.ppf(0.5 + level / 2, variance.degrees))
    of_population = variance.parts.get("population", np.zeros(len(point)))
    is_share, ends = target.outcome.is_share, []
    for number in range(len(point)):
        made = Uncertainty(
            point=float(point[number]),
            error=float(errors[number]),
            half=float(halves[number]),
            factor=float(factor[number]),
            level=level,
            size=float(sizes[number]),
            skewness=float(variance.skewness[number]),
            of_population=float(of_population[number]),
            one_by_one=bool(variance.clustering[number] == 1 and doubts[number] == 0),
            replicated=variance.replicated,
            is_share=is_share,
        )
        ends.append(target.interval(number, weights, made))
        if target.statistic.is_of_shares and not variance.replicated:
            errors[number] = (ends[-1][1] - ends[-1][0]) / (2 * made.factor)
        if variance.degrees[number] < 1:
            ends[-1] = (0.0, 1.0) if is_share else (-np.inf, np.inf)
    return errors, ends


def _own_notes(target: Target, variance: VarianceParts) -> list[tuple[str, ...]]:
    """Return what to know of the interval of each number."""
    found: list[tuple[str, ...]] = [()] * len(target.labels)
    for number, label in enumerate(target.labels):
        where = [str(part) for part in label if part is not None]
        of = f" ({listing(where)})" if where else ""
        if variance.degrees[number] < 1:
            found[number] += (f"One row or cluster has no variance, and no interval{of}.",)
        elif variance.heavy[number] and not (
            target.outcome.is_share or target.statistic.is_of_shares
        ):
            found[number] += (
                f"y has so heavy a tail{of} that its variance may be infinite, and few rows decide "
                "its mean: the interval is too short. A median is surer.",
            )
    return found


def uncovered_notes(
    overlap: Overlap | None, spread: float, errors: FloatArray, sizes: FloatArray
) -> tuple[str, ...]:
    r"""Return what the sample lacks, and whether that can matter beside the interval.

    A share u of the population whose rows differ by one standard deviation of y, ``spread``, moves
    a mean by u times that. A region next to the sample follows it to a degree: it counts from one
    standard error on, and as more than the share that overlap allows. Values that no sample row has
    follow nothing. If they differ by one standard deviation of what the columns leave open, the
    number moves by :math:`u \sqrt n` standard errors, with n effective rows, of which 0.4 are too
    much: intervals of 95 % then hold in less than 93 %.
    """
    if overlap is None:
        return ()
    if overlap.uncovered > LIMIT and (overlap.uncovered * spread > errors).any():
        return (
            f"{overlap} Where rows there differ by one standard deviation of y, the number moves "
            f"by {overlap.uncovered * spread:.3g}. The interval does not count it.",
        )
    size = float(np.sqrt(sizes.max()))
    return tuple(
        f"{rule}: no weights make up for it."
        if rule.share * size > MATTERS
        else f"{rule}. If these differ by one standard deviation of y, the number moves by "
        f"{rule.share * spread:.2g}."
        for rule in overlap.unseen
    )


def assumptions(weighed: Weighed, learner: str | None) -> tuple[str, ...]:
    """Return what must hold for the numbers to be right."""
    weighter = weighed.weighter
    if not (weighter.traits.estimates and weighter.traits.corrects_columns):
        first = [weighter.traits.assumes]
    else:
        columns = weighter.columns_
        what = f"'{columns[0]}'" if len(columns) == 1 else f"the {len(columns)} columns"
        first = [f"selection depends on {what} only", weighter.traits.assumes]
    if learner is not None:
        first.append("either the weights or the outcome model are right")
    if weighed.fit.target.about.margins is not None:
        errors = getattr(weighed.fit.target, "standard_errors", None)
        first.append(
            "the margins' standard errors are right" if errors else "the margins are exact"
        )
    return tuple(first)


def _warn_of_few_rows(found: dict[Any, Estimate]) -> None:
    few = {label: one for label, one in found.items() if one.effective_sample_size < FEW_ROWS}
    if few:
        label, one = min(few.items(), key=lambda pair: pair[1].effective_sample_size)
        where = [str(part) for part in label if part is not None]
        of = f" ({listing(where)})" if where else ""
        warn_caller(
            EstimateWarning(
                f"The effective sample size is {one.effective_sample_size:.1f}{of}: with "
                f"fewer than {FEW_ROWS}, intervals rest on few rows, and are wide."
            )
        )


def _shown(
    target: Target, weighed: Weighed, found: dict[Any, Estimate], notes: tuple[str, ...]
) -> Estimate | Estimates:
    """Return one estimate, or several under the labels that distinguish them."""
    from dataclasses import replace

    if target.groups is None and target.outcome.classes is None:
        only = next(iter(found.values()))
        return replace(only, notes=(*only.notes, *notes))
    names = []
    if target.groups is not None:
        names.append(target.groups.column)
        notes += _groups_elsewhere(target, weighed)
    if target.outcome.classes is not None:
        names.append("class")
    plain = {
        label
        if len(names) > 1
        else next(part for part in label if part is not None)
        if any(part is not None for part in label)
        else None: one
        for label, one in found.items()
    }
    return Estimates(plain, tuple(names), notes)


def _groups_elsewhere(target: Target, weighed: Weighed) -> tuple[str, ...]:
    """Return a note on groups of the population without sample rows."""
    sums, groups = weighed.sums, target.groups
    if sums is None or sums.groups is None or groups is None or not sums.elsewhere:
        return ()
    share = sums.elsewhere / (sums.elsewhere + sums.mass.sum())
    named = ""
    if weighed.drawn is not None and weighed.drawn.rows is not None:
        rows = weighed.drawn.rows.column(groups.column).filter(groups.of(weighed.drawn.rows) < 0)
        named = f", such as {listing([str(one) for one in rows.unique().to_pylist()[:3]])}"
    return (
        f"{share:.1%} of the population is in groups of '{groups.column}' without sample "
        f"rows{named}, of which nothing is estimated.",
    )
