r"""The certificate of a fitted model: by how much estimating the weights can have changed it.

The perfect weights are not known, but they lie in a region (:mod:`unskew.theory.regions`): what the
counts of cells, the covariance of the weights' parameters or a bootstrap allow, or one other
weighting. The learner is read as a model that is linear in features
(:mod:`unskew.theory.learners`), for which it is known how far the weights of a region can move it
(:mod:`unskew.theory.moves`). This module brings the two together: a learner, a region, and one
:class:`Bound` of what was found.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, partial
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from unskew.errors import InputError, InputTypeError, ParameterError
from unskew.numerics.joint_region import worst_sum
from unskew.numerics.typing import FloatArray, IntArray
from unskew.numerics.weight_vectors import check_weights
from unskew.population.population import Population
from unskew.theory.bound import (
    Bound,
    Form,
    check_option,
    check_positive,
    check_probability,
    not_covered,
)
from unskew.theory.cell_bounds import cluster_bound
from unskew.theory.flips import FlipRule, PopulationSource, WithinEllipsoid
from unskew.theory.learners import check_reweighted, read_learner
from unskew.theory.models import FittedModel, KernelMetric, KernelModel, LinearModel
from unskew.theory.moves import joint_limits, moves, refit_spread, refits_with_draws
from unskew.theory.regions import (
    CellRegion,
    WeightRegion,
    bootstrap_region,
    coarser,
    parameter_region,
    read_cells,
    sums_by,
)
from unskew.theory.stability import PAPER, STABLE, lipschitz_constant
from unskew.theory.weighting_bounds import mean_distance, mean_matching_bound
from unskew.weighters.base import Weighter
from unskew.weighters.cells import CellWeighter

FLIPPED = "share of the weighted sample whose prediction could flip"
FLIPPED_IN_POPULATION = "share of the population whose prediction could flip"
ESTIMATE = "refit spread (an estimate, no bound)"


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

    With cells the value is the dual certificate (:mod:`unskew.theory.moves`) maximised over all
    probabilities of selection that the counts allow (:mod:`unskew.numerics.joint_region`); for
    kernel regressions the terms also hold, in the same units, the printed and the corrected
    Theorem 2, and Theorem 1 with the worst distance that the counts allow. With weights that have
    parameters, or over a bootstrap, learners whose loss is curved are fitted again with weights
    drawn from their asymptotic distribution (:mod:`unskew.theory.moves`); where there is no
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

    SVR and SVC do not penalise their offset, which Theorem 1 does not allow. They are compared with
    the perfectly weighted model of the kernel K + 1, whose offset is penalised; the fitted offset's
    size is part of the bound. So are linear learners whose loss has no curvature, or not enough;
    otherwise curvature determines the intercept, and the bound holds as it is.

    A linear model's gradient at its own weights, which the optimiser has left, is part of the bound
    (:mod:`unskew.theory.moves`).

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
    weighter = model.weighter_
    if isinstance(weighter, Weighter) and weighter.traits.matches_kernel_means:
        return mean_certificate(model, read_learner(model, X, y), population)
    certified = CertifiedModel(model, X, y, population, delta, int(refits), random_state)
    if other_weights is not None:
        return certified.with_other_weights(other_weights)
    rows, source = certified.rows, certified.source  # a learner that is not covered is refused here
    if region == "bootstrap":
        return certified.over(
            bootstrap_region(
                weighter,
                source,
                delta,
                rows,
                replicates=int(replicates),
                random_state=random_state,
            )
        )
    if isinstance(weighter, CellWeighter) or not weighter.traits.has_parameters:
        return certified.over_cells(int(coarse_cells))
    return certified.over(parameter_region(weighter, source, delta, rows))


@dataclass(frozen=True)
class CertifiedModel:
    """A fitted model, and what was passed with it.

    Parameters
    ----------
    model : Reweighted
    X, y, population, delta, refits, random_state
        As for :func:`certificate`.
    """

    model: Any
    X: Any
    y: Any
    population: Any
    delta: float = 0.05
    refits: int = 10
    random_state: Any = 0

    @cached_property
    def fitted(self) -> FittedModel:
        """The learner as the certificate sees it."""
        return read_learner(self.model, self.X, self.y)

    @property
    def rows(self) -> IntArray:
        """The places in the sample of the rows on which the learner depends."""
        every = np.arange(len(self.model.weights_))
        return self.fitted.places if isinstance(self.fitted, KernelModel) else every

    @cached_property
    def source(self) -> PopulationSource:
        """The population, and the columns that are asked for."""
        return PopulationSource(self.population, self.X)

    def over(self, region: WeightRegion) -> Bound:
        """Return the certificate for all weights of a region."""
        # 1) How far the weights of the region can move the model: all at once, or at worst.
        fitted, random = self.fitted, check_random_state(self.random_state)
        bound = None
        if region.drawn and isinstance(fitted, LinearModel):
            bound = self._drawn_moves(fitted, region, random)
        if bound is None:
            bound = self._worst_moves(fitted, region, random)
        # 2) That against how far its predictions differ from each other.
        spread = spread_of(*fitted.judged[1:])
        relative = "All predictions are equal."
        if spread:
            relative = (
                f"That is {bound.value / spread:.2g} times the spread of the predictions, "
                f"{spread:.3g}."
            )
        # 3) What learner and region say and assume together.
        what = "predictions" if fitted.classes is None else "decision function"
        changed = fitted.loss.change_of_mean(fitted.z, fitted.weights, bound.value)
        return replace(
            bound,
            terms={
                "spread of the predictions": spread,
                **bound.terms,
                "change of the weighted mean loss": changed,
                **region.terms,
            },
            assumptions=(
                f"{fitted.name} with the perfect weights is fitted to convergence",
                "the perfect weights have the same scale; the penalty, and earlier steps, stay the "
                "same",
                *bound.assumptions,
                *region.assumptions,
            ),
            reference=f"strong convexity, the curvature of the loss and {region.source}",
            statement=f"{region.headline} the {what} (root mean square over the weighted sample)",
            reason=why_vacuous(bound.value, spread) if bound.value > 0 else "",
            remarks=(*region.remarks, relative, *bound.remarks),
        )

    def _worst_moves(
        self, fitted: FittedModel, region: WeightRegion, random: np.random.RandomState
    ) -> Bound:
        """Return by how much the worst weights of the region can have moved the model."""
        found = moves(fitted, region)
        terms = {fitted.most_term: float(found.reach.max()), fitted.norm_term: found.norm}
        assumptions: tuple[str, ...] = ()
        remarks: list[str] = []
        if isinstance(fitted, LinearModel):
            terms["part left by the optimiser"] = found.left
        else:
            assumptions = (f"{fitted.name} has itself converged",)
        if found.penalised:
            assumptions += (
                "the intercept of the perfectly weighted model is penalised as the coefficients "
                f"are (kernel K + 1), which that of {fitted.name} is not: no theorem covers that",
            )
        if isinstance(region, CellRegion):
            cells, place = region.cells, found.dominant
            name, m, n = cells.names[place], cells.sample[place], cells.population[place]
            terms |= {"dominant cell": name, "its sample count": m, "its population count": n}
            remarks.append(
                f"The largest part comes from cell {name}, of which {m:.0f} of {n:.0f} rows are in "
                "the sample."
            )
        if fitted.classes is not None:
            rules = [WithinEllipsoid(one, *fitted.judged) for one in found.ellipsoids]
            shares = {name: float(one[0]) for name, one in self._flips(*rules)}
            terms |= shares
            remarks.append(_flipped(shares))
        estimate = refit_spread(fitted, region, found, random, self.refits)
        if estimate is not None:
            terms[ESTIMATE] = estimate
            remarks.append(
                "As an estimate, not a bound: refits with weights drawn as the data allow move the "
                f"predictions by {estimate:.3g}."
            )
        return Bound(found.on_average, terms, assumptions, remarks=tuple(remarks))

    def _drawn_moves(
        self, fitted: LinearModel, region: WeightRegion, random: np.random.RandomState
    ) -> Bound | None:
        """Return the moves where draws of the weights are as likely as the perfect ones."""
        found = refits_with_draws(fitted, region, self.delta, random)
        if found is None:
            return None
        rule, numbers, left = found
        flips = dict(self._flips(rule)) if fitted.classes is not None else {}
        # All numbers of a draw are read off at one rank, so that they hold at once.
        limits = joint_limits({**numbers, **flips}, self.delta)
        shares = {name: limits[name] for name in flips}
        return Bound(
            limits["average"],
            {
                fitted.most_term: limits["most"],
                fitted.norm_term: limits["norm"],
                "part left by the optimiser": left,
                **shares,
                ESTIMATE: math.sqrt(float(np.mean(numbers["average"] ** 2))),
            },
            remarks=(
                *([_flipped(shares)] if shares else []),
                f"All of these hold at once for all but {100 * self.delta:.6g} % of "
                f"{len(numbers['average'])} refits with weights drawn as the data allow.",
            ),
        )

    def with_other_weights(self, other_weights: Any) -> Bound:
        """Return how far the model is from the one that given weights would have made."""
        weights = self.model.weights_
        other = check_weights(other_weights, name="other_weights", n_rows=len(weights))
        if (weights == 0).any():
            not_covered("some rows have weight zero, and their part in the model is not known.")
        return self.over(WeightRegion.from_ratios((other / weights)[self.rows]))

    def over_cells(self, coarse_cells: int) -> Bound:
        """Return the certificate for all weights that the counts of the cells allow."""
        weighter, fitted = self.model.weighter_, self.fitted
        cells = read_cells(weighter, self.model.weights_)
        if self.population is not None and fitted.classes is None:
            raise ParameterError(
                "population is only for classifiers, kernel mean matching and weights with "
                f"parameters; the cells of {type(weighter).__name__} have been counted already."
            )
        merged = coarser(cells, weighter, coarse_cells)
        region = CellRegion.from_cells(cells, self.delta, self.rows)
        bound = self.over(region)
        terms, said = dict(bound.terms), list(bound.remarks)
        reference = bound.reference
        if isinstance(fitted, KernelModel):
            beside = paper_terms(fitted, self.model.weights_, region, self.delta)
            terms |= beside
            reference += f"; {PAPER}, Theorems 1 and 2, beside it"
            said.append(
                f"At any single point they have moved by at most {terms[fitted.most_term]:.3g}; "
                f"the bound of the printed theorem is {beside['Theorem 2, as printed'].value:.3g}."
            )
        # Leaves that are too small for a bound may be large enough together, if the test lets the
        # leaves of a coarser cell share one probability.
        if merged is not None and merged.even.rejected:
            said.append(
                f"No bound on {len(merged.successes)} coarser cells is given: selection differs "
                f"within them (p = {merged.even.p_value:.2g})."
            )
        elif merged is not None:
            coarse = self.over(CellRegion.from_cells(merged, self.delta, self.rows, coarse=True))
            terms["on coarser cells"] = coarse
            said.append(
                f"On {len(merged.successes)} coarser cells, if each has one probability of "
                f"selection: at most {coarse.value:.3g}."
            )
        return replace(bound, terms=terms, reference=reference, remarks=tuple(said))

    def _flips(self, *rules: FlipRule) -> list[tuple[str, FloatArray]]:
        """Return the shares of predictions that could flip, by the rule that bounds them best."""
        # Every rule is valid. The one that is best in the sample is asked of the population, once.
        features, scores, weights = self.fitted.judged
        total = float(weights.sum())
        found = [rule.shares(rule.tally(features, scores, weights), total) for rule in rules]
        best = int(np.argmin([share[0] for share in found]))
        shares = [(FLIPPED, found[best])]
        if self.source.has_rows:
            asked = self.source.flips(rules[best], self.fitted.read)
            shares.append((FLIPPED_IN_POPULATION, asked))
        return shares


def _flipped(shares: dict[str, float]) -> str:
    """Return a sentence on the shares of predictions that could flip."""
    said = f"At most {100 * shares[FLIPPED]:.3g} % of the weighted sample's predictions could flip"
    if FLIPPED_IN_POPULATION in shares:
        said += f", and {100 * shares[FLIPPED_IN_POPULATION]:.3g} % of the population's"
    return f"{said}."


def mean_certificate(model: Any, fitted: FittedModel, population: Any) -> Bound:
    """Certify the mean prediction of a model whose weights come from kernel mean matching."""
    if not isinstance(fitted, KernelModel) or fitted.gaussian is None or fitted.gamma is None:
        not_covered("with kernel mean matching, the learner's kernel must be Gaussian.")
    if fitted.free_intercept:
        not_covered(
            f"{fitted.name} keeps its support vectors only, so the sample's mean cannot be taken."
        )
    if population is None or isinstance(population, Population):
        raise InputTypeError(
            "population must be rows as the learner takes them, an array or a dataframe: comparing "
            "the means needs all pairs of them at once."
        )
    steps = getattr(model.estimator_, "steps", None)
    rows = model.estimator_[:-1].transform(population) if steps else population
    # ‖h‖_K² = aᵀKa: the model itself is the function whose mean is compared.
    scores, weights = fitted.judged[1:]
    bound = mean_matching_bound(
        function_norm=math.sqrt(max(float(fitted.coefficients @ scores), 0.0)),
        mean_distance=mean_distance(fitted.rows, weights, rows, gamma=fitted.gamma),
    )
    spread = spread_of(scores, weights)
    return replace(
        bound,
        terms={**bound.terms, "spread of the predictions": spread},
        statement="For these rows, the weighted sample's mean prediction differs from the "
        "population's",
        reason=why_vacuous(bound.value, spread),
        remarks=(
            "Kernel mean matching does not determine single weights, so no bound on them or on the "
            "model is given (Theorem 4's is infinite where the kernel matrix is singular up to "
            "rounding).",
        ),
    )


def spread_of(scores: FloatArray, weights: FloatArray) -> float:
    """Return the standard deviation of predictions over the weighted sample."""
    mean = np.average(scores, weights=weights)
    return float(np.sqrt(np.average((scores - mean) ** 2, weights=weights)))


def why_vacuous(value: float, spread: float) -> str:
    """Return why a bound on the change of predictions is vacuous, or nothing where it is not."""
    return "" if value < spread else "the predictions themselves differ by no more than that"


def paper_terms(
    fitted: KernelModel, weights: FloatArray, region: CellRegion, delta: float
) -> dict[str, Bound]:
    """Return what the paper's theorems say of any single prediction, where weights are counts."""
    cells, kappa = region.cells, fitted.kappa
    rows = float(cells.sample.sum())
    # The paper's weights are n_C / (m m_C); the learner's are a multiple of them.
    ratio = (cells.population / cells.sample)[cells.of_row]
    unit = rows * float(np.median(weights / ratio))
    # The largest l1 distance over the counts: Σ_i W_i |ρ_i − 1|, with ρ − 1 = (s + f − 1) + f t.
    of_cell = sums_by(cells.of_row, weights * cells.factor, len(cells.successes))
    off = np.abs(cells.shift + cells.factor - 1) @ weights
    moved = worst_sum(region.errors, of_cell) + float(off)
    bounded, free = _lipschitz(fitted, float(weights.sum()) + moved)
    likely = f"With probability {100 * (1 - delta):.6g} %"
    statement = f"{cells.even.headline(likely)}, the change of any prediction"

    def theorem_2(form: Form, sigma: float) -> Bound:
        bound = cluster_bound(
            population_counts=cells.population,
            sample_counts=cells.sample,
            kappa=kappa,
            lam=fitted.penalty / 2 / unit,
            lipschitz=sigma,
            delta=delta,
            form=form,
        )
        # The loss changes by at most σ times the prediction: without its last σ, the theorem bounds
        # the prediction itself.
        return replace(bound, value=bound.value / sigma, statement=statement)

    worst = Bound(
        # Theorem 1 before its last step: sup|Δh| ≤ κ^{1/2} ‖Δh‖_K ≤ σ κ l1 / (2 λ).
        value=free * kappa * moved / fitted.penalty,
        terms={"l1 distance of the weights, in the learner's units": moved, "lipschitz": free},
        assumptions=(*STABLE, *cells.assumptions),
        reference=f"{PAPER}, Theorem 1, with a joint region of the counts",
        statement=statement,
    )
    return {
        "Theorem 1, worst case over the counts": worst,
        "Theorem 2, corrected": theorem_2("corrected", free),
        "Theorem 2, as printed": theorem_2("paper", bounded),
    }


