"""The certificate of a fitted model: by how much estimating the weights can have changed it."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral
from typing import Any

from unskew.errors import ParameterError
from unskew.numerics.weight_vectors import check_weights
from unskew.theory.bootstrap_region import read_bootstrap
from unskew.theory.bound import Bound
from unskew.theory.certified import Given
from unskew.theory.checks import check_option, check_probability
from unskew.theory.fitted import KernelModel, check_reweighted, read_model
from unskew.theory.kernel_certificate import paper_terms
from unskew.theory.linear_moves import LinearSystem
from unskew.theory.mean_certificate import mean_certificate
from unskew.theory.not_covered import not_covered
from unskew.theory.parameter_region import Parameters, read_parameters
from unskew.theory.partitions import CountedCells, coarser, read_cells
from unskew.theory.refit_spread import refit_spread
from unskew.theory.regions import CellRegion, GivenRegion
from unskew.theory.stability import PAPER
from unskew.theory.wording import Known, coarse_remark, rejected_remark
from unskew.weighters.cells import CellWeighter

FEW_ROWS = 30
"""The effective sample size below which asymptotic statements say so, as estimates do."""


def certificate(
    reweighted_model: Any,
    delta: float = 0.05,
    *,
    X: Any = None,
    y: Any = None,
    population: Any = None,
    other_weights: Any = None,
    coarse_cells: int = 60,
    refits: int = 10,
    region: str = "auto",
    replicates: int = 200,
    random_state: Any = 0,
) -> Bound:
    r"""Bound by how much estimating the weights can have changed a fitted model.

    Compares the model with the one that the same learner would have given with the perfect
    weights, in the same scale. The value bounds by how much the predictions differ, as a root mean
    square over the weighted sample, with probability at least 1 − δ, if selection is even within
    cells. That is tested at level 0.05 on the rows that the weighter examined; unless the test lets
    it stand, the statement says so first. The bound is vacuous where it is no smaller than the
    spread of the predictions themselves.

    With cells the value is the dual certificate (:mod:`unskew.theory.dual`) maximised over all
    probabilities of selection that the counts allow (:mod:`unskew.numerics.joint_region`); for
    kernel regressions the terms also hold, in the same units, the printed and the corrected
    Theorem 2, and Theorem 1 with the worst distance that the counts allow. With weights that have
    parameters, or over a bootstrap, learners whose loss is curved are fitted again with weights
    drawn from their asymptotic distribution (:mod:`unskew.theory.linear_refits`); where there is no
    curvature, or a penalty biases the weights, the value is the worst case over the confidence
    ellipsoid.

    Parameters
    ----------
    reweighted_model : Reweighted
        Fitted; its learner is KernelRidge, SVR or SVC with a kernel that has a bound, Ridge,
        LogisticRegression, LinearSVC, LinearSVR, SGDClassifier or SGDRegressor with an l2 penalty,
        by itself or as the last step of a pipeline; classifiers have two classes. Its weighter
        counts cells (``TreeWeights``, ``ClusterWeights``, ``HistogramWeights``,
        ``FrequencyWeights``), has parameters (``CalibrationWeights``,
        ``ClassifierWeights("logistic")``) or is ``KernelMeanMatching``. Anything else is a
        ``LearnerError`` whose message begins with "not covered" and gives the reason.
    delta : float, default=0.05
        The probability with which the bound may fail.
    X, y : array-like, optional
        The sample as it was given to ``fit``. Linear learners need both, for they do not keep it;
        SVC, and weights with parameters, need X.
    population : Population, or anything that :class:`unskew.Population` takes, optional
        For a classifier: to count, in one pass, whose prediction could flip. For weights with
        parameters: their covariance needs it, by a pass of its own (:class:`unskew.Margins` count
        as known without error). For kernel mean matching, rows as the learner takes them: to
        compare the means in the learner's kernel.
    other_weights : array-like of shape (m,), optional
        Compare with the model of these weights, in the scale of ``weights_``, instead of with all
        that the data allow. The bound is then certain.
    coarse_cells : int, default=60
        For trees with smaller leaves: the least number of rows in the cells of a pruned tree. A
        second certificate uses these cells; it assumes more, and its bound is smaller. It is left
        out where the same test finds that selection differs within them.
    refits : int, default=10
        How many draws of the weights estimate what a refit would change; this is not a bound.
    region : {"auto", "bootstrap"}, default="auto"
        Where the perfect weights lie. "auto": where the counts of cells, or the covariance of the
        weights' parameters, allow. "bootstrap": the weights are solved again with rows drawn
        again, for any weighter that can weigh new rows; needs X and population. Asymptotic.
    replicates : int, default=200
        Of the bootstrap.
    random_state : int, RandomState instance or None, default=0
        For draws and replicates.

    Returns
    -------
    Bound

    Notes
    -----
    With kernel mean matching, whose single weights are not determined, the value bounds how far the
    weighted sample's mean prediction is from the population's.

    Where cells hold fewer than ten rows on average, the curvature of the squared loss is not used:
    the certificate is vacuous there either way, and would cost more than the fit.

    SVR and SVC do not penalise their offset, which Theorem 1 does not allow. They are compared with
    the perfectly weighted model of the kernel K + 1, whose offset is penalised; the fitted offset's
    size is part of the bound. So are linear learners whose loss has no curvature, or not enough;
    otherwise curvature determines the intercept, and the bound holds as it is.

    A linear model's gradient at its own weights, which the optimiser has left, is part of the bound
    (:mod:`unskew.theory.linear_moves`).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.kernel_ridge import KernelRidge
    >>> from unskew import HistogramWeights, Reweighted
    >>> from unskew.theory import certificate
    >>> random = np.random.default_rng(0)
    >>> population = random.integers(0, 5, size=(4000, 1)).astype(float)
    >>> selected = random.uniform(size=4000) < 0.2 + 0.15 * population[:, 0]
    >>> sample = population[selected]
    >>> labels = np.sin(sample[:, 0]) + 0.1 * random.normal(size=len(sample))
    >>> model = Reweighted(KernelRidge(kernel="rbf", gamma=1.0),
    ...                    HistogramWeights(buckets={0: [0.5, 1.5, 2.5, 3.5]}))
    >>> bound = certificate(model.fit(sample, labels, population=population))
    >>> bound.vacuous, bound < 0.1 * bound.terms["spread of the predictions"]
    (False, True)

    Of a classifier with weights that match means, by bootstrap:

    >>> from sklearn.linear_model import LogisticRegression
    >>> from unskew import CalibrationWeights
    >>> classes = labels > 0
    >>> model = Reweighted(LogisticRegression(), CalibrationWeights(features="means"))
    >>> model = model.fit(sample, classes, population=population)
    >>> bound = certificate(model, X=sample, y=classes, population=population,
    ...                     region="bootstrap", replicates=39)
    >>> bound.vacuous, bound.terms["replicates of the weights"]
    (False, 39)
    """
    delta = check_probability(delta, name="delta")
    region = check_option(region, ("auto", "bootstrap"), name="region")
    for name, number in (
        ("coarse_cells", coarse_cells),
        ("refits", refits),
        ("replicates", replicates),
    ):
        if not isinstance(number, Integral) or number < 1:
            raise ParameterError(f"{name} must be a whole number of at least 1; got {number!r}.")
    model = reweighted_model
    check_reweighted(model)
    given = Given(model, X, y, population, int(refits), random_state)
    weighter = model.weighter_
    if getattr(weighter, "_matches_kernel_means", False):
        return mean_certificate(model, read_model(model), delta, population)
    if other_weights is not None:
        return _of_given_weights(given, other_weights)
    if region == "bootstrap":
        return _of_replicates(given, delta, int(replicates))
    if isinstance(weighter, CellWeighter) or not weighter._has_parameters:
        return _of_cells(given, delta, int(coarse_cells))
    return _of_parameters(given, delta)


def _of_cells(given: Given, delta: float, coarse_cells: int) -> Bound:
    """Return the certificate for all weights that the counts of the cells allow."""
    weighter, weights, fitted = given.model.weighter_, given.model.weights_, given.fitted
    classes = fitted.model.classes if isinstance(fitted, LinearSystem) else fitted.classes
    cells = read_cells(weighter, weights)
    if given.population is not None and classes is None:
        raise ParameterError(
            "population is only for classifiers, kernel mean matching and weights with "
            f"parameters; the cells of {type(weighter).__name__} have been counted already."
        )
    merged = coarser(cells, weighter, coarse_cells)
    region = CellRegion(cells, cells.errors(delta), given.rows)
    bound = given.certify(region, _known_cells(cells, delta))
    if isinstance(fitted, KernelModel):
        bound = _beside_theorems(bound, given, fitted, region, delta)
    if merged is None:
        return bound
    if merged.even.rejected:
        return replace(bound, remarks=(*bound.remarks, rejected_remark(merged)))
    coarse = given.certify(
        CellRegion(merged, merged.errors(delta), given.rows),
        _known_cells(merged, delta, coarse=True),
    )
    return replace(
        bound,
        terms={**bound.terms, "on coarser cells": coarse},
        remarks=(*bound.remarks, coarse_remark(len(merged.successes), coarse)),
    )


def _beside_theorems(
    bound: Bound, given: Given, fitted: KernelModel, region: CellRegion, delta: float
) -> Bound:
    """Return the certificate of a kernel model with the paper's theorems and refits beside it."""
    beside = paper_terms(fitted, given.model.weights_, region, delta)
    estimate = refit_spread(fitted, region, refits=given.refits, random_state=given.random_state)
    anywhere = bound.terms["dual certificate, at any single point"]
    remarks = (
        f"At any single point they have moved by at most {anywhere:.3g}; the bound of the printed "
        f"theorem is {beside['Theorem 2, as printed'].value:.3g}.",
        "As an estimate, not a bound: refits with weights drawn as the counts allow move the "
        f"predictions by {estimate:.3g}.",
    )
    terms = {**bound.terms, **beside, "refit spread (an estimate, no bound)": estimate}
    return replace(
        bound,
        terms=terms,
        reference=f"{bound.reference}; {PAPER}, Theorems 1 and 2, beside it",
        remarks=(*bound.remarks, *remarks),
    )


