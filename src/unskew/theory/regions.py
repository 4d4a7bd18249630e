r"""Regions in which the perfect weights lie, and how far they can pull a fitted model.

Row i adds a vector :math:`v_i` to the gradient of the objective, so that with weights W instead of
:math:`\hat W` the gradient is :math:`\sum_i (W_i / \hat W_i - 1) v_i` plus what the optimiser has
left. A region bounds the norm of the sum over all weights in it (:meth:`WeightRegion.pull`), in
whatever metric (:mod:`unskew.theory.models`). There are four of them.

- One known weighting.
- **The counts of cells.** A cell weighter's weights are ratios of counts. Given the population, the
  number of sample rows of a cell is binomial, so that the counts confine the relative error t of
  each cell's weight to a box and an ellipsoid (:mod:`unskew.numerics.joint_region`). A row's
  perfect weight over its estimated one is :math:`\rho = s + f\,(1 + t)`.
- **The confidence ellipsoid** of the weights' parameters, and **a bootstrap**, which hold for many
  rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.linalg import eigvalsh
from scipy.sparse import csr_array
from scipy.stats import chi2
from sklearn.base import clone

from unskew.errors import InputError, ParameterError
from unskew.estimation.weighing import Replicates, weigh
from unskew.numerics.design_variance import SurveyDesign
from unskew.numerics.joint_region import RelativeErrors, relative_errors
from unskew.numerics.typing import FloatArray, IntArray
from unskew.population.population import Population
from unskew.rows.sample import Sample
from unskew.theory.assumption_tests import (
    FORM,
    AssumptionTest,
    DrawnPopulation,
    check_form,
    even_selection,
    sum_of_squares,
)
from unskew.theory.bound import not_covered
from unskew.theory.cell_bounds import PARTITION
from unskew.theory.flips import PopulationSource
from unskew.theory.models import KernelMetric, RootMetric
from unskew.weighters.base import WARN_ABOVE, Weighter
from unskew.weighters.cells import CellWeighter
from unskew.weighters.inductive import InductiveWeighter
from unskew.weighters.linearisation import Linearisation, left_by

FEW_ROWS = 30
"""The effective sample size below which asymptotic statements say so, as estimates do."""

MOST_UNCOVERED = WARN_ABOVE
"""The share of the population without sample rows up to which the certificate neglects it, and says
so among its assumptions: the share at which weighters begin to warn."""


@dataclass(frozen=True, kw_only=True)
class WeightRegion:
    """A set of weights, and what a certificate says of it; by itself, one known weighting.

    Attributes
    ----------
    least, most : ndarray of shape (m,)
        Each row's least and largest weight in the region, over its estimated one.
    headline : str
        How the certificate's statement begins.
    source : str
        What the region is, for the reference.
    assumptions, remarks : tuple of str
    terms : dict
    drawn : bool
        Whether its draws have, asymptotically, the distribution of the perfect weights.
    """

    least: FloatArray
    most: FloatArray
    headline: str = "These weights would have moved"
    source: str = "the weights given"
    assumptions: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    terms: dict[str, float] = field(default_factory=dict)
    drawn: bool = False

    @classmethod
    def from_ratios(cls, ratios: FloatArray) -> WeightRegion:
        """Return the region of one weighting, given over the estimated one."""
        return cls(least=ratios, most=ratios)

    @property
    def is_single(self) -> bool:
        """Whether it is one known weighting."""
        return self.least is self.most

    def pull(self, metric: RootMetric | KernelMetric) -> tuple[float, int]:
        """Return the largest norm of the change of the gradient, and what has the largest part.

        The second number is -1 where nothing has a part of its own.
        """
        return _length(metric, self.least - 1), -1

    def along(self, metric: RootMetric) -> tuple[FloatArray, FloatArray] | None:  # noqa: ARG002
        """Return A and b: the gradient changes by Aᵀe + b for an e of length one at most.

        None where that is not known.
        """
        return None

    def draws(self, random: np.random.RandomState, number: int) -> FloatArray | None:  # noqa: ARG002
        """Return W/Ŵ for weights drawn as the data allow, a column each; None for none."""
        return None


def _length(metric: RootMetric | KernelMetric, changes: FloatArray) -> float:
    """Return the norm of the gradient's change for one change of the weights."""
    return math.sqrt(max(float(metric.gram(changes[:, None])[0, 0]), 0.0))


