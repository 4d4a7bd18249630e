r"""Importance weighting beyond the paper: logistic weights, and the price of unequal ones.

Bickel, Brückner and Scheffer (2007) weigh by :math:`w(x) \propto e^{-\beta^\top x}` for a logistic
model β of sample against population. The paper ends with the question of whether its analysis
reaches this discriminative method. It does, in two steps. If the estimate has the covariance V,
then asymptotically :math:`\hat\beta - \beta` lies in an ellipsoid of radius :math:`r^2 =
\chi^2_p(1 - \delta)`, in which

.. math:: |\log W_i - \log\hat W_i| \le e_i = r\,(x_i^\top V x_i)^{1/2}.

With :math:`|e^t - 1| \le |t|\,e^{|t|}` the distance of the weights is at most

.. math:: \lVert W - \hat W \rVert_2 \le e^{\max_i e_i}\, r\,\lambda_{\max}^{1/2}
          \Bigl(\sum_i \hat W_i^2 V^{1/2} x_i x_i^\top V^{1/2}\Bigr),

and in l1 at most :math:`(\sum \hat W)^{1/2}` times the same with :math:`\hat W_i` for
:math:`\hat W_i^2`; also at most :math:`\sum_i \hat W_i (e^{e_i} - 1)`. Then Theorem 1 bounds the
change of the risk.

Weights that are correct have a price, too, where they are unequal: that of a smaller sample
(:func:`importance_weighting_bound`).
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigvalsh
from scipy.stats import chi2

from unskew.errors import InputError, ParameterError
from unskew.numerics.typing import FloatArray
from unskew.numerics.weight_vectors import check_weights, effective_sample_size
from unskew.theory.bound import Bound, check_at_least, check_option, check_probability
from unskew.theory.stability import risk_bound, stability_coefficient


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
    norm = check_option(norm, ("l1", "l2"), name="norm")
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
