"""The search for overlap finds the same, however its rows are drawn."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from unskew import CalibrationWeights, Population
from unskew.errors import OverlapWarning
from unskew.population.reservoir import Reservoir

RANDOM = np.random.default_rng(3)
TABLE = pd.DataFrame(
    {
        "age": RANDOM.normal(40, 10, 3000),
        "town": pd.Categorical(RANDOM.choice(list("abc"), 3000)),
        "code": RANDOM.choice(["x", None], 3000),
    }
)
CHUNKS = [TABLE[start : start + 700] for start in range(0, 3000, 700)]


@pytest.mark.parametrize("size", [10, 1000, 5000])
@pytest.mark.parametrize("kind", [lambda: TABLE, lambda: pa.Table.from_pandas(TABLE)])
def test_rows_drawn_without_a_pass_are_those_of_a_pass(size, kind):
    weight = RANDOM.integers(0, 3, 3000).astype(float)
    marks = RANDOM.uniform(size=3000) < 0.1
    drawn = Reservoir(size, seed=7)
    assert Population(kind(), weight=weight, selected=marks).draw(drawn)
    passed = Population(CHUNKS, weight=weight, selected=marks)
    assert not passed.draw(Reservoir(size, seed=7))
    expected = passed.reduce(Reservoir(size, seed=7))
    assert drawn.rows.to_pydict() == expected.rows.to_pydict()
    for name in ("weight", "selected", "numbers"):
        assert np.array_equal(getattr(drawn, name), getattr(expected, name))


def test_rows_of_an_array_are_drawn_in_its_own_columns():
    array = RANDOM.normal(size=(500, 3))
    drawn, expected = Reservoir(50), Reservoir(50)
    assert Population(array, columns=[2, 0]).draw(drawn)
    Population([array], columns=[2, 0]).reduce(expected)
    assert drawn.rows.equals(expected.rows)


def test_weights_by_name_are_read_in_a_pass():
    assert not Population(TABLE, weight="age").draw(Reservoir(10))


def test_rows_drawn_at_once_and_in_a_pass_find_the_same():
    sample = RANDOM.normal(size=(300, 2))
    sample = sample[sample[:, 0] < 0.5]
    people = RANDOM.normal(size=(5000, 2))
    with pytest.warns(OverlapWarning) as at_once:
        first = CalibrationWeights().fit(sample, population=people)
    with pytest.warns(OverlapWarning) as later:
        second = CalibrationWeights().fit(sample, population=[people[:2000], people[2000:]])
    assert first.overlap_ == second.overlap_
    assert [str(one.message) for one in at_once] == [str(one.message) for one in later]
    assert first.weights_ == pytest.approx(second.weights_)
