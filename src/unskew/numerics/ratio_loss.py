r"""The loss of a density ratio, the logistic model of it, and pools and maps of ratios.

For an estimate r of the density ratio of population and sample, the balanced log loss

.. math:: L(r) = \tfrac12 \mathrm{mean}_S \log(1 + r)
          + \tfrac12 \mathrm{mean}_U \log(1 + 1/r)                                      \tag{1}

is that of a classifier which sees both sides equally often and says "population" with probability
:math:`r / (1 + r)`. It is log 2 for r = 1 and smallest for the true ratio. On rows that did not
train the ratio, it says how good the ratio is without knowing the true one. So it chooses the
exponents of a pool :math:`\prod_j r_j^{\theta_j}`, and a monotone map of a model's scores: a model
that ranks rows well may still be too sure, or not sure enough.

The logistic model of selection has features φ, the first of them constant, and minimises over β,
with :math:`g = \varphi^\top \beta` and a chosen rate k,

.. math:: \mathrm{mean}_U \log(1 + e^g) - k\, \mathrm{mean}_S\, g
          + \tfrac\lambda2 \|\beta\|^2,                                                 \tag{2}

the intercept without penalty. Where it is smallest without penalty and the model is right,
:math:`f_U\, \sigma(g) = k f_S`, so the density ratio is :math:`f_U / f_S = k (1 + e^{-g})`. With
k = m / n this is the likelihood of being selected, where the sample is part of the population
(Chen, Li and Wu, JASA 115, 2020); as k goes to zero the ratio becomes log-linear. So one family
serves both, and needs no knowledge of which population rows are in the sample.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.special import expit

from unskew.numerics import newton
from unskew.numerics.calibration import solve_psd
from unskew.numerics.row_features import weighted_moments
from unskew.numerics.typing import FloatArray

MAX_STEPS = 100


WIDE = 200
"""Features from which on the Hessian is kept as long as a step with it halves the gradient."""
TOLERANCE = 1e-10


class Sided(NamedTuple):
    """One number for each sample row, and one for each population row."""

    sample: Any
    population: Any

    def map(self, function: Callable[..., Any], *others: Any) -> Sided:
        """Return a function of each side; of that side of the others, too."""
        return Sided(*(function(*each) for each in zip(self, *others, strict=True)))


class RatioLoss(NamedTuple):
    """A balanced log loss in nats, and its standard error."""

    value: float
    error: float

    @property
    def gain(self) -> float:
        """How much better it is than the loss log 2 of a ratio of one."""
        return float(np.log(2.0)) - self.value


def ratio_loss(log_ratio: Sided, shares: Sided) -> RatioLoss:
    """Return the loss of a ratio on rows with these shares, which sum to one on either side.

    Examples
    --------
    >>> even = Sided(np.full(2, 0.5), np.full(4, 0.25))
    >>> round(ratio_loss(Sided(np.zeros(2), np.zeros(4)), even).value, 6)
    0.693147
    """
    losses = Sided(softplus(log_ratio.sample), softplus(-log_ratio.population))
    mean, error = _mean_of_sides(losses, shares)
    return RatioLoss(mean, error)


def lowers_loss(new: Sided, old: Sided, shares: Sided, *, errors: float = 2.0) -> bool:
    """Return whether a ratio's loss is lower than another's by so many standard errors."""
    change = Sided(
        softplus(new.sample) - softplus(old.sample),
        softplus(-new.population) - softplus(-old.population),
    )
    mean, error = _mean_of_sides(change, shares)
    return bool(mean < -errors * error)


def _mean_of_sides(values: Sided, shares: Sided) -> tuple[float, float]:
    """Return half of the sum of both sides' means, and its standard error."""
    total, variance = 0.0, 0.0
    for value, share in zip(values, shares, strict=True):
        mean = float(share @ value)
        total += mean / 2
        variance += float(np.square(share * (value - mean)).sum()) / 4
    return total, float(np.sqrt(variance))


