"""The weighted mean loss of predictions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unskew.errors import InputError, ParameterError
from unskew.numerics.weight_vectors import check_weights

Loss = Callable[[Any, Any], ArrayLike]

_LOSSES: Mapping[str, Loss] = {
    "squared": lambda y, prediction: _difference(y, prediction) ** 2,
    "absolute": lambda y, prediction: np.abs(_difference(y, prediction)),
    "zero-one": lambda y, prediction: y != prediction,
}


def weighted_risk(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    weights: ArrayLike,
    *,
    loss: Literal["squared", "absolute", "zero-one"] | Loss = "squared",
) -> float:
    r"""Return the weighted mean loss, an estimate of the risk on the population.

    The paper's :math:`\hat R_w(h) = \sum_i w_i c(h, z_i)` with weights that sum to one, as its
    Proposition 1 needs. The scale of the weights therefore does not matter.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_rows,)
        Labels and predictions.
    weights : array-like of shape (n_rows,)
        Finite, non-negative, not all zero.
    loss : {"squared", "absolute", "zero-one"} or callable, default="squared"
        A callable takes labels and predictions and returns the loss of each row.

    Returns
    -------
    float

    Examples
    --------
    >>> weighted_risk([1.0, 2.0], [1.0, 4.0], [3.0, 1.0])
    1.0
    """
    truth, prediction = np.asarray(y_true), np.asarray(y_pred)
    if truth.ndim != 1 or truth.shape != prediction.shape:
        raise InputError(
            "y_true and y_pred must have one entry per row each; got shapes "
            f"{truth.shape} and {prediction.shape}."
        )
    if not len(truth):
        raise InputError("y_true is empty; give at least one row.")
    vector = check_weights(weights, name="weights", n_rows=len(truth))
    function = _LOSSES.get(loss) if isinstance(loss, str) else loss
    if not callable(function):
        raise ParameterError(f"loss must be one of {sorted(_LOSSES)} or a function; got {loss!r}.")
    try:
        losses: NDArray[Any] = np.asarray(function(truth, prediction), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"The loss could not be computed from y_true and y_pred: {error}"
        ) from error
    if losses.shape != truth.shape:
        raise InputError(f"loss must return one number per row; got shape {losses.shape}.")
    if not np.isfinite(losses).all():
        row = int(np.flatnonzero(~np.isfinite(losses))[0])
        raise InputError(f"The loss of row {row} is {losses[row]}; y_true or y_pred is not finite.")
    return float(np.average(losses, weights=vector / vector.max()))


def _difference(y: Any, prediction: Any) -> NDArray[np.float64]:
    return np.asarray(y, dtype=np.float64) - np.asarray(prediction, dtype=np.float64)
