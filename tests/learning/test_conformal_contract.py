"""scikit-learn's own checks of the conformal estimators, and what they say of bad input."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import DBSCAN
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import cross_validate
from sklearn.neighbors import KNeighborsRegressor
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import unskew
from unskew import (
    CalibrationWeights,
    ConformalClassifier,
    ConformalRegressor,
    KernelMeanMatching,
    KnownProbability,
    Population,
    Reweighted,
    TreeWeights,
    Unweighted,
)
from unskew.errors import InputError, LearnerError, ParameterError
from unskew.weighters.base import Weighter


class _AskingTheSample:
    """scikit-learn's checks know no population: here the sample is its own."""

    def fit(self, X, y=None, sample_weight=None):
        return super().fit(X, y, population=X, sample_weight=sample_weight)


class CheckedRegressor(_AskingTheSample, ConformalRegressor): ...


class CheckedClassifier(_AskingTheSample, ConformalClassifier): ...


def checks_that_cannot_apply(estimator):
    # Two copies of a row are two rows, and may be split; one row of design weight two is one.
    return {
        f"check_sample_weight_equivalence_on_{kind}_data": "rows are split at random"
        for kind in ("dense", "sparse")
    }


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.filterwarnings("ignore::unskew.errors.OverlapWarning")
@parametrize_with_checks(
    [
        CheckedRegressor(LinearRegression(), TreeWeights()),
        CheckedClassifier(LogisticRegression(), Unweighted(), method="cv+"),
    ],
    expected_failed_checks=checks_that_cannot_apply,
)
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


X = np.random.default_rng(0).normal(size=(40, 2))
U = np.random.default_rng(1).normal(size=(60, 2))
Y = X[:, 0] + X[:, 1]


@pytest.mark.parametrize("coverage", [0, 1, -0.1, 1.5, 90, np.nan, "0.9", None, True])
@pytest.mark.parametrize("family", [ConformalRegressor, ConformalClassifier])
def test_a_coverage_that_is_no_share(coverage, family):
    regress = family is ConformalRegressor
    model = family(LinearRegression() if regress else LogisticRegression(), Unweighted())
    model.fit(X, Y if regress else Y > 0, population=U)
    predict = model.predict_interval if regress else model.predict_set
    with pytest.raises(ParameterError, match=f"coverage must lie between 0 and 1.*got {coverage}"):
        predict(X, coverage=coverage)


def test_prediction_before_fit():
    with pytest.raises(NotFittedError):
        ConformalRegressor(LinearRegression()).predict_interval(X)


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (StandardScaler(), "must be a regressor with predict. Got StandardScaler"),
        (DBSCAN(), "must be a regressor with predict. Got DBSCAN"),
        (LogisticRegression(), "Got LogisticRegression instead. For classes use ConformalCl"),
        ("ridge", "'estimator' parameter of ConformalRegressor must be an object implementing"),
        ((Ridge(), Ridge()), 'A pair .* goes with conformity_score="quantile"'),
    ],
)
def test_estimators_that_give_no_number(estimator, message):
    with pytest.raises(ParameterError, match=message):
        ConformalRegressor(estimator).fit(X, Y, population=U)


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (LinearSVC(), "must be a classifier with predict_proba. Got LinearSVC.*CalibratedCl"),
        (LinearRegression(), "For numbers use ConformalRegressor"),
    ],
)
def test_estimators_that_give_no_probabilities(estimator, message):
    with pytest.raises(ParameterError, match=message):
        ConformalClassifier(estimator).fit(X, Y > 0, population=U)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"conformity_score": "quantile"}, "LinearRegression as it was given is none"),
        ({"quantiles": (0.9, 0.1)}, "quantiles must be two levels between 0 and 1"),
        ({"quantiles": (0.1,)}, "quantiles must be two levels between 0 and 1"),
        ({"groups": CalibrationWeights()}, "groups must be a weighter that has cells: TreeWeights"),
        ({"groups": TreeWeights(), "method": "cv+"}, 'groups needs method="split"'),
        ({"calibration_size": 40}, "leaves none of the 40 rows to train on"),
        ({"calibration_size": 1.5}, "'calibration_size' parameter of ConformalRegressor"),
        ({"method": "jackknife"}, "'method' parameter of ConformalRegressor"),
    ],
)
def test_parameters_that_do_not_fit(arguments, message):
    with pytest.raises(ParameterError, match=message):
        ConformalRegressor(LinearRegression(), **arguments).fit(X, Y, population=U)


