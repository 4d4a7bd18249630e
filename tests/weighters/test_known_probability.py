"""The contract of every weighter: scikit-learn's conventions and what DESIGN adds to them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

from unskew import ConformalRegressor, HistogramWeights, KnownProbability, Reweighted, Unweighted
from unskew.errors import InputError, ParameterError

X = pd.DataFrame({"age": [20.0, 30.0, 40.0, 50.0, 60.0, 70.0], "town": list("abcabc")})
ROWS = np.arange(12.0).reshape(6, 2)


class TestKnownProbability:
    probability = np.array([0.5, 0.25, 1.0, 0.5, 0.5, 0.5])

    def test_weights_are_inverse_probabilities(self):
        weighter = KnownProbability(self.probability).fit(ROWS, population=ROWS)
        expected = 1 / self.probability
        assert weighter.weights_ == pytest.approx(expected * 6 / expected.sum())
        assert not hasattr(weighter, "weigh")

    def test_an_array_a_column_and_a_function_agree(self):
        frame = pd.DataFrame(ROWS, columns=["a", "b"]).assign(p=self.probability)
        population = frame[["a", "b"]]
        by_array = KnownProbability(self.probability).fit(population, population=population)
        by_column = KnownProbability("p").fit(frame, population=population)
        by_function = KnownProbability(lambda X: 1 / (1 + X["a"])).fit(
            population, population=population
        )
        assert np.array_equal(by_array.weights_, by_column.weights_)
        assert np.array_equal(by_column.weigh(frame), by_column.weights_)
        assert by_function.weigh(population) == pytest.approx(by_function.weights_)
        assert by_function.weights_ == pytest.approx((1 + ROWS[:, 0]) / (1 + ROWS[:, 0]).mean())

    def test_it_needs_no_population(self):
        frame = pd.DataFrame(ROWS, columns=["a", "b"]).assign(p=self.probability, d=1.0, y=0.0)
        swapped = pd.DataFrame(ROWS, columns=[1, 0])
        expected = KnownProbability(self.probability).fit(ROWS, population=ROWS).weights_
        for X, options in ((ROWS, {}), (swapped, {}), (frame, {"y": "y", "sample_weight": "d"})):
            found = KnownProbability(self.probability).fit(X, **options)
            assert np.array_equal(found.weights_, expected)
        by_column = KnownProbability("p").fit(frame)
        assert np.array_equal(by_column.weights_, expected)
        assert np.array_equal(by_column.weigh(frame), expected)
        assert np.array_equal(Unweighted().fit(ROWS).weights_, np.ones(6))

    def test_a_population_that_is_needed_is_asked_for(self):
        for options in ({"total": "population"}, {"overlap": "warn"}):
            with pytest.raises(ParameterError, match=r"needs one for its size.*search for overlap"):
                KnownProbability(self.probability, **options).fit(ROWS)
        with pytest.raises(ParameterError, match="population is None"):
            HistogramWeights().fit(ROWS)

    def test_learners_need_none_either(self):
        y = ROWS[:, 0] ** 2
        weighter = KnownProbability(lambda X: 1 / (2 + np.asarray(X)[:, 0]))
        model = Reweighted(LinearRegression(), weighter)
        expected = model.fit(ROWS, y, population=ROWS + 1).predict(ROWS)
        assert np.array_equal(model.fit(ROWS, y).predict(ROWS), expected)
        conformal = ConformalRegressor(LinearRegression(), weighter)
        intervals = [
            conformal.fit(ROWS, y, population=one).predict_interval(ROWS, coverage=0.3)
            for one in (None, ROWS + 1)
        ]
        assert np.array_equal(*intervals)
        for learner in (Reweighted, ConformalRegressor):
            with pytest.raises(ParameterError, match="population is None"):
                learner(LinearRegression()).fit(ROWS, y)

    @pytest.mark.parametrize("bad", [0.0, -0.1, 1.5, np.nan])
    def test_probabilities_outside_their_range(self, bad):
        probability = self.probability.copy()
        probability[4] = bad
        with pytest.raises(InputError, match=r"probability must lie in \(0, 1\]; got .* at row 4"):
            KnownProbability(probability).fit(ROWS, population=ROWS)
        frame = pd.DataFrame(ROWS).assign(p=probability)
        frame.columns = ["a", "b", "p"]
        with pytest.raises(InputError, match="Column 'p'"):
            KnownProbability("p").fit(frame, population=frame[["a", "b"]])

    def test_wrong_lengths_and_columns(self):
        with pytest.raises(InputError, match=r"one entry for each of the 6 rows; got shape \(2,\)"):
            KnownProbability([0.5, 0.5]).fit(ROWS, population=ROWS)
        with pytest.raises(InputError, match="probability='p' is not a column of X"):
            KnownProbability("p").fit(X, population=X)
        with pytest.raises(InputError, match="no column besides"):
            KnownProbability("a").fit(pd.DataFrame({"a": [0.5]}), population=[[1.0]])

    def test_a_probability_column_that_the_population_has_too(self):
        frame = pd.DataFrame({"a": [1.0, 2.0], "p": [0.5, 1.0]})
        weights = KnownProbability("p").fit(frame, population=frame).weights_
        assert weights == pytest.approx([4 / 3, 2 / 3])
