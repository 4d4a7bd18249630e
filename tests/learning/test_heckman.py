from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.stats import norm
from sklearn.base import clone
from sklearn.model_selection import cross_validate
from tests.references import reference

from unskew import HeckmanRegressor, InputError, ParameterError, Population, UnseenValueWarning

SELECTION = ["nwifeinc", "educ", "exper", "exper2", "age", "kids5", "kids618"]
OUTCOME = ["educ", "exper", "exper2"]

# Wooldridge, example 17.5, by R's sampleSelection 1.2-12: estimate and standard error of each.
TWO_STEP = {
    ("selection", "(constant)"): (0.270076769896, 0.508593035079),
    ("selection", "nwifeinc"): (-0.012023738934, 0.004839838277),
    ("selection", "educ"): (0.130904731621, 0.025254195673),
    ("selection", "exper"): (0.123347593071, 0.018716401497),
    ("selection", "exper2"): (-0.001887080182, 0.000599986368),
    ("selection", "age"): (-0.052852671447, 0.008477239639),
    ("selection", "kids5"): (-0.868328502648, 0.118522310791),
    ("selection", "kids618"): (0.036004957259, 0.043476787535),
    ("outcome", "(constant)"): (-0.578103187638, 0.305006200510),
    ("outcome", "educ"): (0.109065520186, 0.015522954573),
    ("outcome", "exper"): (0.043887339479, 0.016261056936),
    ("outcome", "exper2"): (-0.000859114222, 0.000438916125),
    ("errors", "λ"): (0.032261864122, 0.133624642387),
}
ML = {
    ("selection", "(constant)"): (0.266449072943, 0.508957801165),
    ("selection", "nwifeinc"): (-0.012132144564, 0.004876704584),
    ("selection", "educ"): (0.131341449435, 0.025382305799),
    ("selection", "exper"): (0.123281837736, 0.018724193854),
    ("selection", "exper2"): (-0.001886252575, 0.000600387906),
    ("selection", "age"): (-0.052828685708, 0.008479178401),
    ("selection", "kids5"): (-0.867398738663, 0.118650947117),
    ("selection", "kids618"): (0.035872350927, 0.043475299326),
    ("outcome", "(constant)"): (-0.552696290787, 0.260378516220),
    ("outcome", "educ"): (0.108350190705, 0.014860705775),
    ("outcome", "exper"): (0.042836820624, 0.014878540971),
    ("outcome", "exper2"): (-0.000837425863, 0.000417467743),
    ("errors", "σ"): (0.663397571720, 0.022707498339),
    ("errors", "ρ"): (0.026606968508, 0.147077939915),
}


@pytest.fixture(scope="module")
def mroz():
    data = reference("mroz87")
    works = data.lfp == 1
    log_wage = np.log(data.wage.where(works))  # missing for those who do not work
    kids = (data.kids5 + data.kids618 > 0).astype(float)
    return data.assign(exper2=data.exper**2, age2=data.age**2, kids=kids, log_wage=log_wage)


def fitted(data, selection, outcome, y="log_wage", **options):
    return HeckmanRegressor(selection, outcome, **options).fit(data, data[y])


def check(summary, expected, rel):
    for place, (estimate, error) in expected.items():
        row = summary[place]
        assert row.estimate == pytest.approx(estimate, rel=rel), place
        assert row.standard_error == pytest.approx(error, rel=rel), place


