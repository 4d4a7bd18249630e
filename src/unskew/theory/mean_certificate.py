"""The certificate of kernel mean matching: for means, not for single weights."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.optimize import brentq
from scipy.special import xlogy

from unskew.errors import InputError, InputTypeError
from unskew.numerics.kernels import GaussianKernel, blocks
from unskew.numerics.typing import FloatArray
from unskew.numerics.weight_vectors import check_weights
from unskew.population.population import Population
from unskew.population.rows import as_rows
from unskew.theory.bound import Bound
from unskew.theory.fitted import KernelModel
from unskew.theory.kernel_mean_matching import mean_matching_bound
from unskew.theory.not_covered import not_covered

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
    kernel = GaussianKernel(float(1 / np.sqrt(2 * gamma)))
    centre = S.mean(axis=0)
    mine, theirs = kernel.prepare(S - centre), kernel.prepare(U - centre)
    uniform = np.full(len(U), 1 / len(U))
    square = (
        _form(kernel, mine, w, mine, w)
        - 2 * _form(kernel, mine, w, theirs, uniform)
        + _form(kernel, theirs, uniform, theirs, uniform)
    )
    return math.sqrt(max(square, 0.0))


def _form(
    kernel: GaussianKernel, left: FloatArray, u: FloatArray, right: FloatArray, v: FloatArray
) -> float:
    return math.fsum(
        float(u[part] @ (kernel.block(left[part], right) @ v))
        for part in blocks(len(left), len(right))
    )


def mean_certificate(model: Any, fitted: KernelModel, delta: float, population: Any) -> Bound:
    """Certify the mean prediction of a model whose weights come from kernel mean matching."""
    K = fitted.kernel(fitted.rows)
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
    spread = float(np.std(K @ fitted.coefficients))
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


def why_vacuous(value: float, spread: float) -> str:
    """Return why a bound on the change of predictions is vacuous, or nothing where it is not."""
    return "" if value < spread else "the predictions themselves differ by no more than that"


def _exact_distance(model: Any, fitted: KernelModel, population: Any) -> float:
    if fitted.gamma is None:
        not_covered("with kernel mean matching, the learner's kernel must be Gaussian.")
    if len(fitted.rows) != len(model.weights_):
        not_covered("SVR keeps its support vectors only, so the sample's mean cannot be taken.")
    if isinstance(population, Population):
        raise InputTypeError(
            "population must be rows as the learner takes them, an array or a dataframe: comparing "
            "the means needs all pairs of them at once."
        )
    steps = getattr(model.estimator_, "steps", None)
    rows = model.estimator_[:-1].transform(population) if steps else population
    return mean_distance(fitted.rows, model.weights_, rows, gamma=fitted.gamma)


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
    if fitted.gamma is None or not _same_kernel(model, fitted, K):
        not_covered(
            "the learner's kernel is not the one in which kernel mean matching compared the means. "
            "Pass population= to compare them in the learner's."
        )
    mean = min(measured**2 / 4, 1.0)

    def excess(limit: float) -> float:
        divergence = xlogy(mean, mean / limit) + xlogy(1 - mean, (1 - mean) / (1 - limit))
        return float(N_FREQUENCIES * divergence - math.log(1 / delta))

    if mean >= 1 or excess(1 - 1e-12) < 0:
        return 2.0
    return 2 * math.sqrt(brentq(excess, max(mean, 1e-300), 1 - 1e-12))


def _same_kernel(model: Any, fitted: KernelModel, K: FloatArray) -> bool:
    """Return whether learner and weighter have the same kernel, up to rounding, on some rows."""
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