@dataclass(frozen=True, kw_only=True)
class ParameterRegion(WeightRegion):
    r"""The confidence ellipsoid of the parameters of the weights, to first order.

    Unless errors of the parameters are centred at zero (``drawn``), only the worst case over the
    ellipsoid counts, which leaves room for a bias of the same order.

    Attributes
    ----------
    columns : ndarray of shape (m, q)
        The derivatives of the logarithm of each row's weight, in directions in which the errors of
        the parameters are independent and have the variance one.
    shares : ndarray of shape (m,)
        Of the estimated weights.
    delta : float
    degrees : float
        Of freedom of the covariance: the draws are Student's.
    """

    columns: FloatArray
    shares: FloatArray
    delta: float
    degrees: float

    def pull(self, metric: RootMetric | KernelMetric) -> tuple[float, int]:
        """Return the largest norm over the ellipsoid."""
        return gaussian_norm(metric.gram(self.columns), self.delta), -1

    def draws(self, random: np.random.RandomState, number: int) -> FloatArray:
        """Draw parameters from Student's distribution; the weights keep their total."""
        # Normal over the root of χ²/ν: the covariance is itself estimated.
        drawn = random.normal(size=(self.columns.shape[1], number))
        drawn /= np.sqrt(random.chisquare(self.degrees, size=number) / self.degrees)
        ratios: FloatArray = self.columns @ drawn
        np.exp(ratios, out=ratios)
        ratios /= self.shares @ ratios
        return ratios


@dataclass(frozen=True, kw_only=True)
class BootstrapRegion(WeightRegion):
    """Weights that were solved again with rows drawn again.

    Attributes
    ----------
    ratios : ndarray of shape (m, n_replicates)
        W*/Ŵ of each replicate.
    delta : float
    """

    ratios: FloatArray
    delta: float

    @classmethod
    def from_replicates(cls, ratios: FloatArray, delta: float, **words: Any) -> BootstrapRegion:
        """Return the region of these replicates."""
        least, most = ratios.min(axis=1), ratios.max(axis=1)
        return cls(least=least, most=most, ratios=ratios, delta=delta, drawn=True, **words)

    def pull(self, metric: RootMetric | KernelMetric) -> tuple[float, int]:
        """Return the norm that all but δ of the replicates stay below."""
        # How each replicate changes the gradient; the perfect weights are, asymptotically, one
        # more draw.
        norms = np.sqrt(np.maximum(np.diag(metric.gram(self.ratios - 1)), 0.0))
        return float(np.sort(norms)[order_statistic(len(norms), self.delta)]), -1

    def draws(self, random: np.random.RandomState, number: int) -> FloatArray:  # noqa: ARG002
        """Return the replicates, whatever number is asked for."""
        return self.ratios


@dataclass(frozen=True)
class BinomialCells:
    r"""Cells whose counts are binomial, and how the weights depend on the counts.

    A row's perfect weight over its estimated one is :math:`\rho = s + f\,(1 + t)`, where t is the
    relative error of its cell's count. For a partition that counts every sample row, s is 0 and f
    is 1.

    Attributes
    ----------
    of_row : ndarray of int of shape (m,)
        The cell of each sample row.
    successes, trials : ndarray of shape (k,)
        The binomial counts.
    unseen : int
        How many further cells there may be, that hold population rows but no sample row.
    shift, factor : ndarray of shape (m,)
        The s and f of each row.
    names : ndarray of int of shape (k,)
        What the weighter calls each cell.
    sample, population : ndarray of shape (k,)
        How many rows each cell holds.
    assumptions : tuple of str
    even : AssumptionTest
        The test of whether selection is even within the cells.
    """

    of_row: IntArray
    successes: FloatArray
    trials: FloatArray
    unseen: int
    shift: FloatArray
    factor: FloatArray
    names: IntArray
    sample: FloatArray
    population: FloatArray
    assumptions: tuple[str, ...]
    even: AssumptionTest

    def errors(self, delta: float) -> RelativeErrors:
        """Return the region that holds the relative errors with probability 1 − δ."""
        # Cells that hold no sample row count among the cells of the union bound; their own weights
        # are zero. There are at most as many as population rows outside of the other cells.
        successes = np.append(self.successes, np.zeros(self.unseen))
        trials = np.append(self.trials, np.ones(self.unseen))
        return relative_errors(successes, trials, delta).first(len(self.successes))

    def ratios(self, rows: IntArray, errors: FloatArray) -> FloatArray:
        """Return perfect over estimated weight of these rows, for relative errors of the cells."""
        return self.shift[rows] + self.factor[rows] * (1 + errors[self.of_row[rows]])


