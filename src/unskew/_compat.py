"""The one door to scikit-learn's private modules."""

from __future__ import annotations

from sklearn.base import BaseEstimator
from sklearn.ensemble._bagging import BaseBagging as BaseBagging
from sklearn.ensemble._base import _BaseHeterogeneousEnsemble as _BaseHeterogeneousEnsemble
from sklearn.model_selection._search import BaseSearchCV as BaseSearchCV
from sklearn.utils import _safe_indexing as _safe_indexing
from sklearn.utils._param_validation import HasMethods as HasMethods
from sklearn.utils._param_validation import Interval as Interval
from sklearn.utils._param_validation import InvalidParameterError
from sklearn.utils._param_validation import StrOptions as StrOptions
from sklearn.utils.validation import _num_samples as _num_samples

from unskew.errors import ParameterError


def validate_parameters(estimator: BaseEstimator) -> None:
    """Check the parameters of an estimator against its ``_parameter_constraints``."""
    try:
        estimator._validate_params()
    except InvalidParameterError as error:
        raise ParameterError(str(error)) from None
