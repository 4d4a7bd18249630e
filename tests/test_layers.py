"""Imports go one way through the layers, and the check finds each way to go against them."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import pytest

TOOL = Path(__file__).resolve().parents[1] / "tools" / "check_layers.py"

pytestmark = pytest.mark.skipif(not TOOL.exists(), reason="runs in the repository only")


@pytest.fixture(scope="module")
def check_layers() -> ModuleType:
    spec = importlib.util.spec_from_file_location("check_layers", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def write(tmp_path) -> Callable[[str, str], None]:
    """A function that writes a file of a tree."""

    def write_file(path: str, content: str) -> None:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(content)

    return write_file


@pytest.fixture
def found(check_layers, write, tmp_path) -> Callable[..., list[str]]:
    """A function that returns the violations of a tree with a file in it."""
    tree = "from unskew.weighters.tree import TreeWeights as TreeWeights\n"

    def check(path: str, code: str, front: str = "") -> list[str]:
        write("src/unskew/__init__.pyi", tree + front)
        write(path, code)
        return check_layers.violations(tmp_path)

    return check


def test_the_repository_keeps_its_layers(check_layers, capsys):
    assert check_layers.main() == 0, capsys.readouterr().out


@pytest.mark.parametrize(
    "code",
    [
        "import unskew.weighters.tree",
        "import os, unskew.weighters as w",
        "from unskew.weighters.tree import TreeWeights",
        "from unskew import weighters",
        "from unskew import TreeWeights",
        "from ..weighters import tree",
        "from .. import weighters",
        "def f():\n    from unskew.weighters import tree",
        "if TYPE_CHECKING:\n    from unskew.weighters.base import Weighter",
        "import_module('unskew.weighters')",
        "importlib.import_module('unskew.weighters.tree')",
        "__import__('unskew.weighters.tree')",
        "_HOME = {'Tree': 'unskew.weighters.tree'}",
        "TRUSTED = ['unskew.weighters.tree.TreeWeights']",
        "import_module(f'unskew.weighters.{name}')",
    ],
)
def test_every_way_to_import_a_higher_layer_is_found(found, code):
    (message,) = found("src/unskew/numerics/bad.py", code)
    assert message.startswith("src/unskew/numerics/bad.py:")
    assert message.endswith("numerics must not import weighters")


@pytest.mark.parametrize(
    "code",
    [
        "from unskew.numerics import kernels",
        "from . import kernels",
        "from unskew.errors import InputError",
        "import unskew",
        "from unskew import __version__",
        '"""unskew.weighters"""',
        "class A:\n    b: int\n    'unskew.weighters.tree'",
        "raise ValueError('Use unskew.weighters.tree instead.')",
        "raise ValueError(f'unskew.{name} does not exist.')",
        "NAME = 'unskew.json'",
        "run([python, '-m', 'unskew.cli', 'weigh'])",
    ],
)
def test_what_is_no_import_of_a_higher_layer_passes(found, code):
    assert found("src/unskew/numerics/good.py", code) == []


def test_a_layer_that_is_a_variable_is_refused(found):
    (message,) = found("src/unskew/weighters/bad.py", "import_module(f'unskew.{name}')")
    assert message.endswith("the layer of an import must not be a variable")


def test_a_folder_that_is_in_no_layer_is_refused(found):
    (message,) = found("src/unskew/attic/old.py", "")
    assert "'attic' is in no layer" in message


ORDER = ["numerics", "population", "overlap", "weighters", "learning", "estimation", "theory",
         "diagnostics", "report"]  # fmt: skip


@pytest.mark.parametrize(("lower", "upper"), list(pairwise(ORDER)))
def test_neighbouring_layers(found, lower, upper):
    assert found(f"src/unskew/{upper}/good.py", f"import unskew.{lower}.x") == []
    (message,) = found(f"src/unskew/{lower}/bad.py", f"import unskew.{upper}.x")
    assert message.endswith(f"{lower} must not import {upper}")


@pytest.mark.parametrize("folder", ["src/unskew/paper", "src/unskew/cli", "benchmarks"])
def test_some_may_use_only_the_public_names(found, folder):
    public = "from unskew import TreeWeights, theory\nfrom unskew.errors import InputError\n"
    assert found(f"{folder}/one.py", public + "import unskew.theory, unskew.paper.x") == []
    code = "from unskew.weighters.tree import TreeWeights\nimport_module('unskew.theory.bounds')"
    first, second = found(f"{folder}/one.py", code)
    who = folder.split("/")[-1]
    assert first.endswith(f"{who} may use only public names, not unskew.weighters.tree.TreeWeights")
    assert second.endswith(f"{who} may use only public names, not unskew.theory.bounds")


@pytest.mark.parametrize(
    "code",
    [
        "from unskew.numerics.kernels import _sum",
        "from unskew.numerics import _kernels",
        "TRUSTED = ['unskew.numerics.kernels._sum']",
        "def f(x):\n    return x._sum",
        "def f(x):\n    return getattr(x, '_sum', None)",
    ],
)
def test_a_private_name_of_another_layer_is_refused(found, write, code):
    write("src/unskew/numerics/kernels.py", "def _sum(): ...")
    write("src/unskew/numerics/other.py", "from unskew.numerics.kernels import _sum")
    (message,) = found("src/unskew/weighters/bad.py", code)
    name = "_kernels" if "_kernels" in code else "_sum"
    assert message.endswith(f": weighters must not use {name}, private elsewhere")


@pytest.mark.parametrize(
    "code",
    [
        "from unskew._compat import _safe_indexing",
        "def f(x):\n    return x._fields",  # of no layer of ours
        "def f(self):\n    return self._sum",
        "def _sum(): ...\ndef f(x):\n    return x._sum",
        "def f(x):\n    return x.__class__",
    ],
)
def test_private_names_of_ones_own_or_of_others_pass(found, write, code):
    write("src/unskew/numerics/kernels.py", "def _sum(): ...\ndef f():\n    _fields = 1")
    assert found("src/unskew/weighters/good.py", code) == []


@pytest.mark.parametrize(
    "late",
    [
        "def f():\n    from unskew.weighters.two import g",
        "if TYPE_CHECKING:\n    from unskew.weighters.two import G",
        "def f():\n    import unskew.weighters.two",
        "def f():\n    from unskew.weighters import two",
        "def f():\n    from unskew import Two",
    ],
)
def test_a_late_import_that_closes_a_cycle_is_refused(found, write, late):
    write("src/unskew/weighters/two.py", "from unskew.weighters.three import h")
    write("src/unskew/weighters/three.py", "from unskew.weighters.one import k")
    front = "from unskew.weighters.two import Two as Two"
    (message,) = found("src/unskew/weighters/one.py", late, front=front)
    assert message.endswith("unskew.weighters.one imports unskew.weighters.two late: a cycle")
    write("src/unskew/weighters/three.py", "")
    assert found("src/unskew/weighters/one.py", late, front=front) == []