@dataclass(frozen=True, kw_only=True)
class CellRegion(WeightRegion):
    """All weights that the counts of cells allow.

    Attributes
    ----------
    cells : BinomialCells
    errors : RelativeErrors
        Of the cells' weights.
    rows : ndarray of int
        The places in the sample of the rows that contribute.
    factors : sparse array of shape (m, k)
        By how much an error of a cell's count changes each row's ratio.
    fixed : ndarray of shape (m,)
        Each row's change of the ratio that no count leaves open.
    """

    cells: BinomialCells
    errors: RelativeErrors
    rows: IntArray
    factors: csr_array
    fixed: FloatArray

    @classmethod
    def from_cells(
        cls, cells: BinomialCells, delta: float, rows: IntArray, *, coarse: bool = False
    ) -> CellRegion:
        """Return the region that holds the perfect weights with probability 1 − δ."""
        terms: dict[str, float] = {"delta": delta}
        if cells.even.p_value is not None:
            terms["p-value of even selection within cells"] = cells.even.p_value
        if coarse:
            terms["cells"] = len(cells.successes)
        shared = "all leaves under one node of the pruned tree share one probability of selection"
        likely = f"With probability {100 * (1 - delta):.6g} %"
        errors, factor = cells.errors(delta), cells.factor[rows]
        entries = (np.arange(len(rows)), cells.of_row[rows])
        return cls(
            least=cells.ratios(rows, errors.low),
            most=cells.ratios(rows, errors.high),
            headline=f"{cells.even.headline(likely)}, estimating the weights has moved",
            source=f"the counts of {len(cells.successes)} cells",
            assumptions=(*cells.assumptions, shared) if coarse else cells.assumptions,
            remarks=(cells.even.remark,),
            terms=terms,
            cells=cells,
            errors=errors,
            rows=rows,
            factors=csr_array((factor, entries), (len(rows), len(cells.successes))),
            fixed=cells.shift[rows] + factor - 1,
        )

    def pull(self, metric: RootMetric | KernelMetric) -> tuple[float, int]:
        """Return the largest norm over the counts, and the cell that has the largest part."""
        # Σ_i (ρ_i − 1) v_i is a sum over cells times their errors t, and what is fixed whatever
        # they are: ρ − 1 = (s + f − 1) + f t.
        worst, dominant = metric.worst(self.errors, self.factors)
        if self.fixed.any():
            worst += _length(metric, self.fixed)
        return worst, dominant

    def along(self, metric: RootMetric) -> tuple[FloatArray, FloatArray]:
        """Return the sums of the cells' vectors in units of the ellipsoid, and what is fixed."""
        # Σ c t² ≤ r is t = (r / c)^{1/2} e with |e| ≤ 1.
        scale = math.sqrt(self.errors.radius) / np.sqrt(self.errors.stiffness)
        vectors = scale[:, None] * metric.sums(self.factors)
        if len(vectors) > vectors.shape[1]:  # the same ellipsoid, with fewer numbers
            vectors = np.asarray(np.linalg.qr(vectors, mode="r"))
        return vectors, metric.sums(self.fixed[:, None])[0]

    def draws(self, random: np.random.RandomState, number: int) -> FloatArray:
        """Draw each cell's probability of selection from its posterior under Jeffreys' prior."""
        # The error of a cell's weight is t = q̂ / q − 1 for its probability q.
        m, n = self.cells.successes, self.cells.trials
        rate = random.beta(m + 0.5, n - m + 0.5, size=(number, len(m)))
        errors = (m / n) / rate - 1
        return np.column_stack([self.cells.ratios(self.rows, row) for row in errors])