def _known_cells(cells: CountedCells, delta: float, *, coarse: bool = False) -> Known:
    terms: dict[str, float] = {"delta": delta}
    if cells.even.p_value is not None:
        terms["p-value of even selection within cells"] = cells.even.p_value
    if coarse:
        terms["cells"] = len(cells.successes)
    shared = "all leaves under one node of the pruned tree share one probability of selection"
    likely = f"With probability {100 * (1 - delta):.6g} %"
    return Known(
        headline=f"{cells.even.headline(likely)}, estimating the weights has moved",
        region=f"the counts of {len(cells.successes)} cells",
        assumptions=(*cells.assumptions, shared) if coarse else cells.assumptions,
        remarks=(cells.even.remark,),
        terms=terms,
    )


def _of_parameters(given: Given, delta: float) -> Bound:
    """Return the certificate over the confidence ellipsoid of the weights' parameters."""
    given.fitted  # noqa: B018 - a learner that is not covered is refused first
    found = read_parameters(given.model.weighter_, given.asked, delta, given.rows)
    return _asymptotic(given, found, delta, "the covariance of {} parameters of the weights")


def _asymptotic(given: Given, found: Parameters, delta: float, region: str) -> Bound:
    """Return the certificate over a region that holds for many rows."""
    likely = f"asymptotically with probability {100 * (1 - delta):.6g} %"
    weights = given.model.weights_
    worth = float(weights.sum() ** 2 / (weights @ weights))
    few = (
        f"The statement is for many rows, and the weights leave the worth of {worth:.0f}: it may "
        "fail more often.",
    )
    name = "of the weights"
    number = {
        f"parameters {name}" if "parameters" in region else f"replicates {name}": found.number
    }
    return given.certify(
        found.region,
        Known(
            headline=f"{found.form.headline(likely)}, estimating the weights has moved",
            region=region.format(found.number),
            assumptions=found.assumptions,
            remarks=(found.form.remark, *(few if worth < FEW_ROWS else ())),
            terms={"delta": delta, **number},
        ),
        delta,
    )


def _of_replicates(given: Given, delta: float, replicates: int) -> Bound:
    """Return the certificate over weights that are solved again."""
    given.fitted  # noqa: B018 - a learner that is not covered is refused first
    found = read_bootstrap(
        given.model.weighter_,
        given.asked,
        delta,
        given.rows,
        replicates=replicates,
        random_state=given.random_state,
    )
    return _asymptotic(given, found, delta, "{} bootstrap replicates of the weights")


def _of_given_weights(given: Given, other_weights: Any) -> Bound:
    """Return how far the model is from the one that given weights would have made."""
    weights = given.model.weights_
    other = check_weights(other_weights, name="other_weights", n_rows=len(weights))
    if (weights == 0).any():
        not_covered("some rows have weight zero, and their part in the model is not known.")
    return given.certify(
        GivenRegion((other / weights)[given.rows]),
        Known(
            headline="These weights would have moved",
            region="the weights given",
            assumptions=(),
            remarks=(),
            terms={},
        ),
    )
