"""The one door to scikit-learn's private modules."""

from __future__ import annotations

from sklearn.utils import _safe_indexing
from sklearn.utils._param_validation import (
    HasMethods,
    Interval,
    InvalidParameterError,
    StrOptions,
)

__all__ = ["HasMethods", "Interval", "InvalidParameterError", "StrOptions", "_safe_indexing"]