def read_cells(weighter: Any, weights: FloatArray) -> BinomialCells:
    """Return the counts of a fitted cell weighter, or raise why they are not binomial."""
    # 1) Refuse what the theory does not cover.
    _check_covered(weighter, weights)
    cells, sample = weighter.cells_, weighter.sample_counts_
    population = np.rint(weighter.population_counts_)
    held = np.bincount(cells[cells >= 0], minlength=len(sample)).astype(np.float64)
    _check_binomial(weighter, held)
    # 2) Number the cells that hold sample rows, and count those that do not.
    used = np.flatnonzero(held > 0)
    place = np.full(len(sample) + 1, -1)
    place[used] = np.arange(len(used))
    of_row = place[cells]
    m, n, rows = sample[used], population[used], held[used]
    total = float(weighter.population_counts_.sum())
    unseen = int(np.ceil(weighter.uncovered_ * total)) + int(((population > 0) & (held == 0)).sum())
    selected, _, shared = PARTITION
    assumptions: tuple[str, ...] = (selected, weighter.partition_assumption, shared)
    if weighter.uncovered_ > 0:
        share = f"{weighter.uncovered_:.2%} of the population in cells without sample rows"
        assumptions += (f"the {share} are neglected",)
    rest = assumptions, even_selection(weighter)
    # 3) Each sample row was counted with the probability of selection q, and the weight is n/m.
    if not weighter.counts_one_half:
        ones = np.ones(len(cells))
        return BinomialCells(of_row, m, n, unseen, 0 * ones, ones, used, rows, n, *rest)
    # Or each selected row went to the counted half with probability 1/2. Given the other half, on
    # which the tree grew, a row outside it was counted with probability π = (q/2) / (1 - q/2), so
    # that 2/q = 1 + 1/π: the ratio is (m/n)(1 + 1/π) = m/n + (1 - grown/n)(1 + t).
    trials = n - (rows - m)
    shift, factor = (m / n)[of_row], (trials / n)[of_row]
    return BinomialCells(of_row, m, trials, unseen, shift, factor, used, rows, n, *rest)


def _check_covered(weighter: Any, weights: FloatArray) -> None:
    """Raise an error unless the weights are ratios of counts, for all but a few rows."""
    if not isinstance(weighter, CellWeighter):
        not_covered(why_no_region(weighter))
    if weighter.uncovered_ > MOST_UNCOVERED:
        not_covered(
            f"{weighter.uncovered_:.1%} of the population lies in cells without sample rows, and "
            "the counts cannot bound the error that follows. Use larger cells."
        )
    cells = weighter.cells_
    if (cells[weights > 0] < 0).any():
        not_covered(
            f"{int((cells[weights > 0] < 0).sum())} sample rows lie in cells in which no row was "
            "counted, so their weights were not estimated. Use larger cells."
        )


def _check_binomial(weighter: CellWeighter, held: FloatArray) -> None:
    """Raise an error unless counts are whole and the sample can be part of the population."""
    population = np.rint(weighter.population_counts_)
    sample = weighter.sample_counts_
    whole = np.array_equal(sample, held) or (
        weighter.counts_one_half and (sample == np.rint(sample)).all()
    )
    if not whole or (
        weighter.uncovered_ == 0 and not np.allclose(weighter.population_counts_, population)
    ):
        not_covered("design weights give counts that are not binomial.")
    used = held > 0
    if (population[used] < held[used]).any():
        cell = int(np.flatnonzero(used & (population < held))[0])
        not_covered(
            f"cell {cell} has {held[cell]:.0f} sample rows and {population[cell]:.0f} population "
            "rows, but the theory needs a sample that is part of the population."
        )


