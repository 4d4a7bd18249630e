"""Parameters of calibration weights: bounds of their ratios, and slack of features."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np

from unskew.errors import ParameterError
from unskew.numerics.typing import FloatArray
from unskew.rows.features import FeatureSet


def checked_bounds(bounds: Any) -> tuple[float, float]:
    """Return the bounds with infinity for none."""
    if bounds is None:
        return -np.inf, np.inf
    try:
        low, high = bounds
        low = -np.inf if low is None else float(low)
        high = np.inf if high is None else float(high)
    except (TypeError, ValueError):
        raise ParameterError(f"bounds must be (low, high); got {bounds!r}.") from None
    if not low < 1 < high:
        raise ParameterError(
            f"bounds are of the ratio of a weight to its design weight, so low < 1 < high; got "
            f"{bounds!r}."
        )
    return low, high


def slacks(slack: Any, features: FeatureSet) -> FloatArray:
    """Return the slack of each feature."""
    names = features.names
    if isinstance(slack, Real):
        return np.full(len(names), float(slack))
    if isinstance(slack, Mapping):
        columns = [
            features.columns_of(term) if len(term.positions) == 1 else []
            for term in features.terms
            for _ in term.names
        ]
        for key in slack:
            if key not in names and not any(key in one for one in columns):
                raise ParameterError(
                    f"slack names {key!r}, which is neither a feature nor a column of one. The "
                    f"features are {', '.join(names[:10])}{' …' if len(names) > 10 else ''}."
                )
        found = [
            slack.get(name, next((slack[one] for one in own if one in slack), 0.0))
            for name, own in zip(names, columns, strict=True)
        ]
    else:
        found = list(slack)
    if len(found) != len(names):
        raise ParameterError(f"slack has {len(found)} entries for {len(names)} features.")
    values = np.asarray(found, dtype=float)
    if not (np.isfinite(values) & (values >= 0)).all():
        raise ParameterError(f"slack must not be negative; got {slack!r}.")
    return values
