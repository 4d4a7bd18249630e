"""The keyword under which a learner takes sample weights, and training a classifier with them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from unskew._compat import BaseBagging, BaseSearchCV, _BaseHeterogeneousEnsemble
from unskew.errors import LearnerError
from unskew.numerics.typing import FloatArray


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


def trained(classifier: Any, rows: Any, labels: Any, weight: FloatArray, task: str) -> Any:
    """Return the classifier, fitted with these weights; to an error, add what its task was."""
    name, options = type(classifier).__name__, {}
    if np.ptp(weight) > 1e-9:
        keyword = weight_keyword(classifier)
        if keyword is None:
            raise LearnerError(
                f"classifier: {name} takes no sample_weight, so the design weights could not reach "
                "it. Use a classifier that takes weights, or rows without them."
            )
        options[keyword] = weight
    try:
        return classifier.fit(rows, labels, **options)
    except Exception as error:
        raise LearnerError(
            f"classifier: {name} could not be trained {task} ({type(error).__name__}: {error}). "
            "Put encoders of text and missing values into a pipeline with it."
        ) from error