def separation(log_ratio: Sided, shares: Sided) -> tuple[float, float]:
    """Return by how much the mean log ratio of the population exceeds the sample's, and its error.

    On held-out rows it is zero on average where the sides do not differ. For small differences it
    is as many errors above as their means are, and the gain in loss only half as many.

    Examples
    --------
    >>> even = Sided(np.full(2, 0.5), np.full(2, 0.5))
    >>> separation(Sided(np.array([-1.0, 1.0]), np.array([0.0, 2.0])), even)
    (1.0, 1.0)
    """
    mean, error = _mean_of_sides(Sided(-log_ratio.sample, log_ratio.population), shares)
    return 2 * mean, 2 * error


def pool_exponents(candidates: list[Sided], shares: Sided) -> FloatArray:
    r"""Return exponents :math:`\theta \ge 0` such that :math:`\prod r_j^{\theta_j}` has least loss.

    The loss is convex in them; Newton's method on those that are free, others held at zero.

    Examples
    --------
    A ratio that is the square of the true one gets the exponent one half.

    >>> share = np.array([0.2, 0.8])
    >>> truth = Sided(np.log([4.0, 0.25]), np.log([4.0, 0.25]))
    >>> pool_exponents([Sided(*(2 * side for side in truth))], Sided(share, share[::-1])).round(6)
    array([0.5])
    """
    sample, population = (np.column_stack(side) for side in zip(*candidates, strict=True))
    exponents = np.full(sample.shape[1], 1.0 / sample.shape[1])

    def value(at: FloatArray) -> float:
        return ratio_loss(Sided(sample @ at, population @ at), shares).value

    def step(at: FloatArray) -> newton.Step[FloatArray] | None:
        # L'(θ) = mean_S σ(s) s − mean_U σ(−s) s with the score s = Σ θ_j log r_j, each halved.
        high, low = expit(sample @ at), expit(-population @ at)
        slope = (shares.sample * high) @ sample - (shares.population * low) @ population
        # An exponent at zero is free only if the loss falls where it grows.
        free = (at > 0) | (slope < 0)
        if np.abs(np.where(free, slope, 0.0)).max(initial=0.0) < 1e-10:
            return None
        hessian = (sample.T * (shares.sample * high * (1 - high))) @ sample
        hessian += (population.T * (shares.population * low * (1 - low))) @ population
        direction = np.zeros_like(at)
        direction[free] = -solve_psd(hessian[np.ix_(free, free)], slope[free])

        def after(share: float) -> tuple[FloatArray, float]:
            new = np.maximum(at + share * direction, 0.0)
            return new, value(new)

        return newton.Step(after, float(slope @ direction))

    # What the slope promises does not hold for steps that end at zero: any fall is enough.
    return newton.descend(
        exponents,
        value(exponents),
        step,
        max_steps=MAX_STEPS,
        armijo=0.0,
        rounding=0.0,
        shortest=1e-10,
    )[0]


def pool_ratios(candidates: list[Sided], exponents: FloatArray) -> Sided:
    """Return the logarithm of the product of powers of ratios."""
    sides = zip(*candidates, strict=True)
    return Sided(*(np.tensordot(exponents, np.array(side), 1) for side in sides))


Learn = Callable[[list[Sided], Sided], Callable[[list[Sided]], Sided]]
"""From scores and shares of rows to a function of scores."""


def without_own_fold(learn: Learn, scores: list[Sided], shares: Sided, folds: Sided) -> Sided:
    """Return what is learned from the scores of other folds, at the scores of each fold.

    A fold outside of which a side has no rows gets what is learned from all rows.
    """
    found = learn(scores, shares)(scores).map(np.array)
    for number in range(1 + max(int(side.max(initial=0)) for side in folds)):
        others = Sided(*(side != number for side in folds))
        if not all(kept.any() for kept in others):
            continue
        part = [one.map(np.ndarray.__getitem__, others) for one in scores]
        counted = shares.map(lambda share, kept: share[kept] / share[kept].sum(), others)
        own = learn(part, counted)(scores)
        for side, new, kept in zip(found, own, others, strict=True):
            side[~kept] = new[~kept]
    return found


