"""What the attributes of a loaded weighter must be: a file may have been changed since."""

from __future__ import annotations

from typing import Any

import numpy as np

from unskew._compat import validate_parameters


def check_fitted(weighter: Any) -> None:
    """Raise an error that names the parameter or attribute with which no fit ends."""
    validate_parameters(weighter)
    check_numbers("scale_", weighter.scale_, ())
    check_numbers("uncovered_", weighter.uncovered_, (), most=1 + 1e-9)
    check_numbers("n_features_in_", weighter.n_features_in_, (), least=1)
    if "weights_" in vars(weighter):  # a sample on Spark leaves none
        check_numbers("weights_", weighter.weights_, (None,), least=weighter._least_weight)
    if not weighter.columns_ or not all(isinstance(name, str) for name in weighter.columns_):
        raise ValueError(f"columns_ must be names of columns; it is {weighter.columns_!r}")


def check_numbers(
    name: str,
    values: Any,
    shape: tuple[int | None, ...],
    *,
    least: float = 0.0,
    most: float = np.inf,
) -> None:
    """Raise a ValueError that names an attribute unless it holds finite numbers within limits.

    ``shape`` is what it must have; None stands for any length.

    Examples
    --------
    >>> check_numbers("cell_weights_", np.array([1.0, -2.0]), (2,))
    Traceback (most recent call last):
        ...
    ValueError: cell_weights_ holds -2.0; it must lie between 0.0 and inf
    """
    array = np.asarray(values)
    if array.dtype.kind not in "iuf":
        raise ValueError(f"{name} must hold numbers; it holds {array.dtype}")
    fits = len(shape) == array.ndim and all(
        length in (None, found) for length, found in zip(shape, array.shape, strict=True)
    )
    if not fits:
        wanted = tuple("any" if length is None else length for length in shape)
        raise ValueError(f"{name} has the shape {array.shape}; it must be {wanted}")
    wrong = array[~(np.isfinite(array) & (array >= least) & (array <= most))]
    if len(wrong):
        unlimited = np.isinf([least, most]).all()
        limits = "be finite" if unlimited else f"lie between {least} and {most}"
        raise ValueError(f"{name} holds {wrong[0]}; it must {limits}")
