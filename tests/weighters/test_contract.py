"""The contract of every weighter: scikit-learn's conventions and what DESIGN adds to them."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.utils.estimator_checks import parametrize_with_checks

from unskew import (
    AutoWeights,
    CalibrationWeights,
    ClassifierWeights,
    ClusterWeights,
    DensityRatioWeights,
    FrequencyWeights,
    HistogramWeights,
    KernelMeanMatching,
    KnownProbability,
    LabelShiftWeights,
    Population,
    Reweighted,
    Tempered,
    TreeWeights,
    Unweighted,
)
from unskew.errors import InputError, InputTypeError, ParameterError, UnskewError


class _AskingTheSample:
    """scikit-learn's checks know no population: here the sample is its own."""

    def fit(self, X, y=None, sample_weight=None):
        return super().fit(X, y, population=X, sample_weight=sample_weight)


class CheckedUnweighted(_AskingTheSample, Unweighted): ...


class CheckedFrequency(_AskingTheSample, FrequencyWeights): ...


class CheckedHistogram(_AskingTheSample, HistogramWeights): ...


class CheckedCluster(_AskingTheSample, ClusterWeights): ...


class CheckedTree(_AskingTheSample, TreeWeights): ...


def one_half(X):
    return np.full(len(np.asarray(X)), 0.5)


class CheckedProbability(_AskingTheSample, KnownProbability):
    def __init__(self, probability=one_half, *, total="sample"):
        super().__init__(probability, total=total)


class CheckedMatching(_AskingTheSample, KernelMeanMatching): ...


class CheckedRatio(_AskingTheSample, DensityRatioWeights): ...


class CheckedCalibration(_AskingTheSample, CalibrationWeights): ...


class CheckedClassifier(_AskingTheSample, ClassifierWeights): ...


class CheckedAuto(_AskingTheSample, AutoWeights): ...


class CheckedTempered(_AskingTheSample, Tempered): ...


class CheckedLabelShift(_AskingTheSample, LabelShiftWeights):
    def fit(self, X, y=None, sample_weight=None):
        labels = np.asarray(y) if y is not None else None
        if (
            labels is not None
            and labels.ndim == 1
            and labels.dtype.kind in "if"
            and np.isfinite(labels).all()
        ):
            y = np.arange(len(labels)) % 2  # the checks know no weighter that needs classes
        return super().fit(X, y, sample_weight)


class CheckedReweighted(_AskingTheSample, Reweighted): ...


def checks_that_cannot_apply(estimator):
    if isinstance(getattr(estimator, "estimator", None), LogisticRegression | Ridge):
        # Two copies of a row are two rows, one row of design weight two is one: a tree's leaf size
        # and the total of the weights, to which a regularised learner is sensitive, go by rows.
        return {"check_sample_weight_equivalence_on_dense_data": "leaves and totals go by rows"}
    if hasattr(estimator, "cv"):
        # The check replaces cv by a list of splits of X alone.
        kinds = ("dense", "sparse")
        return {
            f"check_sample_weight_equivalence_on_{kind}_data": "folds go by values"
            for kind in kinds
        }
    return {}


@pytest.mark.filterwarnings("ignore::unskew.errors.LabelShiftWarning")
@pytest.mark.filterwarnings("ignore::unskew.errors.OverlapWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(
    [
        CheckedUnweighted(),
        CheckedProbability(),
        CheckedFrequency(),
        CheckedHistogram(),
        CheckedCluster(),
        CheckedTree(),
        CheckedMatching(),
        CheckedRatio(),
        CheckedRatio("kl"),
        CheckedCalibration(),
        CheckedClassifier("logistic", penalty=0.01, rate=0.2),
        CheckedClassifier(),
        CheckedAuto(),
        CheckedTempered(TreeWeights(), power=0.5),
        CheckedLabelShift(cv=2),
        CheckedReweighted(Ridge()),
        CheckedReweighted(LinearRegression(), TreeWeights()),
        CheckedReweighted(LinearRegression(), Unweighted()),
        CheckedReweighted(LogisticRegression(), TreeWeights()),
    ],
    expected_failed_checks=checks_that_cannot_apply,
)
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


X = pd.DataFrame({"age": [20.0, 30.0, 40.0, 50.0, 60.0, 70.0], "town": list("abcabc")})
U = pd.concat([X, X.iloc[:2]], ignore_index=True)
Y = np.arange(6.0)

