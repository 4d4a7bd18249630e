from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.linear_model import LinearRegression

from unskew import CalibrationWeights, Reweighted, split_labelled
from unskew.errors import InputError

FRAME = pd.DataFrame({"age": [20.0, 30.0, 40.0, 50.0], "town": ["a", "b", "a", "b"]})


@pytest.mark.parametrize(
    ("X", "y"),
    [
        (FRAME, pd.Series([1.0, np.nan, 3.0, 4.0])),
        (FRAME, pd.Series([1, None, 3, 4], dtype="Int64")),
        (pl.from_pandas(FRAME), pl.Series([1, None, 3, 4])),
        (pl.from_pandas(FRAME), pl.Series([1.0, np.nan, 3.0, 4.0])),
        (pa.Table.from_pandas(FRAME), pa.chunked_array([[1, None], [3, 4]])),
        (FRAME[["age"]].to_numpy(), np.array([1.0, np.nan, 3.0, 4.0])),
        (FRAME[["age"]].to_numpy(), [1, None, 3, 4]),
        (FRAME.to_numpy(), np.ma.array([1, 2, 3, 4], mask=[False, True, False, False])),
    ],
)
def test_rows_with_labels_keep_their_form(X, y):
    rows, labels, population = split_labelled(X, y)
    assert type(rows) is type(X)
    assert len(rows) == len(labels) == 3
    assert [float(one) for one in np.asarray(labels)] == [1.0, 3.0, 4.0]
    assert population.size == 4
    assert population.n_selected == 3
    ages = rows["age"] if hasattr(rows, "columns") else rows[:, 0]
    assert [float(str(age)) for age in ages] == [20.0, 40.0, 50.0]


def test_text_labels():
    _, labels, _ = split_labelled(FRAME, ["yes", None, "no", "yes"])
    assert list(labels) == ["yes", "no", "yes"]


def test_weights_make_the_labelled_rows_like_all_rows():
    random = np.random.default_rng(0)
    X = pd.DataFrame({"age": random.normal(size=3000)})
    seen = random.uniform(size=3000) < 1 / (1 + np.exp(-X.age))
    X_s, y_s, population = split_labelled(X, (X.age**2).where(seen))
    model = Reweighted(LinearRegression(), CalibrationWeights())
    model.fit(X_s, y_s, population=population)
    assert np.average(X_s.age, weights=model.weights_) == pytest.approx(X.age.mean(), abs=1e-3)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([1, 2, 3, 4], "no population beside the sample"),
        ([None] * 4, "missing for every row"),
        ([1, None], "2 labels for the 4 rows"),
        (None, "y is None"),
        ([[1, 2]] * 4, "one label per row"),
    ],
)
def test_labels_that_cannot_be_split(y, message):
    with pytest.raises(InputError, match=message):
        split_labelled(FRAME, y)


@pytest.mark.parametrize("y", [[1.0, np.nan, 3.0, 4.0], ["a", None, "b", "b"]])
def test_errors_about_missing_labels_name_both_ways(y):
    with pytest.raises(InputError, match="split_labelled") as raised:
        CalibrationWeights().fit(FRAME, y, population=FRAME)
    assert "HeckmanRegressor" in str(raised.value)