class ScoreMap(NamedTuple):
    """Linear between knots and constant beyond them; with one knot, a line of this slope.

    Examples
    --------
    >>> ScoreMap(np.array([0.0, 1.0]), np.array([0.0, 2.0]))(np.array([-1.0, 0.25, 9.0]))
    array([0. , 0.5, 2. ])
    """

    scores: FloatArray
    log_ratios: FloatArray
    slope: float = 0.0

    def __call__(self, scores: FloatArray) -> FloatArray:
        if len(self.scores) == 1:
            return self.log_ratios[0] + self.slope * (scores - self.scores[0])
        return np.interp(scores, self.scores, self.log_ratios)


def isotonic_map(scores: Sided, shares: Sided) -> ScoreMap:
    """Return the non-decreasing map with the least loss, by pooling adjacent violators.

    In each block of scores that share a value, the ratio is that of the two sides' shares, with
    half a row added to each so that no ratio is zero or infinite. Between the blocks' mean scores
    it is linear.

    Examples
    --------
    >>> scores = Sided(np.array([0.0, 0.0, 1.0]), np.array([0.0, 1.0, 1.0]))
    >>> third = np.full(3, 1 / 3)
    >>> isotonic_map(scores, Sided(third, third)).log_ratios.round(3)
    array([-0.511,  0.511])
    """
    from sklearn.isotonic import isotonic_regression

    joined = np.concatenate(scores)
    order = np.argsort(joined, kind="stable")
    ordered = joined[order]
    starts = np.flatnonzero(np.append(True, ordered[1:] > ordered[:-1]))
    masses = [np.add.reduceat(mass[order], starts) for mass in _on_all_rows(shares)]
    kept = masses[0] + masses[1] > 0
    levels, (sample, population) = ordered[starts][kept], (mass[kept] for mass in masses)
    both = sample + population
    fitted = isotonic_regression(population / both, sample_weight=both)
    blocks = np.flatnonzero(np.append(True, np.diff(fitted) > 1e-12))
    centres = np.add.reduceat(levels * both, blocks) / np.add.reduceat(both, blocks)
    halves = [0.5 / max(len(side), 1) for side in scores]
    ratios = (np.add.reduceat(population, blocks) + halves[1]) / (
        np.add.reduceat(sample, blocks) + halves[0]
    )
    # Half a row counts for more in small blocks, which can put them out of order.
    return ScoreMap(centres, np.maximum.accumulate(np.log(ratios)))


def sigmoid_map(scores: Sided, shares: Sided) -> ScoreMap:
    """Return the line with a non-negative slope that has the least loss (Platt's scaling).

    Examples
    --------
    >>> scores = Sided(np.array([0.0, 0.0, 1.0]), np.array([0.0, 1.0, 1.0]))
    >>> third = np.full(3, 1 / 3)
    >>> sigmoid_map(scores, Sided(third, third))(np.array([0.0, 1.0])).round(6)
    array([-0.693147,  0.693147])
    """
    middle = float(np.median(np.concatenate(scores)))
    spread = float(np.concatenate(scores).std()) or 1.0
    standard = scores.map(lambda side: (side - middle) / spread)
    # The intercept may have either sign.
    up, down = (scores.map(lambda side, one=one: np.full(len(side), one)) for one in (1.0, -1.0))
    slope, above, below = pool_exponents([standard, up, down], shares)
    return ScoreMap(np.array([middle]), np.array([above - below]), float(slope) / spread)


def sided_auc(scores: Sided, mass: Sided) -> float:
    """Return the probability that a population row is scored above a sample row."""
    sample, population = _on_all_rows(mass)
    return weighted_auc(np.concatenate(scores), population, sample)[0]


