"""What importing unskew costs and does not do, each in a fresh interpreter."""

from __future__ import annotations

import statistics
import subprocess
import sys


def python(code: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout.strip()


def test_importing_unskew_imports_nothing_heavy():
    code = "import sys, unskew; print(sorted(set(sys.modules) & {heavy}))"
    assert python(code.format(heavy={"numpy", "sklearn", "pyarrow", "scipy", "pandas"})) == "[]"


def test_importing_unskew_is_quick():
    code = (
        "import time, numpy; t = time.perf_counter(); import unskew; print(time.perf_counter()-t)"
    )
    assert statistics.median(float(python(code)) for _ in range(5)) < 0.1


def test_the_command_line_answers_help_without_scikit_learn():
    code = (
        "import sys; sys.argv = ['unskew', '--help']\n"
        "from unskew.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print('HEAVY', sorted({'numpy', 'sklearn', 'pyarrow'} & set(sys.modules)))"
    )
    assert python(code).endswith("HEAVY []")


def test_importing_unskew_changes_no_global_state():
    code = """
import logging, random, warnings
import numpy as np, sklearn
# What these do to the warning filters is their own affair.
import narwhals, pyarrow.dataset, scipy.spatial, sklearn.cluster, sklearn.pipeline, sklearn.tree
import sklearn.compose
def state():
    root = logging.getLogger()
    return (list(root.handlers), root.level, sklearn.get_config(), random.getstate(),
            np.random.get_state()[1].tolist(), list(warnings.filters), np.geterr())
before = state()
import unskew
for name in unskew.__all__:
    getattr(unskew, name)
print(before == state())
"""
    assert python(code) == "True"


def test_optional_libraries_are_not_imported():
    optional = {"pandas", "polars", "duckdb", "matplotlib", "typer", "pyspark"}
    optional |= {"jinja2", "vl_convert"}
    code = "import sys, unskew\nfor n in unskew.__all__: getattr(unskew, n)\n" + (
        f"print(sorted({optional} & set(sys.modules)))"
    )
    # scikit-learn and PyArrow may bring pandas in where it is installed; we ask for none of them.
    assert set(eval(python(code))) <= {"pandas"}
