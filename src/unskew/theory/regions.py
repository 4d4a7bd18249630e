r"""Regions in which the perfect weights lie, and how far they can pull a fitted model.

Row i contributes a vector :math:`v_i` to the gradient of the objective, so that with weights W
instead of :math:`\hat W` the gradient is :math:`\sum_i (W_i / \hat W_i - 1) v_i` plus what the
optimiser has left. A region bounds the norm of the sum over all weights in it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from scipy.linalg import eigvalsh
from scipy.sparse import csr_array
from scipy.stats import chi2

from unskew.errors import ParameterError
from unskew.numerics.joint_region import RelativeErrors, worst_norm, worst_norm_of
from unskew.numerics.typing import FloatArray, IntArray
from unskew.theory.partitions import CountedCells


class Contributions(Protocol):
    """The vectors of the rows, in whatever form their inner products can be computed."""

    def gram(self, columns: Any) -> FloatArray:
        """Return the inner products of the sums of vectors, one for each column of factors."""

    def worst(self, errors: RelativeErrors, columns: Any) -> tuple[float, int]:
        """Bound the norm of the sums times errors, and name the cell with the largest part."""


class LinearContributions:
    """Vectors as the rows of a matrix, in coordinates that a root changes.

    Parameters
    ----------
    vectors : ndarray of shape (m, d)
    root : ndarray of shape (d, d), optional
        Applied to each vector.
    """

    def __init__(self, vectors: FloatArray, root: FloatArray | None = None) -> None:
        self.vectors, self.root = vectors, root
        self._sums: list[tuple[Any, FloatArray]] = []

    def rooted(self, root: FloatArray) -> LinearContributions:
        """Return the same vectors in other coordinates; sums are made once for all."""
        twin = LinearContributions(self.vectors, root)
        twin._sums = self._sums
        return twin

    def sums(self, columns: Any) -> FloatArray:
        """Return the sums of vectors, a row for each column of factors."""
        found = next((sums for known, sums in self._sums if known is columns), None)
        if found is None:
            found = np.asarray(columns.T @ self.vectors)
            self._sums.append((columns, found))
        return found if self.root is None else found @ self.root.T

    def gram(self, columns: Any) -> FloatArray:
        """Return the inner products of the sums of vectors, one for each column of factors."""
        sums = self.sums(columns)
        return sums @ sums.T

    def worst(self, errors: RelativeErrors, columns: Any) -> tuple[float, int]:
        """Bound the norm of the sums times errors, and name the cell with the largest part."""
        return worst_norm_of(errors, self.sums(columns))


class GramContributions(ABC):
    """Vectors of which only the inner products are computed."""

    @abstractmethod
    def gram(self, columns: Any) -> FloatArray:
        """Return the inner products of the sums of vectors, one for each column of factors."""

    def worst(self, errors: RelativeErrors, columns: Any) -> tuple[float, int]:
        """Bound the norm of the sums times errors, and name the cell with the largest part."""
        return worst_norm(errors, self.gram(columns))


class KernelContributions(GramContributions):
    """Vectors that are multiples of the points of a kernel's space."""

    def __init__(self, K: FloatArray, coefficients: FloatArray) -> None:
        self.K, self.coefficients = K, coefficients

    def gram(self, columns: Any) -> FloatArray:
        """Return the inner products of the sums of vectors, one for each column of factors."""
        dense = columns.toarray() if hasattr(columns, "toarray") else columns
        scaled = self.coefficients[:, None] * dense
        return np.asarray(scaled.T @ (self.K @ scaled))


class Region(ABC):
    """A set of weights.

    Attributes
    ----------
    least, most : ndarray of shape (m,)
        Each row's least and largest weight in the region, over its estimated one.
    """

    least: FloatArray
    most: FloatArray
    drawn: bool = False
    """Whether its draws have, asymptotically, the distribution of the perfect weights."""

    @abstractmethod
    def pull(self, rows: Contributions) -> tuple[float, int]:
        """Return the largest norm of the change of the gradient, and what has the largest part."""

    def along(self, rows: LinearContributions) -> tuple[FloatArray, FloatArray] | None:  # noqa: ARG002
        """Return A and b: the gradient changes by Aᵀe + b for an e of length one at most.

        None where that is not known.
        """
        return None

    def draws(self, random: np.random.RandomState, number: int) -> FloatArray | None:  # noqa: ARG002
        """Return W/Ŵ for weights drawn as the data allow, a column each; None for none."""
        return None


