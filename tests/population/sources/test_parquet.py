from __future__ import annotations

import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from tests.population.frequencies import frequencies

from unskew.errors import InputError


def test_a_file_without_a_column_is_named(tmp_path):
    sample = pd.DataFrame({"a": ["x", "y"], "b": [1.0, 2.0]})
    pq.write_table(pa.table({"a": ["x"], "b": [1.0]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"a": ["x"]}), tmp_path / "2.parquet")
    with pytest.raises(InputError, match="2.parquet' lacks column 'b'"):
        frequencies(sample, tmp_path)
    with pytest.raises(InputError, match="2.parquet' lacks column 'b'"):
        frequencies(sample, ds.dataset(tmp_path))


def test_a_dataset_with_a_filter_and_a_dataset_of_csv(tmp_path):
    pq.write_table(pa.table({"a": [1.0, 2.0, 2.0, 3.0]}), tmp_path / "1.parquet")
    filtered = ds.dataset(tmp_path / "1.parquet").filter(ds.field("a") < 3)
    assert frequencies([[1.0], [2.0]], filtered).tolist() == [1, 2]
    (tmp_path / "u.csv").write_text("a\n1\n2\n2\n")
    assert frequencies([[1.0], [2.0]], ds.dataset(tmp_path / "u.csv", format="csv")).tolist() == [
        1,
        2,
    ]
