"""The one door to scikit-learn's private modules."""

from __future__ import annotations

from sklearn.utils._param_validation import (
    HasMethods as HasMethods,
)
from sklearn.utils._param_validation import (
    Interval as Interval,
)
from sklearn.utils._param_validation import (
    InvalidParameterError as InvalidParameterError,
)
from sklearn.utils._param_validation import (
    StrOptions as StrOptions,
)
