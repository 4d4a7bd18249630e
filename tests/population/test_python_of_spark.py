"""Executors that run another Python than the driver: the error names the setting to change."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from unskew import Population, Unweighted
from unskew.errors import InputError
from unskew.population.summaries import TotalWeight

pytestmark = [
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture
def bare(tmp_path) -> Path:
    """A Python without packages."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "bare"], check=True)
    return tmp_path / "bare"


def message(spark, python, monkeypatch) -> str:
    """Return what a fit says in a session whose executors run this Python."""
    # What a session takes from PYSPARK_PYTHON when it starts.
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(python))
    with pytest.raises(InputError) as caught:
        Unweighted().fit(pd.DataFrame({"id": [1]}), population=spark.range(9))
    assert "export PYSPARK_PYTHON=$(which python)" in str(caught.value)
    assert "spark.pyspark.python" in str(caught.value)
    return str(caught.value)


def test_one_without_pyarrow(spark, bare, monkeypatch):
    reason = "run another Python than the driver: No module named 'pyarrow'"
    assert reason in message(spark, bare / "bin" / "python", monkeypatch)
    monkeypatch.undo()
    assert Population(spark.range(9)).reduce(TotalWeight()).rows == 9


NEWER = (  # Python runs such a line of a .pth file when it starts
    "import sys, collections; sys.version_info = "
    "collections.namedtuple('version', 'major minor micro')(3, 99, 0)\n"
)


def test_one_of_another_version(spark, bare, monkeypatch):
    (packages,) = bare.glob("lib/python*/site-packages")
    (packages / "newer.pth").write_text(NEWER)
    found = message(spark, bare / "bin" / "python", monkeypatch)
    assert "different version: 3.99" in found
    assert "They need Python {}.{}, as here".format(*sys.version_info[:2]) in found


def test_one_that_does_not_exist(spark, tmp_path, monkeypatch):
    nowhere = tmp_path / "nowhere"
    assert f'Cannot run program "{nowhere}"' in message(spark, nowhere, monkeypatch)


def test_one_that_does_not_start(spark, tmp_path, monkeypatch):
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho 'this one is broken' >&2\nexit 1\n")
    broken.chmod(0o755)
    assert "the driver: this one is broken. They need" in message(spark, broken, monkeypatch)
