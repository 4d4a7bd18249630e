from __future__ import annotations

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingRegressor, StackingRegressor, VotingRegressor
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.multioutput import MultiOutputRegressor
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

from unskew import Reweighted, TreeWeights, Unweighted
from unskew.errors import LearnerError

X, y = np.arange(40.0).reshape(20, 2), np.arange(20.0)


def fit(learner):
    return Reweighted(learner, TreeWeights()).fit(X, y, population=X)


@pytest.mark.parametrize(
    "learner",
    [
        VotingRegressor([("a", Ridge()), ("b", LinearRegression())]),
        StackingRegressor([("a", Ridge()), ("b", LinearRegression())]),
        BaggingRegressor(KNeighborsRegressor(1), n_estimators=2),
        MultiOutputRegressor(Ridge()),
    ],
    ids=lambda learner: type(learner).__name__,
)
def test_learners_that_combine_others(learner):
    if isinstance(learner, MultiOutputRegressor):
        labels = np.column_stack([y, y])
        model = Reweighted(learner, Unweighted()).fit(X, labels, population=X)
    else:
        model = fit(learner)
    assert len(model.predict(X)) == 20


@pytest.mark.parametrize(
    "learner",
    [
        VotingRegressor([("a", Ridge()), ("b", KNeighborsRegressor())]),
        MultiOutputRegressor(KNeighborsRegressor()),
        CalibratedClassifierCV(KNeighborsClassifier()),
    ],
    ids=lambda learner: type(learner).__name__,
)
def test_learners_that_combine_others_without_weights(learner):
    with pytest.raises(LearnerError, match="takes no sample_weight"):
        fit(learner)