def coarser(cells: BinomialCells, weighter: Any, least: int) -> BinomialCells | None:
    """Return the cells of the pruned tree in which each counts ``least`` rows, or None.

    None where the cells are not leaves of a tree, or are large enough already. The weights stay
    those of the leaves; what is assumed is that all leaves of a coarser cell share one probability,
    so that the differences between their estimates are noise of known size.
    """
    if not hasattr(weighter, "tree_") or cells.successes.min() >= least:
        return None
    tree = weighter.tree_.tree_
    counted = np.zeros(tree.node_count)
    counted[cells.names] = cells.successes
    ancestor = _pruned(tree.children_left, tree.children_right, counted, least)
    merged, group = np.unique(ancestor[cells.names], return_inverse=True)
    if len(merged) == len(cells.names):
        return None
    successes, trials = sums_by(group, cells.successes), sums_by(group, cells.trials)
    fine, coarse = cells.successes / cells.trials, successes / trials
    # π̂_C / π_D = (π̂_C / π̂_D)(1 + t_D).
    return replace(
        cells,
        of_row=group[cells.of_row],
        successes=successes,
        trials=trials,
        factor=cells.factor * (fine / coarse[group])[cells.of_row],
        names=merged,
        sample=sums_by(group, cells.sample),
        population=sums_by(group, cells.population),
        even=even_selection(weighter, ancestor),
    )


def sums_by(group: IntArray, values: FloatArray, n_groups: int = 0) -> FloatArray:
    """Return the sum of the values in each group."""
    return np.bincount(group, weights=values, minlength=n_groups).astype(np.float64)


def _pruned(left: IntArray, right: IntArray, counts: FloatArray, least: int) -> IntArray:
    """Return each node's coarser cell: a node is split only if both children are large enough."""
    total = counts.copy()
    for node in range(len(left) - 1, -1, -1):  # scikit-learn numbers children after their parents
        if left[node] >= 0:
            total[node] = total[left[node]] + total[right[node]]
    ancestor = np.arange(len(left))
    for node in range(len(left)):
        if left[node] < 0:
            continue
        stop = ancestor[node] != node or min(total[left[node]], total[right[node]]) < least
        for child in (left[node], right[node]):
            ancestor[child] = ancestor[node] if stop else child
    return ancestor


def why_no_region(weighter: Any) -> str:
    """Return why neither counts nor parameters confine a weighter's weights, and what would."""
    name = type(weighter).__name__
    why = (weighter.traits.not_certifiable if isinstance(weighter, Weighter) else "") or (
        f"{name} does not weigh by counts in cells, nor by kernel mean matching, nor by parameters "
        "whose covariance is known"
    )
    why = why.removesuffix(".")
    if isinstance(weighter, InductiveWeighter) and weighter.traits.estimates:
        return f'{why}. region="bootstrap" solves them again instead.'
    return f"{why}."


def order_statistic(number: int, delta: float) -> int:
    """Return the place, from zero, that another draw exceeds with probability δ at most.

    Raises an error if there are too few draws.

    Examples
    --------
    >>> order_statistic(199, 0.05)
    189
    """
    # A further draw is as likely to have any of the number + 1 ranks.
    place = math.ceil((1 - delta) * (number + 1) - 1e-9)
    if place > number:
        raise ParameterError(
            f"{number} draws are too few for delta={delta:g}: use at least "
            f"{math.ceil(1 / delta - 1e-9) - 1}."
        )
    return place - 1


def gaussian_norm(covariance: FloatArray, delta: float) -> float:
    r"""Return a limit that the norm of a centred normal vector exceeds with probability δ at most.

    The smaller of two: the largest distance in its ellipsoid, :math:`\lambda_{\max}
    \chi^2_{1-\delta}`, and Chernoff's limit :math:`\min_s [\log(1/\delta) - \frac12 \sum_j \log(1 -
    2 s \lambda_j)] / s`, of the squared norm.

    Examples
    --------
    >>> round(gaussian_norm(np.eye(1), 0.05), 2)
    1.96
    """
    values = np.maximum(eigvalsh(covariance), 0.0)
    top = float(values[-1])
    if top == 0:
        return 0.0
    # χ² of the ellipsoid is best where one direction dominates, Chernoff where many are alike: its
    # s stays below 1 / (2 λ_max), where the moment is finite, and any s gives a valid limit.
    rank = int((values > 1e-12 * top).sum())
    tilts = np.linspace(0.02, 0.98, 49) / (2 * top)
    moments = -0.5 * np.log1p(-2 * np.multiply.outer(tilts, values)).sum(axis=1)
    chernoff = float(((math.log(1 / delta) + moments) / tilts).min())
    return math.sqrt(min(top * float(chi2.isf(delta, rank)), chernoff))


