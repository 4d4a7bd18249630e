"""Columns with whole numbers as labels are matched by label, wherever they come from."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

import unskew
from unskew import (
    CalibrationWeights,
    ConformalClassifier,
    ConformalRegressor,
    FrequencyWeights,
    HeckmanRegressor,
    HistogramWeights,
    KnownProbability,
    LabelShiftWeights,
    Population,
    Reweighted,
    TreeWeights,
    diagnose,
    estimate,
)
from unskew.errors import InputError

RANDOM = np.random.default_rng(0)
VALUES = RANDOM.normal([1.0, -2.0], [1.0, 3.0], size=(600, 2))
S, U = pd.DataFrame(VALUES[:200] + np.array([0.5, 0.0])), pd.DataFrame(VALUES)
Y = S[0].to_numpy() + 10 * S[1].to_numpy()
SWAPPED = U[[1, 0]]


def calibrated(sample, population, **options):
    return CalibrationWeights(features="means", **options).fit(sample, population=population)


def in_chunks(rows):
    return [rows.iloc[:300], rows.iloc[300:]]


def in_dask(rows):
    dask = pytest.importorskip("dask.dataframe")
    return dask.from_pandas(rows, npartitions=2)


@pytest.mark.parametrize(
    "form",
    [
        lambda rows: rows,
        in_chunks,
        in_dask,
        # These hold labels as text.
        lambda rows: pa.Table.from_pandas(rows, preserve_index=False),
        lambda rows: pl.DataFrame({str(label): rows[label].to_numpy() for label in rows}).lazy(),
    ],
    ids=["pandas", "chunks", "dask", "arrow", "polars"],
)
def test_both_sides_in_every_form(form):
    weights = calibrated(S, U).weights_
    assert np.average(S, axis=0, weights=weights) == pytest.approx(U.mean().to_numpy())
    for sample, population in ((S, SWAPPED), (S[[1, 0]], U), (S[[1, 0]], SWAPPED)):
        found = calibrated(sample, form(population)).weights_
        assert found == pytest.approx(weights, rel=1e-9)


def test_labels_in_a_file(tmp_path):
    pq.write_table(pa.Table.from_pandas(SWAPPED, preserve_index=False), tmp_path / "u.parquet")
    weights = calibrated(S, tmp_path / "u.parquet").weights_
    assert weights == pytest.approx(calibrated(S, U).weights_, rel=1e-9)


def test_an_array_goes_by_position_and_labels_in_another_order_are_refused():
    expected = calibrated(S, U).weights_
    for sample, population in ((S.to_numpy(), U), (S, U.to_numpy()), (S.to_numpy(), U.to_numpy())):
        assert calibrated(sample, population).weights_ == pytest.approx(expected, rel=1e-9)
    named = S.set_axis(["a", "b"], axis=1)
    assert calibrated(named, U).weights_ == pytest.approx(expected, rel=1e-9)
    for sample in (S.to_numpy(), named):
        with pytest.raises(InputError, match=r"labelled 1, 0.*same labels"):
            calibrated(sample, SWAPPED)
    with pytest.raises(InputError, match="labelled 1, 0"):
        calibrated(S[[1, 0]], U.to_numpy())
    with pytest.raises(InputError, match="lacks column 'x1'"):
        calibrated(S, U.rename(columns={1: 5}))


def test_new_rows():
    fitted = TreeWeights(min_samples_leaf=10).fit(S, Y, population=SWAPPED)
    weights = fitted.weigh(S)
    assert weights == pytest.approx(fitted.weights_)
    assert np.array_equal(fitted.weigh(S[[1, 0]]), weights)
    assert np.array_equal(fitted.weigh(S.to_numpy()), weights)
    assert np.array_equal(fitted.weigh(S.rename(columns=str)[["1", "0"]]), weights)
    backwards = TreeWeights(min_samples_leaf=10).fit(S[[1, 0]], Y, population=U)
    assert backwards.weigh(S) == pytest.approx(weights)
    with pytest.raises(InputError, match="labelled 1, 0"):
        backwards.weigh(S.to_numpy())
    with pytest.raises(InputError, match="labelled 1, 0"):
        TreeWeights().fit(S.to_numpy(), Y, population=U).weigh(SWAPPED)


def test_saved(tmp_path):
    fitted = HistogramWeights().fit(S[[1, 0]], population=U)
    unskew.save_weighter(fitted, tmp_path / "w.skops")
    loaded = unskew.load_weighter(tmp_path / "w.skops")
    assert np.array_equal(loaded.weigh(S), fitted.weigh(S[[1, 0]]))


def test_columns_are_chosen_by_label():
    wide = S.assign(**{"2": RANDOM.normal(size=200)}).rename(columns={"2": 2})
    one = calibrated(S[[1]], U[[1]]).weights_
    assert calibrated(wide[[2, 1, 0]], U, columns=[1]).weights_ == pytest.approx(one)
    assert calibrated(wide, Population(SWAPPED, columns=[1]), columns=[1]).weights_ == (
        pytest.approx(one)
    )
    both = calibrated(wide[[2, 1, 0]], SWAPPED, columns="shared")
    assert both.weights_ == pytest.approx(calibrated(S, U).weights_, rel=1e-9)
    buckets = HistogramWeights(buckets={1: 2, 0: 3})
    first = buckets.fit(S, population=U).weights_
    assert np.array_equal(buckets.fit(S[[1, 0]], population=U).weights_, first)


def test_a_function_or_classifier_of_x_sees_its_own_labels():
    def probability(rows):
        return np.where(rows[0] > 1, 0.2, 0.8)

    weighter = KnownProbability(probability).fit(S, population=SWAPPED)
    assert np.array_equal(weighter.weigh(S[[1, 0]]), weighter.weights_)
    labels = (S[0] > S[0].median()).astype(int)
    shift = LabelShiftWeights(LinearDiscriminant(), columns=[0])
    with pytest.warns(unskew.errors.LabelShiftWarning):
        found = [shift.fit(S, labels, population=one).class_weights_ for one in (SWAPPED, U)]
    assert found[0] == pytest.approx(found[1])


class LinearDiscriminant(LinearRegression):
    """Classifies by the column that is labelled 0."""

    _estimator_type = "classifier"

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return super().fit(X[[0]], y)

    def predict_proba(self, X):
        second = np.clip(super().predict(X[[0]]), 0.01, 0.99)
        return np.column_stack([1 - second, second])


def test_every_door():
    def mean(population):
        return estimate(S, Y, population=population).value

    assert mean(SWAPPED) == pytest.approx(mean(U), rel=1e-9)
    before, after = (diagnose(S, population=one) for one in (U, SWAPPED))
    assert [line.before for line in after.bias.features] == pytest.approx(
        [line.before for line in before.bias.features]
    )
    model = Reweighted(LinearRegression(), TreeWeights(min_samples_leaf=10))
    first = model.fit(S, Y, population=U).weights_
    assert np.array_equal(model.fit(S, Y, population=SWAPPED).weights_, first)
    assert np.array_equal(model.weigh(S[[1, 0]]), model.weigh(S))
    conformal = ConformalRegressor(LinearRegression(), TreeWeights(min_samples_leaf=10))
    intervals = [conformal.fit(S, Y, population=one).predict_interval(S) for one in (U, SWAPPED)]
    assert np.array_equal(*intervals)


def test_predictions_go_by_label():
    model = Reweighted(LinearRegression(), TreeWeights(min_samples_leaf=10))
    model.fit(S, Y, population=U)
    assert np.array_equal(model.predict(SWAPPED), model.predict(U))
    assert model.score(S[[1, 0]], Y) == model.score(S, Y)
    conformal = ConformalRegressor(LinearRegression(), TreeWeights(min_samples_leaf=10))
    conformal.fit(S, Y, population=U)
    assert np.array_equal(conformal.predict_interval(SWAPPED), conformal.predict_interval(U))
    classes = ConformalClassifier(LogisticRegression(), TreeWeights(min_samples_leaf=10))
    classes.fit(S, Y.mean() < Y, population=U)
    assert np.array_equal(classes.predict_set(SWAPPED), classes.predict_set(U))
    assert np.array_equal(classes.predict_proba(SWAPPED), classes.predict_proba(U))


def test_heckman():
    seen = U[0].to_numpy() + RANDOM.normal(size=600) > 0.5
    y = np.where(seen, U[1] + RANDOM.normal(size=600), np.nan)
    whole = HeckmanRegressor(selection=[0, 1], outcome=[1]).fit(U, y)
    assert whole.predict(SWAPPED) == pytest.approx(whole.predict(U))
    swapped = HeckmanRegressor(selection=[0, 1], outcome=[1]).fit(SWAPPED, y)
    assert swapped.coef_ == pytest.approx(whole.coef_)
    rest = HeckmanRegressor(selection=[0, 1], outcome=[1]).fit(
        U[seen], y[seen], population=Population(SWAPPED, selected=seen)
    )
    assert rest.coef_ == pytest.approx(whole.coef_)


def test_dates_as_labels_are_names():
    days = pd.to_datetime(["2024-01-01", "2024-02-01"])
    sample, population = S.set_axis(days, axis=1), U.set_axis(days, axis=1)
    found = calibrated(sample, population[days[::-1]]).weights_
    assert found == pytest.approx(calibrated(S, U).weights_, rel=1e-9)


def test_cells_of_swapped_columns():
    sample = pd.DataFrame({0: list("aab"), 1: list("xxy")})
    found = FrequencyWeights().fit(sample, population=sample[[1, 0]]).weights_
    assert found == pytest.approx(np.ones(3))
