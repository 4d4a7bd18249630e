"""A number of the population, with an interval that counts the estimation of the weights."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from unskew.errors import InputError
from unskew.estimation.assembling import Options, VarianceName, assemble, described_learner
from unskew.estimation.inputs import (
    Groups,
    check_models,
    design_codes,
    open_groups,
    open_labelled,
    opened,
    shared_columns,
)
from unskew.estimation.outcome_models import GroupSums, OutcomeModels
from unskew.estimation.results import Estimate, Estimates
from unskew.estimation.statistics import Statistic, Target, statistic_of
from unskew.estimation.weighing import weigh
from unskew.numerics.design_variance import Design
from unskew.numerics.typing import BoolArray
from unskew.rows.labels import by_position
from unskew.weighters.base import Weighter
from unskew.weighters.defaults import default_weighter
from unskew.weighters.unweighted import Unweighted


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
    groups, known_groups = open_groups(_kept(by_position(by, X, "by"), kept), rows, shared)
    counted = known_groups and known.about.margins is None
    codes = [
        design_codes(_kept(by_position(one, X, name), kept), name, rows)
        for one, name in ((strata, "strata"), (clusters, "clusters"))
    ]
    design = Design.of(len(given), *codes)
    models = None
    if outcome is not None:
        check_models(known, groups, counted, cv)
        folds = {"cv": cv, "clusters": codes[1], "random_state": random_state}
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
    return assemble(target, weighed, design, options, described_learner(outcome), notes)


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


def _kept(given: Any, kept: Any) -> Any:
    """Return the entries of the rows that are used; a name stays."""
    return (
        given
        if given is None or isinstance(given, str) or kept is None
        else np.asarray(given)[kept]
    )
