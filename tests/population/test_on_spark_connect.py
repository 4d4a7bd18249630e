"""A population on Spark answers as one in memory does, whatever happens to its tasks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CONNECT = Path(__file__).with_name("spark_connect.py")


def test_spark_connect_in_a_process_of_its_own(spark_settings):
    pytest.importorskip("grpc", reason="Spark Connect needs grpcio: pip install 'pyspark[connect]'")
    result = subprocess.run(
        [sys.executable, "-W", "ignore", CONNECT], capture_output=True, text=True, timeout=300
    )
    assert result.stdout.splitlines()[-1:] == ["same weights, same column of weights"], (
        result.stderr[-2000:]
    )
