r"""Bounds for kernel mean matching: Proposition 4, Theorem 4 and what can be certified instead.

The weights of kernel mean matching are not pointwise identified where the kernel matrix has small
eigenvalues, so bounds on their distance from the perfect ones are vacuous almost always. What *can*
be certified is the mean of any function f of the kernel's space: it differs from the population's
by at most :math:`\lVert f \rVert_K\, G(\hat\gamma)`, where G is the distance of the two means in
the feature space. :func:`mean_certificate` does that for a fitted model.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.optimize import brentq
from scipy.special import xlogy

from unskew.errors import InputError, InputTypeError, ParameterError
from unskew.numerics.kernels import GaussianKernel, blocks
from unskew.numerics.typing import FloatArray
from unskew.numerics.weight_vectors import check_weights
from unskew.population.population import Population
from unskew.rows.tables import as_rows
from unskew.theory.bound import (
    Bound,
    Form,
    check_at_least,
    check_kappa,
    check_option,
    check_positive,
    check_probability,
    not_covered,
)
from unskew.theory.models import KernelModel
from unskew.theory.moves import FittedModel
from unskew.theory.stability import FORMS, PAPER, risk_bound, stability_coefficient

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
    form = check_option(form, FORMS, name="form")  # type: ignore[assignment]
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


N_FREQUENCIES = 256
"""As many as kernel mean matching asks the population for; the interval depends on it."""


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


def mean_certificate(model: Any, fitted: FittedModel, delta: float, population: Any) -> Bound:
    """Certify the mean prediction of a model whose weights come from kernel mean matching."""
    if not isinstance(fitted, KernelModel):
        not_covered(f"with kernel mean matching, a learner without a kernel: {fitted.name}.")
    # ‖h‖_K² = aᵀKa: the model itself is the function whose mean is compared.
    K = fitted.matrix
    norm = math.sqrt(max(float(fitted.coefficients @ K @ fitted.coefficients), 0.0))
    if population is not None:
        distance = _exact_distance(model, fitted, population)
        certain = "For these rows"
        assumption: tuple[str, ...] = ()
    else:
        distance = _distance_from_frequencies(model, fitted, K, delta)
        certain = f"With probability {100 * (1 - delta):.6g} %"
        assumption = (
            f"the {N_FREQUENCIES} random frequencies at which the weighter compared the means were "
            "drawn independently of the weights",
        )
    spread = spread_of(*fitted.judged[1:])
    bound = mean_matching_bound(function_norm=norm, mean_distance=distance)
    return replace(
        bound,
        terms={**bound.terms, "spread of the predictions": spread, "delta": delta},
        assumptions=(*bound.assumptions, *assumption),
        statement=f"{certain}, the weighted sample's mean prediction differs from the population's",
        reason=why_vacuous(bound.value, spread),
        remarks=(
            "Kernel mean matching does not determine single weights, so no bound on them or on the "
            "model is given (Theorem 4's is infinite where the kernel matrix is singular up to "
            "rounding).",
        ),
    )


def spread_of(scores: FloatArray, weights: FloatArray) -> float:
    """Return the standard deviation of predictions over the weighted sample."""
    mean = np.average(scores, weights=weights)
    return float(np.sqrt(np.average((scores - mean) ** 2, weights=weights)))


def why_vacuous(value: float, spread: float) -> str:
    """Return why a bound on the change of predictions is vacuous, or nothing where it is not."""
    return "" if value < spread else "the predictions themselves differ by no more than that"


def _exact_distance(model: Any, fitted: KernelModel, population: Any) -> float:
    if fitted.gaussian is None or fitted.gamma is None:
        not_covered("with kernel mean matching, the learner's kernel must be Gaussian.")
    if fitted.free_intercept:
        not_covered(
            f"{fitted.name} keeps its support vectors only, so the sample's mean cannot be taken."
        )
    if isinstance(population, Population):
        raise InputTypeError(
            "population must be rows as the learner takes them, an array or a dataframe: comparing "
            "the means needs all pairs of them at once."
        )
    steps = getattr(model.estimator_, "steps", None)
    rows = model.estimator_[:-1].transform(population) if steps else population
    return mean_distance(fitted.rows, fitted.weights, rows, gamma=fitted.gamma)


def _distance_from_frequencies(
    model: Any, fitted: KernelModel, K: FloatArray, delta: float
) -> float:
    """Return an upper limit on the distance of the means from what the weighter measured.

    It is the root of the mean over frequencies of values in [0, 4], independent given the weights,
    and Hoeffding's inequality in the form with the divergence bounds such a mean's expectation.
    """
    weighter = model.weighter_
    measured = float(weighter.mmd_after_)
    bandwidth = float(weighter.bandwidth_) if np.ndim(weighter.bandwidth_) == 0 else math.nan
    if not math.isfinite(measured) or not math.isfinite(bandwidth) or weighter.kernel != "gaussian":
        not_covered("kernel mean matching with a kernel that is not Gaussian; pass population=.")
    if fitted.gaussian is None or not _same_kernel(model, fitted, K):
        not_covered(
            "the learner's kernel is not the one in which kernel mean matching compared the means. "
            "Pass population= to compare them in the learner's."
        )
    # Each frequency's squared difference lies in [0, 4]; their mean is the measured distance's
    # square. The largest expectation p with 256 kl(mean ‖ p) ≤ log(1/δ) is the upper limit.
    mean = min(measured**2 / 4, 1.0)

    def excess(limit: float) -> float:
        divergence = xlogy(mean, mean / limit) + xlogy(1 - mean, (1 - mean) / (1 - limit))
        return float(N_FREQUENCIES * divergence - math.log(1 / delta))

    if mean >= 1 or excess(1 - 1e-12) < 0:
        return 2.0
    return 2 * math.sqrt(brentq(excess, max(mean, 1e-300), 1 - 1e-12))


def _same_kernel(model: Any, fitted: KernelModel, K: FloatArray) -> bool:
    """Return whether learner and weighter have the same kernel, up to rounding, on some rows."""
    # Compared by what they compute, on 50 rows: bandwidths, scalings and steps of a pipeline can
    # agree or differ in many ways.
    weighter, few = model.weighter_, np.linspace(0, len(K) - 1, min(len(K), 50)).astype(int)
    rows = fitted.rows[few]
    try:
        if hasattr(model.estimator_, "steps"):
            rows = model.estimator_[:-1].inverse_transform(rows)
        table = as_rows(rows, name="rows")
        names = getattr(weighter, "feature_names_in_", table.table.column_names)
        named = table.table.rename_columns(list(names)).select(weighter.columns_)
        batch = replace(table, table=named).batch
        points = weighter.space_.transform(batch, side="new rows").values - weighter.centre_
    except (AttributeError, ValueError, pa.ArrowException):  # a step without a way back, categories
        return False
    kernel = GaussianKernel(float(weighter.bandwidth_))
    prepared = kernel.prepare(points)
    return bool(np.allclose(kernel.block(prepared, prepared), K[np.ix_(few, few)], atol=1e-6))
