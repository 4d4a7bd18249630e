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

    def __add__(self, other: object) -> Spread:
        """Return the variance of a sum of independent parts, with Satterthwaite's degrees."""
        if not isinstance(other, Spread):
            return NotImplemented
        total = self.variance + other.variance
        with np.errstate(divide="ignore", invalid="ignore"):
            parts = self.variance**2 / self.degrees + other.variance**2 / other.degrees
            degrees = np.where(parts > 0, total**2 / parts, np.inf)
        return Spread(total, degrees)


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
        if len(influence) == self.n_units:
            return influence[np.argsort(self.units)]
        totals = np.zeros((self.n_units, influence.shape[1]))
        np.add.at(totals, self.units, influence)
        return totals

    def spread(
        self, influence: FloatArray, *, centred: bool = True, sizes: FloatArray | None = None
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

        Examples
        --------
        The variance of a mean of n rows is the sample's variance over n.

        >>> values = np.array([1.0, 2.0, 4.0, 9.0])
        >>> spread = Design.of(4).spread((values - 4.0)[:, None] / 4)
        >>> bool(np.isclose(spread.variance[0], values.var(ddof=1) / 4))
        True
        """
        totals = self.totals(influence)
        layers = np.bincount(self.strata)
        means = np.zeros((len(layers), totals.shape[1]))
        np.add.at(means, self.strata, totals)
        means /= layers[:, None]
        factors = layers / (layers - 1)
        if not centred:
            means, factors = np.zeros_like(means), np.ones_like(factors)
        squares = (totals - means[self.strata]) ** 2 * factors[self.strata, None]
        variance = squares.sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            degrees = 3 * variance**2 / (squares**2).sum(axis=0)
        most = self.n_units - len(layers)
        degrees = np.clip(degrees, 1.0, most)
        if sizes is not None:
            known = self.totals(sizes)
            with np.errstate(divide="ignore", invalid="ignore"):
                degrees = np.fmin(degrees, known.sum(axis=0) ** 2 / (known**2).sum(axis=0))
        return Spread(variance, np.where(variance > 0, degrees, np.inf))

    def redraw(self, random: np.random.RandomState) -> FloatArray:
        """Return how often each row counts in a bootstrap replicate (Rao and Wu 1988).

        Of the n units of a stratum, n − 1 are drawn with replacement, and each counts n/(n − 1)
        times, which gives the right variance for strata of any size.
        """
        counts = np.zeros(self.n_units)
        for stratum in range(int(self.strata.max()) + 1):
            members = np.flatnonzero(self.strata == stratum)
            drawn = random.randint(len(members), size=len(members) - 1)
            times = np.bincount(drawn, minlength=len(members))
            counts[members] = times * (len(members) / (len(members) - 1))
        return counts[self.units]


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