def _lipschitz(fitted: KernelModel, total: float) -> tuple[float, float]:
    """Return σ for predictions bounded as the labels are, as the paper assumes, and without."""
    if fitted.free_intercept:
        return 1.0, 1.0
    # z is the prediction less the label, which gives the labels back; λ is half of ρ.
    largest = float(np.abs(fitted.judged[1] - fitted.z).max()) or 1.0
    sigma = partial(lipschitz_constant, "squared", largest_label=largest)
    return sigma(), sigma(kappa=fitted.kappa, lam=fitted.penalty / 2, total_weight=total)


def dual_certificate(
    *,
    coefficients: ArrayLike,
    kernel_matrix: ArrayLike,
    weights: ArrayLike,
    other_weights: ArrayLike,
    alpha: float | None = None,
) -> Bound:
    r"""Bound how far a kernel model would move if it were trained with other weights.

    Parameters
    ----------
    coefficients : array-like of shape (m,)
        a, with :math:`\hat h = \sum_i a_i K(x_i, \cdot)`: ``dual_coef_`` of a learner.
    kernel_matrix : array-like of shape (m, m)
    weights, other_weights : array-like of shape (m,)
        Those it was trained with, all positive, and those to compare with, in the same units.
    alpha : float, optional
        The penalty of a kernel ridge regression, in the units of the weights, if that is what was
        trained: its curvature sharpens the bound. Without it the bound holds for any convex loss.

    Returns
    -------
    Bound
        On :math:`\lVert h_W - \hat h \rVert_K`; no prediction moves further than that times
        :math:`\kappa^{1/2}`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.kernel_ridge import KernelRidge
    >>> from sklearn.metrics.pairwise import rbf_kernel
    >>> from unskew.theory import dual_certificate
    >>> X, y = np.array([[0.0], [1.0]]), np.array([1.0, -1.0])
    >>> model = KernelRidge(alpha=1.0, kernel="rbf", gamma=1.0).fit(X, y, sample_weight=[1.0, 1.0])
    >>> K = rbf_kernel(X, gamma=1.0)
    >>> bound = dual_certificate(coefficients=model.dual_coef_, kernel_matrix=K,
    ...                          weights=[1.0, 1.0], other_weights=[1.0, 2.0])
    >>> round(bound, 3)
    0.613
    """
    a = np.asarray(coefficients, dtype=np.float64).reshape(-1)
    K = np.asarray(kernel_matrix, dtype=np.float64)
    if K.shape != (len(a), len(a)):
        raise InputError(
            f"kernel_matrix has shape {K.shape} for {len(a)} coefficients; give one row and column "
            "for each."
        )
    trained = check_weights(weights, name="weights", n_rows=len(a))
    other = check_weights(other_weights, name="other_weights", n_rows=len(a))
    if (trained == 0).any():
        raise ParameterError(
            "weights must be positive: a row of weight zero has no coefficient. "
            "Leave such rows out of both."
        )
    region = WeightRegion.from_ratios(other / trained)
    # In units of ρ = 2 λ row i adds −a_i φ_i to the gradient, and H is at least one.
    value = region.pull(KernelMetric(K, a, 1.0))[0]
    terms = {"norm of the gradient over 2 lambda": value}
    if alpha is not None:
        alpha = check_positive(alpha, name="alpha")
        if (other > 0).all():  # (5) of unskew.theory.moves needs curvature in every row
            curved = math.sqrt(alpha) * region.pull(KernelMetric(K, a, alpha, curvature=other))[0]
            terms["with the curvature of the squared loss"] = curved
            value = min(value, curved)
    return Bound(
        value=value,
        terms=terms,
        assumptions=(
            "a convex loss, and a learner that has minimised sum_i W_i loss_i + lambda |h|_K^2 "
            "without an unpenalised offset",
            "the same lambda with both weightings",
        ),
        reference="strong convexity of the objective",
        statement="The distance in the kernel's norm from what the other weights would give",
    )