class TestPrintedResults:
    def test_wooldridge_two_step(self, mroz):
        model = fitted(mroz, SELECTION, OUTCOME)
        check(model.summary(), TWO_STEP, 5e-7)
        assert model.sigma_ == pytest.approx(0.663628748401, rel=5e-7)
        assert model.rho_ == pytest.approx(0.048614325705, rel=5e-7)
        assert model.log_likelihood_ == pytest.approx(-401.302193175, rel=1e-9)

    def test_wooldridge_maximum_likelihood(self, mroz):
        model = fitted(mroz, SELECTION, OUTCOME, method="ml")
        check(model.summary(), ML, 5e-7)
        assert model.log_likelihood_ == pytest.approx(-832.885080764, rel=1e-11)
        assert model.certificate_.converged
        assert model.certificate_.gradient < 1e-8

    def test_greene_two_step(self, mroz):
        """Greene (2003), example 22.8, as sampleSelection's tests print it."""
        works = mroz.assign(wage=mroz.wage.where(mroz.lfp == 1))
        selection = ["age", "age2", "faminc", "kids", "educ"]
        outcome = ["exper", "exper2", "educ", "city"]
        model = fitted(works, selection, outcome, y="wage")
        printed = {
            ("outcome", "(constant)"): (-0.9712003, 2.0593505),
            ("outcome", "exper"): (0.0210610, 0.0624646),
            ("outcome", "educ"): (0.4170174, 0.1002497),
            ("outcome", "city"): (0.4438379, 0.3158984),
            ("errors", "λ"): (-1.097619, 1.26599),
        }
        check(model.summary(), printed, 4e-6)
        check(model.summary(), {("selection", "kids"): (-0.4490, 0.1309)}, 4e-4)
        assert model.sigma_ == pytest.approx(3.200, abs=5e-4)
        assert model.rho_ == pytest.approx(-0.343, abs=5e-4)
        # Its maximum likelihood by BHHH stopped at −1581.259 without reaching the maximum.
        best = fitted(works, selection, outcome, y="wage", method="ml")
        assert -1581.259 < best.log_likelihood_ < -1581.25
        assert best.coef_[2] == pytest.approx(0.4562471, rel=2e-3)

    @pytest.mark.parametrize(
        "selection", [["age", "educ", "kids", "mtr"], ["age", "kids5", "educ"]]
    )
    def test_other_specifications_by_another_solver(self, mroz, selection):
        """Against SciPy on the likelihood in σ and ρ themselves, written out a second time."""
        z, x = (sm - sm.mean() for sm in (mroz[selection], mroz[["educ", "exper"]]))
        z, x = z / z.std(), x / x.std()
        data = pd.concat([z.add_prefix("z_"), x.add_prefix("x_")], axis=1)
        model = HeckmanRegressor(list(data.columns[: z.shape[1]]), list(data.columns[-2:]))
        model = model.set_params(method="ml").fit(data, mroz.log_wage)
        seen = mroz.log_wage.notna().to_numpy()
        k = z.shape[1] + 1

        def loss(p):
            sigma, rho = p[-2:]
            if sigma <= 0 or abs(rho) >= 1:
                return np.inf
            index = p[0] + z.to_numpy() @ p[1:k]
            error = (mroz.log_wage - p[k] - x.to_numpy() @ p[k + 1 : -2])[seen] / sigma
            inner = (index[seen] + rho * error) / np.sqrt(1 - rho**2)
            rest = norm.logcdf(-index[~seen]).sum()
            return -(rest + (norm.logcdf(inner) + norm.logpdf(error) - np.log(sigma)).sum())

        start = np.append(model.params_[:-2] * 0.9, [0.7, -0.3])
        found = minimize(loss, start, method="BFGS", options={"gtol": 1e-6})
        np.testing.assert_allclose(found.x[:-2], model.params_[:-2], atol=2e-4)
        np.testing.assert_allclose(found.x[-2:], [model.sigma_, model.rho_], atol=2e-4)
        assert model.log_likelihood_ == pytest.approx(-found.fun, abs=1e-6)


def simulated(n=2000, rho=0.7, seed=0):
    random = np.random.default_rng(seed)
    frame = pd.DataFrame(random.normal(size=(n, 2)), columns=["x", "z"])
    errors = random.multivariate_normal([0, 0], [[1, rho], [rho, 1]], n)
    seen = frame.x + frame.z + errors[:, 0] > 0
    return frame, (1 + 2 * frame.x + errors[:, 1]).where(seen)


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


