from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from tests.population.frequencies import frequencies

from unskew import Population, Unweighted
from unskew.errors import InputTypeError, UnskewError


def test_masked_values_are_missing():
    masked = np.ma.array([[1.0], [2.0]], mask=[[False], [True]])
    assert frequencies(masked, masked).tolist() == [1, 1]


def test_numbers_beside_text_in_a_list():
    assert frequencies(
        [[1, "a"], [2, "b"]], pl.DataFrame({"x": [1, 2], "y": ["a", "b"]})
    ).tolist() == [1, 1]


def test_intervals_of_pandas_cut():
    frame = pd.DataFrame({"c": pd.cut([1, 2, 3, 4], [0, 2, 4])})
    assert frequencies(frame, frame).tolist() == [1, 1, 1, 1]


def test_odd_column_names():
    names = ["^a$", "b.c", 'say "hi"', "größe", "x0", "weight"]
    frame = pl.DataFrame({name: [1.0, 2.0] for name in names})
    assert frequencies(frame, frame.lazy()).tolist() == [1, 1]


def test_things_that_are_no_sample():
    for thing in ("a.csv", {"a": [1]}, pl.LazyFrame({"a": [1.0]})):
        with pytest.raises(InputTypeError, match=f"X is a {type(thing).__name__}"):
            Unweighted().fit(thing, population=[[1.0]])
    mixed = pd.DataFrame([[1.0, 2.0]], columns=["a", 1])
    with pytest.raises(InputTypeError, match="column labels"):
        Unweighted().fit(mixed, population=mixed)
    with pytest.raises(UnskewError):
        Population(pd.Series([1.0]))
    with pytest.raises(UnskewError):
        Population("")
    with pytest.raises(UnskewError):
        Population("~nobody-at-all/x.csv")
