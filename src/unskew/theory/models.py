r"""Fitted models, linear in features that are numbers or that only a kernel knows.

A :class:`LinearModel` has its features as columns, and a :class:`KernelModel` the kernel matrix,
whose factor would be its features. Other weights change the gradient of a model's objective by
:math:`g = \sum_i (W_i / \hat W_i - 1)\,p_i \varphi_i`, with what each row adds (``pulls``), and how
long that is in the metric of the objective's curvature H bounds how far the model moves
(:mod:`unskew.theory.moves`, whose equations are referred to here). With features as numbers H is a
matrix of their pairs (:class:`RootMetric`); with a kernel only inner products of features are known
(:class:`KernelMetric`). Both answer the same questions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from scipy.linalg import LinAlgError, cholesky, eigvalsh, lstsq, solve_triangular
from scipy.optimize import lsq_linear
from sklearn.metrics.pairwise import pairwise_kernels

from unskew.errors import InputError
from unskew.numerics.joint_region import RelativeErrors, worst_norm, worst_norm_of
from unskew.numerics.kernels import GaussianKernel, fill_matrix
from unskew.numerics.typing import FloatArray, IntArray

SMALL = 64
"""Columns up to which NumPy's functions are faster: SciPy's take longer to begin."""


@dataclass(frozen=True)
class Ellipsoid:
    r"""Scores move by at most :math:`\lVert A x \rVert + |b^\top x| + r \lVert R x \rVert`.

    Attributes
    ----------
    along : ndarray of shape (k, d)
        A: the score moves by e times this, for one e of length one at most.
    centre : ndarray of shape (d,) or None
        b
    root : ndarray of shape (d, d)
        R
    rest : float
        r
    """

    along: FloatArray
    centre: FloatArray | None
    root: FloatArray
    rest: float

    def parts(self, features: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return A x, and the rest of the reach, of each row."""
        rest = np.zeros(len(features))
        if self.rest:
            rest += self.rest * np.linalg.norm(features @ self.root.T, axis=1)
        if self.centre is not None:
            rest += np.abs(features @ self.centre)
        return features @ self.along.T, rest

    def without_rest(self, squares: FloatArray) -> Ellipsoid:
        r"""Return an ellipsoid that contains this one with its rest.

        For any :math:`\varepsilon > 0`, :math:`(\lVert A x \rVert + r \lVert R x \rVert)^2 \le
        (1 + \varepsilon) \lVert A x \rVert^2 + (1 + 1/\varepsilon)\, r^2 \lVert R x \rVert^2`;
        this :math:`\varepsilon` makes the mean over rows with these mean ``squares`` least.
        """
        first = math.sqrt(float(np.sum((self.along @ squares) * self.along)))
        second = self.rest * math.sqrt(float(np.sum((self.root @ squares) * self.root)))
        # The best ε is the ratio of the two roots of the means, second / first.
        if not second:
            return self
        if not first:
            return replace(self, along=self.rest * self.root, rest=0.0)
        parts = (
            math.sqrt(1 + second / first) * self.along,
            math.sqrt(1 + first / second) * self.rest * self.root,
        )
        return replace(self, along=np.asarray(np.linalg.qr(np.vstack(parts), mode="r")), rest=0.0)

    def reach(self, features: FloatArray) -> FloatArray:
        """Return by how much each row's score can move."""
        z, rest = self.parts(features)
        return np.asarray(np.linalg.norm(z, axis=1) + rest)