WEIGHTERS = [
    Unweighted(),
    KnownProbability(one_half),
    FrequencyWeights(),
    HistogramWeights(),
    ClusterWeights(),
    TreeWeights(min_samples_leaf=1),
    DensityRatioWeights(),
    DensityRatioWeights("kl"),
    CalibrationWeights(),
    ClassifierWeights(),
    ClassifierWeights("logistic"),
    AutoWeights(),
    AutoWeights(calibrate_to="means"),
    Tempered(TreeWeights(min_samples_leaf=1), power=0.5, max_weight=2.0),
]
every_weighter = pytest.mark.parametrize("weighter", WEIGHTERS, ids=lambda w: type(w).__name__)


@every_weighter
def test_fitted_weighters_pickle_and_weigh_alike(weighter):
    fitted = clone(weighter).fit(X, Y, population=U)
    twin = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(twin.weights_, fitted.weights_)
    assert np.array_equal(twin.weigh(X[["town", "age"]]), fitted.weigh(X))
    assert fitted.feature_names_in_.tolist() == ["age", "town"]
    assert fitted.n_features_in_ == 2


@every_weighter
def test_nothing_that_is_given_is_changed(weighter):
    sample, population = X.to_numpy(dtype=object), U.copy()
    design, weight = np.full(6, 2.0), np.full(8, 3.0)
    labels = Y.copy()
    for array in (design, weight, labels):
        array.flags.writeable = False
    before = sample.copy(), population.copy()
    clone(weighter).fit(
        sample, labels, population=Population(population, weight=weight), sample_weight=design
    )
    assert (sample == before[0]).all()
    assert population.equals(before[1])
    assert (design == 2).all()
    assert (weight == 3).all()


@every_weighter
def test_design_weights_reach_the_weights(weighter):
    # Rows 0 and 1 are alike in every respect, so that only the design tells them apart.
    sample = X.iloc[[0, 0, 1, 2, 3, 4]]
    labels = Y[[0, 0, 1, 2, 3, 4]]
    design = np.array([1.0, 3.0, 1.0, 1.0, 1.0, 1.0])
    fitted = clone(weighter).fit(sample, labels, population=X.iloc[:5], sample_weight=design)
    assert fitted.weights_[1] == pytest.approx(3 * fitted.weights_[0])
    assert fitted.weights_.sum() == pytest.approx(6)


@every_weighter
def test_global_state_stays_as_it_was(weighter):
    import sklearn

    before = np.random.get_state()[1].copy(), sklearn.get_config()  # noqa: NPY002
    clone(weighter).fit(X, Y, population=U)
    assert (np.random.get_state()[1] == before[0]).all()  # noqa: NPY002
    assert sklearn.get_config() == before[1]


@every_weighter
def test_the_same_state_gives_the_same_weights(weighter):
    first, second = (clone(weighter).fit(X, Y, population=U).weights_ for _ in range(2))
    assert np.array_equal(first, second)


ROWS = np.arange(12.0).reshape(6, 2)
BAD_SAMPLES = {
    "no rows": (ROWS[:0], Y[:0], "X has no rows"),
    "no columns": (ROWS[:, :0], Y, "X has no columns"),
    "one dimension": (ROWS[:, 0], Y, "Expected 2D array"),
    "infinite": (np.where(ROWS == 5, np.inf, ROWS), Y, "Column 'x1' of the sample holds inf"),
    "too few labels": (ROWS, Y[:3], "y has 3 labels for the 6 rows"),
    "missing label": (ROWS, np.where(Y == 2, np.nan, Y), "y contains NaN"),
    "missing object label": (ROWS, ["a", None, "a", "b", "b", "a"], "y contains missing labels"),
    "mixed labels": (
        ROWS,
        np.array(["a", 1, "a", 2, "b", "a"], dtype=object),
        "y mixes labels of several types",
    ),
    "complex": (ROWS * 1j, Y, "Complex data not supported"),
    "mixed column": (
        pd.DataFrame({"a": [1, "x", 2.0, None, 3, 4]}),
        Y,
        "Column 'a' of X mixes values of several types",
    ),
    "a nested column": (pd.DataFrame({"a": [[1]] * 6}), Y, "Column 'a' of the sample is of type"),
}


