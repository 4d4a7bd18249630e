r"""Kernel learners are linear learners on a factor of their kernel matrix; their dual certificate.

A kernel model :math:`\hat h = \sum_i a_i K(x_i, \cdot)` is the linear model :math:`\hat\theta =
F^\top a` on the rows of any F with :math:`F F^\top = K`. F is never computed: all that a
certificate asks are inner products, which K has. Minimising :math:`\sum_i \hat W_i c(h, z_i) +
\lambda \lVert h \rVert_K^2` makes :math:`2 \lambda a_i = -\hat W_i c'_i`. So the gradient at ĥ of
the same objective with weights W is :math:`-2\lambda g` with

.. math:: g = \sum_i a_i \Bigl(\frac{W_i}{\hat W_i} - 1\Bigr) K(x_i, \cdot),     \tag{1}

and since that objective is strongly convex with modulus 2λ, its minimiser :math:`h_W` is no further
away than

.. math:: \lVert h_W - \hat h \rVert_K \le \lVert g \rVert_K.                       \tag{2}

Neither λ nor the loss's Lipschitz constant appears: the model's own coefficients show how well
determined it is. For the squared loss the objective is quadratic, with half the Hessian
:math:`A_W = \alpha + \sum_i W_i K(x_i, \cdot) \otimes K(x_i, \cdot)` in the learner's units, and
:math:`h_W - \hat h = \alpha A_W^{-1} g` exactly. For every :math:`A \preceq A_W`,

.. math:: \alpha \lVert h_W - \hat h \rVert_K^2 + \sum_i W_i (h_W - \hat h)^2(x_i) \le
          \alpha^2 \langle g, A^{-1} g \rangle,                                     \tag{3}

which is never worse in the first norm, :math:`\lVert g \rVert_{A^{-1}} \le \alpha^{-1/2} \lVert g
\rVert_K`, and bounds the mean squared change of the predictions as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import cholesky, lstsq, solve_triangular
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.svm import SVC, SVR

from unskew.errors import InputError, ParameterError
from unskew.numerics.kernels import GaussianKernel, blocks, fill_matrix
from unskew.numerics.typing import FloatArray, IntArray
from unskew.numerics.weight_vectors import check_weights
from unskew.theory.bound import Bound, check_positive, not_covered
from unskew.theory.cell_region import CellRegion
from unskew.theory.linear_models import (
    check_finite,
    check_label_columns,
    check_no_class_weight,
    check_penalty,
    features_of,
    last_step,
)
from unskew.theory.refits import conjugate_gradients
from unskew.theory.regions import KernelContributions, WeightRegion

BOUNDED = {"rbf": 1.0, "laplacian": 1.0, "chi2": 1.0, "cosine": 1.0}
"""Kernels with a known bound κ on K(x, x)."""

_NO_FEATURES: FloatArray = np.empty((0, 0))

FEW_IN_CELLS = 10
"""Where cells hold fewer rows than this on average, the curvature is not used: the certificate is
vacuous there either way, and would cost more than the fit. Not tuned."""


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
    moved = a * (other / trained - 1)  # (1)
    value = math.sqrt(max(float(moved @ (K @ moved)), 0.0))
    terms = {"norm of the gradient over 2 lambda": value}
    if alpha is not None:
        alpha = check_positive(alpha, name="alpha")
        gram = RidgeCurvature(K, other, alpha).gram(moved[:, None])
        curved = math.sqrt(alpha * max(float(gram[0, 0]), 0.0))
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


class RidgeCurvature:
    r"""The curvature of a weighted kernel ridge regression, factored once.

    Holds the Cholesky factor L of :math:`S = \alpha + D^{1/2} K D^{1/2}` for weights D. With
    :math:`b` the coefficients of a function, :math:`\langle b, A^{-1} b \rangle = b^\top
    D^{-1/2} (I - \alpha S^{-1}) D^{-1/2} b`.

    Zero weights D are allowed only where the coefficients are zero.
    """

    def __init__(self, K: FloatArray, weights: FloatArray, alpha: float) -> None:
        self.alpha = alpha
        self.root = np.sqrt(weights)
        S = K * self.root
        S *= self.root[:, None]
        S.flat[:: len(S) + 1] += alpha
        # S is its own transpose, which LAPACK can overwrite without a copy.
        self.factor = cholesky(S.T, lower=True, overwrite_a=True, check_finite=False)

    def scaled(self, coefficients: FloatArray) -> FloatArray:
        """Return D^{-1/2} b, with zero where D is zero."""
        root = self.root[:, None]
        return np.divide(coefficients, root, out=np.zeros_like(coefficients), where=root > 0)

    def gram(self, coefficients: FloatArray) -> FloatArray:
        """Return the inner products in A⁻¹ of functions, given by columns of coefficients."""
        scaled = self.scaled(coefficients)
        solved = self._solve(scaled)
        return scaled.T @ scaled - self.alpha * (solved.T @ solved)

    def moves(self, coefficients: FloatArray, weights: FloatArray, steps: int = 4) -> FloatArray:
        r"""Return how refits with other weights move the predictions at the sample.

        Column j of ``coefficients`` holds :math:`a\,(W/\hat W - 1)` for the weights of column j.
        Each refit is a linear system, solved by conjugate gradients with this factor as
        preconditioner.
        """
        # With R = W / D and x = D^{1/2} v, the refit's change (α + W K) x = α t a turns into
        # (α R^{-1} + D^{1/2} K D^{1/2}) v = α D^{-1/2} R^{-1} t a. Preconditioned from both
        # sides it is I - α L^{-1} (1 - R^{-1}) L^{-T}.
        inverse = self.root[:, None] ** 2 / weights
        right = self._solve(self.alpha * self.scaled(coefficients) * inverse)
        lost = self.alpha * (1 - inverse)
        y = conjugate_gradients(
            lambda y: y - self._solve(lost * self._solve(y, transposed=True)), right, steps=steps
        )
        # Predictions K x = D^{-1/2} (S - α) v, and S v = L y.
        v = self._solve(y, transposed=True)
        return (self.factor @ y - self.alpha * v) / self.root[:, None]

    def _solve(self, right: FloatArray, *, transposed: bool = False) -> FloatArray:
        kind: Literal["N", "T"] = "T" if transposed else "N"
        solved = solve_triangular(self.factor, right, lower=True, trans=kind, check_finite=False)
        return np.asarray(solved, dtype=np.float64)


@dataclass(frozen=True)
class BoundedKernel:
    """A kernel with a known bound κ on K(x, x)."""

    name: str
    gamma: float | None

    @classmethod
    def from_learner(cls, kernel: Any, gamma: float | None) -> BoundedKernel:
        """Return the kernel of a learner, or raise that it has no bound."""
        if not isinstance(kernel, str) or kernel not in BOUNDED:
            named = f'kernel="{kernel}"' if isinstance(kernel, str) else "a custom kernel"
            listed = ", ".join(f'"{name}"' for name in BOUNDED)
            not_covered(
                f"{named} has no bound kappa on K(x, x) that holds for every x. These kernels have "
                f'one: {listed} (SVR and SVC have "rbf" of them).'
            )
        return cls(kernel, gamma)

    @property
    def gaussian(self) -> GaussianKernel | None:
        """The Gaussian with this γ; None for any other kernel."""
        if self.name != "rbf" or self.gamma is None:
            return None
        return GaussianKernel(float(1 / np.sqrt(2 * self.gamma)))

    def matrix(self, rows: FloatArray) -> FloatArray:
        """Return the kernel matrix of rows."""
        kernel = self.gaussian
        if kernel is None:
            found = pairwise_kernels(rows, metric=self.name, filter_params=True, gamma=self.gamma)
            return np.asarray(found)
        prepared = kernel.prepare(rows - rows.mean(axis=0))
        return fill_matrix(kernel, prepared, prepared, np.empty((len(rows), len(rows))))


class KernelMoves(NamedTuple):
    """By how much a kernel model can have moved."""

    on_average: float
    """As a root mean square over the weighted sample."""
    anywhere: float
    """At any single point."""
    norm: float
    """In the kernel's norm."""
    dominant: int
    """What has the largest part."""


