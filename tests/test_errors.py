from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV

from unskew import FrequencyWeights, HistogramWeights, Population, Reweighted
from unskew.errors import ColumnWarning, InputError, OverlapWarning, plain, warn_caller


def test_the_warning_points_at_the_callers_line():
    with pytest.warns(OverlapWarning) as caught:
        Reweighted(LinearRegression(), FrequencyWeights()).fit(
            [[1.0], [2.0]], [1.0, 2.0], population=[[1.0], [5.0], [5.0]]
        )
    assert caught[0].filename == __file__


def test_warnings_can_be_pickled():
    warning = pickle.loads(pickle.dumps(OverlapWarning("message", 0.3)))
    assert (str(warning), warning.share) == ("message", 0.3)


def test_text_from_the_data_cannot_command_a_terminal():
    evil = "a\x1b]52;c;ZXZpbA==\x07\u202e"
    assert str(InputError(f"Column '{evil}'")) == "Column 'a\\u001b]52;c;ZXZpbA==\\u0007\\u202e'"
    with pytest.warns(ColumnWarning) as caught:
        warn_caller(ColumnWarning(f"Column '{evil}'", [evil]))
    assert "\x1b" not in str(caught[0].message)
    assert caught[0].message.columns == [evil]
    # As JSON writes it, beyond the first 65,536 characters too.
    assert json.loads('"' + plain("é\U000e0001") + '"') == "é\U000e0001"


@pytest.mark.parametrize("n_candidates", [1, 3])
def test_a_search_warns_once_of_what_all_its_fits_have(n_candidates):
    X = np.random.default_rng(0).normal(size=(60, 1))
    population = Population(np.concatenate([X, X + 20]))
    model = Reweighted(LinearRegression(), HistogramWeights())
    search = GridSearchCV(model, {"weighter__buckets": [2, 3, 4][:n_candidates]}, cv=3)
    for _ in range(2):  # and another search warns again
        with pytest.warns(OverlapWarning) as caught:
            search.fit(X, X[:, 0], population=population)
        assert len([one for one in caught if one.category is OverlapWarning]) == 1
        assert "Said once for all fits of this search." in str(caught[0].message)
    with pytest.warns(OverlapWarning) as caught:
        model.fit(X, X[:, 0], population=population)
    assert "Said once" not in str(caught[0].message)
