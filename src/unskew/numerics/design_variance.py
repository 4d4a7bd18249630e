r"""The variance of an estimate from what each row contributes to it, and intervals from that.

If rows move an estimate by :math:`z_i`, its variance under strata h of :math:`a_h` clusters each is

.. math:: \sum_h \frac{a_h}{a_h - 1} \sum_c (z_{hc} - \bar z_h)^2,                         \tag{1}

where :math:`z_{hc}` is the sum over the rows of a cluster. Without clusters, every row is one.

An interval is the estimate and so many standard errors, of Student's t with as many degrees of
freedom as there are clusters less strata; more where the estimate may be biased or its terms are
skewed. Shares lie between zero and one and get an interval that does, too.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.stats import t as student

from unskew.errors import InputError
from unskew.numerics.typing import FloatArray, IntArray

ROUNDING = 1e-9
"""How far a share of all rows, or of none, may be from one or zero."""
LEAST_TAIL = 10
"""Fewer rows say nothing of a tail."""


class Spread(NamedTuple):
    """Variances of estimates, and the degrees of freedom of each."""

    variance: FloatArray
    degrees: FloatArray
    third: FloatArray
    """The third cumulants: over the variance to the power of 3/2, the skewness."""

    def __add__(self, other: object) -> Spread:
        """Return the variance of a sum of independent parts, with Satterthwaite's degrees."""
        if not isinstance(other, Spread):
            return NotImplemented
        # Satterthwaite: (Σ v)² / Σ (v² / degrees).
        total = self.variance + other.variance
        with np.errstate(divide="ignore", invalid="ignore"):
            parts = self.variance**2 / self.degrees + other.variance**2 / other.degrees
            degrees = np.where(parts > 0, total**2 / parts, np.inf)
        degrees = np.where(np.minimum(self.degrees, other.degrees) < 1, 0.0, degrees)
        return Spread(total, degrees, self.third + other.third)


class Entries(NamedTuple):
    """Which rows each estimate is about, as places in a matrix of rows and estimates."""

    rows: IntArray
    columns: IntArray