def parameter_region(
    weighter: Any, source: PopulationSource, delta: float, rows: IntArray
) -> ParameterRegion:
    r"""Return the region of a fitted weighter's parameters, or raise why there is none.

    Weights such as :math:`e^{\lambda^\top\varphi(x)}` or :math:`1 + e^{-\beta^\top\varphi(x)}`
    follow parameters that solve estimating equations. To first order :math:`W_i / \hat W_i - 1 =
    D_i^\top \delta` for weights of the same total, where δ, the error of the parameters, is
    asymptotically normal. The influence of every row on weighted means
    (:class:`unskew.weighters.linearisation.Linearisation`) has a part through the weights; for
    means of values v with :math:`\sum_i s_i D_i v_i^\top = 1`, s the shares of the weights, that
    part is the row's influence on δ itself.
    """
    name, population = type(weighter).__name__, source.population
    if source.X is None:
        raise ParameterError(f"X, the sample, is needed for the covariance of {name}: pass X.")
    sample = source.sample.select(weighter.columns_)
    line = weighter.linearisation(sample)
    responses = None if line is None else line.responses()
    if line is None or responses is None:
        not_covered(why_no_region(weighter))
    if population is None:
        raise ParameterError(
            f"population is needed for the covariance of {name}: pass the population of fit, or "
            "some of its rows."
        )
    # Weights of the same total: what changes all alike is no error.
    shares = weighter.weights_ / weighter.weights_.sum()
    responses = responses - shares @ responses
    drawn = source.rows(weighter.columns_) if source.has_rows else None
    root, degrees = _root(line, shares, responses, drawn)
    columns = responses[rows] @ root
    # To first order the logarithm of a weight is linear in the parameters; over the ellipsoid it
    # changes by its radius times the length of the row's derivatives.
    reach = math.sqrt(chi2.isf(delta, columns.shape[1]))
    most = np.asarray(np.exp(reach * np.linalg.norm(columns, axis=1)))
    words = _asymptotic_words(
        "the covariance of {} parameters of the weights",
        root.shape[1],
        delta,
        shares,
        AssumptionTest(None, FORM) if drawn is None else check_form(line, sample, shares, drawn),
        f"the weights needed have the form that {name} fits, with some parameters, and the "
        "errors of these are normal and small: to first order, for many rows",
        "the population's totals are known without error"
        if drawn is None
        else "rows of sample and population are independent draws",
        *line.cautions,
    )
    return ParameterRegion(
        least=1 / most,
        most=most,
        columns=columns,
        shares=shares[rows],
        delta=delta,
        degrees=degrees,
        drawn=line.unbiased,
        **words,
    )


def _asymptotic_words(
    region: str,
    number: int,
    delta: float,
    shares: FloatArray,
    tested: AssumptionTest,
    *assumptions: str,
) -> dict[str, Any]:
    """Return what is said of a region that holds for many rows."""
    likely = f"asymptotically with probability {100 * (1 - delta):.6g} %"
    worth = 1 / float(shares @ shares)
    few = (
        f"The statement is for many rows, and the weights leave the worth of {worth:.0f}: it may "
        "fail more often.",
    )
    kind = "parameters" if "parameters" in region else "replicates"
    return {
        "headline": f"{tested.headline(likely)}, estimating the weights has moved",
        "source": region.format(number),
        "assumptions": assumptions,
        "remarks": (tested.remark, *(few if worth < FEW_ROWS else ())),
        "terms": {"delta": delta, f"{kind} of the weights": number},
    }


