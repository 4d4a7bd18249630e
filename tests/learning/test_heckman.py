from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_validate
from tests.learning.heckman_data import simulated

from unskew import HeckmanRegressor, Population
from unskew.errors import InputError, ParameterError, UnseenValueWarning


class TestPredicting:
    def test_for_the_population_and_for_the_selected(self):
        random = np.random.default_rng(5)
        frame, y = simulated(20_000)
        model = HeckmanRegressor(outcome=["x"], method="ml").fit(frame, y)
        new = pd.DataFrame({"x": [0.5], "z": [-0.3]})
        errors = random.multivariate_normal([0, 0], [[1, 0.7], [0.7, 1]], 400_000)
        outcome = 1 + 2 * 0.5 + errors[:, 1]
        seen = 0.5 - 0.3 + errors[:, 0] > 0
        assert model.predict(new)[0] == pytest.approx(outcome.mean(), abs=0.05)
        conditional = model.predict(new, given_selected=True)[0]
        assert conditional == pytest.approx(outcome[seen].mean(), abs=0.05)
        assert model.predict_selected(new)[0] == pytest.approx(seen.mean(), abs=0.02)

    def test_a_frame_needs_the_columns_of_the_equation_alone(self):
        frame, y = simulated()
        model = HeckmanRegressor(outcome=["x"]).fit(frame, y)
        np.testing.assert_array_equal(model.predict(frame[["x"]]), model.predict(frame))
        with pytest.raises(InputError, match="lacks column 'z'"):
            model.predict(frame[["x"]], given_selected=True)

    def test_score_is_that_of_rows_that_are_seen(self):
        frame, y = simulated()
        model = HeckmanRegressor(outcome=["x"]).fit(frame, y)
        seen = y.notna()
        residuals = (y - model.predict(frame, given_selected=True))[seen]
        assert model.score(frame, y) == pytest.approx(1 - residuals.var() / y[seen].var(), abs=1e-3)

    def test_cross_validation(self):
        frame, y = simulated()
        scores = cross_validate(HeckmanRegressor(outcome=["x"]), frame, y, cv=3)["test_score"]
        assert (scores > 0.5).all()


class TestWaysToGiveRows:
    @pytest.mark.parametrize("method", ["two-step", "ml"])
    def test_a_population_with_marks_is_all_rows_with_missing_labels(self, method):
        frame, y = simulated()
        frame["town"] = np.where(frame.z > 0, "a", "b")
        seen = y.notna().to_numpy()
        together = HeckmanRegressor(outcome=["x"], method=method).fit(frame, y)
        apart = HeckmanRegressor(outcome=["x"], method=method).fit(
            frame[seen], y[seen], population=Population(frame, selected=seen)
        )
        np.testing.assert_allclose(apart.params_, together.params_, atol=1e-8)
        np.testing.assert_allclose(apart.covariance_, together.covariance_, atol=1e-8)

    def test_arrays_and_frames_and_nulls(self):
        import polars as pl

        frame, y = simulated()
        expected = HeckmanRegressor(outcome=["x"]).fit(frame, y).params_
        array = HeckmanRegressor(outcome=[0]).fit(frame.to_numpy(), y.to_numpy())
        labels = [None if np.isnan(one) else one for one in y]
        polars = HeckmanRegressor(outcome=["x"]).fit(pl.from_pandas(frame), pl.Series(labels))
        lists = HeckmanRegressor(outcome=[0]).fit(frame.to_numpy().tolist(), labels)
        for model in (array, polars, lists):
            np.testing.assert_allclose(model.params_, expected, atol=1e-10)

    def test_weights_count_rows(self):
        frame, y = simulated(500)
        counts = np.random.default_rng(0).integers(0, 3, 500)
        repeated = np.repeat(np.arange(500), counts)
        for method in ("two-step", "ml"):
            model = HeckmanRegressor(outcome=["x"], method=method)
            weighted = clone(model).fit(frame, y, sample_weight=counts)
            plain = clone(model).fit(frame.iloc[repeated], y.iloc[repeated])
            np.testing.assert_allclose(weighted.params_, plain.params_, atol=1e-7)
            assert weighted.summary().covariance == "robust"

    def test_text_and_missing_values(self):
        frame, y = simulated()
        random = np.random.default_rng(0)
        town = random.choice(["a", "b", "c"], len(frame))
        age = np.where(random.uniform(size=len(frame)) < 0.2, np.nan, frame.z)
        frame = frame.assign(town=town, age=age)
        model = HeckmanRegressor(["x", "town", "age"], ["x", "town"]).fit(frame, y)
        assert model.selection_names_ == ["x", "age", "age is missing", "town = b", "town = c"]
        by_hand = pd.DataFrame(
            {
                "x": frame.x,
                "age": frame.age.fillna(frame.age.mean()),
                "gone": frame.age.isna(),
                "b": town == "b",
                "c": town == "c",
            }
        ).astype(float)
        other = HeckmanRegressor(outcome=["x", "b", "c"]).fit(by_hand, y)
        np.testing.assert_allclose(model.params_, other.params_, atol=1e-8)
        with pytest.warns(UnseenValueWarning, match="town"):
            model.predict(frame.assign(town="d"))


