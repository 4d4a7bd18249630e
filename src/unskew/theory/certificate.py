r"""The certificate of a fitted model: by how much estimating the weights can have changed it.

The perfect weights are not known, but they lie in a region: what the counts of cells allow
(:mod:`unskew.theory.cell_region`), what the covariance of the weights' parameters or a bootstrap
allows, or one other weighting (:mod:`unskew.theory.regions`). The learner is a linear one
(:mod:`unskew.theory.moves`, :mod:`unskew.theory.refits`) or a kernel one
(:mod:`unskew.theory.kernel_models`), and says how far the weights of a region can move it. This
module brings the two together: a learner, a region, and one :class:`Bound` of what was found.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, partial
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from unskew.errors import ParameterError
from unskew.numerics.joint_region import worst_sum
from unskew.numerics.typing import FloatArray, IntArray
from unskew.numerics.weight_vectors import check_weights
from unskew.theory.bound import Bound, Form, check_option, check_probability, not_covered
from unskew.theory.cell_bounds import cluster_bound
from unskew.theory.cell_region import CellRegion, coarser, read_cells, sums_by
from unskew.theory.flips import Anywhere, FlipRule, WithinEllipsoid
from unskew.theory.kernel_mean_matching import mean_certificate, why_vacuous
from unskew.theory.kernel_models import KernelModel, read_kernel_model
from unskew.theory.linear_models import LINEAR, check_reweighted, last_step, read_linear_model
from unskew.theory.moves import LinearSystem
from unskew.theory.population_source import PopulationSource
from unskew.theory.refits import Refits, joint_limits, refits_with_draws
from unskew.theory.regions import (
    OtherWeights,
    WeightRegion,
    bootstrap_region,
    parameter_region,
)
from unskew.theory.stability import PAPER, STABLE, lipschitz_constant
from unskew.weighters.base import Weighter
from unskew.weighters.cells import CellWeighter

FLIPPED = "share of the weighted sample whose prediction could flip"
FLIPPED_IN_POPULATION = "share of the population whose prediction could flip"
ESTIMATE = "refit spread (an estimate, no bound)"
ANYWHERE = "dual certificate, at any single point"


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

    With cells the value is the dual certificate (:mod:`unskew.theory.kernel_models`) maximised over
    all probabilities of selection that the counts allow (:mod:`unskew.numerics.joint_region`); for
    kernel regressions the terms also hold, in the same units, the printed and the corrected
    Theorem 2, and Theorem 1 with the worst distance that the counts allow. With weights that have
    parameters, or over a bootstrap, learners whose loss is curved are fitted again with weights
    drawn from their asymptotic distribution (:mod:`unskew.theory.refits`); where there is no
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
        return mean_certificate(model, read_kernel_model(model), delta, population)
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


class Movement(NamedTuple):
    """What the weights of a region can have done to a model, as a certificate says it."""

    value: float
    """The change of the predictions, as a root mean square over the weighted sample."""
    terms: dict[str, float]
    assumptions: tuple[str, ...]
    remarks: tuple[str, ...]
    reference: str = "strong convexity"


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
    def fitted(self) -> KernelModel | LinearSystem:
        """The learner as the certificate sees it."""
        if isinstance(last_step(self.model), LINEAR):
            return LinearSystem(read_linear_model(self.model, self.X, self.y))
        return read_kernel_model(self.model, self.X)

    @property
    def rows(self) -> IntArray:
        """The places in the sample of the rows on which the learner depends."""
        if isinstance(self.fitted, LinearSystem):
            return np.arange(len(self.model.weights_))
        return self.fitted.places

    @cached_property
    def source(self) -> PopulationSource:
        """The population, and the columns that are asked for."""
        return PopulationSource(self.population, self.X)

    def over(self, region: WeightRegion) -> Bound:
        """Return the certificate for all weights of a region."""
        # 1) How far the weights of the region can move the model.
        fitted, words = self.fitted, region.words
        moved = (
            self._linear_movement(fitted, region)
            if isinstance(fitted, LinearSystem)
            else self._kernel_movement(fitted, region)
        )
        # 2) That against how far its predictions differ from each other.
        scores, weights = fitted.judged[1:]
        mean = np.average(scores, weights=weights)
        spread = float(np.sqrt(np.average((scores - mean) ** 2, weights=weights)))
        relative = "All predictions are equal."
        if spread:
            relative = (
                f"That is {moved.value / spread:.2g} times the spread of the predictions, "
                f"{spread:.3g}."
            )
        # 3) What learner and region say and assume together.
        what = "predictions" if fitted.classes is None else "decision function"
        return Bound(
            value=moved.value,
            terms={"spread of the predictions": spread, **moved.terms, **words.terms},
            assumptions=(*moved.assumptions, *words.assumptions),
            reference=f"{moved.reference} and {words.region}",
            statement=f"{words.headline} the {what} (root mean square over the weighted sample)",
            reason=why_vacuous(moved.value, spread) if moved.value > 0 else "",
            remarks=(*words.remarks, relative, *moved.remarks),
        )

    def with_other_weights(self, other_weights: Any) -> Bound:
        """Return how far the model is from the one that given weights would have made."""
        weights = self.model.weights_
        other = check_weights(other_weights, name="other_weights", n_rows=len(weights))
        if (weights == 0).any():
            not_covered("some rows have weight zero, and their part in the model is not known.")
        return self.over(OtherWeights((other / weights)[self.rows]))

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
        if isinstance(fitted, KernelModel):
            bound = self._with_theorems(bound, fitted, region)
        # Leaves that are too small for a bound may be large enough together, if the test lets the
        # leaves of a coarser cell share one probability.
        if merged is None:
            return bound
        n_cells, terms = len(merged.successes), bound.terms
        if merged.even.rejected:
            said = (
                f"No bound on {n_cells} coarser cells is given: selection differs within them "
                f"(p = {merged.even.p_value:.2g})."
            )
        else:
            coarse = self.over(CellRegion.from_cells(merged, self.delta, self.rows, coarse=True))
            terms = {**terms, "on coarser cells": coarse}
            said = (
                f"On {n_cells} coarser cells, if each has one probability of selection: at most "
                f"{coarse.value:.3g}."
            )
        return replace(bound, terms=terms, remarks=(*bound.remarks, said))

    def _with_theorems(self, bound: Bound, fitted: KernelModel, region: CellRegion) -> Bound:
        """Return the certificate of a kernel model, the paper's theorems and refits beside it."""
        beside = paper_terms(fitted, self.model.weights_, region, self.delta)
        random = check_random_state(self.random_state)
        estimate = fitted.refit_spread(region, random, self.refits)
        remarks = (
            f"At any single point they have moved by at most {bound.terms[ANYWHERE]:.3g}; the "
            f"bound of the printed theorem is {beside['Theorem 2, as printed'].value:.3g}.",
            "As an estimate, not a bound: refits with weights drawn as the counts allow move the "
            f"predictions by {estimate:.3g}.",
        )
        return replace(
            bound,
            terms={**bound.terms, **beside, ESTIMATE: estimate},
            reference=f"{bound.reference}; {PAPER}, Theorems 1 and 2, beside it",
            remarks=(*bound.remarks, *remarks),
        )

    def _kernel_movement(self, fitted: KernelModel, region: WeightRegion) -> Movement:
        """Return by how much a kernel model can have moved."""
        moves = fitted.moves(region)
        terms = {ANYWHERE: moves.anywhere, "dual certificate, in the kernel's norm": moves.norm}
        remarks: tuple[str, ...] = ()
        if isinstance(region, CellRegion):
            name, m, n = region.cells.named(moves.dominant)
            terms |= {"dominant cell": name, "its sample count": m, "its population count": n}
            remarks = (
                f"The largest part comes from cell {name}, of which {m:.0f} of {n:.0f} rows are in "
                "the sample.",
            )
        if fitted.classes is not None:
            # The kernel's space has too many directions for an ellipsoid: one reach for all rows.
            shares = {name: float(one[0]) for name, one in self._flips(Anywhere(moves.anywhere))}
            terms, remarks = {**terms, **shares}, (*remarks, _flipped(shares))
        assumptions: tuple[str, ...] = (
            f"{fitted.name} has converged, and the perfect weights have the same scale",
        )
        if not fitted.squared:
            assumptions += (
                "the offset of the perfectly weighted model is penalised (kernel K + 1), which "
                f"{fitted.name}'s own is not: no theorem covers that",
            )
        return Movement(moves.on_average, terms, assumptions, remarks)

    def _linear_movement(self, system: LinearSystem, region: WeightRegion) -> Movement:
        """Return by how much a linear model can have moved."""
        random = check_random_state(self.random_state)
        if region.drawn:
            found = refits_with_draws(system, region, self.delta, random)
            if found is not None:
                return self._drawn_movement(system, found)
        moves = system.moves(region)
        shares: dict[str, float] = {}
        if system.classes is not None:
            rules = [WithinEllipsoid(one, *system.judged) for one in moves.ellipsoids]
            shares = {name: float(one[0]) for name, one in self._flips(*rules)}
        estimate = system.refit_spread(region, random, self.refits)
        remark = ""
        if estimate is not None:
            remark = (
                "As an estimate, not a bound: refits with weights drawn as the data allow move the "
                f"predictions by {estimate:.3g}."
            )
        return self._movement(
            system,
            (moves.on_average, float(moves.reach.max()), moves.norm, moves.left),
            shares,
            estimate,
            remark,
            penalised=moves.penalised,
        )

    def _drawn_movement(self, system: LinearSystem, found: Refits) -> Movement:
        """Return the movement where draws of the weights are as likely as the perfect ones."""
        numbers = {"average": found.on_average}
        if system.classes is not None:
            numbers |= dict(self._flips(found.rule))
        # All numbers of a draw are read off at one rank, so that they hold at once.
        numbers |= {"most": found.most, "norm": found.norm}
        limits = dict(zip(numbers, joint_limits(list(numbers.values()), self.delta), strict=True))
        return self._movement(
            system,
            (limits["average"], limits["most"], limits["norm"], found.left),
            {name: limits[name] for name in (FLIPPED, FLIPPED_IN_POPULATION) if name in limits},
            math.sqrt(float(np.mean(found.on_average**2))),
            f"All of these hold at once for all but {100 * self.delta:.6g} % of "
            f"{len(found.on_average)} refits with weights drawn as the data allow.",
        )

    def _movement(
        self,
        system: LinearSystem,
        sizes: tuple[float, float, float, float],
        shares: dict[str, float],
        estimate: float | None,
        remark: str,
        *,
        penalised: bool = False,
    ) -> Movement:
        """Return the movement of a linear model: on average, at most, in norm, by its optimiser."""
        model, (value, most, norm, left) = system.model, sizes
        terms = {
            "at the sample row that moves most": most,
            "in the norm of the coefficients": norm,
            "change of the weighted mean loss": model.loss.change_of_mean(
                system.z, model.weights, value
            ),
            "part left by the optimiser": left,
            **shares,
        }
        if estimate is not None:
            terms[ESTIMATE] = estimate
        assumptions: tuple[str, ...] = (
            f"{model.name} with the perfect weights is fitted to convergence",
            "the perfect weights have the same scale; the penalty, and earlier steps, stay the "
            "same",
        )
        if penalised:
            assumptions += (
                "the intercept of the perfectly weighted model is penalised as the coefficients "
                f"are, which that of {model.name} is not",
            )
        remarks = tuple(line for line in (_flipped(shares), remark) if line)
        reference = "strong convexity, the curvature of the loss"
        return Movement(value, terms, assumptions, remarks, reference)

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
    if not shares:
        return ""
    said = f"At most {100 * shares[FLIPPED]:.3g} % of the weighted sample's predictions could flip"
    if FLIPPED_IN_POPULATION in shares:
        said += f", and {100 * shares[FLIPPED_IN_POPULATION]:.3g} % of the population's"
    return f"{said}."


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
            lam=fitted.penalty / unit,
            lipschitz=sigma,
            delta=delta,
            form=form,
        )
        # The loss changes by at most σ times the prediction: without its last σ, the theorem bounds
        # the prediction itself.
        return replace(bound, value=bound.value / sigma, statement=statement)

    worst = Bound(
        # Theorem 1 before its last step: sup|Δh| ≤ κ^{1/2} ‖Δh‖_K ≤ σ κ l1 / (2 λ).
        value=free * kappa * moved / (2 * fitted.penalty),
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
    if not fitted.squared:
        return 1.0, 1.0
    # Kernel ridge regression has α a_i = W_i (y_i − h(x_i)), which gives the labels back.
    labels = fitted.predictions + fitted.penalty * fitted.coefficients / fitted.weights
    largest = float(np.abs(labels).max()) or 1.0
    sigma = partial(lipschitz_constant, "squared", largest_label=largest)
    return sigma(), sigma(kappa=fitted.kappa, lam=fitted.penalty, total_weight=total)
