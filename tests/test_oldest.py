"""The pins of ``make test-oldest`` are the floors of pyproject.toml, all of them."""

from __future__ import annotations

import importlib.util
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]
TOOL = ROOT / "tools" / "oldest.py"

pytestmark = pytest.mark.skipif(not TOOL.exists(), reason="runs in the repository only")


@pytest.fixture(scope="module")
def oldest() -> ModuleType:
    spec = importlib.util.spec_from_file_location("oldest", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_pin_for_each_floor_also_of_extras_within_extras(oldest):
    project = {
        "name": "unskew",
        "dependencies": ["numpy>=2.0", "scikit-learn>=1.6"],
        "optional-dependencies": {
            "spark": ["pyspark[connect]>=4.1"],
            "all": ["unskew[spark]", "dask>=2025.1"],
            "other": ["mypy>=1"],
        },
    }
    assert list(oldest.floors(project, ["all"])) == [
        "numpy==2.0",
        "scikit-learn==1.6",
        "pyspark[connect]==4.1",
        "dask==2025.1",
    ]


@pytest.mark.parametrize("requirement", ["numpy", "numpy<3", "numpy>=2,<3", "unskew"])
def test_what_has_no_single_floor_is_refused(oldest, requirement):
    project = {"name": "unskew", "dependencies": [requirement]}
    with pytest.raises(SystemExit, match=f"'{requirement}' in pyproject.toml"):
        list(oldest.floors(project, []))


def test_the_extra_test_has_every_dependency_of_users(oldest):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    tested = set(oldest.floors(project, ["test"]))
    for extra in set(project["optional-dependencies"]) - {"dev", "docs"}:
        assert set(oldest.floors(project, [extra])) <= tested
