from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.population.frequencies import frequencies

from unskew.errors import InputError


def test_other_files_and_other_number_types_beside(tmp_path):
    pq.write_table(pa.table({"a": [1, 2]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"a": [2.0]}), tmp_path / "2.parquet")
    (tmp_path / "README.txt").write_text("hello")
    assert frequencies([[1.0], [2.0]], tmp_path).tolist() == [1, 2]
    (tmp_path / "notes.csv").write_text("x\n1\n")
    with pytest.raises(InputError, match="mixes Parquet and CSV files"):
        frequencies([[1.0], [2.0]], tmp_path)
