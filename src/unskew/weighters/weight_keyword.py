"""The keyword under which a learner takes sample weights."""

from __future__ import annotations

from typing import Any

from sklearn.compose import TransformedTargetRegressor
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from unskew._compat import BaseBagging, BaseSearchCV, _BaseHeterogeneousEnsemble


def weight_keyword(learner: Any) -> str | None:
    """Return the keyword under which ``learner.fit`` takes weights, or None if it takes none.

    Looks into pipelines, at their last step, and into meta-estimators of one learner or several.

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
    if isinstance(learner, BaseSearchCV):
        return weight_keyword(learner.estimator)
    if isinstance(learner, _BaseHeterogeneousEnsemble):
        members = [member for _, member in learner.estimators if member != "drop"]
        return "sample_weight" if all(map(weight_keyword, members)) else None
    if not has_fit_parameter(learner, "sample_weight"):
        return None
    # A bag resamples for learners that take no weights; others would drop them or fail.
    inside = getattr(learner, "estimator", None)
    wraps = hasattr(inside, "fit") and not isinstance(learner, BaseBagging)
    return None if wraps and weight_keyword(inside) is None else "sample_weight"
