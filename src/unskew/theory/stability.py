r"""Distributional stability: how much a change of the weights can change the model.

The paper's Definition 1 calls a learner β-stable if changing the weights of its sample from W to V
changes the loss at no point by more than β d(W, V); its Proposition 2 concludes that the risk
changes by no more either. Theorem 1 gives β for learners that minimise :math:`\sum_i W_i\,
c(h, z_i) + \lambda \lVert h \rVert_K^2`, which support vector regression and kernel ridge
regression do.

Weights need not sum to one: neither the proof of Theorem 1 nor what follows from it uses that. But
W and λ must be in the same units. A learner that is given weights s works in another scale: the
same model comes out if W and λ are divided by the same number, so what λ is depends on what the
weights W are taken to sum to (:func:`lambda_of_svr`, :func:`lambda_of_kernel_ridge`).
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import rel_entr

from unskew.errors import InputError, ParameterError
from unskew.numerics.typing import FloatArray
from unskew.numerics.weight_vectors import check_weights
from unskew.theory.bound import (
    Bound,
    Form,
    check_at_least,
    check_form,
    check_kappa,
    check_norm,
    check_option,
    check_positive,
)

PAPER = "Cortes et al. (2008)"
NORMS = ("l1", "l2", "relative-entropy", "hellinger")

STABLE = (
    "a convex loss that is Lipschitz in the prediction with this constant",
    "a learner that minimises sum_i W_i loss_i + lam * |h|_K^2, without an unpenalised offset",
    "K(x, x) <= kappa for every x",
)


def distance(W: ArrayLike, V: ArrayLike, *, norm: str) -> Bound:
    r"""Return the distance between two weightings of one sample (section 3 of the paper).

    ========================  ================================================
    ``"l1"``                  :math:`\sum_i |W_i - V_i|`
    ``"l2"``                  :math:`(\sum_i (W_i - V_i)^2)^{1/2}`
    ``"relative-entropy"``    :math:`\sum_i W_i \log(W_i / V_i)`, in nats
    ``"hellinger"``           :math:`(\frac12 \sum_i (\sqrt{W_i} - \sqrt{V_i})^2)^{1/2}`
    ========================  ================================================

    Parameters
    ----------
    W, V : array-like of shape (m,)
        Not negative. The last two distances are between distributions: both must sum to one.
    norm : {"l1", "l2", "relative-entropy", "hellinger"}

    Returns
    -------
    Bound
        Its value is the distance itself.

    Examples
    --------
    >>> from unskew.theory import distance
    >>> distance([0.5, 0.5], [0.25, 0.75], norm="l1").value
    0.5
    """
    norm = check_option(norm, NORMS, name="norm")
    first = check_weights(W, name="W")
    second = check_weights(V, name="V", n_rows=None)
    if len(first) != len(second):
        raise InputError(
            f"W has {len(first)} weights and V {len(second)}; they must weigh the same rows."
        )
    if not len(first):
        raise InputError("W and V are empty; give at least one row.")
    if norm in ("relative-entropy", "hellinger"):
        _check_distribution(first, "W", norm)
        _check_distribution(second, "V", norm)
    return Bound(
        value=_distance(first, second, norm),
        terms={"sum of W": float(first.sum()), "sum of V": float(second.sum())},
        reference=f"{PAPER}, section 3",
        statement=f"The {norm} distance between two weightings of {len(first)} rows",
    )


def _distance(first: FloatArray, second: FloatArray, norm: str) -> float:
    if norm == "l1":
        return math.fsum(np.abs(first - second))
    if norm == "l2":
        return float(np.linalg.norm(first - second))
    if norm == "hellinger":
        return float(np.linalg.norm(np.sqrt(first) - np.sqrt(second)) / math.sqrt(2))
    # Rounding can leave -1e-17 where W equals V.
    return max(0.0, math.fsum(rel_entr(first, second)))


def _check_distribution(weights: FloatArray, name: str, norm: str) -> None:
    total = math.fsum(weights)
    if abs(total - 1) > 1e-9:
        raise InputError(
            f'norm="{norm}" compares distributions, but {name} sums to {total:g}. Divide it by '
            "its sum."
        )


REGULARISERS = ("kernel-norm", "relative-entropy")


def stability_coefficient(
    *,
    lam: float,
    norm: str,
    kappa: float | None = None,
    lipschitz: float | None = None,
    lambda_max: float | None = None,
    regulariser: str = "kernel-norm",
    largest_loss: float | None = None,
    sample_size: int | None = None,
    form: Form = "corrected",
) -> Bound:
    r"""Theorem 1: the stability coefficient β of a regularised learner.

    Changing the weights from W to V changes the loss at any point by at most
    :math:`\beta\, d(W, V)`. For the squared norm of a kernel's space,

    - l1: :math:`\beta = \sigma^2 \kappa / (2 \lambda)`; as printed, :math:`\sigma^2 \kappa^2 /
      (2 \lambda)`.
    - l2: :math:`\beta = \sigma^2 \kappa^{1/2} \lambda_{\max}^{1/2}(K) / (2 \lambda)`; as printed,
      :math:`\sigma^2 \kappa \lambda_{\max}^{1/2}(K) / (2 \lambda)`.

    The proof uses :math:`|\Delta h(x)| \le \kappa \lVert \Delta h \rVert_K`, but with :math:`K(x,
    x) \le \kappa` the right factor is :math:`\kappa^{1/2}`. The printed bound is therefore too
    small where κ < 1. One input, labels 1 and −1, the absolute loss, all weight on the first label
    or on the second: the two models differ by κ/λ (for κ < 2λ), which the corrected bounds meet
    exactly and the printed ones (κ²/λ and κ^{3/2}/λ) miss.

    For a learner that averages models with a density g, and minimises :math:`\sum_i W_i
    \int \ell(\theta, z_i)\, dg(\theta) + \lambda\,\mathrm{KL}(g \Vert g_0)` with losses between 0
    and M, :math:`\beta = M^2 / (4 \lambda)` in l1, and :math:`m^{1/2}` times that in l2. The paper
    says that its analysis covers such learners and gives no coefficient; docs/guarantees.md derives
    it.

    Parameters
    ----------
    lam : float
        λ, in the units of the weights; see :func:`lambda_of_svr`, :func:`lambda_of_kernel_ridge`.
    norm : {"l1", "l2"}
    kappa : float, optional
        The largest K(x, x): 1 for a Gaussian kernel.
    lipschitz : float, optional
        σ, by which the loss is admissible; see :func:`lipschitz_constant`. Where training and
        judging use different losses, the square root of the product of their constants (and for a
        normalised squared error, divide the bound by the labels' variance).
    lambda_max : float, optional
        The largest eigenvalue of the kernel matrix, or an upper bound on it, for ``norm="l2"``; see
        :func:`largest_eigenvalue`. It plays no part with ``norm="l1"``.
    regulariser : {"kernel-norm", "relative-entropy"}, default="kernel-norm"
        What is added to the loss. The first needs ``kappa`` and ``lipschitz``, the second
        ``largest_loss``, and ``sample_size`` for l2.
    largest_loss : float, optional
        M.
    sample_size : int, optional
        m.
    form : {"paper", "corrected"}, default="corrected"

    Returns
    -------
    Bound

    Examples
    --------
    >>> from unskew.theory import stability_coefficient
    >>> stability_coefficient(kappa=0.25, lam=0.5, lipschitz=1.0, norm="l1").value
    0.25
    >>> stability_coefficient(kappa=0.25, lam=0.5, lipschitz=1.0, norm="l1", form="paper").value
    0.0625
    >>> stability_coefficient(regulariser="relative-entropy", lam=0.5, largest_loss=1.0,
    ...                       norm="l1").value
    0.5
    """
    form, norm = check_form(form), check_norm(norm)
    lam = check_positive(lam, name="lam")
    regulariser = check_option(regulariser, REGULARISERS, name="regulariser")
    if regulariser == "relative-entropy":
        return _entropy_coefficient(lam, norm, largest_loss, sample_size, form)
    kappa = check_kappa(kappa)
    lipschitz = check_positive(lipschitz, name="lipschitz")
    terms = {"kappa": kappa, "lam": lam, "lipschitz": lipschitz}
    # |Δh(x)| ≤ K(x, x)^{1/2} ‖Δh‖_K; the paper has K(x, x) ‖Δh‖_K.
    reach = kappa if form == "paper" else math.sqrt(kappa)
    # ‖Σ (W − V)_i K(x_i, ·)‖_K is at most κ^{1/2} l1 (each point's norm), or λ_max^{1/2}(K) l2; the
    # paper has κ in l1 here as well.
    if norm == "l1":
        spread = reach
    else:
        if lambda_max is None:
            raise ParameterError(
                'norm="l2" needs lambda_max, the kernel matrix\'s largest eigenvalue.'
            )
        terms["lambda_max"] = check_positive(lambda_max, name="lambda_max")
        spread = math.sqrt(terms["lambda_max"])
    return Bound(
        value=lipschitz**2 * reach * spread / (2 * lam),
        terms=terms,
        assumptions=STABLE,
        reference=f"{PAPER}, Theorem 1",
        form=form,
        statement=f"The change of the loss at any point, per unit of {norm} distance between the "
        "weights",
    )


def _entropy_coefficient(
    lam: float, norm: str, largest_loss: float | None, sample_size: int | None, form: Form
) -> Bound:
    if form == "paper":
        raise ParameterError(
            'form="paper" has no coefficient for regulariser="relative-entropy": the paper only '
            "says that there is one."
        )
    if largest_loss is None or (norm == "l2" and sample_size is None):
        raise ParameterError(
            'regulariser="relative-entropy" needs largest_loss, and for norm="l2" sample_size.'
        )
    largest = check_positive(largest_loss, name="largest_loss")
    # KL is strongly convex in l1 (Pinsker), and a mean loss in [0, M] changes by at most M/2 times
    # that distance.
    terms = {"lam": lam, "largest_loss": largest}
    value = largest**2 / (4 * lam)
    if sample_size is not None and norm == "l2":  # |W - V|_1 <= m^{1/2} |W - V|_2
        terms["sample_size"] = check_at_least(sample_size, 1, name="sample_size")
        value *= math.sqrt(terms["sample_size"])
    return Bound(
        value=value,
        terms=terms,
        assumptions=(
            "losses between 0 and largest_loss",
            "a learner that minimises sum_i W_i E_g loss_i + lam * KL(g, g0) over densities g, and "
            "is judged by the mean loss under g",
        ),
        reference="Pinsker's inequality; claimed after Theorem 1 of " + PAPER,
        form=form,
        statement=f"The change of the loss at any point, per unit of {norm} distance between the "
        "weights",
    )


def risk_bound(*, coefficient: float, distance: float) -> Bound:
    r"""Proposition 2: a β-stable learner's risk changes by at most :math:`\beta\, d(W, V)`.

    Parameters
    ----------
    coefficient : float or Bound
        β, from :func:`stability_coefficient`.
    distance : float or Bound
        d(W, V), in the norm for which β is.

    Returns
    -------
    Bound
        In the form, and on the assumptions, of the two.

    Examples
    --------
    >>> from unskew.theory import risk_bound
    >>> risk_bound(coefficient=2.0, distance=0.25).value
    0.5
    """
    parts = [part for part in (coefficient, distance) if isinstance(part, Bound)]
    assumptions = dict.fromkeys(line for part in parts for line in part.assumptions)
    value = check_at_least(coefficient, 0, name="coefficient") * (
        math.inf if distance == math.inf else check_at_least(distance, 0, name="distance")
    )
    return Bound(
        value=value,
        terms={"coefficient": coefficient, "distance": distance},
        assumptions=tuple(assumptions),
        vacuous=math.isinf(value),
        reference=f"{PAPER}, Proposition 2",
        form="paper" if any(part.form == "paper" for part in parts) else "corrected",
        statement="The change of the risk on any distribution",
        reason=next((part.reason for part in parts if part.reason), ""),
    )


def removal_bound(
    *,
    sample_size: int,
    kappa: float,
    lam: float,
    lipschitz: float,
    norm: str = "l1",
    lambda_max: float | None = None,
    form: Form = "corrected",
) -> Bound:
    r"""Point stability as a special case (the remark after Theorem 1).

    Removing one of m rows moves the uniform weights by :math:`2/m` in l1 and by
    :math:`1/\sqrt{m(m-1)}` in l2. With Theorem 1 the loss changes by at most
    :math:`\sigma^2\kappa/(\lambda m)`, twice what Bousquet and Elisseeff (2002) have for the same
    learner.

    Parameters
    ----------
    sample_size : int
        m, at least two.
    kappa, lam, lipschitz, norm, lambda_max, form
        As for :func:`stability_coefficient`.

    Returns
    -------
    Bound

    Examples
    --------
    >>> from unskew.theory import removal_bound
    >>> removal_bound(sample_size=100, kappa=1.0, lam=0.1, lipschitz=1.0).value
    0.1
    """
    size = check_at_least(sample_size, 2, name="sample_size")
    coefficient = stability_coefficient(
        kappa=kappa, lam=lam, lipschitz=lipschitz, norm=norm, lambda_max=lambda_max, form=form
    )
    # One weight falls from 1/m to 0, the others rise from 1/m to 1/(m − 1).
    moved = 2 / size if norm == "l1" else 1 / math.sqrt(size * (size - 1))
    return replace(
        risk_bound(coefficient=coefficient, distance=moved),
        terms={"coefficient": coefficient, "distance": moved, "sample_size": size},
        reference=f"{PAPER}, section 3.1, after Theorem 1",
        statement="The change of the loss at any point when one row is removed",
    )


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
        As for :func:`lambda_of_svr`.

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
    # |h(x)| ≤ κ^{1/2} ‖h‖_K, and λ ‖h‖_K² ≤ a M²: what h = 0 would cost.
    ratio = check_kappa(kappa) * check_positive(total_weight, name="total_weight")
    return 2 * largest * (1 + math.sqrt(ratio / check_positive(lam, name="lam")))
