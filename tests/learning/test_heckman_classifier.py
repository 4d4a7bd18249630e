from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.stats import multivariate_normal, norm
from sklearn.base import clone
from sklearn.model_selection import KFold, cross_validate
from tests.learning.heckman_data import simulated_classes
from tests.r_random import RRandom
from tests.references import reference

from unskew import HeckmanClassifier, Population
from unskew.errors import InputError


@pytest.fixture(scope="module")
def leemann():
    """The data of sampleSelection's tests of a binary outcome (tests/binarySelectionOutcome.R)."""
    random = RRandom(0)
    errors = random.pairs(500, 0.7)
    xs = random.runif(500)
    seen = 3 * xs + errors[:, 0] > 0
    xo = random.runif(500)
    y = -1 + 2 * xo + errors[:, 1] > 0
    assert ((~seen).sum(), (seen & ~y).sum(), (seen & y).sum()) == (74, 202, 224)
    frame = pd.DataFrame({"xs": xs, "xo": xo})
    return frame, pd.Series(y * 1.0).where(seen), 2 * random.runif(500)


class TestPrintedResults:
    def test_sampleselection(self, leemann):
        """What the package prints, by BFGS, whose errors are those of the second derivative."""
        frame, y, _ = leemann
        model = HeckmanClassifier(["xs"], ["xo"]).fit(frame, y)
        printed = {
            ("selection", "(constant)"): (-0.122, 0.132),
            ("selection", "xs"): (3.329, 0.397),
            ("outcome", "(constant)"): (-1.055, 0.122),
            ("outcome", "xo"): (1.987, 0.232),
            ("errors", "ρ"): (0.817, 0.145),
        }
        for place, (estimate, error) in printed.items():
            row = model.summary()[place]
            assert row.estimate == pytest.approx(estimate, abs=6e-4), place
            assert row.standard_error == pytest.approx(error, abs=6e-4), place
        assert model.log_likelihood_ == pytest.approx(-398.191, abs=5e-4)
        assert model.certificate_.converged

    def test_sampleselection_with_weights(self, leemann):
        frame, y, weight = leemann
        model = HeckmanClassifier(["xs"], ["xo"]).fit(frame, y, sample_weight=weight)
        found = [*model.params_[:-1], model.rho_]
        np.testing.assert_allclose(found, [-0.1125, 3.3605, -1.070, 1.9945, 0.9535], atol=1e-3)
        assert model.log_likelihood_ == pytest.approx(-395.657, abs=5e-4)

    def test_mroz_by_another_solver(self):
        """High wages of Mroz's women: SciPy on the textbook's formula, in ρ itself."""
        data = reference("mroz87")
        seen = (data.lfp == 1).to_numpy()
        z = data[["age", "kids5", "educ", "nwifeinc"]]
        x = data[["educ", "exper"]]
        z, x = (z - z.mean()) / z.std(), (x - x.mean()) / x.std()
        frame = pd.concat([z.add_prefix("z_"), x.add_prefix("x_")], axis=1)
        high = (data.wage > 4).to_numpy()
        model = HeckmanClassifier(list(frame.columns[:4]), list(frame.columns[4:]))
        model.fit(frame, np.where(seen, high, np.nan))
        z, x = z.to_numpy(), x.to_numpy()[seen]
        sign = np.where(high[seen], 1.0, -1.0)

        def loss(p):
            a, b, rho = p[0] + z @ p[1:5], p[5] + x @ p[6:8], p[8]
            if abs(rho) >= 1:
                return np.inf
            total = norm.logcdf(-a[~seen]).sum()
            points = np.column_stack([a[seen], sign * b])
            for one in (1, -1):
                covariance = [[1, one * rho], [one * rho, 1]]
                inside = multivariate_normal.cdf(points[sign == one], cov=covariance)
                total += np.log(inside).sum()
            return -total

        start = np.append(model.params_[:-1] * 0.9, 0.0)
        found = minimize(loss, start, method="BFGS", options={"gtol": 1e-3})
        np.testing.assert_allclose(found.x, [*model.params_[:-1], model.rho_], atol=5e-3)
        assert model.log_likelihood_ == pytest.approx(-found.fun, abs=1e-4)


