"""The variance of an estimate from what each row contributes to it: strata, clusters, quantiles."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from unskew.errors import InputError
from unskew.numerics.typing import FloatArray, IntArray


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


class Design(NamedTuple):
    """Which rows were drawn together: the unit and the stratum of each, numbered from zero."""

    units: IntArray
    """The cluster of each row, or the row itself."""
    strata: IntArray
    """The stratum of each unit."""

    @classmethod
    def of(
        cls, n_rows: int, strata: IntArray | None = None, clusters: IntArray | None = None
    ) -> Design:
        """Return the design, or raise why it gives no variance.

        Clusters with the same number in different strata are different clusters.

        Examples
        --------
        >>> Design.of(4, clusters=np.array([7, 7, 8, 9])).units
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
        >>> spread = Design.of(4).spread((values - 4.0)[:, None] / 4)
        >>> bool(np.isclose(spread.variance[0], values.var(ddof=1) / 4))
        True
        """
        # 1) What each unit contributes, about the mean of its stratum.
        totals = self.totals(influence)
        layers = np.bincount(self.strata)
        factors = (layers / (layers - 1))[self.strata, None] if centred else 1.0
        if centred:
            means = _sums(totals, self.strata) / layers[:, None]
            totals = totals - (means if len(means) == 1 else means[self.strata])
        # 2) The variance, and the third moment, from which intervals take their skewness.
        squares = totals**2 * factors
        variance, third = squares.sum(axis=0), (squares * totals).sum(axis=0)
        # 3) Degrees of freedom by the kurtosis of the contributions, but not more than the design
        #    has, in a domain that of the units with rows in it.
        with np.errstate(divide="ignore", invalid="ignore"):
            degrees = 3 * variance**2 / (squares**2).sum(axis=0)
        most = np.full(totals.shape[1], self.n_units - len(layers))
        if inside is not None:
            width, units = len(most), self.units[inside.rows]
            most = _n_distinct(units, inside.columns, width)
            most = most - _n_distinct(self.strata[units], inside.columns, width)
        degrees = np.fmin(np.fmax(degrees, 1.0), most)
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
        rows = Design(np.arange(len(self.units)), self.strata[self.units])
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