def _on_all_rows(shares: Sided) -> Sided:
    """Return the shares of each side at the rows of both, the sample's first."""
    sample, population = shares
    return Sided(
        np.concatenate([sample, np.zeros(len(population))]),
        np.concatenate([np.zeros(len(sample)), population]),
    )


def weighted_auc(
    scores: FloatArray, sample: FloatArray, population: FloatArray
) -> tuple[float, float, float]:
    """Return the weighted AUC, its standard error, and its standard error under the null.

    The first standard error is DeLong's, DeLong's and Clarke-Pearson's (Biometrics 44, 1988), with
    weights: it uses the placement of each row among the rows of the other side. The second assumes
    that the scores are independent of the sides.

    Parameters
    ----------
    scores : ndarray of shape (n,)
    sample, population : ndarray of shape (n,)
        The mass of each row in the sample and in the population. A row may be in both: its two
        placements are those of one row, and largely cancel.

    Examples
    --------
    >>> sample = np.array([0, 0, 1, 1])
    >>> auc, *_ = weighted_auc(np.array([0.1, 0.4, 0.3, 0.9]), sample, 1 - sample)
    >>> auc
    0.75
    """
    sample, population = sample / sample.sum(), population / population.sum()
    # DeLong's placements: of a sample row among the population, and of a population row among the
    # sample. The AUC is the mean of either, and its variance that of both.
    pooled = (sample + population) / 2
    above, beneath, middle = _share_below(scores, [population, sample, pooled])
    below = 1.0 - beneath
    auc = float(sample @ above)
    variance = float(np.square(sample * (above - auc) + population * (below - auc)).sum())
    # Under the null a placement is uniform, with variance 1/12; ties reduce it.
    spread = float(pooled @ (middle - 0.5) ** 2)
    null_variance = spread * float(np.square(sample - population).sum())
    return auc, float(np.sqrt(variance)), float(np.sqrt(null_variance))


def _share_below(scores: FloatArray, shares: Sequence[FloatArray]) -> list[FloatArray]:
    """Return, for each of some shares, what of it lies below each score, ties counting one half."""
    order = np.argsort(scores, kind="stable")
    ordered = scores[order]  # in order, they are found in a fraction of the time
    ends = np.empty((2, len(scores)), dtype=np.intp)
    ends[0, order] = np.searchsorted(ordered, ordered, side="left")
    ends[1, order] = np.searchsorted(ordered, ordered, side="right")
    sums = [np.append(0.0, share[order].cumsum()) for share in shares]
    return [np.asarray((below[ends[0]] + below[ends[1]]) / 2) for below in sums]


def softplus(scores: FloatArray) -> FloatArray:
    """Return log(1 + e^score), in a tenth of the time of ``numpy.logaddexp(0, scores)``.

    Examples
    --------
    >>> softplus(np.array([-np.inf, 0.0, 2.0])).round(6)
    array([0.      , 0.693147, 2.126928])
    """
    return np.asarray(np.log1p(np.exp(-np.abs(scores))) + np.maximum(scores, 0.0))


_Scored = tuple[FloatArray, FloatArray]
"""Coefficients, and the scores of the population's rows."""