class TestCovariance:
    def test_robust_agrees_with_the_model_where_it_holds(self):
        frame, y = simulated(20_000)
        for method in ("two-step", "ml"):
            plain = HeckmanRegressor(outcome=["x"], method=method).fit(frame, y)
            robust = HeckmanRegressor(outcome=["x"], method=method, covariance="robust")
            robust.fit(frame, y)
            errors = [np.sqrt(np.diag(one.covariance_)) for one in (plain, robust)]
            np.testing.assert_allclose(errors[0], errors[1], rtol=0.05)

    def test_repeated_rows_need_clusters(self):
        """Each row four times says no more than once, and only clusters know."""
        frame, y = simulated()
        rows = np.tile(np.arange(len(frame)), 4)
        for method in ("two-step", "ml"):
            model = HeckmanRegressor(outcome=["x"], method=method, covariance="robust")
            once = clone(model).fit(frame, y)
            naive = clone(model).fit(frame.iloc[rows], y.iloc[rows])
            clustered = clone(model).fit(frame.iloc[rows], y.iloc[rows], clusters=rows)
            np.testing.assert_allclose(clustered.covariance_, once.covariance_, rtol=1e-5)
            ratio = np.diag(naive.covariance_) / np.diag(once.covariance_)
            np.testing.assert_allclose(ratio, 0.25, rtol=1e-2)
            assert "2,000 clusters" in str(clustered.summary())

    @pytest.mark.parametrize("method", ["two-step", "ml"])
    def test_scale_of_a_column_changes_its_coefficient_alone(self, method):
        frame, y = simulated()
        plain = HeckmanRegressor(outcome=["x"], method=method).fit(frame, y)
        large = frame.assign(x=frame.x * 1e9 + 1e9)
        scaled = HeckmanRegressor(outcome=["x"], method=method).fit(large, 1e-6 * y)
        assert scaled.coef_[0] == pytest.approx(plain.coef_[0] * 1e-15, rel=1e-6)
        assert scaled.rho_ == pytest.approx(plain.rho_, rel=1e-6)
        z = [one.summary()["outcome", "x"].z for one in (plain, scaled)]
        assert z[0] == pytest.approx(z[1], rel=1e-6)


class TestSummary:
    def test_text_and_page_hold_every_number(self):
        frame, y = simulated()
        frame = frame.rename(columns={"x": "<x>"})
        summary = HeckmanRegressor(outcome=["<x>"], method="ml").fit(frame, y).summary()
        text, page = str(summary), summary._repr_html_()
        for word in ("2,000 rows", "Wald test of ρ = 0", "Likelihood ratio test", "std. error"):
            assert word in text
            assert word in page
        assert "<x>" in text
        assert "<x>" not in page
        for row in summary.rows:
            assert format(row.estimate, ".6g") in text
        with pytest.raises(KeyError):
            summary["outcome", "z"]

    def test_the_tests_of_correlation_agree(self):
        frame, y = simulated(20_000, rho=0.3)
        summary = HeckmanRegressor(outcome=["x"], method="ml").fit(frame, y).summary()
        assert summary.wald.statistic == pytest.approx(summary.likelihood_ratio.statistic, rel=0.1)
        assert summary.wald.p_value < 1e-6

    def test_delta_method_for_lambda(self):
        frame, y = simulated()
        model = HeckmanRegressor(outcome=["x"], method="ml").fit(frame, y)
        random = np.random.default_rng(0)
        drawn = random.multivariate_normal(model.params_[-2:], model.covariance_[-2:, -2:], 100_000)
        spread = (np.exp(drawn[:, 0]) * np.tanh(drawn[:, 1])).std()
        assert model.summary()["errors", "λ"].standard_error == pytest.approx(spread, rel=0.02)


def test_conventions_of_scikit_learn():
    frame, y = simulated()
    model = HeckmanRegressor(outcome=["x"], method="ml")
    assert clone(model).get_params() == model.get_params()
    model.fit(frame, y)
    assert model.feature_names_in_.tolist() == ["x", "z"]
    assert model.n_features_in_ == 2
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(frame), model.predict(frame))
    assert str(again.summary()) == str(model.summary())
    with pytest.raises(ParameterError, match="method"):
        HeckmanRegressor(method="mle").fit(frame, y)
