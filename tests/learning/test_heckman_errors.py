from __future__ import annotations

import numpy as np
import pytest
from tests.learning.heckman_data import simulated

from unskew import HeckmanRegressor, Population
from unskew.errors import InputError, ParameterError
from unskew.weighters import two_samples


class TestWarnings:
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


class TestErrors:
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

    def test_a_population_that_memory_does_not_hold_is_refused(self, monkeypatch):
        monkeypatch.setattr(two_samples, "MEMORY", 2**14)
        frame, y = simulated()
        seen = y.notna().to_numpy()
        with pytest.raises(InputError, match="2,000 of 2 columns take more than"):
            HeckmanRegressor(outcome=["x"]).fit(
                frame[seen], y[seen], population=Population(frame, selected=seen)
            )

    def test_columns_that_do_not_exist(self):
        frame, y = simulated()
        with pytest.raises(InputError, match="lacks column 'w'"):
            HeckmanRegressor(outcome=["w"]).fit(frame, y)
        with pytest.raises(ParameterError, match="each once"):
            HeckmanRegressor(outcome=["x", "x"]).fit(frame, y)


def test_a_classifier_of_selection_is_refused_by_name():
    frame, y = simulated()
    with pytest.raises(ParameterError, match="selection_model was removed"):
        HeckmanRegressor(outcome=["x"], selection_model=object()).fit(frame, y)


@pytest.mark.parametrize("parameter", ["selection", "outcome"])
def test_a_message_names_the_parameter_that_names_the_column(parameter):
    X = np.random.default_rng(0).normal(size=(50, 2))
    y = np.where(X[:, 0] > 0, X[:, 1], np.nan)
    with pytest.raises(InputError, match=f"lacks column 'nope', which {parameter} names"):
        HeckmanRegressor(**{parameter: ["nope"]}).fit(X, y)
