"""Public tables whose answers are known: in the package, or in a folder beside the project.

Tests skip where the folder is missing.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "shared" / "references"
SHIPPED = {"admin": "register", "jvs": "survey"}


def reference(name: str):
    """Return one of the tables, as a pandas frame."""
    import pandas as pd

    if name in SHIPPED:
        folder = files("unskew") / "examples" / "vacancies"
        return pd.read_csv(folder / f"{SHIPPED[name]}.csv.gz", dtype={"region": str})
    path = FOLDER / f"{name}.parquet"
    if not path.exists():
        pytest.skip(f"{path.name} is not there")
    return pd.read_parquet(path)
