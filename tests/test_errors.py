from __future__ import annotations

import pickle

import pytest
from sklearn.linear_model import LinearRegression

from unskew import FrequencyWeights, OverlapWarning, Reweighted


def test_the_warning_points_at_the_callers_line():
    with pytest.warns(OverlapWarning) as caught:
        Reweighted(LinearRegression(), FrequencyWeights()).fit(
            [[1.0], [2.0]], [1.0, 2.0], population=[[1.0], [5.0], [5.0]]
        )
    assert caught[0].filename == __file__


def test_warnings_can_be_pickled():
    warning = pickle.loads(pickle.dumps(OverlapWarning("message", 0.3)))
    assert (str(warning), warning.share) == ("message", 0.3)
