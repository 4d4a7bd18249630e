from __future__ import annotations

import json
import os
import shutil
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sklearn.ensemble  # noqa: F401  (loads OpenMP and BLAS, so that they can be limited)
from hypothesis import settings
from threadpoolctl import threadpool_limits

# A busy machine is no failure.
settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")

if "PYTEST_XDIST_WORKER" in os.environ:  # each process has a core, and threads would fight for it
    threadpool_limits(limits=1)

DATASETS = Path(__file__).resolve().parents[2] / "shared" / "datasets"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Keep the tests of Spark in one process, for one JVM, and so those of the browser."""
    from xdist.scheduler import LoadScopeScheduling

    class OneJVM(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            for shared in ("spark.py::", "report/test_browser.py::"):
                if shared in nodeid:
                    return shared
            return nodeid

    return OneJVM(config, log)


class Shift(NamedTuple):
    """A population, a sample selected from it, and the truth about the selection."""

    population: np.ndarray
    sample: np.ndarray
    labels: np.ndarray
    probabilities: np.ndarray


@pytest.fixture(scope="session")
def shift() -> Shift:
    random = np.random.default_rng(0)
    population = random.normal(size=(3000, 3))
    probabilities = 1 / (1 + np.exp(-1.5 * population[:, 0]))
    selected = random.uniform(size=3000) < probabilities
    sample = population[selected]
    labels = sample[:, 0] ** 2 + sample[:, 1] + 0.1 * random.normal(size=len(sample))
    return Shift(population, sample, labels, probabilities[selected])


@pytest.fixture(scope="session")
def mixed() -> pd.DataFrame:
    """A table of every kind of column, with gaps."""
    random = np.random.default_rng(1)
    n_rows = 70_000
    moments = pd.Timestamp("2021-03-01") + pd.to_timedelta(random.integers(0, 9000, n_rows), "h")
    town = random.choice(np.array(["Ulm", "Bonn", "Kiel", None], dtype=object), n_rows)
    return pd.DataFrame(
        {
            "income": np.where(
                random.uniform(size=n_rows) < 0.1, np.nan, random.normal(size=n_rows)
            ),
            "rooms": random.integers(1, 6, n_rows),
            "town": town,
            "grade": pd.Categorical(random.choice(["a", "b", "c"], n_rows)),
            "owner": random.uniform(size=n_rows) < 0.5,
            "moved": moments,
        }
    )


LEAN_EXECUTORS = """
import sys

class Nothing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"unskew", "sklearn", "scipy", "narwhals", "threadpoolctl"}:
            raise ModuleNotFoundError(f"No module named '{name}'", name=name)

sys.meta_path.insert(0, Nothing())
"""


@pytest.fixture(scope="session")
def spark_settings(tmp_path_factory) -> dict[str, str]:
    """Settings of small Spark sessions whose executors have no unskew, scikit-learn or SciPy."""
    pytest.importorskip("pyspark", reason="Spark is not installed: pip install 'unskew[spark]'")
    if not (shutil.which("java") or os.environ.get("JAVA_HOME")):
        pytest.skip("Spark needs Java, which is not here")
    folder = tmp_path_factory.mktemp("executors")
    (folder / "sitecustomize.py").write_text(LEAN_EXECUTORS)
    return {
        "spark.executorEnv.PYTHONPATH": str(folder),
        "spark.driver.host": "localhost",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "OFF",
        "spark.sql.shuffle.partitions": "3",
        "spark.sql.session.timeZone": "Asia/Tokyo",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }


@pytest.fixture(scope="session")
def spark(spark_settings):
    """A Spark session on two cores, in which a task may fail three times."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[2, 4]")
    for name, value in spark_settings.items():
        builder = builder.config(name, value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session = builder.getOrCreate()
    yield session
    session.stop()


def _write_set(folder: Path, name: str, columns: dict, **description) -> None:
    folder.mkdir(exist_ok=True)
    pq.write_table(pa.table(columns), folder / f"{name}.parquet")
    index = folder / "datasets.json"
    entries = json.loads(index.read_text())["datasets"] if index.exists() else []
    index.write_text(json.dumps({"datasets": [*entries, {"name": name, **description}]}))


def _made_up(n_rows: int = 160, seed: int = 0) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    a, b = random.normal(size=(2, n_rows))
    return {"a": a, "b": b, "y": a**2 + b + 0.1 * random.normal(size=n_rows)}


@pytest.fixture
def write_set() -> Callable[..., None]:
    """A function that adds a set to a folder in the format of the paper's data."""
    return _write_set


@pytest.fixture
def made_up() -> Callable[..., dict[str, np.ndarray]]:
    """A function that makes a regression set; its last column is the target."""
    return _made_up


@pytest.fixture
def data_folder(tmp_path) -> Path:
    """A folder of data sets with a made-up one, ``toy``."""
    _write_set(tmp_path / "data", "toy", _made_up())
    return tmp_path / "data"
