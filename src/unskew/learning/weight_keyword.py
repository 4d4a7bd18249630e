"""Where a learner takes its weights."""

from __future__ import annotations

from inspect import Parameter, signature
from typing import Any

from sklearn.compose import TransformedTargetRegressor
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

__all__ = ["weight_keyword"]


def weight_keyword(learner: Any) -> str | None:
    """Return the keyword under which ``learner.fit`` takes weights, or None if it takes none.

    Looks into pipelines, whose last step learns, and into searches and transformed targets, which
    hand keywords on to the learner inside.

    Examples
    --------
    >>> from sklearn.neighbors import KNeighborsRegressor
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from sklearn.svm import SVR
    >>> weight_keyword(make_pipeline(StandardScaler(), SVR()))
    'svr__sample_weight'
    >>> weight_keyword(KNeighborsRegressor()) is None
    True
    """
    if isinstance(learner, Pipeline):
        name, last = learner.steps[-1]
        inner = None if last in (None, "passthrough") else weight_keyword(last)
        return None if inner is None else f"{name}__{inner}"
    if isinstance(learner, TransformedTargetRegressor):
        # Without a regressor it uses LinearRegression, which takes weights.
        return "sample_weight" if learner.regressor is None else weight_keyword(learner.regressor)
    if has_fit_parameter(learner, "sample_weight"):
        return "sample_weight"
    if hasattr(learner, "estimator") and _takes_any_keyword(learner):
        return weight_keyword(learner.estimator)
    return None


def _takes_any_keyword(learner: Any) -> bool:
    kinds = [parameter.kind for parameter in signature(learner.fit).parameters.values()]
    return Parameter.VAR_KEYWORD in kinds
