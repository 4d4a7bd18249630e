"""Conformal intervals: closed forms, guarantees in simulation, and what cannot be said."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, QuantileRegressor
from sklearn.model_selection import cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from unskew import (
    CalibrationWeights,
    ConformalRegressor,
    FrequencyWeights,
    KnownProbability,
    Margins,
    Population,
    Reweighted,
    TreeWeights,
    Unweighted,
)
from unskew.errors import InfiniteIntervalWarning, ParameterError


def chance(X):
    return 1 / (1 + np.exp(1.5 * np.asarray(X)[:, 0]))


def third_chance(X):
    return chance(X) / 3


def draw(seed, n=1200):
    """A population whose noise grows where selection is rare."""
    random = np.random.default_rng(seed)
    U = random.normal(size=(n, 2))
    y = U[:, 1] + np.exp(0.7 * U[:, 0]) * random.normal(size=n)
    selected = random.uniform(size=n) < chance(U)
    return U, y, selected


def covered(intervals, y):
    return float(np.mean((intervals[:, 0] <= y) & (y <= intervals[:, 1])))


def test_without_weights_the_width_is_an_order_statistic_of_residuals():
    U, y, s = draw(0)
    model = ConformalRegressor(LinearRegression(), Unweighted(), calibration_size=0.3)
    model.fit(U[s], y[s], population=U)
    rest = model.calibration_rows_
    assert len(rest) == round(0.3 * s.sum())
    training = np.setdiff1d(np.arange(s.sum()), rest)
    by_hand = LinearRegression().fit(U[s][training], y[s][training])
    residuals = np.sort(np.abs(y[s][rest] - by_hand.predict(U[s][rest])))
    width = residuals[int(np.ceil(0.8 * (len(rest) + 1))) - 1]
    low, high = model.predict_interval(U, coverage=0.8).T
    assert high - low == pytest.approx(2 * width)
    assert (low + high) / 2 == pytest.approx(by_hand.predict(U))
    assert model.predict(U) == pytest.approx(by_hand.predict(U))
    assert model.effective_sample_size_ == pytest.approx(len(rest))
    assert model.infinite_share_ == 0


@pytest.mark.filterwarnings("ignore::unskew.errors.InfiniteIntervalWarning")
@pytest.mark.parametrize("method", ["split", "cv+"])
def test_known_weights_keep_the_coverage_on_the_population(method):
    found = {"plain": [], "weighted": []}
    for seed in range(30):
        U, y, s = draw(seed, 600)
        for name, weighter in (("plain", Unweighted()), ("weighted", KnownProbability(chance))):
            model = ConformalRegressor(LinearRegression(), weighter, method=method)
            model.fit(U[s], y[s], population=Population(U))
            new, labels, _ = draw(seed + 1000, 600)
            found[name].append(covered(model.predict_interval(new), labels))
    error = np.std(found["weighted"]) / 30**0.5
    assert 0.9 - 2 * error < np.mean(found["weighted"]) < 0.94
    assert np.mean(found["plain"]) < 0.86


@pytest.mark.filterwarnings("ignore::unskew.errors.InfiniteIntervalWarning")
def test_only_ratios_of_weights_matter():
    U, y, s = draw(1)
    weight = np.random.default_rng(0).uniform(0.5, 2, s.sum())
    first = ConformalRegressor(LinearRegression(), KnownProbability(chance))
    first.fit(U[s], y[s], population=U, sample_weight=weight)
    other = ConformalRegressor(
        LinearRegression(), KnownProbability(third_chance, total="population")
    )
    other.fit(U[s], y[s], population=U, sample_weight=7 * weight)
    assert other.predict_interval(U) == pytest.approx(first.predict_interval(U))


def test_labels_of_calibration_rows_change_the_width_alone():
    U, y, s = draw(2)
    model = ConformalRegressor(LinearRegression(), TreeWeights(min_samples_leaf=20))
    model.fit(U[s], y[s], population=U)
    assert len(model.weighters_[0].weights_) == s.sum() - len(model.calibration_rows_)
    changed = y[s].copy()
    changed[model.calibration_rows_] += 100.0
    other = clone(model).fit(U[s], changed, population=U)
    assert (other.predict(U) == model.predict(U)).all()
    assert (other.weighters_[0].weigh(U) == model.weighters_[0].weigh(U)).all()
    assert (other.predict_interval(U)[:, 1] > model.predict_interval(U)[:, 1] + 90).all()


def test_infinite_intervals_are_counted_and_the_named_coverage_has_none():
    U, y, s = draw(3, 300)
    model = ConformalRegressor(LinearRegression(), KnownProbability(chance))
    model.fit(U[s], y[s], population=U)
    with pytest.warns(InfiniteIntervalWarning, match=r"W / \(W \+ w\)") as caught:
        intervals = model.predict_interval(U, coverage=0.97)
    infinite = np.isinf(intervals)
    assert (infinite[:, 0] == infinite[:, 1]).all()
    assert model.infinite_share_ == infinite[:, 0].mean() == caught[0].message.share > 0
    assert caught[0].filename == __file__
    possible = float(str(caught[0].message).split("so ")[1].split(" can")[0])
    assert np.isfinite(model.predict_interval(U, coverage=possible)).all()
    assert model.infinite_share_ == 0


def test_a_coverage_that_the_sample_cannot_give():
    model = ConformalRegressor(LinearRegression(), Unweighted(), calibration_size=19)
    X = np.arange(40.0).reshape(-1, 1)
    model.fit(X, X[:, 0] % 3, population=Population(X))
    assert np.isfinite(model.predict_interval(X, coverage=0.95)).all()
    with pytest.warns(InfiniteIntervalWarning, match="100.0% of the intervals are infinite"):
        assert np.isinf(model.predict_interval(X, coverage=0.951)).all()


def test_one_calibration_row():
    X, y = [[0.0], [1.0], [2.0]], [0.0, 1.0, 5.0]
    model = ConformalRegressor(LinearRegression(), Unweighted(), calibration_size=1)
    model.fit(X, y, population=[[0.0], [1.0]])
    (row,) = model.calibration_rows_
    residual = abs(y[row] - model.predict([X[row]])[0])
    low, high = model.predict_interval([[4.0]], coverage=0.5)[0]
    assert high - low == pytest.approx(2 * residual)
    with pytest.warns(InfiniteIntervalWarning, match="so 0.5000 can be had"):
        assert np.isinf(model.predict_interval([[4.0]], coverage=0.51)).all()


def test_tied_scores_are_all_inside():
    X = np.zeros((40, 1))
    y = np.tile([-1.0, 1.0], 20)
    frozen = FrozenEstimator(LinearRegression().fit([[0.0], [1.0]], [0.0, 0.0]))
    model = ConformalRegressor(frozen, Unweighted()).fit(X, y, population=Population(X))
    assert model.predict_interval([[0.0]], coverage=0.1) == pytest.approx(np.array([[-1.0, 1.0]]))


def test_a_frozen_model_is_not_trained_and_takes_design_weights():
    random = np.random.default_rng(1)
    X, design = random.normal(size=(60, 1)), random.uniform(1, 5, 60)
    y = X[:, 0] + random.normal(size=60)
    fitted = LinearRegression().fit(X, 2 * X[:, 0])
    for learner in (FrozenEstimator(fitted), make_pipeline(FrozenEstimator(fitted))):
        model = ConformalRegressor(learner, Unweighted())
        model.fit(X, y, population=Population(X), sample_weight=design)
        assert np.array_equal(model.predict(X), fitted.predict(X))
        rows = model.calibration_rows_
        own = design[rows] / design.mean()
        assert model.effective_sample_size_ == pytest.approx(own.sum() ** 2 / (own @ own))
        misses = np.abs(y[rows] - fitted.predict(X[rows]))
        order = np.argsort(misses)
        reached = np.cumsum(own[order]) / (own.sum() + 1)  # the row to predict weighs one
        width = misses[order][np.searchsorted(reached, 0.8)]
        low, high = model.predict_interval(X[:1], coverage=0.8)[0]
        assert (high - low) / 2 == pytest.approx(width)


@pytest.mark.parametrize("score", ["scaled", "quantile"])
def test_a_frozen_model_is_not_trained_for_another_purpose(score):
    X = np.arange(20.0).reshape(-1, 1)
    frozen = FrozenEstimator(LinearRegression().fit(X, X[:, 0]))
    with pytest.raises(ParameterError, match="FrozenEstimator stays as it is"):
        ConformalRegressor(frozen, Unweighted(), conformity_score=score).fit(
            X, X[:, 0], population=Population(X)
        )


def test_scaled_residuals_are_wide_where_labels_are_noisy():
    random = np.random.default_rng(5)
    U = random.uniform(0, 1, size=(3000, 1))
    y = (0.2 + 2 * U[:, 0]) * random.normal(size=3000)
    learner = LinearRegression()
    model = ConformalRegressor(learner, Unweighted(), conformity_score="scaled")
    model.fit(U, y, population=Population(U))
    intervals = model.predict_interval(U)
    low, high = np.diff(model.predict_interval([[0.0], [1.0]]), axis=1)[:, 0]
    assert 8 < high / low < 15  # the noise grows elevenfold
    for part in (U[:, 0] < 0.2, U[:, 0] > 0.8):
        assert 0.86 < covered(intervals[part], y[part]) < 0.94


@pytest.mark.parametrize(
    "learner",
    [
        HistGradientBoostingRegressor(loss="quantile", max_iter=30, max_leaf_nodes=4),
        GradientBoostingRegressor(loss="quantile", n_estimators=30, max_depth=2),
        make_pipeline(StandardScaler(), QuantileRegressor(alpha=0)),
        (QuantileRegressor(quantile=0.1, alpha=0), QuantileRegressor(quantile=0.9, alpha=0)),
    ],
    ids=["hist", "boosting", "pipeline", "pair"],
)
def test_conformalised_quantiles(learner):
    random = np.random.default_rng(6)
    U = random.uniform(0, 1, size=(1500, 1))
    y = (0.2 + 2 * U[:, 0]) * random.normal(size=1500)
    model = ConformalRegressor(
        learner, Unweighted(), conformity_score="quantile", quantiles=(0.1, 0.9)
    )
    model.fit(U[:700], y[:700], population=U)
    clone(model).get_params()
    for coverage in (0.5, 0.9):  # less and more than the quantiles themselves
        intervals = model.predict_interval(U[700:], coverage=coverage)
        assert (intervals[:, 0] <= intervals[:, 1]).all()
        assert covered(intervals, y[700:]) == pytest.approx(coverage, abs=0.06)
    low, high = np.diff(model.predict_interval([[0.05], [0.95]]), axis=1)[:, 0]
    assert high > 3 * low
    assert model.predict(U) == pytest.approx(model.predict_interval(U).mean(axis=1))


def test_cells_are_calibrated_each_by_itself():
    random = np.random.default_rng(7)
    towns = random.choice(["Bonn", "Kiel"], 2000, p=[0.9, 0.1])
    x = random.normal(size=2000)
    y = x + np.where(towns == "Kiel", 5.0, 1.0) * random.normal(size=2000)
    table = pd.DataFrame({"town": towns, "x": x})
    only_x = ColumnTransformer([("x", "passthrough", ["x"])])
    learner = make_pipeline(only_x, LinearRegression())
    model = ConformalRegressor(learner, groups=FrequencyWeights(columns=["town"]))
    model.fit(table, y, population=Population(table))
    rest = model.calibration_rows_
    residuals = np.abs(y[rest] - model.predict(table.iloc[rest]))
    for town in ("Bonn", "Kiel"):
        own = np.sort(residuals[towns[rest] == town])
        width = own[int(np.ceil(0.9 * (len(own) + 1))) - 1]
        low, high = model.predict_interval(table[towns == town]).T
        assert high - low == pytest.approx(2 * width)
    unseen = pd.DataFrame({"town": ["Ulm", "Bonn"], "x": [0.0, 0.0]})
    with pytest.warns(InfiniteIntervalWarning, match="cells hold too little: 9 calibration rows"):
        found = model.predict_interval(unseen)
    assert np.isinf(found).tolist() == [[True, True], [False, False]]


def test_a_learner_that_weighs_the_sample_lends_its_weights():
    U, y, s = draw(8)
    weighter = TreeWeights(min_samples_leaf=30, overlap="ignore")
    lent = ConformalRegressor(Reweighted(LinearRegression(), weighter))
    lent.fit(U[s], y[s], population=U)
    own = ConformalRegressor(Reweighted(LinearRegression(), weighter), weighter)
    own.fit(U[s], y[s], population=U)
    assert lent.predict_interval(U) == pytest.approx(own.predict_interval(U))
    training = np.setdiff1d(np.arange(s.sum()), lent.calibration_rows_)
    by_hand = Reweighted(LinearRegression(), weighter)
    by_hand.fit(U[s][training], y[s][training], population=U)
    assert lent.predict(U) == pytest.approx(by_hand.predict(U))


def test_margins_tables_pickles_and_cross_validation():
    U, y, s = draw(9, 600)
    table = pd.DataFrame(U, columns=["a", "b"])
    margins = Margins(means={"a": float(U[:, 0].mean()), "b": float(U[:, 1].mean())})
    model = ConformalRegressor(LinearRegression()).fit(table[s], y[s], population=margins)
    assert isinstance(model.weighters_[0], CalibrationWeights)
    intervals = model.predict_interval(table)
    assert list(model.feature_names_in_) == ["a", "b"]
    assert (pickle.loads(pickle.dumps(model)).predict_interval(table) == intervals).all()
    found = cross_validate(
        ConformalRegressor(LinearRegression(), TreeWeights(overlap="ignore")),
        table[s],
        y[s],
        params={"population": Population(table)},
    )
    assert len(found["test_score"]) == 5
