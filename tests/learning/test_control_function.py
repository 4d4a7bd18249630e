from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from tests.learning.heckman_data import simulated

from unskew import HeckmanRegressor, InputError, ParameterError, UnskewError


def curved(n=8000, seed=0):
    """Return rows that are selected by |z|, which no probit of z sees, and the outcome 1 + 2x."""
    random = np.random.default_rng(seed)
    frame = pd.DataFrame(random.normal(size=(n, 2)), columns=["x", "z"])
    errors = random.multivariate_normal([0, 0], [[1, 0.8], [0.8, 1]], n)
    seen = 2 * frame.z.abs() + frame.x - 2 + errors[:, 0] > 0
    return frame, (1 + 2 * frame.x + errors[:, 1]).where(seen)


def test_it_finds_selection_that_a_probit_does_not():
    frame, y = curved()
    classifier = HistGradientBoostingClassifier(max_leaf_nodes=8, max_iter=60, random_state=0)
    with pytest.warns(UserWarning, match="hardly moves it"):
        probit = HeckmanRegressor(outcome=["x"]).fit(frame, y)
    model = HeckmanRegressor(outcome=["x"], selection_model=classifier).fit(frame, y)
    truth = np.array([1.0, 2.0])
    errors = [np.abs([one.intercept_, *one.coef_] - truth).max() for one in (probit, model)]
    assert errors[1] < 0.1 < errors[0]
    assert model.rho_ == pytest.approx(0.8, abs=0.15)


def test_of_a_linear_selection_it_says_what_the_probit_says():
    frame, y = simulated(8000)
    probit = HeckmanRegressor(outcome=["x"]).fit(frame, y)
    model = HeckmanRegressor(outcome=["x"], selection_model=LogisticRegression()).fit(frame, y)
    np.testing.assert_allclose(model.coef_, probit.coef_, atol=0.03)
    np.testing.assert_allclose(
        model.predict_selected(frame), probit.predict_selected(frame), atol=0.03
    )
    for selected in (False, True):
        both = [one.predict(frame, given_selected=selected) for one in (model, probit)]
        assert np.abs(both[0] - both[1]).mean() < 0.05


def test_its_summary_says_that_it_is_an_experiment():
    frame, y = simulated()
    model = HeckmanRegressor(outcome=["x"], selection_model=LogisticRegression()).fit(frame, y)
    text = str(model.summary())
    for word in ("an experiment", "take the probabilities as known", "held out", "Wald test of λ"):
        assert word in text
    assert "Selection" not in text
    assert model.params_.shape == (3,)
    assert model.summary()["errors", "λ"].standard_error > 0


def test_rows_of_a_cluster_share_a_fold():
    """Trees that learn rows by heart are no better at their copies if these are held out too."""
    frame, y = simulated(300)
    rows = np.tile(np.arange(300), 4)
    trees = HistGradientBoostingClassifier(min_samples_leaf=4, max_iter=30, random_state=0)
    model = HeckmanRegressor(outcome=["x"], selection_model=trees)
    together = model.fit(frame.iloc[rows], y.iloc[rows], clusters=rows).log_likelihood_
    apart = model.fit(frame.iloc[rows], y.iloc[rows]).log_likelihood_
    assert together < apart


class TestErrors:
    def test_probabilities_of_zero(self):
        frame, y = simulated()
        tree = DecisionTreeClassifier(random_state=0)
        with pytest.raises(InputError, match="a probability of zero"):
            HeckmanRegressor(outcome=["x"], selection_model=tree).fit(frame, y)

    def test_what_does_not_go_together(self):
        frame, y = simulated()
        with pytest.raises(ParameterError, match='method="two-step"'):
            HeckmanRegressor(method="ml", selection_model=LogisticRegression()).fit(frame, y)
        with pytest.raises(UnskewError, match="no predict_proba"):
            HeckmanRegressor(selection_model=LinearSVC()).fit(frame, y)
        with pytest.raises(ParameterError, match="selection_model"):
            HeckmanRegressor(selection_model="forest").fit(frame, y)
