r"""A joint confidence region for the probabilities of independent cells, and its worst case.

Cell C has :math:`n_C` rows, :math:`m_C` of them selected, each with probability :math:`q_C`. The
region consists of the q for which

- every :math:`q_C` is in its exact interval (Clopper–Pearson, Šidák over the cells), and
- :math:`\sum_C n_C\,\mathrm{kl}(\hat q_C \Vert q_C) \le r`.

The first alone lets all cells err at once; the second alone lets one cell take the whole radius.
Each gets half of δ.

**The radius.** With :math:`M_n(s) = \sup_q E \exp(s\, n\,\mathrm{kl}(\hat q \Vert q))` and
independent cells, Chernoff's inequality gives :math:`r = \min_s [\log(1/\delta) + \sum_C \log
M_{n_C}(s)] / s`. Twice the divergence is asymptotically a χ² of one degree of freedom, for which
:math:`M(s) = (1 - s)^{-1/2}`. The exact supremum is larger, but never by more than the factor
:math:`1 + 0.22 s` for :math:`s \le 0.7`, or :math:`1 + 0.1 s` from 20 rows on. The tests prove it
piece by piece over q (each term of the sum over counts is unimodal in q) for cell sizes up to 200;
beyond, they compute it and find it falling to the Poisson limit, which is below. The radius is
about a third of the one that follows from the tail :math:`2 e^{-t}` of a single cell.

**Relative errors.** What matters for weights is :math:`t_C = \hat q_C / q_C - 1`, the relative
error of the weight of cell C. On its interval the divergence is at least :math:`c_C t_C^2`, with
:math:`c_C` from the interval's ends, so that the region lies within a box and an ellipsoid, over
which linear and quadratic functions of t can be maximised.

**How fine a partition should be** follows: small cells have uncertain weights, by at most the
largest mean of :math:`|t_C|` over the region; large cells give one weight to rows that should have
several, which the difference to finer partitions, beyond the noise of their counts, shows. The
partition with the least sum of both is chosen (Goldenshluger and Lepski, "Bandwidth selection in
kernel density estimation: oracle inequalities and adaptive minimax optimality", Annals of
Statistics 39, 2011).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy import stats
from scipy.linalg import eigh
from scipy.special import xlogy

from unskew.numerics.typing import FloatArray, IntArray

SMALL_CELL = 20
"""Rows from which on the smaller factor 1 + 0.1 s holds; proved, see above."""

_TILTS = np.linspace(0.05, 0.7, 66)
"""The s among which the radius is minimised: any of them gives a valid radius, and a finer grid
hardly a smaller one. Up to 0.7, where the factors are proved."""

_MANY_CELLS = 300
"""Cells beyond which only two splits are tried, because each takes an eigenvalue of the others."""


def clopper_pearson(
    successes: FloatArray, trials: FloatArray, miss: float
) -> tuple[FloatArray, FloatArray]:
    """Return limits that miss the probability with probability at most ``miss``, half on each side.

    Clopper and Pearson, "The use of confidence or fiducial limits illustrated in the case of the
    binomial", Biometrika 26 (1934).

    Examples
    --------
    >>> lower, upper = clopper_pearson(np.array([0.0, 5.0]), np.array([10.0, 10.0]), 0.05)
    >>> lower.round(3), upper.round(3)
    (array([0.   , 0.187]), array([0.308, 0.813]))
    """
    none, every = successes == 0, successes == trials
    lower = stats.beta.ppf(miss / 2, np.where(none, 1.0, successes), trials - successes + 1)
    upper = stats.beta.ppf(1 - miss / 2, successes + 1, np.where(every, 1.0, trials - successes))
    return np.where(none, 0.0, lower), np.where(every, 1.0, upper)


def sidak(miss: float, n_cells: int) -> float:
    """Return what each of independent intervals may miss, so that any misses with ``miss``.

    Examples
    --------
    >>> round(1 - (1 - sidak(0.05, 10)) ** 10, 12)
    0.05
    """
    return -math.expm1(math.log1p(-miss) / n_cells)


def binomial_divergence(
    successes: FloatArray, trials: FloatArray, probability: FloatArray
) -> FloatArray:
    r"""Return :math:`n\,\mathrm{kl}(\hat q \Vert q)`, the log-likelihood ratio of a count.

    Examples
    --------
    >>> binomial_divergence(np.array([5.0]), np.array([10.0]), np.array([0.5]))
    array([0.])
    """
    rate = successes / trials
    # Where every trial succeeds, 1 - q may be zero and its part is; elsewhere it makes infinity.
    some = np.where(rate < 1, 1 - probability, 1.0)
    with np.errstate(divide="ignore"):
        divergence = xlogy(rate, rate / probability) + xlogy(1 - rate, (1 - rate) / some)
    return trials * np.maximum(divergence, 0.0)


def log_moment(tilt: FloatArray, trials: FloatArray) -> FloatArray:
    """Return an upper bound on log sup_q E exp(s · n · kl), for each cell size and tilt s ≤ 0.7."""
    excess = np.where(trials >= SMALL_CELL, 0.1, 0.22)
    return np.log1p(np.multiply.outer(excess, tilt)) - 0.5 * np.log1p(-tilt)


def joint_radius(trials: FloatArray, delta: float) -> float:
    """Return r with Pr[Σ n kl(q̂‖q) > r] ≤ δ for independent cells of these sizes.

    Examples
    --------
    >>> round(joint_radius(np.full(400, 50.0), 0.025) / 400, 2)
    0.7
    """
    sizes, repeats = np.unique(trials >= SMALL_CELL, return_counts=True)
    size = np.where(sizes, float(SMALL_CELL), 1.0)
    total = repeats @ log_moment(_TILTS, size)
    return float(((math.log(1 / delta) + total) / _TILTS).min())


@dataclass(frozen=True)
class RelativeErrors:
    """How far the weights of the cells can be off, all at once, in units of the weights.

    Attributes
    ----------
    low, high : ndarray of shape (k,)
        Each cell's limits, of which the first is not positive and the second not negative; both
        are zero in cells without sample rows, which have no weight.
    stiffness : ndarray of shape (k,)
        The least part of the radius that a squared error uses up; infinite where both
        limits are zero.
    radius : float
        What all cells together can use up.
    """

    low: FloatArray
    high: FloatArray
    stiffness: FloatArray
    radius: float

    @property
    def size(self) -> FloatArray:
        """The largest error of each cell in either direction."""
        largest: FloatArray = np.maximum(self.high, -self.low)
        return largest

    def first(self, n_cells: int) -> RelativeErrors:
        """Return the region's part for the first cells."""
        kept = slice(n_cells)
        return replace(
            self, low=self.low[kept], high=self.high[kept], stiffness=self.stiffness[kept]
        )


