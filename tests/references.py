"""Public tables whose answers are known, in a folder beside the project; tests skip without it."""

from __future__ import annotations

from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "shared" / "references"


def reference(name: str):
    """Return one of the tables, as a pandas frame."""
    import pandas as pd

    path = FOLDER / f"{name}.parquet"
    if not path.exists():
        pytest.skip(f"{path.name} is not there")
    return pd.read_parquet(path)