def test_boosted_trees_of_means_are_no_quantiles():
    model = ConformalRegressor(HistGradientBoostingRegressor(), conformity_score="quantile")
    with pytest.raises(ParameterError, match='boosted trees with loss="quantile"'):
        model.fit(X, Y, population=U)


@pytest.mark.parametrize(
    "model",
    [
        ConformalRegressor(LinearRegression(), KernelMeanMatching()),
        ConformalRegressor(LinearRegression(), KnownProbability(np.full(40, 0.5))),
        ConformalRegressor(Reweighted(LinearRegression(), KernelMeanMatching())),
        ConformalClassifier(LogisticRegression(), unskew.LabelShiftWeights()),
    ],
    ids=["matching", "probabilities", "lent", "label shift"],
)
def test_weighters_that_cannot_weigh_new_rows_name_those_that_can(model):
    with pytest.raises(ParameterError, match="cannot weigh new rows") as caught:
        model.fit(X, Y > 0, population=U)
    named = str(caught.value).split("Those that can are ")[1]
    for name in unskew.__all__:
        family = getattr(unskew, name)
        if isinstance(family, type) and issubclass(family, Weighter):
            assert (name in named) == hasattr(family, "weigh"), name


def test_linear_calibration_without_bounds():
    linear = CalibrationWeights(distance="linear", negative="allow", overlap="ignore")
    model = ConformalRegressor(LinearRegression(), linear)
    with pytest.raises(ParameterError, match="weights of CalibrationWeights are negative"):
        model.fit(X, Y, population=X[:30] + 3.0)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.column_stack([Y, Y]), "y has 2 columns"),
        (np.where(Y > 0, "a", "b"), "y must be numbers.*use ConformalClassifier"),
        (np.where(Y > 0, np.nan, Y), "y contains NaN"),
        (Y[:-1], "y has 39 labels for the 40 rows of X"),
        (None, "requires y to be passed"),
    ],
)
def test_labels_that_are_no_numbers(y, message):
    with pytest.raises(InputError, match=message):
        ConformalRegressor(LinearRegression(), Unweighted()).fit(X, y, population=U)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.column_stack([Y > 0, Y > 1]), "y has 2 columns"),
        (Y, "For numbers use ConformalRegressor"),
    ],
)
def test_labels_that_are_no_classes(y, message):
    with pytest.raises(InputError, match=message):
        ConformalClassifier(LogisticRegression(), Unweighted()).fit(X, y, population=U)


def test_other_input_that_cannot_be_used():
    model = ConformalRegressor(LinearRegression(), Unweighted())
    with pytest.raises(InputError, match="Wrap it: population=Population"):
        cross_validate(model, X, Y, params={"population": U[:40]}, error_score="raise")
    table = pd.DataFrame(X, columns=["a", "b"])
    with pytest.raises(InputError, match=r"pipeline inside, ConformalRegressor\(make_pipeline"):
        model.fit(table, Y, population=table.rename(columns={"b": "c"}).iloc[:30])
    once, crossed = Population(iter([U])), ConformalRegressor(Ridge(), TreeWeights(), method="cv+")
    with pytest.raises(InputError, match="read only once"):
        crossed.fit(X, Y, population=once)
    with pytest.raises(LearnerError, match="takes no sample_weight, so the design weights"):
        ConformalRegressor(KNeighborsRegressor(), Unweighted()).fit(
            X, Y, population=U, sample_weight=np.arange(1.0, 41)
        )
    several = ConformalRegressor(_Several(), Unweighted())
    with pytest.raises(LearnerError, match="_Several predicts 2 numbers for each row"):
        several.fit(X, Y, population=U)


class _Several(LinearRegression):
    def predict(self, X):
        return np.column_stack([super().predict(X)] * 2)
