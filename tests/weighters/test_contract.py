"""The contract of every weighter: scikit-learn's conventions and what DESIGN adds to them."""

from __future__ import annotations

import pickle
from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.utils.estimator_checks import parametrize_with_checks
from tests.weighters.catalogue import (
    REWEIGHTED,
    WEIGHTERS,
    every_weighter,
    labels_for,
    rows_for,
    to_sample,
)

from unskew import (
    ClusterWeights,
    FrequencyWeights,
    HistogramWeights,
    KnownProbability,
    LabelShiftWeights,
    Population,
    Reweighted,
    TreeWeights,
    Unweighted,
)
from unskew.errors import InputError, InputTypeError, ParameterError, UnskewError


class _AskingTheSample:
    """scikit-learn's checks know no population, and no classes for label shift: here they do."""

    def fit(self, X, y=None, sample_weight=None):
        classes = labels_for(self, y) if y is not None else None
        if classes is not y:  # few rows, drawn at random, may be of one class
            y = np.arange(len(classes)) % 2
        return super().fit(X, y, population=X, sample_weight=sample_weight)


@cache
def asking_the_sample(kind):
    asking = type(f"Checked{kind.__name__}", (_AskingTheSample, kind), {"__module__": __name__})
    globals()[asking.__name__] = asking  # a check pickles it
    return asking


def checked(weighter):
    """Return a weighter that is its own population."""
    asking = asking_the_sample(type(weighter))(**weighter.get_params(deep=False))
    return asking.set_params(cv=2) if isinstance(weighter, LabelShiftWeights) else asking


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


LEARNERS = [
    Reweighted(LinearRegression(), TreeWeights()),
    Reweighted(LinearRegression(), Unweighted()),
    Reweighted(LogisticRegression(), TreeWeights()),
]


@pytest.mark.filterwarnings("ignore::unskew.errors.LabelShiftWarning")
@pytest.mark.filterwarnings("ignore::unskew.errors.OverlapWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(
    [checked(one) for one in [*WEIGHTERS, REWEIGHTED, *LEARNERS]],
    expected_failed_checks=checks_that_cannot_apply,
)
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


X = pd.DataFrame({"age": np.arange(20.0, 80.0, 5.0), "town": list("abcabcabcabc")})
U = pd.concat([X, X.iloc[:4]], ignore_index=True)
Y = np.arange(12.0)


def fit(weighter, sample=X, labels=Y, population=U, **options):
    population = rows_for(weighter, population)
    labels = labels_for(weighter, labels)
    copied = to_sample(weighter)
    return copied.fit(rows_for(weighter, sample), labels, population=population, **options)


@every_weighter
def test_fitted_weighters_pickle_and_weigh_alike(weighter):
    fitted = fit(weighter)
    twin = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(twin.weights_, fitted.weights_)
    if hasattr(fitted, "weigh"):
        rows = rows_for(weighter, X)
        assert np.array_equal(twin.weigh(rows[["town", "age"]]), fitted.weigh(rows))
    assert fitted.feature_names_in_.tolist() == ["age", "town"]
    assert fitted.n_features_in_ == 2


@every_weighter
def test_nothing_that_is_given_is_changed(weighter):
    sample, population = rows_for(weighter, X).to_numpy(dtype=object), rows_for(weighter, U)
    design, weight = np.full(12, 2.0), np.full(16, 3.0)
    labels = np.asarray(labels_for(weighter, Y))
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
    rows = [0, 0, *range(1, 11)]
    design = np.array([1.0, 3.0] + 10 * [1.0])
    fitted = fit(weighter, X.iloc[rows], Y[rows], X.iloc[:11], sample_weight=design)
    assert fitted.weights_[1] == pytest.approx(3 * fitted.weights_[0])
    assert fitted.weights_.sum() == pytest.approx(12)


@every_weighter
def test_global_state_stays_as_it_was(weighter):
    import sklearn

    before = np.random.get_state()[1].copy(), sklearn.get_config()  # noqa: NPY002
    fit(weighter)
    assert (np.random.get_state()[1] == before[0]).all()  # noqa: NPY002
    assert sklearn.get_config() == before[1]


@every_weighter
def test_the_same_state_gives_the_same_weights(weighter):
    assert np.array_equal(fit(weighter).weights_, fit(weighter).weights_)


ROWS, LABELS = np.arange(12.0).reshape(6, 2), np.arange(6.0)
BAD_SAMPLES = {
    "no rows": (ROWS[:0], LABELS[:0], "X has no rows"),
    "no columns": (ROWS[:, :0], LABELS, "X has no columns"),
    "one dimension": (ROWS[:, 0], LABELS, "Expected 2D array"),
    "infinite": (np.where(ROWS == 5, np.inf, ROWS), LABELS, "Column 'x1' of the sample holds inf"),
    "too few labels": (ROWS, LABELS[:3], "y has 3 labels for the 6 rows"),
    "missing label": (ROWS, np.where(LABELS == 2, np.nan, LABELS), "y contains NaN"),
    "missing object label": (ROWS, ["a", None, "a", "b", "b", "a"], "y contains missing labels"),
    "mixed labels": (
        ROWS,
        np.array(["a", 1, "a", 2, "b", "a"], dtype=object),
        "y mixes labels of several types",
    ),
    "complex": (ROWS * 1j, LABELS, "Complex data not supported"),
    "mixed column": (
        pd.DataFrame({"a": [1, "x", 2.0, None, 3, 4]}),
        LABELS,
        "Column 'a' of X mixes values of several types",
    ),
    "a nested column": (
        pd.DataFrame({"a": [[1]] * 6}),
        LABELS,
        "Column 'a' of the sample is of type",
    ),
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
    one = pd.DataFrame([[3.0, 4.0]])
    leaf = getattr(getattr(weighter, "weighter", None) or weighter, "min_samples_leaf", None)
    if isinstance(weighter, LabelShiftWeights) or (isinstance(leaf, int) and leaf > 1):
        with pytest.raises(UnskewError, match="n_samples=1"):
            fit(weighter, one, [1.0], one)
    else:
        assert fit(weighter, one, [1.0], one).weights_.tolist() == [1.0]


@every_weighter
def test_equal_rows_get_equal_weights(weighter):
    same = pd.DataFrame(np.ones((24, 2)))
    fitted = fit(weighter, same, np.arange(24.0), pd.concat([same, same]))
    assert fitted.weights_.tolist() == [1.0] * 24


def test_a_leaf_size_larger_than_the_sample():
    with pytest.raises(ParameterError, match=r"min_samples_leaf=50 is larger than the sample"):
        TreeWeights(min_samples_leaf=50).fit(ROWS, LABELS, population=ROWS)
    with pytest.raises(ParameterError, match=r"the half of the sample .*n_samples=3"):
        TreeWeights(min_samples_leaf=4, honest=True).fit(ROWS, LABELS, population=ROWS)


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
        weighter.fit(ROWS, LABELS, population=ROWS)


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