@pytest.mark.parametrize("case", BAD_SAMPLES)
def test_bad_samples_are_named(case):
    sample, labels, message = BAD_SAMPLES[case]
    population = ROWS if not isinstance(sample, pd.DataFrame) else sample
    with pytest.raises(UnskewError, match=message):
        TreeWeights(min_samples_leaf=1).fit(sample, labels, population=population)


@pytest.mark.parametrize(
    ("design", "message"),
    [
        ([1, 1, 1, 1, 1, -1], "sample_weight must not be negative; got -1.0 at position 5"),
        ([1, 1, np.nan, 1, 1, 1], "sample_weight must be finite; got nan at position 2"),
        ([0] * 6, "sample_weight is zero on every row"),
        ([1, 2], "sample_weight has 2 entries for 6 rows"),
        (np.ones((6, 1)), "sample_weight must have one number per row"),
    ],
)
def test_bad_design_weights_are_named(design, message):
    with pytest.raises(InputError, match=message):
        Unweighted().fit(ROWS, population=ROWS, sample_weight=design)


@every_weighter
def test_one_row_and_one_population_row(weighter):
    one = np.array([[3.0, 4.0]])
    fitted = clone(weighter).fit(one, [1.0], population=one)
    assert fitted.weights_.tolist() == [1.0]


@every_weighter
def test_equal_rows_get_equal_weights(weighter):
    same = np.ones((5, 2))
    fitted = clone(weighter).fit(same, np.arange(5.0), population=np.ones((9, 2)))
    assert fitted.weights_.tolist() == [1.0] * 5


def test_a_leaf_size_larger_than_the_sample():
    with pytest.raises(ParameterError, match=r"min_samples_leaf=50 is larger than the sample"):
        TreeWeights(min_samples_leaf=50).fit(ROWS, Y, population=ROWS)
    with pytest.raises(ParameterError, match=r"the half of the sample .*n_samples=3"):
        TreeWeights(min_samples_leaf=4, honest=True).fit(ROWS, Y, population=ROWS)


def test_a_tree_needs_labels():
    with pytest.raises(InputError, match="requires y"):
        TreeWeights().fit(ROWS, population=ROWS)


@pytest.mark.parametrize(
    ("weighter", "parameter"),
    [
        (TreeWeights(min_samples_leaf=0), "min_samples_leaf"),
        (TreeWeights(min_samples_leaf=2.5), "min_samples_leaf"),
        (TreeWeights(total="people"), "total"),
        (TreeWeights(empty="ignore"), "empty"),
        (TreeWeights(task="ranking"), "task"),
        (TreeWeights(honest="very"), "honest"),
        (HistogramWeights(strategy="magic"), "strategy"),
        (ClusterWeights(scaling="log"), "scaling"),
        (Unweighted(total=None), "total"),
        (KnownProbability(3), "probability"),
    ],
)
def test_bad_parameters_are_named(weighter, parameter):
    with pytest.raises(
        ParameterError, match=f"'{parameter}' parameter of {type(weighter).__name__}"
    ):
        weighter.fit(ROWS, Y, population=ROWS)


class TestNewRows:
    fitted = FrequencyWeights().fit(X, population=U)

    def test_unfitted(self):
        with pytest.raises(NotFittedError):
            TreeWeights().weigh(ROWS)

    def test_missing_and_further_columns(self):
        with pytest.raises(
            InputError, match="X has 1 features, but FrequencyWeights is expecting 2"
        ):
            self.fitted.weigh(X[["age"]])
        with pytest.raises(InputError, match="X lacks column 'age'"):
            self.fitted.weigh(X.rename(columns={"age": "years"}))

    def test_no_rows_get_no_weights(self):
        assert self.fitted.weigh(X[:0]).shape == (0,)

    def test_another_library(self):
        assert np.array_equal(self.fitted.weigh(pl.from_pandas(X)), self.fitted.weigh(X))

    def test_a_column_of_another_type(self):
        with pytest.raises(InputTypeError, match="Column 'age'"):
            self.fitted.weigh(X.assign(age="old"))


def test_sparse_matrices_are_refused():
    from scipy import sparse

    with pytest.raises(InputTypeError, match=r"(?i)sparse"):
        Unweighted().fit(sparse.eye_array(3, format="csr"), population=np.eye(3))
    with pytest.raises(InputTypeError, match=r"(?i)sparse|csr"):
        Unweighted().fit(np.eye(3), population=sparse.eye_array(3, format="csr"))
