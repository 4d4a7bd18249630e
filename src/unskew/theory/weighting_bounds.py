r"""Bounds for weights that are not counts: kernel mean matching, logistic weights, correct ones.

**Kernel mean matching** (Proposition 4, Theorem 4). Its weights are not pointwise identified where
the kernel matrix has small eigenvalues, so bounds on their distance from the perfect ones are
vacuous almost always. What *can* be certified is the mean of any function f of the kernel's space:
it differs from the population's by at most :math:`\lVert f \rVert_K\, G(\hat\gamma)`, where G is
the distance of the two means in the feature space.

**Logistic weights.** Bickel, Brückner and Scheffer (2007) weigh by :math:`w(x) \propto
e^{-\beta^\top x}` for a logistic model β of sample against population. The paper ends with the
question of whether its analysis reaches this discriminative method. It does, in two steps. If the
estimate has the covariance V, then asymptotically :math:`\hat\beta - \beta` lies in an ellipsoid of
radius :math:`r^2 = \chi^2_p(1 - \delta)`, in which

.. math:: |\log W_i - \log\hat W_i| \le e_i = r\,(x_i^\top V x_i)^{1/2}.

With :math:`|e^t - 1| \le |t|\,e^{|t|}` the distance of the weights is at most

.. math:: \lVert W - \hat W \rVert_2 \le e^{\max_i e_i}\, r\,\lambda_{\max}^{1/2}
          \Bigl(\sum_i \hat W_i^2 V^{1/2} x_i x_i^\top V^{1/2}\Bigr),

and in l1 at most :math:`(\sum \hat W)^{1/2}` times the same with :math:`\hat W_i` for
:math:`\hat W_i^2`; also at most :math:`\sum_i \hat W_i (e^{e_i} - 1)`. Then Theorem 1 bounds the
change of the risk.

**Correct weights** have a price, too, where they are unequal: that of a smaller sample
(:func:`importance_weighting_bound`).
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigvalsh
from scipy.stats import chi2

from unskew.errors import InputError, ParameterError
from unskew.numerics.kernels import GaussianKernel, blocks
from unskew.numerics.typing import FloatArray
from unskew.numerics.weight_vectors import check_weights, effective_sample_size
from unskew.theory.bound import (
    Bound,
    Form,
    check_at_least,
    check_form,
    check_kappa,
    check_norm,
    check_positive,
    check_probability,
)
from unskew.theory.stability import PAPER, risk_bound, stability_coefficient

PRINTED = (
    "the perfect weights satisfy the program's constraints",
    "sample and population were drawn independently",
)
CORRECTED = (
    "no perfect weight exceeds largest_weight, and the program's own bound leaves room for them",
    "the sample's rows are independent draws, and so are the population's",
)


def rounding_floor(*, lambda_max: float, sample_size: int) -> float:
    r"""Return :math:`m\,\epsilon\,\lambda_{\max}`, below which a computed eigenvalue means nothing.

    Examples
    --------
    >>> from unskew.theory import rounding_floor
    >>> rounding_floor(lambda_max=2.0**10, sample_size=1024) == 2.0**-32
    True
    """
    return check_positive(lambda_max, name="lambda_max") * sample_size * 2.0**-52


def kmm_distance_bound(
    *,
    kappa: float,
    lambda_min: float,
    lambda_max: float,
    largest_weight: float,
    sample_size: int,
    population_size: int,
    slack: float = 0.0,
    delta: float = 0.05,
    form: Form = "corrected",
) -> Bound:
    r"""Proposition 4: the l2 distance of kernel mean matching's weights from the perfect ones.

    As printed,

    .. math:: \frac1m \lVert \hat\gamma' - \gamma \rVert_2 \le \frac{2 \epsilon B'}{\sqrt m} +
              \frac{2 \kappa^{1/2}}{\lambda_{\min}^{1/2}} \sqrt{\frac{B'^2}{m} + \frac1n}
              \Bigl(1 + \sqrt{2 \log \tfrac2\delta}\Bigr).

    Two steps of its proof fail. The perfect weights average one only in expectation, so that at ε =
    0 they do not satisfy the constraints; and where the sample is part of the population the two
    means are not independent. The corrected form gives each of the three deviations δ/3: the two
    means from the true one (by the triangle inequality, whatever their dependence), and
    :math:`|\bar\gamma - 1| \le \eta = B' \sqrt{\log(6/\delta) / (2m)}`:

    .. math:: \frac{2 \epsilon B'}{\sqrt m} + \frac{\kappa^{1/2}}{\lambda_{\min}^{1/2}} \Bigl[
              2 \Bigl(\frac{B'}{\sqrt m} + \frac1{\sqrt n}\Bigr)
              \Bigl(1 + \sqrt{2 \log \tfrac3\delta}\Bigr) + (\eta - \epsilon)_+ \Bigr].

    Parameters
    ----------
    kappa : float
        The largest K(x, x).
    lambda_min, lambda_max : float
        The extreme eigenvalues of the sample's kernel matrix. At or below the rounding floor
        :math:`m\,\epsilon\,\lambda_{\max}`, λ_min could as well be zero and the bound is infinite.
    largest_weight : float
        B′, the largest perfect weight, where weights average one.
    sample_size, population_size : int
        m and n.
    slack : float, default=0.0
        The program's ε, at most 1/2.
    delta : float, default=0.05
    form : {"paper", "corrected"}, default="corrected"

    Returns
    -------
    Bound

    Examples
    --------
    >>> from unskew.theory import kmm_distance_bound
    >>> kmm_distance_bound(kappa=1.0, lambda_min=1e-13, lambda_max=400.0, largest_weight=10.0,
    ...                    sample_size=1000, population_size=2000).value
    inf
    """
    form = check_form(form)
    kappa = check_kappa(kappa)
    lambda_max = check_positive(lambda_max, name="lambda_max")
    lambda_min = check_at_least(lambda_min, -math.inf, name="lambda_min")
    largest = check_positive(largest_weight, name="largest_weight")
    m = check_at_least(sample_size, 1, name="sample_size")
    n = check_at_least(population_size, 1, name="population_size")
    slack = check_at_least(slack, 0, name="slack")
    delta = check_probability(delta, name="delta")
    if slack > 0.5:
        raise ParameterError(f"slack must be at most 1/2, as the proof needs; got {slack:g}.")
    if lambda_min > lambda_max:
        raise ParameterError(f"lambda_min={lambda_min:g} is larger than lambda_max={lambda_max:g}.")
    # The first term: what the slack ε of the program's sum allows.
    loose = 2 * slack * largest / math.sqrt(m)
    mean, missed = _deviations(largest, m, n, slack, delta, form)
    # From means back to weights: ‖γ‖₂ ≤ λ_min^{-1/2} ‖Φγ‖. An eigenvalue that rounding may have
    # made could as well be zero.
    floor = rounding_floor(lambda_max=lambda_max, sample_size=int(m))
    value = math.inf
    if lambda_min > floor:
        value = loose + math.sqrt(kappa / lambda_min) * (mean + missed)
    return Bound(
        value=value,
        terms={
            "lambda_min": lambda_min,
            "rounding floor": floor,
            "from the slack": loose,
            "from the two means": mean,
            "from the perfect weights' mean": missed,
            "delta": delta,
        },
        assumptions=(
            "a strictly positive definite kernel",
            *(PRINTED if form == "paper" else CORRECTED),
        ),
        reference=f"{PAPER}, Proposition 4",
        form=form,
        statement="The l2 distance of kernel mean matching's weights from the perfect ones, with "
        f"probability {1 - delta:.6g}",
        reason=_why_vacuous(value, lambda_min, floor),
    )


def _deviations(
    largest: float, m: float, n: float, slack: float, delta: float, form: Form
) -> tuple[float, float]:
    """Return how far the two means can be apart, and the perfect weights' mean from one."""
    if form == "paper":
        # One concentration of the difference of two independent means.
        return 2 * math.sqrt(largest**2 / m + 1 / n) * (1 + math.sqrt(2 * math.log(2 / delta))), 0.0
    # δ/3 for each mean's distance from the true one, which add up, and δ/3 for the mean of the
    # perfect weights, by Hoeffding's inequality on [0, B'], less the slack.
    tail = 1 + math.sqrt(2 * math.log(3 / delta))
    mean = 2 * (largest / math.sqrt(m) + 1 / math.sqrt(n)) * tail
    return mean, max(0.0, largest * math.sqrt(math.log(6 / delta) / (2 * m)) - slack)


def _why_vacuous(value: float, lambda_min: float, floor: float) -> str:
    if math.isinf(value):
        return (
            f"lambda_min = {lambda_min:.3g} is at the rounding floor {floor:.3g}: the kernel "
            "matrix may be singular, and then many weightings have the same mean"
        )
    if value >= math.sqrt(2):  # of two points of the simplex
        return "two distributions are never further apart than 1.414 in l2"
    return ""


def kmm_bound(
    *,
    kappa: float,
    lam: float,
    lipschitz: float,
    lambda_min: float,
    lambda_max: float,
    largest_weight: float,
    sample_size: int,
    population_size: int,
    slack: float = 0.0,
    delta: float = 0.05,
    form: Form = "corrected",
) -> Bound:
    r"""Theorem 4: what kernel mean matching can cost in risk.

    Theorem 1's l2 coefficient times the distance of Proposition 4, in the given form. At ε = 0
    it is, as printed, :math:`\sigma^2 \kappa^{3/2}\, \mathrm{cond}^{1/2}(K) / \lambda` times the
    deviation of the means; with the corrected β, κ^{3/2} becomes κ.

    Parameters
    ----------
    kappa, lam, lipschitz
        As for :func:`stability_coefficient`; the learner's kernel is the program's.
    lambda_min, lambda_max, largest_weight, sample_size, population_size, slack, delta
        As for :func:`kmm_distance_bound`.
    form : {"paper", "corrected"}, default="corrected"

    Returns
    -------
    Bound
        Infinite, with the reason, where λ_min is at the rounding floor.

    Examples
    --------
    >>> from unskew.theory import kmm_bound
    >>> bound = kmm_bound(kappa=1.0, lam=0.5, lipschitz=1.0, lambda_min=0.5, lambda_max=2.0,
    ...                   largest_weight=1.0, sample_size=10000, population_size=10000)
    >>> bound.vacuous, round(bound, 3)
    (False, 0.34)
    """
    moved = kmm_distance_bound(
        kappa=kappa,
        lambda_min=lambda_min,
        lambda_max=lambda_max,
        largest_weight=largest_weight,
        sample_size=sample_size,
        population_size=population_size,
        slack=slack,
        delta=delta,
        form=form,
    )
    coefficient = stability_coefficient(
        kappa=kappa, lam=lam, lipschitz=lipschitz, norm="l2", lambda_max=lambda_max, form=form
    )
    return replace(
        risk_bound(coefficient=coefficient, distance=moved),
        terms={"stability coefficient": coefficient, "distance of the weights": moved},
        reference=f"{PAPER}, Theorem 4",
        statement="The difference in risk that kernel mean matching can make, with probability "
        f"{1 - moved.terms['delta']:.6g}",
    )


def prefer_clusters_over_kmm(
    *,
    population_size: int,
    lambda_min: float,
    largest_weight: float,
    distinct_points: int,
) -> Bound:
    r"""Return whether the bound for cells converges faster: :math:`n > \lambda_{\min} B \log m'`.

    The comparison after Theorem 4. It sets the *orders* of two bounds side by side, with
    :math:`p_0^{-1} \approx O(B)`, for which the paper gives no reason; take it as a hint.

    Parameters
    ----------
    population_size : int
        n.
    lambda_min : float
        The smallest eigenvalue of the sample's kernel matrix.
    largest_weight : float
        B.
    distinct_points : int
        m′, the number of cells or distinct points in the sample.

    Returns
    -------
    Bound
        True (one) or false (zero), with the ratio of the two orders among its terms.

    Examples
    --------
    >>> from unskew.theory import prefer_clusters_over_kmm
    >>> bool(prefer_clusters_over_kmm(population_size=5000, lambda_min=0.01, largest_weight=1000.0,
    ...                               distinct_points=300))
    True
    """
    n = check_at_least(population_size, 1, name="population_size")
    smallest = check_at_least(lambda_min, 0, name="lambda_min")
    largest = check_positive(largest_weight, name="largest_weight")
    points = check_at_least(distinct_points, 1, name="distinct_points")
    # Over n, the square of the ratio of the two orders, with 1/p0 of the order of B.
    threshold = smallest * largest * math.log(points)
    preferred = n > threshold
    better = "clusters" if preferred else "kernel mean matching"
    return Bound(
        value=preferred,
        terms={
            "n": n,
            "lambda_min B log m'": threshold,
            "order of the cluster bound over that of kernel mean matching": math.sqrt(
                threshold / n
            ),
        },
        assumptions=("1/p0 is of the order of B", "constants are alike"),
        reference=f"{PAPER}, after Theorem 4",
        statement=f"The bound that converges faster is that for {better} (1 if for clusters)",
    )


def mean_matching_bound(*, function_norm: float, mean_distance: float) -> Bound:
    r"""Bound how far the weighted sample's mean of a function is from the population's.

    .. math:: \Bigl|\frac1m \sum_i \hat\gamma_i f(x_i) - \frac1n \sum_j f(x'_j)\Bigr| \le
              \lVert f \rVert_K\, G(\hat\gamma)

    for every f of the kernel's space, by the Cauchy–Schwarz inequality. It holds
    for the given rows with certainty: it involves neither a probability nor the unknown perfect
    weights.

    Parameters
    ----------
    function_norm : float
        :math:`\lVert f \rVert_K`; for :math:`f = \sum_i a_i K(x_i, \cdot)` it is
        :math:`(a^\top K a)^{1/2}`.
    mean_distance : float
        :math:`G(\hat\gamma)`, the distance of the two means in the kernel's feature space; see
        :func:`mean_distance`.

    Returns
    -------
    Bound

    Examples
    --------
    >>> from unskew.theory import mean_matching_bound
    >>> mean_matching_bound(function_norm=3.0, mean_distance=0.1).value
    0.30000000000000004
    """
    norm = check_at_least(function_norm, 0, name="function_norm")
    gap = check_at_least(mean_distance, 0, name="mean_distance")
    return Bound(
        value=norm * gap,
        terms={"norm of the function": norm, "distance of the means": gap},
        assumptions=(
            "the function lies in the space of the kernel in which the means are compared",
        ),
        reference=f"{PAPER}, section 4.2, with the Cauchy-Schwarz inequality",
        statement="The difference between the weighted sample's mean of the function and the "
        "population's",
    )


def mean_distance(sample: Any, weights: Any, population: Any, *, gamma: float) -> float:
    r"""Return :math:`G(\hat\gamma)`, the distance of two means in a Gaussian's feature space.

    .. math:: G^2 = \frac{w^\top K w}{(\sum w)^2} -
              \frac{2}{n \sum w} \sum_{i, j} w_i K(x_i, x'_j) +
              \frac1{n^2} \sum_{j, l} K(x'_j, x'_l)

    for the kernel :math:`\exp(-\gamma \lVert x - y \rVert^2)`, exactly, in n² evaluations.

    Parameters
    ----------
    sample : array-like of shape (m, d)
    weights : array-like of shape (m,)
    population : array-like of shape (n, d)
    gamma : float

    Returns
    -------
    float

    Examples
    --------
    >>> from unskew.theory import mean_distance
    >>> mean_distance([[0.0], [1.0]], [1.0, 3.0], [[0.0], [1.0], [1.0], [1.0]], gamma=1.0) < 1e-7
    True
    """
    S, U = (np.asarray(rows, dtype=np.float64) for rows in (sample, population))
    for name, rows in (("sample", S), ("population", U)):
        if rows.ndim != 2 or not rows.size or not np.isfinite(rows).all():
            raise InputError(f"{name} must be a table of finite numbers with at least one row.")
    if S.shape[1] != U.shape[1]:
        raise InputError(f"sample has {S.shape[1]} columns and population {U.shape[1]}.")
    w = check_weights(weights, name="weights", n_rows=len(S))
    w = w / w.sum()
    # Distances are the same about any centre, and lose fewer digits about one among the rows.
    kernel = GaussianKernel(float(1 / np.sqrt(2 * gamma)))
    centre = S.mean(axis=0)
    own, others = kernel.prepare(S - centre), kernel.prepare(U - centre)
    uniform = np.full(len(U), 1 / len(U))
    square = (
        _form(kernel, own, w, own, w)
        - 2 * _form(kernel, own, w, others, uniform)
        + _form(kernel, others, uniform, others, uniform)
    )
    return math.sqrt(max(square, 0.0))


def _form(
    kernel: GaussianKernel, left: FloatArray, u: FloatArray, right: FloatArray, v: FloatArray
) -> float:
    return math.fsum(
        float(u[part] @ (kernel.block(left[part], right) @ v))
        for part in blocks(len(left), len(right))
    )


def discriminative_distance_bound(
    *,
    features: ArrayLike,
    weights: ArrayLike,
    covariance: ArrayLike,
    norm: str,
    delta: float = 0.05,
) -> Bound:
    r"""Bound how far weights by a logistic model are from those of its true parameters.

    Parameters
    ----------
    features : array-like of shape (m, p)
        Of the sample's rows, as the logistic model has them, with its intercept if it has one.
    weights : array-like of shape (m,)
        :math:`\hat W`, a multiple of :math:`e^{-\hat\beta^\top x}`, or of :math:`1 +
        e^{-\hat\beta^\top x}`, whose logarithm changes by less.
    covariance : array-like of shape (p, p)
        V, of the estimated parameters.
    norm : {"l1", "l2"}
    delta : float, default=0.05

    Returns
    -------
    Bound
        Asymptotic: as good as the normal approximation of the parameters.

    Examples
    --------
    >>> from unskew.theory import discriminative_distance_bound
    >>> bound = discriminative_distance_bound(features=[[1.0], [-1.0]], weights=[0.5, 0.5],
    ...                                       covariance=[[0.01]], norm="l1")
    >>> round(bound, 3)
    0.217
    """
    norm = check_norm(norm)
    delta = check_probability(delta, name="delta")
    x: FloatArray = np.asarray(features, dtype=np.float64)
    V: FloatArray = np.asarray(covariance, dtype=np.float64)
    if x.ndim != 2 or not x.size or not np.isfinite(x).all():
        raise InputError("features must be a table of finite numbers with at least one row.")
    if V.shape != (x.shape[1], x.shape[1]) or not np.allclose(V, V.T):
        raise InputError(
            f"covariance has shape {V.shape} for {x.shape[1]} features; it must be symmetric, with "
            "one row and column for each."
        )
    w = check_weights(weights, name="weights", n_rows=len(x))
    # 1) In coordinates in which V is the identity, the ellipsoid is a ball of this radius, and e_i
    #    is the radius times the row's length.
    radius = math.sqrt(float(chi2.isf(delta, x.shape[1])))
    values, vectors = np.linalg.eigh(V)
    mapped = x @ (vectors * np.sqrt(np.maximum(values, 0.0)))
    reach = radius * np.linalg.norm(mapped, axis=1)
    # 2) All rows together: one error of the parameters moves them all, and λ_max says how far. From
    #    l2 with weights Ŵ to l1 by the Cauchy-Schwarz inequality.
    factors = w if norm == "l1" else w**2
    last = mapped.shape[1] - 1
    largest = eigvalsh(mapped.T @ (factors[:, None] * mapped), subset_by_index=[last, last])[0]
    joint = radius * math.sqrt(max(float(largest), 0.0)) * math.exp(min(float(reach.max()), 700.0))
    if norm == "l1":
        joint *= math.sqrt(float(w.sum()))
    # 3) Each row at its own worst, whatever the others do. e^700 is finite, e^710 is not.
    apart = w * np.expm1(np.minimum(reach, 700.0))
    single = float(apart.sum()) if norm == "l1" else float(np.linalg.norm(apart))
    return Bound(
        value=min(joint, single),
        terms={
            "all rows together": joint,
            "each row at its worst": single,
            "largest change of a weight's logarithm": float(reach.max()),
            "delta": delta,
        },
        assumptions=(
            "selection follows the logistic model in these features",
            "the estimated parameters are normal with this covariance: for many rows",
        ),
        reference="M-estimation of the logistic model",
        statement=f"Asymptotically with probability {100 * (1 - delta):.6g} %, the {norm} distance "
        "of the weights from those of the true parameters",
    )


def discriminative_bound(
    *,
    features: ArrayLike,
    weights: ArrayLike,
    covariance: ArrayLike,
    kappa: float,
    lam: float,
    lipschitz: float,
    norm: str = "l1",
    lambda_max: float | None = None,
    delta: float = 0.05,
) -> Bound:
    r"""Bound the change of the risk by weights of a logistic model, as Theorems 2 and 4 do.

    Parameters
    ----------
    features, weights, covariance, delta
        As for :func:`discriminative_distance_bound`.
    kappa, lam, lipschitz, norm, lambda_max
        As for :func:`stability_coefficient`; λ is in the units of the weights.

    Returns
    -------
    Bound

    Examples
    --------
    >>> from unskew.theory import discriminative_bound
    >>> bound = discriminative_bound(features=[[1.0], [-1.0]], weights=[0.5, 0.5],
    ...                              covariance=[[0.01]], kappa=1.0, lam=0.5, lipschitz=1.0)
    >>> round(bound, 3)
    0.217
    """
    coefficient = stability_coefficient(
        kappa=kappa, lam=lam, lipschitz=lipschitz, norm=norm, lambda_max=lambda_max
    )
    distance = discriminative_distance_bound(
        features=features, weights=weights, covariance=covariance, norm=norm, delta=delta
    )
    return replace(
        risk_bound(coefficient=coefficient, distance=distance),
        reference="Theorem 1 of Cortes et al. (2008), and the covariance of the logistic model of "
        "Bickel et al. (2007)",
        statement=f"Asymptotically with probability {100 * (1 - delta):.6g} %, the change of the "
        "risk by estimating the weights",
    )


def importance_weighting_bound(
    weights: ArrayLike,
    *,
    delta: float = 0.05,
    largest_weight: float | None = None,
    second_moment: float | None = None,
    n_hypotheses: int = 1,
) -> Bound:
    r"""Bound the risk above its weighted estimate, for correct weights.

    For a loss in [0, 1], a hypothesis fixed before the sample was seen and the perfect weights w,
    whose mean under the selection is one, with probability at least 1 − δ

    .. math:: R(h) \le \hat R_w(h) + \frac{2 M \log(1/\delta)}{3 m} +
              \sqrt{\frac{2\, d_2 \log(1/\delta)}{m}},

    where :math:`M = \sup w` and :math:`d_2 = E[w^2]`. The last term is that of a random sample
    of :math:`m / d_2` rows: the effective sample size. With :math:`N` hypotheses, log(1/δ)
    becomes log(N/δ).

    Parameters
    ----------
    weights : array-like of shape (m,)
        In any scale; they are divided by their mean.
    delta : float, default=0.05
    largest_weight, second_moment : float, optional
        M and d₂ where they are known. By default they are estimated from the sample, and the
        bound is only a diagnostic: the largest weight may not have been seen.
    n_hypotheses : int, default=1
        Among how many hypotheses one was chosen.

    Returns
    -------
    Bound

    References
    ----------
    Cortes, Mansour and Mohri, "Learning bounds for importance weighting", NIPS 2010.

    Examples
    --------
    >>> from unskew.theory import importance_weighting_bound
    >>> round(importance_weighting_bound([1.0] * 500 + [3.0] * 500), 3)
    0.09
    """
    vector = check_weights(weights, name="weights")
    delta = check_probability(delta, name="delta")
    chosen = check_at_least(n_hypotheses, 1, name="n_hypotheses")
    m = len(vector)
    largest, moment = float(vector.max() / vector.mean()), m / effective_sample_size(vector)
    if largest_weight is not None:
        largest = check_at_least(largest_weight, 1, name="largest_weight")
    if second_moment is not None:
        moment = check_at_least(second_moment, 1, name="second_moment")
    if moment > largest * (1 + 1e-9):
        raise ParameterError(
            f"second_moment={moment:g} exceeds largest_weight={largest:g}, but weights of mean one "
            "that are at most M have a second moment of at most M."
        )
    # Bernstein's inequality for the weighted losses, of variance at most d₂ and size at most M.
    tail = math.log(chosen / delta)
    high, spread = 2 * largest * tail / (3 * m), math.sqrt(2 * moment * tail / m)
    known = largest_weight is not None and second_moment is not None
    value = high + spread
    return Bound(
        value=value,
        terms={
            "effective sample size": m / moment,
            "m": m,
            "from the largest weight": high,
            "from the second moment": spread,
            "delta": delta,
        },
        assumptions=(
            "the weights are correct, and the loss lies in [0, 1]",
            "the hypothesis was fixed before the sample was seen"
            if chosen == 1
            else f"the hypothesis is one of {chosen:.0f} fixed before the sample was seen",
            "the largest weight and the second moment are as given"
            if known
            else "the largest weight and the second moment are those of the sample",
        ),
        reference="Cortes, Mansour and Mohri (2010), Learning bounds for importance weighting",
        statement=f"The risk above its weighted estimate, with probability {1 - delta:.6g}",
        reason="a loss in [0, 1] never exceeds 1" if value >= 1 else "",
    )
