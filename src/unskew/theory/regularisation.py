r"""From a learner's parameters to the paper's λ and σ.

The paper minimises :math:`\sum_i W_i c(h, z_i) + \lambda \lVert h \rVert_K^2`. A learner that is
given weights s works in another scale: the same model comes out if W and λ are divided by the same
number, so what λ is depends on what the weights W are taken to sum to.
"""

from __future__ import annotations

import math

from unskew.errors import ParameterError
from unskew.theory.checks import check_kappa, check_option, check_positive

_LIPSCHITZ_ONE = ("epsilon-insensitive", "absolute", "hinge")


def lambda_of_svr(C: float, *, divisor: float) -> float:
    r"""Return λ for support vector regression (or classification) with this C.

    It minimises :math:`\frac12 \lVert h \rVert_K^2 + C \sum_i s_i c_i`; divided by C times
    ``divisor``, λ = 1 / (2 C · divisor).

    Parameters
    ----------
    C : float
    divisor : float
        By what the sample weights s are divided to give W: the number of rows m for W = s/m, their
        sum for weights that sum to one.

    Returns
    -------
    float

    Examples
    --------
    >>> from unskew.theory import lambda_of_svr
    >>> lambda_of_svr(1.0, divisor=1000)
    0.0005
    """
    return 1 / (2 * check_positive(C, name="C") * check_positive(divisor, name="divisor"))


def lambda_of_kernel_ridge(alpha: float, *, divisor: float) -> float:
    r"""Return λ for kernel ridge regression with this alpha.

    It minimises :math:`\sum_i s_i (h(x_i) - y_i)^2 + \alpha \lVert h \rVert_K^2`; divided by
    ``divisor``, λ = α / divisor.

    Parameters
    ----------
    alpha : float
    divisor : float
        By what the sample weights s are divided to give W: the number of rows m for W = s/m, their
        sum for weights that sum to one.

    Returns
    -------
    float

    Examples
    --------
    >>> from unskew.theory import lambda_of_kernel_ridge
    >>> lambda_of_kernel_ridge(1.0, divisor=1000)
    0.001
    """
    return check_positive(alpha, name="alpha") / check_positive(divisor, name="divisor")


def lipschitz_constant(
    loss: str,
    *,
    largest_label: float | None = None,
    kappa: float | None = None,
    lam: float | None = None,
    total_weight: float = 1.0,
    margin: float | None = None,
) -> float:
    r"""Return σ, the constant by which a loss is admissible.

    1 for the ε-insensitive, the absolute and the hinge loss. The squared loss has none on the whole
    line; with labels in [−M, M] it is :math:`4M` if predictions are clipped to the same interval,
    and :math:`2M(1 + \sqrt{\kappa a/\lambda})` if they are not: comparing the minimum with h = 0
    gives :math:`\lambda \lVert h \rVert_K^2 \le a M^2`, where the weights sum to a. The margin loss
    :math:`\ell_\gamma` (Bousquet and Elisseeff 2002), which falls from 1 at :math:`y\,h(x) = 0` to
    0 at γ, has 1/γ; it is bounded by 1, so that it is not convex, and a learner is trained with
    :math:`\max(0, 1 - y\,h(x) / \gamma)`, which has the same constant.

    Parameters
    ----------
    loss : {"epsilon-insensitive", "absolute", "hinge", "squared", "margin"}
    largest_label : float, optional
        M, for the squared loss.
    kappa, lam : float, optional
        Both, for the squared loss of a model whose predictions are not clipped.
    total_weight : float, default=1.0
        a, what the weights sum to in the units of ``lam``.
    margin : float, optional
        γ, for the margin loss.

    Returns
    -------
    float

    Examples
    --------
    >>> from unskew.theory import lipschitz_constant
    >>> lipschitz_constant("squared", largest_label=2.0)
    8.0
    >>> lipschitz_constant("squared", largest_label=2.0, kappa=1.0, lam=0.25)
    12.0
    >>> lipschitz_constant("margin", margin=0.25)
    4.0
    """
    loss = check_option(loss, (*_LIPSCHITZ_ONE, "squared", "margin"), name="loss")
    if loss == "margin":
        if margin is None:
            raise ParameterError('loss="margin" needs margin, where the loss reaches zero.')
        return 1 / check_positive(margin, name="margin")
    if loss in _LIPSCHITZ_ONE:
        return 1.0
    if largest_label is None:
        raise ParameterError(
            'loss="squared" needs largest_label: the squared loss has no Lipschitz constant for '
            "unbounded labels."
        )
    if (kappa is None) != (lam is None):
        raise ParameterError("Give both kappa and lam, or neither if predictions are clipped.")
    largest = check_positive(largest_label, name="largest_label")
    if kappa is None or lam is None:
        return 4 * largest
    ratio = check_kappa(kappa) * check_positive(total_weight, name="total_weight")
    return 2 * largest * (1 + math.sqrt(ratio / check_positive(lam, name="lam")))