class LogisticProblem:
    """Selection by the features, with mean features of the sample and rows of the population.

    Parameters
    ----------
    features : ndarray of shape (n_rows, n_features)
        Of the population; the first is one.
    shares : ndarray of shape (n_rows,)
        Sum to one.
    sample_means : ndarray of shape (n_features,)
    n_free : int
        How many of the features, the first ones, have no penalty.

    Examples
    --------
    Of two kinds of rows, the second is three times as frequent in the sample.

    >>> features = np.array([[1.0, 0.0], [1.0, 1.0]])
    >>> problem = LogisticProblem(features, np.array([0.75, 0.25]), np.array([1.0, 0.5]))
    >>> beta, certificate = problem.solve(rate=0.2, penalty=0.0)
    >>> (0.2 * (1 + np.exp(-features @ beta))).round(6)
    array([1.5, 0.5])
    """

    def __init__(
        self, features: FloatArray, shares: FloatArray, sample_means: FloatArray, n_free: int = 1
    ) -> None:
        self.features = features
        self.shares = shares
        self.sample_means = sample_means
        self.n_free = n_free
        self._gram: FloatArray | None = None

    def solve(
        self, rate: float, penalty: float, start: FloatArray | None = None, tol: float = TOLERANCE
    ) -> tuple[FloatArray, newton.Certificate]:
        """Return the coefficients, by Newton's method with step halving."""
        width = self.features.shape[1]
        ridge = np.full(width, penalty)
        ridge[: self.n_free] = 0.0
        if start is None:
            start = np.zeros(width)
            start[0] = np.log(rate / (1 - rate))
        norm = before = np.inf
        inverse: Callable[[FloatArray], FloatArray] | None = None

        def step(place: _Scored) -> newton.Step[_Scored] | None:
            nonlocal norm, before, inverse
            beta, scores = place
            # 1) The gradient: what selection by the model takes of each feature, less what the
            #    sample has of it.
            chances = expit(scores)
            gradient = (self.shares * chances) @ self.features - rate * self.sample_means
            gradient += ridge * beta
            norm = float(np.abs(gradient).max())
            if norm <= tol:
                return None
            # 2) With many features the Hessian costs most of a step. It is kept, also from earlier
            #    penalties and rates, as long as steps with it halve the gradient.
            if width < WIDE or norm >= before / 2 or self._gram is None:
                curvature = self.shares * chances * (1 - chances)
                self._gram = weighted_moments(self.features, curvature).gram
                inverse = None
            inverse = inverse or _inverse(self._gram, ridge)
            direction, before = -inverse(gradient), norm
            # 3) Scores are linear in the step: halving it needs no product with the features.
            ahead = self.features @ direction

            def after(share: float) -> tuple[_Scored, float]:
                new = beta + share * direction, scores + share * ahead
                return new, self._value(*new, rate, ridge)

            return newton.Step(after, float(gradient @ direction))

        first: _Scored = start, self.features @ start
        value = self._value(*first, rate, ridge)
        end, _, steps = newton.descend(first, value, step, max_steps=MAX_STEPS, shortest=1e-10)
        return end[0], newton.Certificate(steps, norm, norm <= tol)

    def curvature(self, beta: FloatArray, penalty: float) -> FloatArray:
        """Return the Hessian at coefficients."""
        chances = expit(self.features @ beta)
        hessian = weighted_moments(self.features, self.shares * chances * (1 - chances)).gram
        hessian.flat[self.n_free * (len(beta) + 1) :: len(beta) + 1] += penalty
        return hessian

    def _value(self, beta: FloatArray, scores: FloatArray, rate: float, ridge: FloatArray) -> float:
        fit = self.shares @ softplus(scores) - rate * float(self.sample_means @ beta)
        return float(fit + ridge @ beta**2 / 2)


def _inverse(gram: FloatArray, ridge: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """Return the product of a vector and the inverse of the Hessian with a ridge."""
    hessian = gram.copy()
    hessian.flat[:: len(ridge) + 1] += ridge + 1e-14
    if len(ridge) < WIDE:
        return lambda vector: solve_psd(hessian, vector)
    try:
        factor = cho_factor(hessian)
    except LinAlgError:
        return lambda vector: solve_psd(hessian, vector)
    return lambda vector: np.asarray(cho_solve(factor, vector))


def log_ratio_of(scores: FloatArray, rate: float) -> FloatArray:
    """Return the logarithm of the density ratio k (1 + e^(-g))."""
    return float(np.log(rate)) + softplus(-scores)
