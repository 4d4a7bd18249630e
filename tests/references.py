"""Public tables whose answers are known: in the package, in ``data``, or beside the project.

``data/balance_aipw.csv`` is ``sim_data_aipw.csv`` of balance 0.23 (MIT, its licence beside it).
Tests skip where the folder beside the project is missing.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "shared" / "references"
DATA = Path(__file__).with_name("data")
SHIPPED = {"admin": "register", "jvs": "survey"}


def reference(name: str):
    """Return one of the tables, as a pandas frame."""
    import pandas as pd

    if name in SHIPPED:
        folder = files("unskew") / "examples" / "vacancies"
        return pd.read_csv(folder / f"{SHIPPED[name]}.csv.gz", dtype={"region": str})
    if (DATA / f"{name}.csv").exists():
        return pd.read_csv(DATA / f"{name}.csv")
    path = FOLDER / f"{name}.parquet"
    if not path.exists():
        pytest.skip(f"{path.name} is not there")
    return pd.read_parquet(path)
