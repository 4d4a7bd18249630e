from __future__ import annotations

import json
import pickle

import pytest
from sklearn.linear_model import LinearRegression

from unskew import ColumnWarning, FrequencyWeights, InputError, OverlapWarning, Reweighted
from unskew.errors import plain, warn_caller


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
