"""Drawing biased samples on purpose.

Every mechanism has the signature of :func:`logistic_selection`, so that an experiment can run
under each of them; ``MECHANISMS`` holds them by name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.utils import check_random_state

from unskew.errors import InputError, ParameterError


class Selection(NamedTuple):
    """Which rows were drawn, and with what probability each row could have been."""

    mask: NDArray[np.bool_]
    probabilities: NDArray[np.float64]


def logistic_selection(
    X: ArrayLike,
    y: ArrayLike | None = None,  # noqa: ARG001  (one signature for all mechanisms)
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
    y : array-like of shape (n_rows,), optional
        Labels; not used here.
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
    >>> from unskew.paper.selection import logistic_selection
    >>> rows = np.arange(5.0).reshape(-1, 1)
    >>> mask, probabilities = logistic_selection(rows, direction=[1.0], random_state=0)
    >>> probabilities.round(3)
    array([0.003, 0.056, 0.5  , 0.944, 0.997])
    """
    rows, vector, random = _checked(X, direction, random_state)
    return _selected(_finite(slope) * _standardised(_projection(rows, vector)), random)


def quadratic_selection(
    X: ArrayLike,
    y: ArrayLike | None = None,  # noqa: ARG001
    *,
    direction: ArrayLike | None = None,
    slope: float = 2.0,
    random_state: Any = None,
) -> Selection:
    r"""Select rows far out along a direction, on either side; those in the middle are rare.

    As :func:`logistic_selection`, with v the standardised *square* of the projection: the logarithm
    of the odds is neither a linear nor a monotone function of x.

    .. math:: v = \mathrm{slope} \cdot \frac{z^2 - \overline{z^2}}{\sigma_{z^2}}, \qquad
              z = w \cdot (x - \bar x)

    Examples
    --------
    >>> import numpy as np
    >>> from unskew.paper.selection import quadratic_selection
    >>> rows = np.arange(5.0).reshape(-1, 1)
    >>> quadratic_selection(rows, direction=[1.0], random_state=0).probabilities.round(3)
    array([0.916, 0.232, 0.084, 0.232, 0.916])
    """
    rows, vector, random = _checked(X, direction, random_state)
    return _selected(_finite(slope) * _standardised(_projection(rows, vector) ** 2), random)


def threshold_selection(
    X: ArrayLike,
    y: ArrayLike | None = None,  # noqa: ARG001
    *,
    direction: ArrayLike | None = None,
    slope: float = 4.0,
    random_state: Any = None,
) -> Selection:
    r"""Select rows by one column alone: often on one side of its median, rarely on the other.

    The column is the axis nearest to ``direction`` (its entry with the largest absolute value), and
    the entry's sign determines which side is selected often. As ``v`` jumps from -slope/2 to
    slope/2, the odds of the two sides differ by :math:`e^{\mathrm{slope}}`; with the default, 12
    and 88 % are selected. Values at the median belong to the lower side, unless no value is
    above it.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew.paper.selection import threshold_selection
    >>> rows = np.array([[1.0, 7.0], [2.0, 7.0], [3.0, 8.0], [4.0, 9.0]])
    >>> threshold_selection(rows, direction=[-1.0, 0.5], random_state=0).probabilities.round(3)
    array([0.881, 0.881, 0.119, 0.119])
    """
    rows, vector, random = _checked(X, direction, random_state)
    column = int(np.argmax(np.abs(vector)))
    values = rows[:, column]
    median = np.median(values)
    above = values > median if values.max() > median else values >= median
    side = np.where(above, 1.0, -1.0) * (1.0 if vector[column] >= 0 else -1.0)
    return _selected(_finite(slope) / 2 * side, random)


def label_selection(
    X: ArrayLike,
    y: ArrayLike | None = None,
    *,
    direction: ArrayLike | None = None,
    slope: float = 1.0,
    random_state: Any = None,
) -> Selection:
    r"""Select rows with a probability that rises with the label itself.

    .. math:: v = \mathrm{slope} \cdot \frac{y - \bar y}{\sigma_y}

    No weights that are functions of x can correct it, except as far as x predicts y: the paper's
    assumption :math:`\Pr[s \mid x, y] = \Pr[s \mid x]` does not hold. ``direction`` is not used.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew.paper.selection import label_selection
    >>> rows, labels = np.zeros((3, 1)), [0.0, 1.0, 2.0]
    >>> label_selection(rows, labels, random_state=0).probabilities.round(3)
    array([0.227, 0.5  , 0.773])
    """
    rows, _, random = _checked(X, direction, random_state)
    if y is None:
        raise InputError("y is None: label_selection selects by the labels. Pass y.")
    labels = _numbers(y, "y")
    if labels.shape != (len(rows),) or not np.isfinite(labels).all():
        raise InputError(f"y must have a finite number for each of the {len(rows)} rows of X.")
    return _selected(_finite(slope) * _standardised(labels - labels.mean()), random)


def expected_size(X: ArrayLike, direction: ArrayLike, n: int, *, slope: float = 4.0) -> float:
    """Return the expected size of a sample that :func:`logistic_selection` draws from n rows of X.

    The n rows are a random part of X, whose mean probability stands for theirs.

    Examples
    --------
    >>> rows = np.arange(5.0).reshape(-1, 1)
    >>> expected_size(rows, [1.0], 100)
    50.0
    """
    rows, vector, _ = _checked(X, direction, 0)
    v = _finite(slope) * _standardised(_projection(rows, vector))
    return float(n * expit(v).mean())


MECHANISMS: dict[str, Callable[..., Selection]] = {
    "logistic": logistic_selection,
    "quadratic": quadratic_selection,
    "threshold": threshold_selection,
    "label": label_selection,
}


def _selected(v: NDArray[np.float64], random: np.random.RandomState) -> Selection:
    probabilities = expit(v)
    return Selection(random.uniform(size=len(v)) < probabilities, probabilities)


def _projection(rows: NDArray[np.float64], direction: NDArray[np.float64]) -> NDArray[np.float64]:
    return (rows - rows.mean(axis=0)) @ direction


def _standardised(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return values with mean 0 and standard deviation 1, or zeros where all are equal."""
    with np.errstate(over="ignore", invalid="ignore"):
        spread = values.std()
    if not np.isfinite(spread):
        raise InputError("X holds values too large to compute their variance. Rescale it.")
    return (values - values.mean()) / spread if spread > 0 else np.zeros(len(values))


def _checked(
    X: ArrayLike, direction: ArrayLike | None, random_state: Any
) -> tuple[NDArray[np.float64], NDArray[np.float64], np.random.RandomState]:
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
    return rows, vector, random


def _finite(slope: float) -> float:
    if not np.isfinite(slope):
        raise ParameterError(f"slope must be finite; got {slope}.")
    return slope


def _numbers(values: ArrayLike, name: str) -> NDArray[np.float64]:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must be numbers: {error}") from error