class RootMetric:
    r"""Lengths in :math:`H^{-1}` of gradients, for features that are given as numbers.

    Parameters
    ----------
    vectors : ndarray of shape (m, d)
        What each row adds to the gradient.
    root : ndarray of shape (d, d)
        The inverse root of H.
    left : ndarray of shape (d,)
        The gradient at the fitted model and its own weights.
    squares : ndarray of shape (d, d)
        The weighted mean of the outer products of the features.
    """

    def __init__(
        self, vectors: FloatArray, root: FloatArray, left: FloatArray, squares: FloatArray
    ) -> None:
        self.vectors, self.root, self.squares = vectors, root, squares
        self.left = root @ left
        self.gap = float(np.linalg.norm(self.left))
        # The weighted sample's mean square of φᵀΔ is at most its largest eigenvalue times ‖Δ‖²_H.
        self.spread = root @ squares @ root.T
        self.widest = math.sqrt(top(self.spread))
        self.norm = float(np.linalg.norm(root, 2))

    def sums(self, columns: Any) -> FloatArray:
        """Return the sums of the rows' vectors, one for each column of factors."""
        return np.asarray(columns.T @ self.vectors) @ self.root.T

    def gram(self, columns: Any) -> FloatArray:
        """Return the inner products of these sums."""
        sums = self.sums(columns)
        return sums @ sums.T

    def worst(self, errors: RelativeErrors, columns: Any) -> tuple[float, int]:
        """Bound the norm of the sums times errors, and name the cell with the largest part."""
        return worst_norm_of(errors, self.sums(columns))

    def ball(self, size: float) -> Ellipsoid:
        """Return the ball (2) of this radius, by how far it moves scores."""
        return Ellipsoid(size * self.root, None, self.root, 0.0)


class KernelMetric:
    r"""The same for the rows of a factor of a kernel matrix, by (5).

    Parameters
    ----------
    matrix : ndarray of shape (m, m)
        K
    pulls : ndarray of shape (m,)
        What each row adds to the gradient, in units of its features.
    penalty : float
        ρ
    constant : float, default=0.0
        Added to K; without curvature alone.
    kappa : float
        The largest K(x, x) with it.
    curvature : ndarray of shape (m,), optional
        D, all positive. Without it H = R.
    shares : ndarray of shape (m,)
        Of the weights.
    gap : float
        The length of the gradient at the fitted model.
    """

    def __init__(
        self,
        matrix: FloatArray,
        pulls: FloatArray,
        penalty: float,
        *,
        constant: float = 0.0,
        kappa: float = np.inf,
        curvature: FloatArray | None = None,
        shares: FloatArray | None = None,
        gap: float = 0.0,
    ) -> None:
        self.matrix, self.constant, self.pulls = matrix, constant, pulls
        self.penalty, self.gap = penalty, gap
        self.norm = 1 / math.sqrt(penalty)
        self.widest = math.sqrt(kappa) * self.norm
        self.has_factor = curvature is not None
        if curvature is None:
            return
        self.curvature = curvature
        self.scale = np.sqrt(curvature)[:, None]
        S = matrix * self.scale.T
        S *= self.scale
        S.flat[:: len(S) + 1] += penalty
        # S is its own transpose, which LAPACK can overwrite without a copy.
        self.factor = cholesky(S.T, lower=True, overwrite_a=True, check_finite=False)
        if shares is not None:
            # Σ D_i (φ_iᵀΔ)² ≤ ‖Δ‖²_H, and each share is at most this multiple of D.
            self.widest = min(self.widest, math.sqrt(float((shares / curvature).max())))

    def gram(self, columns: Any) -> FloatArray:
        """Return the inner products of the sums of the rows' vectors, one for each column."""
        dense = columns.toarray() if hasattr(columns, "toarray") else columns
        sums = self.pulls[:, None] * dense
        if not self.has_factor:
            total = sums.sum(axis=0)
            found = sums.T @ (self.matrix @ sums) + self.constant * np.outer(total, total)
            return np.asarray(found / self.penalty)
        sums /= self.scale
        solved = self._solve(sums)
        return np.asarray(sums.T @ sums - self.penalty * (solved.T @ solved))

    def worst(self, errors: RelativeErrors, columns: Any) -> tuple[float, int]:
        """Bound the norm of the sums times errors, and name the cell with the largest part."""
        return worst_norm(errors, self.gram(columns))

    def ball(self, size: float) -> Ellipsoid:
        """Return the ball (2) of this radius, for rows whose feature is their largest length."""
        return Ellipsoid(np.array([[size * self.norm]]), None, np.eye(1), 0.0)

    def refit_changes(self, changes: FloatArray, ratios: FloatArray, steps: int = 4) -> FloatArray:
        r"""Return how the scores move if the weights change, for a quadratic loss.

        Parameters
        ----------
        changes : ndarray of shape (m, n)
            W/Ŵ − 1, for weights in each column.
        ratios : ndarray of shape (m, n)
            Of the curvature with these weights to that of the metric.
        steps : int
            Of conjugate gradients; for equal curvature, the first is exact.
        """
        # With R the ratios and x = D^{1/2} v, the refit's (ρ + R D K) x = −p, p the change of the
        # pulls, turns into (ρ R⁻¹ + D^{1/2} K D^{1/2}) v = −D^{-1/2} R⁻¹ p. Preconditioned from
        # both sides by the factor L, its matrix is 1 − ρ L⁻¹ (1 − R⁻¹) L⁻ᵀ.
        right = self._solve(-self.pulls[:, None] * changes / (self.scale * ratios))
        lost = self.penalty * (1 - 1 / ratios)
        y = conjugate_gradients(
            lambda y: y - self._solve(lost * self._solve(y, "T")), right, steps=steps
        )
        # The scores K x are D^{-1/2} (S − ρ) v, and S v = L y.
        return np.asarray(self.factor @ y - self.penalty * self._solve(y, "T")) / self.scale

    def _solve(self, right: FloatArray, trans: Literal["N", "T"] = "N") -> FloatArray:
        solved = solve_triangular(self.factor, right, lower=True, trans=trans, check_finite=False)
        return np.asarray(solved, dtype=np.float64)


