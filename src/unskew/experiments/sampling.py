"""Drawing biased samples on purpose."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.utils import check_random_state

from unskew.errors import InputError, ParameterError

__all__ = ["Selection", "logistic_selection"]


class Selection(NamedTuple):
    """Which rows were drawn, and with what probability each row could have been."""

    mask: NDArray[np.bool_]
    probabilities: NDArray[np.float64]


def logistic_selection(
    X: ArrayLike,
    *,
    direction: ArrayLike | None = None,
    slope: float = 4.0,
    random_state: Any = None,
) -> Selection:
    r"""Select rows with a probability that rises along a direction, as the paper's experiments do.

    .. math:: \Pr[s = 1 \mid x] = \frac{e^v}{1 + e^v}, \qquad
              v = \frac{4\, w \cdot (x - \bar x)}{\sigma_{w \cdot (x - \bar x)}}

    Parameters
    ----------
    X : array-like of shape (n_rows, n_features)
        Numbers without gaps.
    direction : array-like of shape (n_features,), optional
        The paper's w; by default drawn uniformly from :math:`[-1, 1]^d`.
    slope : float, default=4.0
        The paper's factor 4: how sharply the selection sets in.
    random_state : int, RandomState instance or None
        Draws the direction, if none is given, and then the rows.

    Returns
    -------
    mask : ndarray of bool of shape (n_rows,)
    probabilities : ndarray of shape (n_rows,)
        Of all rows, selected or not. If every row has the same v, they are 1/2.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew.experiments.sampling import logistic_selection
    >>> rows = np.arange(5.0).reshape(-1, 1)
    >>> mask, probabilities = logistic_selection(rows, direction=[1.0], random_state=0)
    >>> probabilities.round(3)
    array([0.003, 0.056, 0.5  , 0.944, 0.997])
    """
    rows = _numbers(X, "X")
    if rows.ndim != 2 or not rows.size or not np.isfinite(rows).all():
        raise InputError("X must be a table of finite numbers with at least one row and column.")
    random = check_random_state(random_state)
    if direction is None:
        direction = random.uniform(-1.0, 1.0, size=rows.shape[1])
    vector = _numbers(direction, "direction")
    if vector.shape != (rows.shape[1],) or not np.isfinite(vector).all():
        raise InputError(
            f"direction must have a finite number for each of the {rows.shape[1]} columns; got "
            f"{direction}."
        )
    if not np.isfinite(slope):
        raise ParameterError(f"slope must be finite; got {slope}.")
    projection = (rows - rows.mean(axis=0)) @ vector
    spread = projection.std()
    if not np.isfinite(spread):
        raise InputError("X holds values too large to take their variance. Rescale it.")
    v = slope * projection / spread if spread > 0 else np.zeros(len(rows))
    probabilities = expit(v)
    return Selection(random.uniform(size=len(rows)) < probabilities, probabilities)


def _numbers(values: ArrayLike, name: str) -> NDArray[np.float64]:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must be numbers: {error}") from error
