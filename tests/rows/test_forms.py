"""Rows in the form in which the caller gave X."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from unskew import KnownProbability
from unskew.rows.tables import Form

TABLE = pa.table({"a": [1, 2, None], "b": ["x", "y", "x"]})
FRAME = pd.DataFrame({"a": [1.0, 2.0], "b": pd.Categorical(["x", "y"])})


def test_pandas_keeps_labels_and_types():
    rows = Form(FRAME).of(TABLE)
    assert rows.dtypes.equals(FRAME.dtypes)
    assert rows["a"].isna().tolist() == [False, False, True]
    numbered = Form(pd.DataFrame({0: [1.0], 1: [2.0]})).of(pa.table({"x0": [3], "x1": [4]}))
    assert numbered.columns.tolist() == [0, 1]


def test_polars_keeps_its_schema():
    frame = pl.DataFrame({"a": [1.0], "b": ["x"]}, schema={"a": pl.Float32, "b": pl.String})
    assert Form(frame).of(TABLE).schema == frame.schema


def test_arrays_stay_arrays_and_tables_stay_tables():
    assert Form(TABLE).of(TABLE) is TABLE
    rows = Form(np.zeros((2, 1), np.float32)).of(TABLE.select(["a"]))
    assert rows.dtype == np.float32
    assert np.isnan(rows[2, 0])
    assert Form(np.array([["x"]], dtype=object)).of(TABLE.select(["b"])).tolist() == [
        ["x"],
        ["y"],
        ["x"],
    ]


def test_rows_that_are_of_the_form_already_are_not_converted():
    assert Form(FRAME).of(TABLE, given=FRAME) is FRAME


@pytest.mark.parametrize("new", [pl.from_pandas(FRAME), pa.Table.from_pandas(FRAME), FRAME])
def test_a_function_sees_what_it_was_fitted_on(new):
    def probability(rows):
        return np.where(rows["b"].eq("x"), 0.25, 0.5)  # a pandas method

    weighter = KnownProbability(probability).fit(FRAME, population=FRAME)
    assert weighter.weigh(new) == pytest.approx(weighter.weights_)


@pytest.mark.parametrize("columns", [None, ["a"]])
@pytest.mark.parametrize("library", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas])
def test_columns_in_another_order_reach_the_function_under_their_names(columns, library):
    frame = pd.DataFrame({"a": [0.2, 0.5, 1.0], "b": [0.9, 0.8, 0.7]})
    weighter = KnownProbability(lambda rows: rows["a"], columns=columns)
    weighter.fit(frame, population=frame)
    assert weighter.weigh(library(frame[["b", "a"]])) == pytest.approx(weighter.weights_)
    first = KnownProbability(lambda rows: np.asarray(rows)[:, 0]).fit(frame, population=frame)
    assert first.weigh(frame[["b", "a"]]) == pytest.approx(first.weights_)
    if columns is not None:
        wider = library(frame.assign(c=1)[["c", "b", "a"]])
        assert weighter.weigh(wider) == pytest.approx(weighter.weights_)