def conjugate_gradients(
    image: Callable[[FloatArray], FloatArray],
    right: FloatArray,
    inverse: FloatArray | None = None,
    *,
    steps: int = 4,
    enough: float = 0.0,
) -> FloatArray:
    """Solve a system for each column, all at once and roughly.

    Parameters
    ----------
    image : callable
        Returns each column's matrix times its direction.
    right : ndarray of shape (d, n)
    inverse : ndarray of shape (d, d), optional
        The preconditioner.
    steps : int
    enough : float
        The share of the right-hand side that may be left.
    """
    # All columns take their steps together, each with its own length and direction.
    solved, residual = np.zeros_like(right), right.copy()
    direction = better = residual if inverse is None else inverse @ residual
    old = np.einsum("ij,ij->j", residual, better)
    for _ in range(steps):
        mapped = image(direction)
        step = old / np.maximum(np.einsum("ij,ij->j", direction, mapped), 1e-300)
        solved += step * direction
        residual = residual - step * mapped
        if np.linalg.norm(residual) <= enough * np.linalg.norm(right):
            break
        better = residual if inverse is None else inverse @ residual
        new = np.einsum("ij,ij->j", residual, better)
        direction = better + new / np.maximum(old, 1e-300) * direction
        old = new
    return solved


def gram(features: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the weighted sum of the outer products of rows, for weights that are not negative."""
    scaled = features * np.sqrt(weights)[:, None]
    return np.asarray(scaled.T @ scaled)


def inverse_root(matrix: FloatArray) -> FloatArray | None:
    """Return R with R A Rᵀ = 1, or None where A is not positive definite."""
    try:
        if len(matrix) <= SMALL:
            root: FloatArray = np.linalg.inv(np.linalg.cholesky(matrix))
        else:
            factor = cholesky(matrix, lower=True)
            root = np.asarray(solve_triangular(factor, np.eye(len(factor)), lower=True))
    except LinAlgError:
        return None
    return root if np.isfinite(root).all() else None


def top(matrix: FloatArray) -> float:
    """Return the largest eigenvalue, not below zero.

    Examples
    --------
    >>> round(top(np.diag([2.0, 3.0])), 12)
    3.0
    """
    last = len(matrix) - 1
    if last < SMALL:
        return max(float(np.linalg.eigvalsh(matrix)[last]), 0.0)
    return max(float(eigvalsh(matrix, subset_by_index=[last, last])[0]), 0.0)


NEAR = (1e-5, 1e-4, 1e-3, 1e-2)
"""Distances from a kink within which rows are tried as lying on it."""


@dataclass(frozen=True)
class Loss:
    r"""A convex loss f of :math:`z = y\,h(x)`, labels being ±1, or of :math:`z = h(x) - y`.

    Where it has a kink, any number between its two slopes is a subgradient.

    Attributes
    ----------
    margin : bool
        Whether it depends on y h(x) instead of h(x) − y.
    slope : callable
        f'(z); at a kink, either slope.
    curvature : callable
        Takes z and r, and returns the least average of the second derivative between z and any
        point at a distance of at most r: the least :math:`(f'(z + \delta) - f'(z)) / \delta`.
    most : callable
        The same for the largest average, or a bound on it.
    kinks : tuple of (float, float, float)
        Each kink's place, and the slopes on its left and right.
    lipschitz : float or None
        The largest absolute slope; None where there is none.
    bend : float or None
        The largest second derivative; None for a loss with kinks.
    """

    margin: bool
    slope: Callable[[FloatArray], FloatArray]
    curvature: Callable[[FloatArray, FloatArray], FloatArray]
    most: Callable[[FloatArray, FloatArray], FloatArray]
    kinks: tuple[tuple[float, float, float], ...] = ()
    lipschitz: float | None = None
    bend: float | None = None

    def argument(self, scores: FloatArray, labels: FloatArray) -> FloatArray:
        """Return z."""
        return labels * scores if self.margin else scores - labels

    def bending(self, z: FloatArray, r: FloatArray) -> FloatArray:
        """Return by how much the average second derivative within r can differ from that at z."""
        here = self.curvature(z, np.zeros(len(z)))
        return np.maximum(here - self.curvature(z, r), self.most(z, r) - here)

    def change_of_mean(self, z: FloatArray, weights: FloatArray, moved: float) -> float:
        """Return by how much the weighted mean loss changes at most.

        ``moved`` is the root mean square by which the scores move.
        """
        bounds = [np.inf if self.lipschitz is None else self.lipschitz * moved]
        if self.bend is not None:
            slope = np.sqrt(np.average(self.slope(z) ** 2, weights=weights))
            bounds.append(float(slope) * moved + self.bend / 2 * moved**2)
        return float(min(bounds))


@dataclass(eq=False, kw_only=True)
class _Fitted:
    r"""What all models that are linear in features have.

    Attributes
    ----------
    name : str
        Of the learner.
    loss : Loss
    weights : ndarray of shape (m,)
        Of the rows on which the model depends, in the learner's units.
    classes : ndarray or None
        The two classes of a classifier, the second of which is 1.
    z : ndarray of shape (m,)
        What the loss is taken of: y h(x), or h(x) − y.
    pulls : ndarray of shape (m,)
        What each row adds to the gradient, in units of its features: :math:`\hat W_i f'_i`, with
        the sign of dz/dh. W/Ŵ − 1 is what other weights change of it.
    excess : ndarray of shape (m,)
        ε of (4).
    """

    name: str
    loss: Loss
    weights: FloatArray
    classes: Any = None
    z: FloatArray = field(init=False)
    pulls: FloatArray = field(init=False)
    excess: FloatArray = field(init=False)
    most_term: ClassVar[str]
    """What the certificate calls the largest move of a score, and"""
    norm_term: ClassVar[str]
    """the norm of the change."""

    @property
    def shares(self) -> FloatArray:
        """The weights over their sum."""
        return self.weights / self.weights.sum()

    def curvature(self, radius: FloatArray | float) -> FloatArray:
        """Return the least average curvature of each row's loss as far as its score may move."""
        return self.loss.curvature(self.z, np.broadcast_to(radius, self.z.shape))


@dataclass(eq=False, kw_only=True)
class LinearModel(_Fitted):
    r"""A fitted :math:`\hat h(x) = \hat\theta^\top \varphi(x)`, and what it minimises.

    The objective is :math:`\sum_i W_i f_i(\theta^\top\varphi_i) + \frac12 \sum_j \rho_j
    \theta_j^2`, in the units of the learner's weights.

    Attributes
    ----------
    features : ndarray of shape (m, d)
        Of the sample, as the last step sees them; with an intercept, a last column for it.
    labels : ndarray of shape (m,)
        For a classifier, -1 and 1.
    coefficients : ndarray of shape (d,)
    penalties : ndarray of shape (d,)
        ρ; zero for an intercept that is not penalised.
    of_rows : callable
        Returns the features of other rows.
    sign : ndarray of shape (m,)
        Of dz/dh.
    left : ndarray of shape (d,)
        The gradient that the optimiser has left at its own weights.
    """

    features: FloatArray
    labels: FloatArray
    coefficients: FloatArray
    penalties: FloatArray
    of_rows: Callable[[Any], FloatArray]
    sign: FloatArray = field(init=False)
    left: FloatArray = field(init=False)
    most_term = "at the sample row that moves most"
    norm_term = "in the norm of the coefficients"

    def __post_init__(self) -> None:
        scores = self.judged[1]
        self.z = self.loss.argument(scores, self.labels)
        # dz/dθ is y φ for a loss of the margin y h(x), and φ for one of the residual h(x) − y.
        self.sign = self.labels if self.loss.margin else np.ones(len(self.z))
        slopes, self.excess = self._subgradients()
        self.pulls = self.weights * self.sign * slopes
        self.left = self._gradient(slopes)

    @property
    def judged(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The features, scores and weights of the sample."""
        return self.features, self.features @ self.coefficients, self.weights

    def read(self, rows: Any) -> tuple[FloatArray, FloatArray]:
        """Return the features and scores of rows in the form of X."""
        features = self.of_rows(rows)
        check_finite(features, self.name)
        return features, features @ self.coefficients

    @property
    def free_intercept(self) -> bool:
        """Whether it has an intercept that is not penalised."""
        return bool(self.penalties[-1] == 0)

    @cached_property
    def vectors(self) -> FloatArray:
        """What each row adds to the gradient."""
        return self.pulls[:, None] * self.features

    @cached_property
    def squares(self) -> FloatArray:
        """The weighted mean of the outer products of the features."""
        return gram(self.features, self.shares)

    def metric(self, curvature: FloatArray, *, penalised: bool = False) -> RootMetric | None:
        """Return the metric of H with these D; None where they do not determine the model."""
        penalties = self.penalties
        if penalised:
            penalties = np.where(penalties == 0, penalties.max(), penalties)
        root = inverse_root(gram(self.features, curvature) + np.diag(penalties))
        if root is None:
            return None
        left = self.left + (penalties - self.penalties) * self.coefficients
        return RootMetric(self.vectors, root, left, self.squares)

    def newton_step(
        self, changes: FloatArray, weights: FloatArray, left: FloatArray | float
    ) -> FloatArray:
        """Return the Newton step of the coefficients for W/Ŵ − 1, at the weights given."""
        hessian = gram(self.features, weights * self.curvature(0.0)) + np.diag(self.penalties)
        return np.asarray(
            -np.linalg.pinv(hessian, hermitian=True) @ (self.vectors.T @ changes + left)
        )

    def _gradient(self, slopes: FloatArray) -> FloatArray:
        """Return the gradient at the fitted model and its own weights."""
        sums = self.features.T @ (self.weights * self.sign * slopes)
        return np.asarray(sums + self.penalties * self.coefficients)

    def _subgradients(self) -> tuple[FloatArray, FloatArray]:
        """Return a slope for each row, and what rows near a kink cost, with the least gradient."""
        z = self.z
        slopes, excess = self.loss.slope(z), np.zeros(len(z))
        if not self.loss.kinks:
            return slopes, excess
        # Which rows lie on a kink cannot be seen at the optimiser's precision. Any choice is valid:
        # the one whose gradient and cost (4) move a model of this penalty least is taken.
        scale = self.penalties.max()
        best = math.inf
        found: tuple[FloatArray, FloatArray] = slopes, excess
        for near in (0.0, *NEAR):
            tried, cost = self._on_kinks(slopes, near)
            left = float(np.linalg.norm(self._gradient(tried)))
            size = left / scale + math.sqrt(float(self.weights @ cost) / scale)
            if size < best:
                best, found = size, (tried, cost)
        return found

    def _on_kinks(self, slopes: FloatArray, near: float) -> tuple[FloatArray, FloatArray]:
        """Return slopes where rows near a kink have those that leave the least gradient."""
        z = self.z
        low, high = slopes.copy(), slopes.copy()
        cost = np.zeros(len(z))
        # 1) Rows within ``near`` of a kink may have any slope between its two; neighbourhoods of
        #    two kinks do not overlap.
        places = [place for place, _, _ in self.loss.kinks]
        near = min(near, float(np.ptp(places)) / 2) if len(places) > 1 else near
        for place, before, after in self.loss.kinks:
            close = np.abs(z - place) <= near
            low[close], high[close] = before, after
            cost[close] = np.abs(z - place)[close] * (after - before)
        free = np.flatnonzero(low < high)
        if not len(free):
            return slopes, np.zeros(len(z))
        # 2) Of these slopes, those that leave the least gradient: least squares in a box.
        chosen = slopes.copy()
        chosen[free] = 0.0
        columns = (self.features[free] * (self.weights * self.sign)[free, None]).T
        solved = lsq_linear(columns, -self._gradient(chosen), bounds=(low[free], high[free]))
        chosen[free] = np.clip(solved.x, low[free], high[free])
        # 3) The cost of a slope, ε of (4): by how much its tangent at the kink exceeds the loss.
        cost[free] = np.abs(chosen - slopes)[free] * np.abs(cost[free] / (high - low)[free])
        return chosen, cost


@dataclass(eq=False, kw_only=True)
class KernelModel(_Fitted):
    r"""A fitted :math:`\hat h = \sum_i a_i K(x_i, \cdot) + b`, K(x, x) being at most one.

    Attributes
    ----------
    kernel : str
    gamma : float or None
    rows : ndarray of shape (r, d)
        The rows on which the model depends: all that have weight, or the support vectors.
    places : ndarray of int of shape (r,)
        Their places in the sample.
    coefficients : ndarray of shape (r,)
    penalty : float
        ρ, twice the multiple of the squared norm in an objective where row i has weight w_i: 2 α
        for kernel ridge regression, 1/C for support vectors.
    offset : float or None
        b, which is certified as if penalised, by the kernel K + 1; None for a learner without one.
    score : callable
        Of a classifier, returns its decision function of rows.
    decisions : tuple of ndarray or None
        Of a classifier, the decision function at all sample rows, and their weights.
    """

    kernel: str
    gamma: float | None
    rows: FloatArray
    places: IntArray
    coefficients: FloatArray
    penalty: float
    offset: float | None = None
    score: Any = None
    decisions: tuple[FloatArray, FloatArray] | None = None
    most_term = "dual certificate, at any single point"
    norm_term = "dual certificate, in the kernel's norm"

    def __post_init__(self) -> None:
        # At the minimum Ŵ f'(z) = −ρ a. For the squared loss, f' = 2 z; others' z is not needed.
        self.pulls = -self.penalty * self.coefficients
        self.z = np.zeros(len(self.pulls)) if self.free_intercept else self.pulls / self.weights / 2
        self.excess = np.zeros(len(self.pulls))

    @property
    def free_intercept(self) -> bool:
        """Whether it has an offset."""
        return self.offset is not None

    @property
    def kappa(self) -> float:
        """The largest K(x, x), of the kernel K + 1 where there is an offset."""
        return 1.0 + self.free_intercept

    @property
    def gaussian(self) -> GaussianKernel | None:
        """The Gaussian with this γ; None for any other kernel."""
        if self.kernel != "rbf" or self.gamma is None:
            return None
        return GaussianKernel(float(1 / np.sqrt(2 * self.gamma)))

    @cached_property
    def matrix(self) -> FloatArray:
        """The kernel matrix of the rows."""
        kernel = self.gaussian
        if kernel is None:
            given = {"metric": self.kernel, "gamma": self.gamma}
            return np.asarray(pairwise_kernels(self.rows, filter_params=True, **given))
        prepared = kernel.prepare(self.rows - self.rows.mean(axis=0))
        size = len(self.rows)
        return fill_matrix(kernel, prepared, prepared, np.empty((size, size)))

    @property
    def judged(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The bound on their lengths, the scores and the weights of rows: all, or those kept."""
        scores, weights = self.decisions or (self._scores, self.weights)
        return self._lengths(len(scores)), scores, weights

    @cached_property
    def _scores(self) -> FloatArray:
        return np.asarray(self.matrix @ self.coefficients + (self.offset or 0.0))

    def read(self, rows: Any) -> tuple[FloatArray, FloatArray]:
        """Return the bound on their lengths and the scores of rows in the form of X."""
        scores = np.asarray(self.score(rows))
        return self._lengths(len(scores)), scores

    def _lengths(self, number: int) -> FloatArray:
        # The kernel's space has too many directions for features: one reach for all rows.
        return np.full((number, 1), math.sqrt(self.kappa))

    def metric(self, curvature: FloatArray, *, penalised: bool = False) -> KernelMetric | None:
        """Return the metric of H with these D; None unless all are positive."""
        if not penalised and not (curvature > 0).all():
            return None
        return KernelMetric(
            self.matrix,
            self.pulls,
            self.penalty,
            constant=float(self.free_intercept),
            kappa=self.kappa,
            curvature=None if penalised else curvature,
            shares=self.shares,
            # The gradient of the offset's penalty is ρ b, along a feature that is constantly one.
            gap=math.sqrt(self.penalty) * abs(self.offset or 0.0),
        )

    def support_vector_moves(self, ratios: FloatArray) -> FloatArray:
        """Return, to first order, how the predictions of support vectors move with weights W/Ŵ.

        Support vectors at their bound stay there, so their coefficients follow their weights; those
        on the edge of the tube stay on it.
        """
        K = self.matrix
        # |a_i| ≤ C w_i, where the penalty is 1 / C.
        free = np.flatnonzero(np.abs(self.coefficients) < self.weights / self.penalty * (1 - 1e-6))
        change = self.coefficients[:, None] * (ratios - 1)
        change[free] = 0.0
        image = K @ change
        if not len(free):
            return image
        # The changes of the free coefficients, and of the offset: predictions at the edge stay, and
        # all coefficients still sum to zero.
        system = np.ones((len(free) + 1, len(free) + 1))
        system[:-1, :-1] = K[np.ix_(free, free)]
        system[-1, -1] = 0.0
        right = -np.vstack([image[free], change.sum(axis=0)])
        solved = lstsq(system, right, cond=1e-8, lapack_driver="gelsy")[0]
        return np.asarray(image + K[:, free] @ solved[:-1] + solved[-1])


FittedModel = LinearModel | KernelModel
"""A model that is linear in features, ready to be asked how far weights can move it."""


def check_finite(features: FloatArray, name: str) -> None:
    """Raise an error if a learner predicts nothing for some rows."""
    missing = int((~np.isfinite(features)).any(axis=1).sum())
    if missing:
        raise InputError(
            f"{missing} rows of the population have missing or infinite features, for which "
            f"{name} predicts nothing. Impute them in the pipeline, or leave these rows out."
        )