def _root(
    line: Linearisation,
    shares: FloatArray,
    responses: FloatArray,
    population: DrawnPopulation | None,
) -> tuple[FloatArray, float]:
    """Return a root of the parameters' covariance, and its degrees of freedom.

    These are few where few rows have most of the influence.
    """
    # 1) Values v with Σ s D vᵀ = 1, so that the part of their means through the weights is δ.
    gram = responses.T @ (shares[:, None] * responses)
    values = responses @ np.linalg.pinv(gram, rcond=1e-10, hermitian=True)
    # 2) A row's influence on their means, less its direct part.
    influence = line.influence(values, "m_estimator")
    own = influence.sample - shares[:, None] * values
    if line.unbiased and line.has_leverage:
        # As a jackknife would: such rows have moved the parameters towards themselves.
        leverage = shares * np.einsum("ij,ij->i", values, responses)
        own /= left_by(leverage)[:, None]
    covariance = sum_of_squares(own, influence.centred)
    if influence.population is not None and population is not None:
        parts = influence.population(population.batch)
        covariance += population.variance(parts, influence.n_population, influence.centred)
    # 3) The root. Its degrees of freedom are the effective number of rows, (Σ p)² / Σ p², by their
    #    parts p in the covariance.
    size, directions = np.linalg.eigh(covariance)
    kept = size > 1e-12 * size.max(initial=0.0)
    parts = np.square(own @ (directions[:, kept] / np.sqrt(size[kept]))).sum(axis=1)
    degrees = float(parts.sum() ** 2 / np.maximum(parts @ parts, 1e-300))
    return directions[:, kept] * np.sqrt(size[kept]), max(degrees, 1.0)


def bootstrap_region(
    weighter: Any,
    source: PopulationSource,
    delta: float,
    rows: IntArray,
    *,
    replicates: int,
    random_state: Any,
) -> BootstrapRegion:
    """Return the region of weights that are solved again with rows drawn again.

    It serves any weighter that weighs new rows.
    """
    name = type(weighter).__name__
    order_statistic(replicates, delta)  # raises if there are too few
    if not isinstance(weighter, InductiveWeighter):
        not_covered(f"a bootstrap needs weights of rows that were not drawn; {name} has none.")
    if not weighter.traits.estimates:
        not_covered(weighter.traits.not_certifiable or f"{name} estimates nothing.")
    if source.X is None or source.population is None:
        raise ParameterError("X and population are needed to solve the weights again: pass both.")
    known = Population.from_data(source.population) if source.has_rows else source.population
    weighed = weigh(clone(weighter), Sample.from_data(source.X), known, [], None, census=False)
    sample = weighed.fit.sample
    if not np.allclose(weighed.weights, weighter.weights_, rtol=1e-6):
        raise InputError(
            f"{name} does not give the weights of fit again. Pass the X and the population of fit "
            "and set random_state; design weights of the sample are not covered."
        )
    drawn = Replicates(
        weighed, SurveyDesign.from_codes(len(sample)), replicates, random_state, of_all_rows=True
    )
    # A replicate's weight of each row, whether it was drawn or not, over the estimated one.
    base = weighter.weigh(source.X)
    found = [np.divide(w, base, out=np.ones_like(base), where=base > 0) for w, _ in drawn]
    drawn.check()
    ratios = np.column_stack(found)
    shares = weighter.weights_ / weighter.weights_.sum()
    ratios /= shares @ ratios  # as the weights that are compared, all have one total
    words = _asymptotic_words(
        "{} bootstrap replicates of the weights",
        len(found),
        delta,
        shares,
        _tested(weighter, sample, shares, source),
        f"the errors of {name} are distributed as those of its replicates, without a bias of "
        "the same order, such as that of a penalty or of cells that are too large",
        "rows of sample and population are independent draws",
        *drawn.notes,
    )
    return BootstrapRegion.from_replicates(ratios[rows], delta, **words)


def _tested(
    weighter: Any, sample: Sample, shares: FloatArray, source: PopulationSource
) -> AssumptionTest:
    """Return the test of what the weights assume, where there is one."""
    if isinstance(weighter, CellWeighter):
        return even_selection(weighter)
    line = weighter.linearisation(sample)
    if line is None or not source.has_rows:
        return AssumptionTest(None, FORM)
    return check_form(line, sample, shares, source.rows(weighter.columns_))
