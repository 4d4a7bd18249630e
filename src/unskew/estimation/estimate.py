"""A number of the population, with an interval that counts the estimation of the weights.

:func:`estimate` opens what it is given and weighs the sample in one pass; :func:`assemble` makes
the result of a target and weights: point, variance, interval, words.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import t as student
from sklearn.base import clone

from unskew.errors import EstimateWarning, InputError, ParameterError, listing, warn_caller
from unskew.estimation.hidden_selection import HiddenSelection
from unskew.estimation.inputs import (
    Groups,
    check_models,
    kept_entries,
    open_design,
    open_groups,
    open_labelled,
    opened,
    shared_columns,
)
from unskew.estimation.outcome_models import GroupSums, OutcomeModels
from unskew.estimation.results import FEW_ROWS, Estimate, Estimates
from unskew.estimation.statistics import Statistic, Target, Uncertainty, statistic_of
from unskew.estimation.variances import VarianceParts, variance_of, with_margins
from unskew.estimation.weighing import Weighed, weigh
from unskew.numerics.design_variance import SurveyDesign, half_width
from unskew.numerics.typing import BoolArray, FloatArray
from unskew.overlap.overlap import LIMIT, Overlap
from unskew.rows.doubtful_columns import determined_by
from unskew.rows.labels import by_position
from unskew.weighters.auto import default_weighter
from unskew.weighters.base import Weighter
from unskew.weighters.known_probability import Unweighted

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
    design: SurveyDesign,
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
    target: Target, weighed: Weighed, design: SurveyDesign, options: Options, learner: str | None
) -> tuple[dict[Any, Estimate], tuple[str, ...]]:
    """Return the estimates by their labels, and what to know of their variance."""
    weights = weighed.weights
    point = target.point(weights, weighed.sums)
    variance_name = options.chosen(target, weighed)
    variance = variance_of(target, weighed, design, variance_name, options)
    variance = with_margins(variance, target, weighed, point)
    design_weights = weighed.fit.sample.design
    unweighted = target.plain().point((design_weights > 0).astype(float), None)
    by_design = target.plain().point(design_weights, None)
    has_design = np.ptp(design_weights[design_weights > 0]) > 0
    sizes = target.effective_sizes(weights) / variance.clustering
    doubts: FloatArray = np.zeros(len(point))
    if variance_name == "orthogonal" and target.models is not None:
        doubts = target.disagreements(weights, point, weighed.sums)
    errors, ends = intervals(target, weights, point, variance, options.level, sizes, doubts)
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
    return found, _cautions(target, weighed, variance, errors, sizes, doubts)


def _cautions(
    target: Target,
    weighed: Weighed,
    variance: VarianceParts,
    errors: FloatArray,
    sizes: FloatArray,
    doubts: FloatArray,
) -> tuple[str, ...]:
    """Return what to know of all numbers, after their variance was made."""
    found = (*weighed.weighter.rounded_, *variance.notes)
    if doubts.any():
        found += (
            "The interval allows for a bias as large as the difference from what the weights, or "
            "the outcome model, say alone.",
        )
    if target.statistic.needs_size and weighed.fit.target.about.weighted:
        counted = "counted" if "population" in variance.parts else "not counted: it is as known"
        found += (
            f"The population's size, {target.size:,.0f}, is the sum of its weights. The error that "
            f"it has if it is not known is {counted}.",
        )
    spread = target.spread(weighed.weights)
    if not target.statistic.has_influence:
        spread = float((errors * np.sqrt(sizes)).max())
    return found + uncovered_notes(weighed.weighter.overlap_, spread, errors, sizes)


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
    one_by_one = (variance.clustering == 1) & (doubts == 0)
    numbers = point, errors, halves, factor, sizes, variance.skewness, of_population, one_by_one
    is_share, ends = target.outcome.is_share, []
    rest: dict[str, Any] = {"level": level, "replicated": variance.replicated, "is_share": is_share}
    for number, each in enumerate(zip(*numbers, strict=True)):
        made = Uncertainty(*each, **rest)
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
        of = _in_brackets(label)
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
        size = f"{one.effective_sample_size:.1f}{_in_brackets(label)}"
        warn_caller(
            EstimateWarning(
                f"The effective sample size is {size}: with fewer than {FEW_ROWS}, intervals rest "
                "on few rows, and are wide."
            )
        )


def _in_brackets(label: tuple[Any, ...]) -> str:
    return f" ({listing([str(part) for part in label])})" if label else ""


def _shown(
    target: Target, weighed: Weighed, found: dict[Any, Estimate], notes: tuple[str, ...]
) -> Estimate | Estimates:
    """Return one estimate, or several under the labels that distinguish them."""
    names = tuple(target.names)
    if not names:
        (only,) = found.values()
        return replace(only, notes=(*only.notes, *notes))
    plain = {label if len(names) > 1 else label[0]: one for label, one in found.items()}
    return Estimates(plain, names, notes + _groups_elsewhere(target, weighed))


def _groups_elsewhere(target: Target, weighed: Weighed) -> tuple[str, ...]:
    """Return a note on groups of the population without sample rows."""
    sums, groups = weighed.sums, target.groups
    if sums is None or sums.groups is None or groups is None or not sums.elsewhere:
        return ()
    share = sums.elsewhere / (sums.elsewhere + sums.mass.sum())
    named = ""
    if weighed.drawn is not None and weighed.drawn.rows is not None:
        rows = weighed.drawn.rows.column(groups.column).filter(groups.codes(weighed.drawn.rows) < 0)
        named = f", such as {listing([str(one) for one in rows.unique().to_pylist()[:3]])}"
    return (
        f"{share:.1%} of the population is in groups of '{groups.column}' without sample "
        f"rows{named}, of which nothing is estimated.",
    )


def estimate(
    X: Any,
    y: Any,
    *,
    population: Any,
    weighter: Weighter | None = None,
    outcome: Any = None,
    statistic: Literal["mean", "total", "proportion", "quantile"] | Statistic = "mean",
    q: float | None = None,
    by: Any = None,
    variance: VarianceName = "auto",
    strata: ArrayLike | str | None = None,
    clusters: ArrayLike | str | None = None,
    finite_population: bool | None = None,
    level: float = 0.95,
    sample_weight: ArrayLike | str | None = None,
    missing: Literal["raise", "drop"] = "raise",
    cv: int | None = 5,
    replicates: int = 200,
    random_state: Any = 0,
) -> Estimate | Estimates:
    r"""Estimate a number of the population from a biased sample, with an interval.

    Weighs the sample, or takes a model of y and corrects it by the weighted residuals, and counts
    in the interval that weights and models were estimated, from the population's rows or its
    margins, in one pass over the population.

    Parameters
    ----------
    X : array-like or dataframe of shape (n_samples, n_features)
        The sample: rows that were not drawn uniformly.
    y : array-like of shape (n_samples,), or str
        The number or class of each row, of which the population's mean, total, share or quantile is
        wanted; or the name of a column of X, which is then no feature.
    population : Population, Margins, or anything that :class:`unskew.Population` takes
        An unbiased reference sample of the population, or what is known of it.
    weighter : Weighter, optional
        By default :class:`unskew.CalibrationWeights` of the columns that sample and population
        share. Its automatic features are here those that predict selection, or y.
    outcome : estimator or {"boosted", "linear"}, optional
        A regressor or classifier of y given the columns that the population has. The estimate is
        then doubly robust (augmented inverse probability weighting): the models' mean over the
        population, plus the weighted mean of their residuals. "boosted" are boosted trees, "linear"
        is a linear or logistic model; both take text, categories and missing values.
    statistic : {"mean", "total", "proportion", "quantile"} or Statistic, default="mean"
        "total" is the mean times the population's size. "proportion" gives the share of each class.
        An object such as ``Quantile(0.5)`` says the same.
    q : float, optional
        Which quantile: 0.5 is the median.
    by : str or array-like of shape (n_samples,), optional
        A column of X, or the group of each row: one estimate for each group, with the weights of
        the whole sample. Groups that only the population has are named in the notes.
    variance : {"auto", "linear", "m_estimator", "hc3", "orthogonal", "bootstrap"}, default="auto"
        How the variance is estimated; see Notes. "auto" is "hc3" where the weights can be
        linearised, "orthogonal" where they cannot and there is an outcome model, else "bootstrap".
    strata, clusters : str or array-like of shape (n_samples,), optional
        A column of X, or the stratum or cluster in which each row was drawn.
    finite_population : bool, optional
        Whether the population is complete and the sample a part of it. Its number is then the one
        that is asked for: the population has no sampling noise, and a row with weight one adds no
        variance. By default the population is itself a sample of something larger, unless it is
        given by margins, which count as exact.
    level : float, default=0.95
        Of the interval.
    sample_weight : array-like of shape (n_samples,), or str, optional
        Design weights of the sample, or the name of a column of X that has them.
    missing : {"raise", "drop"}, default="raise"
        What to do with rows whose y is missing. "drop" leaves them out before weighing: that they
        are missing then counts as part of the selection.
    cv : int or None, default=5
        Folds of the outcome model: a row's prediction is from a model that has not seen it. Folds
        are drawn at random, whole clusters together. None fits one model on all rows.
    replicates : int, default=200
        Of the bootstrap.
    random_state : int, RandomState instance or None, default=0
        For folds and the bootstrap.

    Returns
    -------
    Estimate, or Estimates
        Several for groups and classes, by their labels.

    Warns
    -----
    EstimateWarning
        If the effective sample size is below 30: the interval then rests on few rows.

    Notes
    -----
    With weights :math:`w = d\,F(\lambda^\top \varphi)` the estimate :math:`\theta` has a variance
    near that of :math:`\sum w (y - \theta - \varphi^\top B) / \sum w` over the sample plus that of
    the mean of :math:`\varphi^\top B` over the population.

    - "linear": B from a regression with the design weights d, as in R's survey package.
    - "m_estimator": B with weights :math:`d F'`, the sandwich of the estimating equations.
    - "hc3": as "m_estimator", with residuals divided by one minus their leverage.
    - "orthogonal": as if weights were known. Right with an outcome model that is. The interval also
      allows for a bias as large as the difference from what the weights, or the model, say alone.
    - "bootstrap": weights solved again, with sample rows drawn again and the population's sums from
      their normal distribution.

    Weights of a logistic model (:class:`unskew.ClassifierWeights`) follow the rows through the
    equations of its coefficients instead: "m_estimator" and "hc3", not "linear".

    The population's part is from 20,000 of its rows, or all. The interval is from Student's
    distribution, with fewer degrees of freedom where few rows have most of the weight, and of a
    share Wilson's. That
    features, a tree or a bandwidth were chosen by the data is not counted.

    References
    ----------
    Deville and Särndal, "Calibration estimators in survey sampling", JASA 87 (1992).
    Chernozhukov et al., "Double/debiased machine learning", Econometrics Journal 21 (2018).

    Examples
    --------
    >>> import numpy as np
    >>> from unskew import estimate
    >>> random = np.random.RandomState(0)
    >>> population = random.normal(size=(5000, 2))
    >>> selected = random.uniform(size=5000) < 0.3 / (1 + np.exp(-population[:, 0]))
    >>> sample = population[selected]
    >>> y = sample[:, 0] + random.normal(size=len(sample))
    >>> found = estimate(sample, y, population=population)
    >>> bool(found.interval[0] < 0 < found.interval[1] < found.unweighted)
    True
    """
    wanted = statistic_of(statistic, q, has_models=outcome is not None)
    options = Options(variance, level, replicates, bool(finite_population), random_state)
    options.check(outcome is not None)
    known = opened(population)
    given, kept = open_labelled(X, y, sample_weight, missing)
    rows = given.rows
    if given.labels.ndim != 1:
        raise InputError(f"y must have one number or class per row; got {given.labels.shape}.")
    target = Target(wanted.columns(given.labels), wanted)
    if wanted.has_influence:
        given.outcome = target.outcome.values  # automatic features are those that predict it, too
    shared = shared_columns(given, known)
    groups, known_groups = open_groups(kept_entries(by_position(by, X, "by"), kept), rows, shared)
    counted = known_groups and known.about.margins is None
    design = open_design(X, rows, kept, strata, clusters)
    models = None
    if outcome is not None:
        check_models(known, groups, counted, cv)
        units = None if clusters is None else design.units
        folds = {"cv": cv, "clusters": units, "random_state": random_state}
        models = OutcomeModels(outcome, given, target.outcome, shared, **folds)
    sums = None
    if models is not None or counted:
        sums = GroupSums(groups if counted else None, models, target.outcome.values.shape[1])
    columns = [] if models is None else shared
    columns = [*columns, groups.column] if counted and groups is not None else columns
    fitted = clone(default_weighter("estimate") if weighter is None else weighter)
    weighed = weigh(fitted, given, known, columns, sums, census=options.finite)
    target = replace(
        target, groups=groups, models=models, size=weighed.mass() if wanted.needs_size else 1.0
    )
    imputed = models is not None and (cv is None or isinstance(fitted, Unweighted))
    notes = _notes(kept, None if known_groups else groups, imputed=imputed)
    learner = None if outcome is None else str(outcome)
    return assemble(target, weighed, design, options, learner, notes)


def _notes(
    kept: BoolArray | None, unknown: Groups | None, *, imputed: bool = False
) -> tuple[str, ...]:
    """Return what was left out, what the population does not know, and what is not counted."""
    notes = [] if kept is None else [f"{len(kept) - kept.sum():,} rows without y were left out."]
    if unknown is not None:
        notes.append(
            f"The population has no column '{unknown.column}': its groups are those of the sample."
        )
    if imputed:
        notes.append(
            "The outcome model's own error is not counted, and the interval is too short: "
            "one model has seen the rows of its residuals, or no weights correct it. Use cv=5 with "
            "weights that do: leave out cv=None and weighter=Unweighted()."
        )
    return tuple(notes)
