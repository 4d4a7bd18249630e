from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from tests.population.frequencies import frequencies

from unskew import Population
from unskew.errors import InputError
from unskew.population.reservoir import Reservoir


def write(tmp_path, text):
    (tmp_path / "u.csv").write_text(text)
    return tmp_path / "u.csv"


def test_a_path_twice_is_read_twice(tmp_path):
    path = write(tmp_path, "a\n1\n2\n2\n")
    assert frequencies([[1.0], [2.0]], [path, path]).tolist() == [2, 4]


def test_no_header(tmp_path):
    path = write(tmp_path, "1,5\n2,6\n2,6\n")
    with pytest.raises(InputError, match="seems to have no header line"):
        frequencies(np.array([[1.0, 5.0], [2.0, 6.0]]), path)


def test_an_empty_line_in_one_column_is_a_gap(tmp_path):
    path = write(tmp_path, "a\nx\n\n\n")
    assert frequencies(pd.DataFrame({"a": ["x", None]}), path).tolist() == [1, 2]


def test_gaps_that_pandas_quotes(tmp_path):
    frame = pd.DataFrame({"a": [1.0, np.nan], "b": ["x", None]})
    frame.to_csv(tmp_path / "u.csv", index=False, quoting=1)
    assert frequencies(frame, tmp_path / "u.csv").tolist() == [1, 1]


def test_matching_leaves_the_population_as_it_was(tmp_path):
    (tmp_path / "u.csv").write_text("zip\n1\n2\n")
    population = Population(tmp_path / "u.csv")
    frequencies(pd.DataFrame({"zip": ["1", "2"]}), population)
    assert pa.types.is_float64(population.reduce(Reservoir(5)).rows.schema.types[0])