class TestPredicting:
    def test_for_the_population_and_for_the_selected(self):
        frame, y = simulated_classes(20_000)
        model = HeckmanClassifier(outcome=["x"]).fit(frame, y)
        new = pd.DataFrame({"x": [0.5], "z": [-0.8]})
        errors = np.random.default_rng(5).multivariate_normal([0, 0], [[1, 0.7], [0.7, 1]], 200_000)
        one, seen = 0.5 + errors[:, 1] > 0.3, 0.5 - 0.8 + errors[:, 0] > 0
        assert model.predict_proba(new)[0, 1] == pytest.approx(one.mean(), abs=0.03)
        conditional = model.predict_proba(new, given_selected=True)[0, 1]
        assert conditional == pytest.approx(one[seen].mean(), abs=0.03)
        assert model.predict_selected(new)[0] == pytest.approx(seen.mean(), abs=0.02)

    def test_the_selected_have_the_mean_of_their_classes(self):
        frame, y = simulated_classes()
        model = HeckmanClassifier(outcome=["x"]).fit(frame, y)
        seen = y.notna()
        said = model.predict_proba(frame[seen], given_selected=True)
        np.testing.assert_allclose(said.sum(axis=1), 1)
        assert said[:, 1].mean() == pytest.approx(y.mean(), abs=0.005)

    def test_classes_of_any_kind(self):
        frame, y = simulated_classes(500)
        expected = HeckmanClassifier(outcome=["x"]).fit(frame, y)
        text = y.map({0.0: "bad", 1.0: "good"}).astype(object).where(y.notna(), None)
        model = HeckmanClassifier(outcome=["x"]).fit(frame, text)
        assert model.classes_.tolist() == ["bad", "good"]
        np.testing.assert_allclose(model.params_, expected.params_)
        assert set(model.predict(frame)) == {"bad", "good"}
        assert model.score(frame, text) == expected.score(frame, y) > 0.6
        flags = [None if np.isnan(one) else bool(one) for one in y]
        assert HeckmanClassifier(outcome=["x"]).fit(frame, flags).predict(frame).dtype == bool

    def test_cross_validation(self):
        frame, y = simulated_classes(1000)
        model = HeckmanClassifier(outcome=["x"])  # folds by class would refuse missing ones
        scores = cross_validate(model, frame, y, cv=KFold(3))["test_score"]
        assert (scores > 0.6).all()


class TestCovariance:
    def test_robust_agrees_with_the_model_where_it_holds(self):
        frame, y = simulated_classes(20_000)
        both = [
            HeckmanClassifier(outcome=["x"], covariance=kind).fit(frame, y)
            for kind in ("model", "robust")
        ]
        errors = [np.sqrt(np.diag(one.covariance_)) for one in both]
        np.testing.assert_allclose(errors[0], errors[1], rtol=0.05)

    def test_repeated_rows_need_clusters(self):
        frame, y = simulated_classes(1000)
        rows = np.tile(np.arange(len(frame)), 3)
        model = HeckmanClassifier(outcome=["x"], covariance="robust")
        once = clone(model).fit(frame, y)
        clustered = clone(model).fit(frame.iloc[rows], y.iloc[rows], clusters=rows)
        np.testing.assert_allclose(clustered.covariance_, once.covariance_, rtol=1e-5)


def test_a_population_with_marks_is_all_rows_with_missing_labels():
    frame, y = simulated_classes(1000)
    seen = y.notna().to_numpy()
    together = HeckmanClassifier(outcome=["x"]).fit(frame, y)
    apart = HeckmanClassifier(outcome=["x"]).fit(
        frame[seen], y[seen], population=Population(frame, selected=seen)
    )
    np.testing.assert_allclose(apart.params_, together.params_, atol=1e-8)


def test_summary():
    frame, y = simulated_classes(rho=0.4)
    summary = HeckmanClassifier(outcome=["x"]).fit(frame, y).summary()
    text = str(summary)
    for word in ("probit outcome", "Outcome (probit)", "Selection (probit)", "Wald test of ρ = 0"):
        assert word in text
        assert word in summary._repr_html_()
    rho = summary["errors", "ρ"]
    assert -1 < rho.low < 0.4 < rho.high < 1
    assert summary.wald.statistic == pytest.approx(summary.likelihood_ratio.statistic, rel=0.3)


class TestErrors:
    @pytest.mark.parametrize(
        ("y", "message"),
        [
            (lambda y: y.where(y.isna(), 1.0), "a single class"),
            (lambda y: y + np.arange(len(y)) % 2, "3 values"),
            (lambda y: y.fillna(0), "HeckmanClassifier needs the rows that are not selected"),
            (lambda y: None, "HeckmanClassifier requires y"),
        ],
    )
    def test_labels_that_cannot_be_used(self, y, message):
        frame, labels = simulated_classes(500)
        with pytest.raises(InputError, match=message):
            HeckmanClassifier(outcome=["x"]).fit(frame, y(labels))

    def test_columns_that_determine_the_class(self):
        frame, y = simulated_classes(500)
        with pytest.raises(InputError, match=r"determine the class.*outcome=\["):
            HeckmanClassifier(outcome=["x"]).fit(
                frame, (frame.x > 0).where(y.notna()).astype(float)
            )
        frame["town"] = np.where(y.eq(1) & (frame.x > 1), "rich", "other")
        with pytest.raises(InputError, match=r"town = rich.*every row is of the second class"):
            HeckmanClassifier(["x", "z"], ["x", "town"]).fit(frame, y)

    def test_no_exclusion_is_warned_of(self):
        random = np.random.default_rng(0)
        x = random.uniform(-1, 1, 2000)
        y = (x + random.normal(size=2000) > 0).astype(float)
        y[0.5 * x + random.normal(size=2000) < 0] = np.nan
        with (
            pytest.warns(UserWarning, match="no column of the selection equation is missing"),
            pytest.warns(UserWarning, match="No maximum of the likelihood was found"),
        ):
            model = HeckmanClassifier().fit(x[:, None], y)
        assert np.isnan(model.summary()["outcome", "x0"].standard_error)


def test_conventions_of_scikit_learn():
    frame, y = simulated_classes(500)
    model = HeckmanClassifier(outcome=["x"])
    assert clone(model).get_params() == model.get_params()
    model.fit(frame, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(frame), model.predict_proba(frame))
    assert str(again.summary()) == str(model.summary())