class SurveyDesign(NamedTuple):
    """Which rows were drawn together: the unit and the stratum of each, numbered from zero."""

    units: IntArray
    """The cluster of each row, or the row itself."""
    strata: IntArray
    """The stratum of each unit."""

    @classmethod
    def from_codes(
        cls, n_rows: int, strata: IntArray | None = None, clusters: IntArray | None = None
    ) -> SurveyDesign:
        """Return the design, or raise why it gives no variance.

        Clusters with the same number in different strata are different clusters.

        Examples
        --------
        >>> SurveyDesign.from_codes(4, clusters=np.array([7, 7, 8, 9])).units
        array([0, 0, 1, 2])
        """
        layer = np.zeros(n_rows, dtype=np.int64) if strata is None else strata
        if clusters is None:
            units, own = np.arange(n_rows), layer
        else:
            pairs = layer * (int(clusters.max(initial=0)) + 1) + clusters
            _, first, units = np.unique(pairs, return_index=True, return_inverse=True)
            units, own = units.reshape(-1), layer[first]
        _, own = np.unique(own, return_inverse=True)
        sizes = np.bincount(own)
        if (sizes < 2).any():
            what = "row" if clusters is None else "cluster"
            if strata is None:
                raise InputError(f"The sample has one {what}, which has no variance.")
            raise InputError(
                f"{int((sizes < 2).sum())} of {len(sizes)} strata have one {what}, which has no "
                "variance within its stratum. Merge such strata with others that are alike."
            )
        return cls(units, own.reshape(-1))

    @property
    def n_units(self) -> int:
        """The number of clusters, or of rows."""
        return len(self.strata)

    def totals(self, influence: FloatArray) -> FloatArray:
        """Return the sum of each unit's rows."""
        return _sums(influence, self.units)

    def spread(
        self,
        influence: FloatArray,
        *,
        centred: bool = True,
        sizes: FloatArray | None = None,
        inside: Entries | None = None,
    ) -> Spread:
        r"""Return :math:`\sum_h \frac{n_h}{n_h-1} \sum_c (e_{hc} - \bar e_h)^2` of each column.

        The degrees of freedom are those of a sum of squares of normal numbers with these sizes,
        :math:`3 (\sum e^2)^2 / \sum e^4`, and at most the number of units less that of strata: few
        rows with large weights have few.

        Parameters
        ----------
        influence : ndarray of shape (n_rows, n_estimates)
        centred : bool, default=True
            Otherwise the sum of the squares, of contributions whose mean is known to be zero.
        sizes : ndarray of shape (n_rows, n_estimates), optional
            The variances of the contributions. The degrees are then at most :math:`(\sum s)^2 /
            \sum s^2` over units (Satterthwaite; Bell and McCaffrey 2002): a large row whose
            residual happens to be small counts as the large one that it is.
        inside : Entries, optional
            The rows of domains. The degrees are at most the units with rows in it less the strata
            with rows in it; at zero there is no interval.

        Examples
        --------
        The variance of a mean of n rows is the sample's variance over n.

        >>> values = np.array([1.0, 2.0, 4.0, 9.0])
        >>> spread = SurveyDesign.from_codes(4).spread((values - 4.0)[:, None] / 4)
        >>> bool(np.isclose(spread.variance[0], values.var(ddof=1) / 4))
        True
        """
        # 1) The sums z_hc of equation (1), less their mean within the stratum.
        totals = self.totals(influence)
        layers = np.bincount(self.strata)
        factors = (layers / (layers - 1))[self.strata, None] if centred else 1.0
        if centred:
            means = _sums(totals, self.strata) / layers[:, None]
            totals = totals - (means if len(means) == 1 else means[self.strata])
        # 2) Variance and third moment; the degrees of freedom from the squares' own spread: with
        #    normal terms, E Σe⁴ = 3 Σσ⁴, so that 3 (Σe²)² / Σe⁴ estimates (Σσ²)² / Σσ⁴.
        squares = totals**2 * factors
        variance, third = squares.sum(axis=0), (squares * totals).sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            degrees = 3 * variance**2 / (squares**2).sum(axis=0)
        # 3) Each stratum's mean takes one degree; a domain has those of the units that it meets.
        most = np.full(totals.shape[1], self.n_units - len(layers))
        if inside is not None:
            width, units = len(most), self.units[inside.rows]
            most = _n_distinct(units, inside.columns, width)
            most = most - _n_distinct(self.strata[units], inside.columns, width)
        degrees = np.fmin(np.fmax(degrees, 1.0), most)
        # 4) Known variances of the terms bound the degrees, whatever the residuals happen to be.
        if sizes is not None:
            known = self.totals(sizes)
            with np.errstate(divide="ignore", invalid="ignore"):
                degrees = np.fmin(degrees, known.sum(axis=0) ** 2 / (known**2).sum(axis=0))
        return Spread(variance, np.where((variance > 0) | (most < 1), degrees, np.inf), third)

    def clustering(self, influence: FloatArray, weights: FloatArray, inside: Entries) -> FloatArray:
        """Return the variance by units over that of rows drawn one by one, at least one.

        Where it is not known, as all contributions are zero, rows of a unit count as copies: it is
        the effective number of rows over that of units.
        """
        if self.n_units == len(self.units):
            return np.ones(influence.shape[1])
        rows = SurveyDesign(np.arange(len(self.units)), self.strata[self.units])
        by_rows, by_units = rows.spread(influence).variance, self.spread(influence).variance
        own = np.zeros_like(influence)
        own[inside] = weights[inside.rows]
        copies = (self.totals(own) ** 2).sum(axis=0) / (own**2).sum(axis=0)
        known = by_rows > 0
        found = np.where(known, by_units / np.where(known, by_rows, 1.0), copies)
        return np.maximum(np.nan_to_num(found, nan=1.0), 1.0)

    def redraw(self, random: np.random.RandomState) -> FloatArray:
        """Return how often each row counts in a bootstrap replicate (Rao and Wu 1988).

        Of the n units of a stratum, n − 1 are drawn with replacement, and each counts n/(n − 1)
        times, which gives the right variance for strata of any size.
        """
        sizes = np.bincount(self.strata)
        order = np.argsort(self.strata, kind="stable")  # units of a stratum beside one another
        begin = np.cumsum(sizes) - sizes
        drawn = random.randint(np.repeat(sizes, sizes - 1)) + np.repeat(begin, sizes - 1)
        times = np.empty(self.n_units)
        times[order] = np.bincount(drawn, minlength=self.n_units)
        return (times * (sizes / (sizes - 1))[self.strata])[self.units]


def _n_distinct(codes: IntArray, columns: IntArray, width: int) -> IntArray:
    """Return how many codes each column has."""
    return np.bincount(np.unique(codes * width + columns) % width, minlength=width)


def _sums(values: FloatArray, codes: IntArray) -> FloatArray:
    """Return the sums of rows with the same code, of which each from zero on occurs."""
    if (np.diff(codes) == 1).all():
        return values  # each row is alone
    if not codes.any():
        return values.sum(axis=0, keepdims=True)
    order = np.argsort(codes, kind="stable")
    begin = np.searchsorted(codes[order], np.arange(int(codes.max()) + 1))
    return np.asarray(np.add.reduceat(values[order], begin, axis=0))


def weighted_quantile(values: FloatArray, weights: FloatArray, q: FloatArray | float) -> FloatArray:
    """Return the smallest values at which the cumulated share of the weights reaches ``q``.

    Examples
    --------
    >>> weighted_quantile(np.array([3.0, 1.0, 2.0]), np.array([1.0, 1.0, 2.0]), 0.5)
    array(2.)
    """
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    # A share that is reached but for rounding is reached.
    place = np.searchsorted(reached / reached[-1], np.asarray(q) - 1e-12)
    return np.asarray(values[order][np.minimum(place, len(values) - 1)])


