"""The one door to scikit-learn's private modules."""

from __future__ import annotations

from sklearn.ensemble._bagging import BaseBagging
from sklearn.ensemble._base import _BaseHeterogeneousEnsemble
from sklearn.model_selection._search import BaseSearchCV
from sklearn.utils import _safe_indexing
from sklearn.utils._param_validation import (
    HasMethods,
    Interval,
    InvalidParameterError,
    StrOptions,
)

__all__ = [
    "BaseBagging",
    "BaseSearchCV",
    "HasMethods",
    "Interval",
    "InvalidParameterError",
    "StrOptions",
    "_BaseHeterogeneousEnsemble",
    "_safe_indexing",
]