class TestWarningsAndErrors:
    def test_no_exclusion_is_warned_of(self):
        random = np.random.default_rng(0)
        x = random.uniform(-1, 1, 2000)
        y = x + random.normal(size=2000)
        y[0.5 * x + random.normal(size=2000) < 0] = np.nan
        with pytest.warns(UserWarning, match="no column of the selection equation is missing"):
            model = HeckmanRegressor().fit(x[:, None], y)
        assert model.condition_number_ > 20

    def test_dependent_columns_are_left_out_with_a_warning(self):
        frame, y = simulated()
        frame = frame.assign(twice=2 * frame.x, one=1.0)
        expected = HeckmanRegressor(["x", "z"], ["x"]).fit(frame, y)
        with pytest.warns(UserWarning, match="Left out") as caught:
            model = HeckmanRegressor(["x", "twice", "z", "one"], ["x", "twice"]).fit(frame, y)
        assert "'twice', 'one'" in str(caught[0].message)
        np.testing.assert_allclose(model.params_, expected.params_, atol=1e-8)
        np.testing.assert_allclose(model.predict(frame), expected.predict(frame))

    def test_a_likelihood_without_maximum_is_warned_of(self):
        random = np.random.default_rng(1)
        X = random.normal(size=(200, 2))
        index = X[:, 1] + random.normal(size=200)
        y = np.where(index > 0, index - X[:, 1], np.nan)  # ρ is one
        with pytest.warns(UserWarning, match=r"No maximum.*ρ goes to \+1"):
            model = HeckmanRegressor(outcome=[0], method="ml").fit(X, y)
        assert np.isnan(model.summary()["outcome", "x0"].standard_error)

    def test_an_outcome_without_error_has_no_likelihood(self):
        frame, y = simulated()
        with pytest.raises(InputError, match="without any error"):
            HeckmanRegressor(outcome=["x"], method="ml").fit(frame, frame.x.where(y.notna()))

    def test_a_category_without_selected_rows_is_named(self):
        frame, y = simulated()
        frame["town"] = np.where(y.isna() & (frame.x < -1), "far", "near")
        with pytest.raises(InputError, match="town = near"):
            HeckmanRegressor(outcome=["x"]).fit(frame, y)

    def test_columns_that_determine_selection(self):
        frame, y = simulated()
        with pytest.raises(InputError, match="determine which rows are selected"):
            HeckmanRegressor(["x"], ["z"]).fit(frame, y.fillna(0).where(frame.x > 0))

    @pytest.mark.parametrize(
        ("y", "message"),
        [
            (lambda y: y.fillna(0), "rows that are not selected too"),
            (lambda y: y * np.nan, "missing for every row"),
            (lambda y: y[:-1], "1999 labels for the 2000 rows"),
            (lambda y: y.map("{}".format).where(y.notna()).replace({"0": 1}) + "a", "numbers"),
            (lambda y: y.where(y.isna(), np.inf), "infinity"),
            (lambda y: None, "y is None"),
        ],
    )
    def test_labels_that_cannot_be_used(self, y, message):
        frame, labels = simulated()
        with pytest.raises(InputError, match=message):
            HeckmanRegressor(outcome=["x"]).fit(frame, y(labels))

    def test_populations_that_cannot_be_used(self):
        frame, y = simulated()
        seen = y.notna().to_numpy()
        model = HeckmanRegressor(outcome=["x"])
        marked = Population(frame, selected=seen)
        with pytest.raises(ParameterError, match="selected="):
            model.fit(frame[seen], y[seen], population=frame)
        with pytest.raises(InputError, match="the selected rows alone"):
            model.fit(frame, y, population=marked)
        with pytest.raises(InputError, match="they must be the same rows"):
            model.fit(frame[seen][:-1], y[seen][:-1], population=marked)
        with pytest.raises(ParameterError, match="clusters"):
            model.fit(frame[seen], y[seen], population=marked, clusters=np.arange(seen.sum()))
        with pytest.raises(ParameterError, match="one side alone"):
            model.fit(frame[seen], y[seen], population=marked, sample_weight=np.ones(seen.sum()))

    def test_columns_that_do_not_exist(self):
        frame, y = simulated()
        with pytest.raises(InputError, match="lacks column 'w'"):
            HeckmanRegressor(outcome=["w"]).fit(frame, y)
        with pytest.raises(ParameterError, match="each once"):
            HeckmanRegressor(outcome=["x", "x"]).fit(frame, y)


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