def relative_limits(
    sample: FloatArray, population: FloatArray, delta: float
) -> tuple[FloatArray, FloatArray]:
    """Return limits of the relative errors, which all hold with probability at least 1 − δ.

    They are zero in cells without sample rows, which have no weight.
    """
    # t = q̂ / q − 1 falls with q: its upper limit is at q's lower one.
    lower, upper = clopper_pearson(sample, population, sidak(delta, len(sample)))
    reached = sample > 0
    rate = np.where(reached, sample / population, 1.0)
    high = np.where(reached, rate / np.where(reached, lower, 1.0) - 1, 0.0)
    return np.where(reached, rate / upper - 1, 0.0), high


def relative_errors(sample: FloatArray, population: FloatArray, delta: float) -> RelativeErrors:
    """Return the region that holds the true errors with probability at least 1 − δ.

    Examples
    --------
    >>> region = relative_errors(np.array([100.0, 50.0]), np.array([200.0, 100.0]), 0.05)
    >>> region.low.round(2), region.high.round(2)
    (array([-0.15, -0.2 ]), array([0.22, 0.34]))
    """
    low, high = relative_limits(sample, population, delta / 2)
    stiffness = np.full(len(sample), np.inf)
    for limit in (low, high):
        moved = limit != 0
        rate = sample[moved] / population[moved]
        cost = binomial_divergence(sample[moved], population[moved], rate / (1 + limit[moved]))
        # The divergence over the squared error falls with the error, so its least is at an end.
        stiffness[moved] = np.minimum(stiffness[moved], cost / limit[moved] ** 2)
    return RelativeErrors(low, high, stiffness, joint_radius(population, delta / 2))