def half_width(error: float, degrees: float, level: float, bias: float = 0.0) -> float:
    r"""Return half the length of an interval around an estimate, biased by at most ``bias``.

    It is c standard errors, where :math:`|T + b| \le c` with a probability of ``level`` for
    Student's T and a bias of b standard errors. Without a bias, c is Student's quantile.

    Parameters
    ----------
    error, degrees : float
        The standard error, and its degrees of freedom; infinite for a normal estimate.
    level : float
    bias : float, default=0.0

    References
    ----------
    Armstrong and Kolesár, "Optimal inference in a class of regression models", Econometrica 86
    (2018).

    Examples
    --------
    >>> round(half_width(1.0, np.inf, 0.95), 3), round(half_width(1.0, np.inf, 0.95, bias=1.0), 3)
    (1.96, 2.646)
    """
    most = float(student.ppf(0.5 + level / 2, degrees))
    if error <= 0.0 or bias <= 0.0:
        return most * error + bias
    b = bias / error

    def missing(times: float) -> float:
        return float(student.cdf(times - b, degrees) - student.cdf(-times - b, degrees)) - level

    return float(brentq(missing, 0.0, b + most)) * error


def skewed_ends(times: float, skewness: float) -> tuple[float, float]:
    r"""Return how many standard errors to go down and up from an estimate with skewness G.

    Hall's transformation :math:`g(t) = t + G t^2/3 + G^2 t^3/27 + G/6` makes a Student's statistic
    nearly normal; the ends are where it is ± ``times``, and never nearer than without it, as a
    skewness that few rows show may be chance.

    References
    ----------
    Hall, "On the removal of skewness by transformation", JRSS B 54 (1992).

    Examples
    --------
    >>> skewed_ends(2.0, 0.0)
    (2.0, 2.0)
    >>> down, up = skewed_ends(2.0, 0.3)
    >>> round(down, 2), round(up, 2)
    (2.0, 2.73)
    """
    if abs(skewness) < 1e-6:
        return times, times
    # g(t) = ±times has one root: with c = 1 + G t / 3, g is (c³ − 1) / G + G / 6.
    ends = np.cbrt(1.0 + skewness * (np.array([times, -times]) - skewness / 6.0)) - 1.0
    down, up = 3.0 / skewness * ends
    return max(times, float(down)), max(times, float(-up))


def heavy_tail(residuals: FloatArray) -> bool:
    r"""Return whether the longer tail is so heavy that intervals of the mean are too short.

    The moment estimator of the extreme-value index, :math:`M_1 + 1 - \tfrac12 / (1 - M_1^2/M_2)`,
    of the largest fifth, is 1/α for a Pareto tail of index α: above one half the variance is
    infinite.
    It has to be above by what an index of one half exceeds in one sample of twenty. So far, which
    is α = 2.5 or a lognormal's, intervals with skewed ends hold.

    References
    ----------
    Dekkers, Einmahl and de Haan, "A moment estimator for the index of an extreme-value
    distribution", Annals of Statistics 17 (1989).

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> heavy_tail(random.pareto(1.2, 1000)), heavy_tail(random.normal(size=1000))
    (True, False)
    """
    sign = np.sign(((residuals - residuals.mean()) ** 3).sum())
    largest = np.sort(sign * (residuals - np.median(residuals)))[::-1]
    k = min(len(largest) // 5, int((largest > 0).sum()) // 2)
    if k < LEAST_TAIL:
        return False
    # The first two moments of the log excesses over the k-th largest (Dekkers and others).
    excess = np.log(largest[:k] / largest[k])
    first, second = excess.mean(), (excess**2).mean()
    if second <= first**2:  # all alike
        return False
    index = first + 1.0 - 0.5 / (1.0 - first**2 / second)
    return bool(index > max(0.5 + 1.65 * np.sqrt(1.25 / k), 0.66))


def share_interval(
    share: float, half: float, times: float, effective_size: float
) -> tuple[float, float]:
    r"""Return Wilson's interval of a share that was estimated with weights.

    It holds the shares :math:`\pi` with :math:`(p - \pi)^2 \le t^2 \pi (1 - \pi) / n`, where n is
    the number of evenly drawn rows that would give the share this half width,
    :math:`t \sqrt{p (1 - p) / n}`. A share of all rows or of none has a half width of zero, and
    then n is the effective sample size.

    Parameters
    ----------
    share, half : float
        p, between 0 and 1 up to rounding, and half the length of its symmetric interval.
    times : float
        t: how many standard errors to go for a share of all rows or of none.
    effective_size : float
        Of the weights.

    References
    ----------
    Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22 (1927).

    Examples
    --------
    >>> low, high = share_interval(0.1, 1.96 * 0.03, 1.96, 100.0)
    >>> round(low, 3), round(high, 3)
    (0.055, 0.174)
    >>> round(share_interval(1.0, 0.0, 1.96, 100.0)[0], 3)  # all of 100 rows
    0.963
    """
    share = min(max(share, 0.0), 1.0)
    variance = share * (1.0 - share)
    spread = times**2 / effective_size  # t²/n
    if variance > ROUNDING:
        spread = half**2 / variance
    # The two roots of (p − π)² = (t²/n) π (1 − π).
    middle = (share + spread / 2) / (1 + spread)
    beside = np.sqrt(spread * variance + spread**2 / 4) / (1 + spread)
    return max(float(middle - beside), 0.0), min(float(middle + beside), 1.0)