@dataclass(frozen=True)
class CellRegion(Region):
    """All weights that the counts of cells allow."""

    cells: CountedCells
    errors: RelativeErrors
    rows: IntArray
    """The places in the sample of the rows that contribute."""
    factors: csr_array = field(init=False)
    """A column for each cell: by how much an error of its count changes each row's ratio."""
    fixed: FloatArray = field(init=False)
    """Each row's change of the ratio that no count leaves open."""
    least: FloatArray = field(init=False)
    most: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        size = (len(self.rows), len(self.cells.successes))
        entries = (np.arange(size[0]), self.cells.of_row[self.rows])
        factors = csr_array((self.cells.factor[self.rows], entries), size)
        fixed = self.cells.shift[self.rows] + self.cells.factor[self.rows] - 1
        object.__setattr__(self, "factors", factors)
        object.__setattr__(self, "fixed", fixed)
        object.__setattr__(self, "least", self.cells.ratios(self.rows, self.errors.low))
        object.__setattr__(self, "most", self.cells.ratios(self.rows, self.errors.high))

    def has_few_rows(self, fewest: int) -> bool:
        """Whether cells hold fewer rows than so many on average."""
        return len(self.cells.successes) * fewest > len(self.rows)

    def pull(self, rows: Contributions) -> tuple[float, int]:
        """Return the largest norm over the counts, and the cell that has the largest part."""
        worst, dominant = rows.worst(self.errors, self.factors)
        if self.fixed.any():
            worst += math.sqrt(max(float(rows.gram(self._fixed_column)[0, 0]), 0.0))
        return worst, dominant

    @cached_property
    def _fixed_column(self) -> FloatArray:
        return self.fixed[:, None]

    def along(self, rows: LinearContributions) -> tuple[FloatArray, FloatArray]:
        """Return the sums of the cells' vectors in units of the ellipsoid, and what is fixed."""
        scale = math.sqrt(self.errors.radius) / np.sqrt(self.errors.stiffness)
        vectors = scale[:, None] * rows.sums(self.factors)
        if len(vectors) > vectors.shape[1]:  # the same ellipsoid, with fewer numbers
            vectors = np.asarray(np.linalg.qr(vectors, mode="r"))
        return vectors, rows.sums(self._fixed_column)[0]

    def draws(self, random: np.random.RandomState, number: int) -> FloatArray:
        """Draw each cell's probability of selection from its posterior under Jeffreys' prior."""
        m, n = self.cells.successes, self.cells.trials
        rate = random.beta(m + 0.5, n - m + 0.5, size=(number, len(m)))
        errors = (m / n) / rate - 1
        return np.column_stack([self.cells.ratios(self.rows, row) for row in errors])


@dataclass(frozen=True)
class GivenRegion(Region):
    """One known weighting."""

    ratios: FloatArray
    """Of its weights to the estimated ones."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "least", self.ratios)
        object.__setattr__(self, "most", self.ratios)

    def pull(self, rows: Contributions) -> tuple[float, int]:
        """Return the norm of the change; the second number means nothing."""
        square = rows.gram((self.ratios - 1)[:, None])
        return math.sqrt(max(float(square[0, 0]), 0.0)), -1


class ParameterRegion(Region):
    r"""The confidence ellipsoid of the parameters of the weights, to first order.

    Parameters
    ----------
    responses : ndarray of shape (m, p)
        The derivatives of the logarithm of each row's weight.
    root : ndarray of shape (p, q)
        A root of the parameters' covariance.
    shares : ndarray of shape (m,)
        Of the estimated weights.
    delta : float
    degrees : float
        Of freedom of the covariance: the draws are Student's.
    unbiased : bool
        Whether errors of the parameters are centred at zero. Otherwise only the worst case over the
        ellipsoid counts, which leaves room for a bias of the same order.
    """

    def __init__(
        self,
        responses: FloatArray,
        root: FloatArray,
        shares: FloatArray,
        delta: float,
        degrees: float,
        *,
        unbiased: bool = True,
    ) -> None:
        self.columns, self.shares, self.degrees = responses @ root, shares, degrees
        self.drawn = unbiased
        self.delta = delta
        self.size = root.shape[1]

    @cached_property
    def most(self) -> FloatArray:  # type: ignore[override]
        """Each row's largest weight: to first order its logarithm is linear in the parameters."""
        reach = math.sqrt(chi2.isf(self.delta, self.size))
        return np.asarray(np.exp(reach * np.linalg.norm(self.columns, axis=1)))

    @cached_property
    def least(self) -> FloatArray:  # type: ignore[override]
        """Each row's least weight."""
        return 1 / self.most

    def pull(self, rows: Contributions) -> tuple[float, int]:
        """Return the largest norm over the ellipsoid; the second number means nothing."""
        return gaussian_norm(rows.gram(self.columns), self.delta), -1

    def draws(self, random: np.random.RandomState, number: int) -> FloatArray:
        """Draw parameters from Student's distribution; the weights keep their total."""
        drawn = random.normal(size=(self.columns.shape[1], number))
        drawn /= np.sqrt(random.chisquare(self.degrees, size=number) / self.degrees)
        ratios: FloatArray = self.columns @ drawn
        np.exp(ratios, out=ratios)
        ratios /= self.shares @ ratios
        return ratios


class BootstrapRegion(Region):
    """Weights that were solved again with rows drawn again.

    Parameters
    ----------
    ratios : ndarray of shape (m, n_replicates)
        W*/Ŵ of each replicate.
    delta : float
    """

    drawn = True

    def __init__(self, ratios: FloatArray, delta: float) -> None:
        self.ratios, self.delta = ratios, delta
        self.least, self.most = ratios.min(axis=1), ratios.max(axis=1)

    def pull(self, rows: Contributions) -> tuple[float, int]:
        """Return the norm that all but δ of the replicates stay below."""
        norms = np.sqrt(np.maximum(np.diag(rows.gram(self.ratios - 1)), 0.0))
        return float(np.sort(norms)[order_statistic(len(norms), self.delta)]), -1

    def draws(self, random: np.random.RandomState, number: int) -> FloatArray:  # noqa: ARG002
        """Return the replicates, whatever number is asked for."""
        return self.ratios


def order_statistic(number: int, delta: float) -> int:
    """Return the place, from zero, that another draw exceeds with probability δ at most.

    Raises an error if there are too few draws.

    Examples
    --------
    >>> order_statistic(199, 0.05)
    189
    """
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
    rank = int((values > 1e-12 * top).sum())
    tilts = np.linspace(0.02, 0.98, 49) / (2 * top)
    moments = -0.5 * np.log1p(-2 * np.multiply.outer(tilts, values)).sum(axis=1)
    chernoff = float(((math.log(1 / delta) + moments) / tilts).min())
    return math.sqrt(min(top * float(chi2.isf(delta, rank)), chernoff))