def worst_sum(region: RelativeErrors, factors: FloatArray) -> float:
    """Return the largest Σ f |t| over the region's box and ellipsoid, for factors f ≥ 0."""
    used = (factors > 0) & (region.size > 0)
    f, c, b = factors[used], region.stiffness[used], region.size[used]
    if c @ b**2 <= region.radius:
        return float(f @ b)
    # At the maximum t = min(b, f / (2 μ c)): cells with f / (2 c b) ≥ μ are at their limit. With
    # the first k there, dearest first, they spend Σ c b², and the others Σ f² / (4 c μ²). As μ
    # falls past each cell's own price, that grows; k is where it first reaches the radius.
    prices = f / (2 * c * b)
    order = np.argsort(-prices)
    at_limit = (c * b**2)[order]
    spent = np.cumsum(at_limit) - at_limit
    others = np.cumsum((f**2 / (4 * c))[order][::-1])[::-1]
    k = int(np.searchsorted(spent + others / prices[order] ** 2, region.radius))
    price = math.sqrt(others[k] / (region.radius - spent[k]))
    # Weak duality: any price gives an upper bound, so its last digits do no harm.
    t = np.minimum(b, f / (2 * price * c))
    return float(f @ t + price * (region.radius - c @ t**2))


def worst_squares(region: RelativeErrors, factors: FloatArray) -> float:
    """Return the largest Σ f t² over the region's box and ellipsoid: a fractional knapsack."""
    used = (factors > 0) & (region.size > 0)
    f, c, b = factors[used], region.stiffness[used], region.size[used]
    # The radius is spent where a unit of it buys most, f / c, up to each cell's limit.
    best_first = np.argsort(-f / c, kind="stable")
    f, cost, square = f[best_first], (c * b**2)[best_first], (b**2)[best_first]
    before = np.cumsum(cost) - cost
    share = np.clip((region.radius - before) / cost, 0, 1)
    return float(f @ (share * square))


def worst_norm(region: RelativeErrors, gram: FloatArray) -> tuple[float, int]:
    """Bound the norm of Σ t_C v_C over the region, and name the cell with the largest part.

    ``gram`` holds the inner products of the vectors. Over the ellipsoid the maximum is exact, an
    eigenvalue. Where its maximiser leaves the box, the cells that it inflates are better taken
    singly, at their limits. Every number of such cells gives a valid bound; the smallest one that
    was tried is returned.
    """
    norms = np.sqrt(np.maximum(np.diag(gram), 0))
    scale, order = _inflated(region, norms)

    def largest(apart: int) -> float:
        rest = order[apart:]
        block = gram[np.ix_(rest, rest)] * np.outer(scale[rest], scale[rest])
        last = len(rest) - 1
        found = eigh(block, eigvals_only=True, subset_by_index=[last, last], overwrite_a=True)
        return float(found[0])

    ladder = _ladder(len(norms))
    return _smallest(region, norms, order, ladder, [largest(apart) for apart in ladder])


def worst_norm_of(region: RelativeErrors, vectors: FloatArray) -> tuple[float, int]:
    """Return the same from the vectors themselves, as rows: faster if they have few columns.

    Examples
    --------
    >>> region = relative_errors(np.array([100.0, 50.0]), np.array([200.0, 100.0]), 0.05)
    >>> vectors = np.array([[1.0, 0.5], [0.2, 1.0]])
    >>> both = worst_norm_of(region, vectors)[0], worst_norm(region, vectors @ vectors.T)[0]
    >>> bool(abs(both[0] - both[1]) < 1e-12)
    True
    """
    n_cells, d = vectors.shape
    if d >= n_cells:
        return worst_norm(region, vectors @ vectors.T)
    norms = np.linalg.norm(vectors, axis=1)
    scale, order = _inflated(region, norms)
    scaled = (scale[:, None] * vectors)[order]
    ladder = _ladder(n_cells)
    # The nonzero eigenvalues of V Vᵀ are those of Vᵀ V, to which each step adds some cells.
    matrices = np.zeros((len(ladder), d, d))
    together = np.zeros((d, d))
    for place in range(len(ladder) - 1, -1, -1):
        end = ladder[place + 1] if place + 1 < len(ladder) else n_cells
        part = scaled[ladder[place] : end]
        together = together + part.T @ part
        matrices[place] = together
    largest = np.linalg.eigvalsh(matrices)[:, -1]
    return _smallest(region, norms, order, ladder, largest.tolist())