@dataclass(frozen=True)
class KernelModel:
    r"""A fitted :math:`\hat h = \sum_i a_i K(x_i, \cdot) + b`.

    Attributes
    ----------
    name : str
    kernel : BoundedKernel
    rows : ndarray of shape (r, d)
        The rows that the learner kept: all of the sample, or the support vectors.
    places : ndarray of int of shape (r,)
        Their places in the sample.
    coefficients : ndarray of shape (r,)
    weights : ndarray of shape (r,)
        With which they were trained.
    offset : float or None
        b; None for a learner that has none, which is one with the squared loss.
    penalty : float
        The multiple of the squared norm in an objective where row i has weight w_i: alpha for
        kernel ridge regression, 1/(2C) for support vector regression.
    classes : ndarray or None
        Of a classifier.
    score : callable
        Of a classifier, returns its decision function of rows.
    decisions : tuple of ndarray or None
        Of a classifier, the decision function at all sample rows, and their weights.
    """

    name: str
    kernel: BoundedKernel
    rows: FloatArray
    places: IntArray
    coefficients: FloatArray
    weights: FloatArray
    offset: float | None
    penalty: float
    classes: Any = None
    score: Any = None
    decisions: tuple[FloatArray, FloatArray] | None = None

    @property
    def squared(self) -> bool:
        """Whether it was trained with the squared loss."""
        return self.offset is None

    @property
    def kappa(self) -> float:
        """The largest K(x, x); an offset is certified as if penalised, by the kernel K + 1."""
        return BOUNDED[self.kernel.name] + (not self.squared)

    @cached_property
    def matrix(self) -> FloatArray:
        """The kernel matrix, of the kernel K + 1 where there is an offset."""
        return self.kernel.matrix(self.rows) + (not self.squared)

    @cached_property
    def predictions(self) -> FloatArray:
        """Its predictions at the rows that it kept."""
        K = self.matrix - (not self.squared)
        return np.asarray(K @ self.coefficients + (self.offset or 0.0))

    @property
    def judged(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """No features, the scores and the weights of the rows at which the model is judged."""
        return _NO_FEATURES, *(self.decisions or (self.predictions, self.weights))

    def read(self, rows: Any) -> tuple[FloatArray, FloatArray]:
        """Return no features and the scores of rows in the form of X."""
        return _NO_FEATURES, np.asarray(self.score(rows))

    def curvature(self, least: FloatArray) -> RidgeCurvature:
        """Return the curvature of the squared loss where rows have at least these weights.

        It is factored once: the last one is kept.
        """
        known = self.__dict__.get("_curvature")
        # Certificate and refits of one region need the same factor, which is most of their cost.
        if known is None or not np.array_equal(known[0], least):
            known = least, RidgeCurvature(self.matrix, least, self.penalty)
            self.__dict__["_curvature"] = known
        return known[1]

    def moves(self, region: WeightRegion) -> KernelMoves:
        """Return how far the weights of a region can move the model."""
        a = self.coefficients
        pull, dominant = region.pull(KernelContributions(lambda b: b.T @ (self.matrix @ b), a))
        norm, on_average = pull + abs(self.offset or 0.0), math.inf  # (2)
        few = isinstance(region, CellRegion) and region.has_few_rows(FEW_IN_CELLS)
        if self.squared and (region.least > 0).all() and not few:
            curvature = self.curvature(self.weights * region.least)
            pull, dominant = region.pull(KernelContributions(curvature.gram, a))
            # Both parts of (3) are at most its right-hand side. The second is a sum over the
            # perfect weights, of which each is at least its share of the estimated one.
            norm = min(norm, math.sqrt(self.penalty) * pull)
            least = self.weights.sum() * float(region.least.min())
            on_average = self.penalty * pull / math.sqrt(least)
        anywhere = math.sqrt(self.kappa) * norm
        return KernelMoves(min(anywhere, on_average), anywhere, norm, dominant)

    def refit_spread(self, region: CellRegion, random: np.random.RandomState, number: int) -> float:
        """Return the root mean square change of the predictions over draws of the weights.

        It estimates what refits would change; it is not a bound.
        """
        ratios = region.draws(random, number)
        moved = self.coefficients[:, None] * (ratios - 1)
        if self.squared:
            curvature = self.curvature(self.weights * region.least)
            change = curvature.moves(moved, self.weights[:, None] * ratios)
        else:
            change = self._support_vector_moves(moved)
        return float(np.sqrt(np.average((change**2).mean(axis=1), weights=self.weights)))

    def _support_vector_moves(self, moved: FloatArray) -> FloatArray:
        """Return, to first order, how the predictions of a support vector regression move.

        Support vectors at their bound stay there, so their coefficients follow their weights; those
        on the edge of the tube stay on it.
        """
        K = self.matrix - 1
        # |a_i| ≤ C w_i, where the penalty is 1 / (2 C).
        limit = self.weights / (2 * self.penalty)
        free = np.flatnonzero(np.abs(self.coefficients) < limit * (1 - 1e-6))
        change = moved.copy()
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
        return image + K[:, free] @ solved[:-1] + solved[-1]


def read_kernel_model(model: Any, X: Any = None) -> KernelModel:
    """Return the kernel expansion of a fitted Reweighted, or raise why it is not covered."""
    learner = last_step(model)
    if isinstance(learner, KernelRidge):
        return _kernel_ridge(learner, model.weights_)
    if isinstance(learner, SVR):
        return _support_vectors(learner, model.weights_)
    if isinstance(learner, SVC):
        return _classifier(learner, model, X)
    return not_covered(
        f"{type(learner).__name__} does not minimise a weighted convex loss plus a squared norm "
        "that can be read from it. The certificate covers KernelRidge, SVR, SVC, Ridge, "
        "LogisticRegression, LinearSVC, LinearSVR, SGDClassifier and SGDRegressor, also as the "
        "last step of a pipeline."
    )


def _kernel_ridge(learner: KernelRidge, weights: FloatArray) -> KernelModel:
    coefficients = np.asarray(learner.dual_coef_, dtype=np.float64)
    check_label_columns(coefficients.shape[1] if coefficients.ndim > 1 else 1)
    alpha = check_penalty(learner.alpha)
    rows = _dense(learner.X_fit_)
    gamma = learner.gamma
    if gamma is None and learner.kernel == "rbf":
        gamma = 1 / rows.shape[1]  # scikit-learn's default
    return KernelModel(
        name="KernelRidge",
        kernel=BoundedKernel.from_learner(learner.kernel, gamma),
        rows=rows,
        places=np.arange(len(coefficients)),
        coefficients=coefficients.reshape(-1),
        weights=weights,
        offset=None,
        penalty=alpha,
    )


def _support_vectors(learner: SVR | SVC, weights: FloatArray) -> KernelModel:
    places = np.asarray(learner.support_, dtype=np.int64)
    if not len(places):
        not_covered(
            f"{type(learner).__name__} has no support vectors: it predicts a constant that no "
            "weight has moved."
        )
    return KernelModel(
        name=type(learner).__name__,
        kernel=BoundedKernel.from_learner(learner.kernel, float(learner._gamma)),
        rows=_dense(learner.support_vectors_),
        places=places,
        coefficients=np.asarray(_dense(learner.dual_coef_)).reshape(-1),
        weights=weights[places],
        offset=float(learner.intercept_[0]),
        penalty=1 / (2 * learner.C),
    )


def _classifier(learner: SVC, model: Any, X: Any) -> KernelModel:
    if len(learner.classes_) > 2:
        not_covered("there are more than two classes; fit one model to each.")
    check_no_class_weight(learner)
    if X is None:
        raise ParameterError("SVC keeps its support vectors only: pass X, the sample.")
    found = _support_vectors(learner, model.weights_)
    decide = _decision_function(found)

    def score(rows: Any) -> FloatArray:
        features = features_of(model.estimator_, rows)
        check_finite(features, "SVC")
        return decide(features)

    scores = score(X)
    if len(scores) != len(model.weights_):
        raise InputError(
            f"X has {len(scores)} rows, and the model was fitted to {len(model.weights_)}: pass "
            "the X of fit."
        )
    decisions = scores, model.weights_
    return replace(found, classes=learner.classes_, score=score, decisions=decisions)


def _decision_function(model: KernelModel) -> Callable[[FloatArray], FloatArray]:
    """Return the expansion in a Gaussian kernel by matrix products, which libsvm does not use."""
    kernel, centre = model.kernel.gaussian, model.rows.mean(axis=0)
    assert kernel is not None
    kept = kernel.prepare(model.rows - centre)

    def decide(rows: FloatArray) -> FloatArray:
        found = np.empty(len(rows))
        for part in blocks(len(rows), len(kept)):
            values = kernel.block(kernel.prepare(rows[part] - centre), kept)
            found[part] = values @ model.coefficients + (model.offset or 0.0)
        return found

    return decide


def _dense(matrix: Any) -> FloatArray:
    return matrix.toarray() if hasattr(matrix, "toarray") else np.asarray(matrix, dtype=np.float64)