def _inflated(region: RelativeErrors, norms: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return the ellipsoid's half axes, and the cells by how far it exceeds the box in them."""
    # Stiffness is infinite where the limits are zero: such a cell has no part.
    scale: FloatArray = math.sqrt(region.radius) / np.sqrt(region.stiffness)
    inflation = np.divide(scale, region.size, out=np.zeros_like(scale), where=region.size > 0)
    return scale, np.argsort(-inflation * norms, kind="stable")


def _smallest(
    region: RelativeErrors,
    norms: FloatArray,
    order: IntArray,
    ladder: list[int],
    largest: list[float],
) -> tuple[float, int]:
    """Return the least bound with ever more cells singly and the others together, and a cell."""
    at_limit = region.size * norms
    singly = np.append(0.0, np.cumsum(at_limit[order]))
    bounds = [
        float(singly[apart]) + math.sqrt(max(value, 0.0))
        for apart, value in zip(ladder, largest, strict=True)
    ]
    # What each cell can contribute by itself: at the limits of the box, or of the ellipsoid.
    scale = math.sqrt(region.radius) / np.sqrt(region.stiffness)
    dominant = int(np.argmax(np.minimum(at_limit, scale * norms)))
    return min(float(at_limit.sum()), *bounds), dominant


def _ladder(n_cells: int) -> list[int]:
    """Return the numbers of cells to take singly; fewer of them where each costs more."""
    if n_cells > _MANY_CELLS:
        return [0, n_cells // 8]
    steps, number = [], 0
    while number < n_cells:
        steps.append(number)
        number = max(number + 1, number * 5 // 4)
    return steps


class Granularity(NamedTuple):
    """The two parts of the error of each partition's weights, finest first, and the choice.

    Attributes
    ----------
    estimation : tuple of float
        A bound on the error of the counts, as a share of the weights' sum.
    smoothing : tuple of float
        By how much a partition differs from finer ones beyond the noise of their counts.
    chosen : int
        The partition with the least sum.
    """

    estimation: tuple[float, ...]
    smoothing: tuple[float, ...]
    chosen: int


def estimation_bound(sample: FloatArray, population: FloatArray, delta: float) -> float:
    r"""Return the largest :math:`\sum_C n_C |t_C| / n` that the counts of the cells allow.

    That is the worst l1 distance of the weights over their sum. Counts need not be whole here: this
    guides a choice and is not a certificate.

    Examples
    --------
    >>> few, many = np.array([5.0, 5.0]), np.array([500.0, 500.0])
    >>> round(estimation_bound(few, 2 * few, 0.05), 2)
    2.66
    >>> round(estimation_bound(many, 2 * many, 0.05), 2)
    0.09
    """
    rows = np.maximum(population, sample)  # the sample may not be part of the population
    used = rows > 0
    return worst_sum(
        relative_errors(sample[used], rows[used], delta), rows[used] / rows[used].sum()
    )


def expected_noise(sample: FloatArray, population: FloatArray) -> float:
    r"""Return :math:`\sum_C n_C \sigma_C / n`, with the standard error of each cell's weight.

    :math:`\sigma_C^2 = (1 - \hat q_C) / m_C` is the variance of its relative error t.

    Examples
    --------
    >>> expected_noise(np.array([25.0, 50.0]), np.array([25.0, 100.0]))
    0.08
    """
    rows = np.maximum(population, sample)
    used = sample > 0
    m, n = sample[used], rows[used]
    return float(n @ np.sqrt((1 - m / n) / m) / rows.sum())


def choose_granularity(
    estimation: Sequence[float], noise: Sequence[float], weights: Sequence[FloatArray]
) -> Granularity:
    """Choose among partitions, given from the finest to the coarsest.

    Parameters
    ----------
    estimation, noise : sequence of float
        For each partition, the bound on the error of its counts, and their average error.
    weights : sequence of ndarray of shape (m,)
        The weights of the sample's rows on each, in any scale.

    Examples
    --------
    >>> fine, coarse = np.array([1.0, 3.0]), np.array([2.0, 2.0])
    >>> choose_granularity([0.4, 0.1], [0.1, 0.02], [fine, coarse])
    Granularity(estimation=(0.4, 0.1), smoothing=(0.0, 0.4), chosen=0)
    >>> choose_granularity([0.4, 0.1], [0.5, 0.02], [fine, coarse]).chosen
    1
    """
    # What differs from any finer partition by more than that one's noise was smoothed over; the
    # largest such difference counts (Goldenshluger and Lepski).
    shares = [vector / vector.sum() for vector in weights]
    smoothing = []
    for place, own in enumerate(shares):
        beyond = [
            float(np.abs(own - finer).sum()) - err
            for finer, err in zip(shares[:place], noise, strict=False)
        ]
        smoothing.append(max(0.0, *beyond) if beyond else 0.0)
    totals = np.add(estimation, smoothing)
    return Granularity(tuple(map(float, estimation)), tuple(smoothing), int(np.argmin(totals)))
