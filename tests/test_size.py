"""The package stays within the limits of ``tools/size.py``, which counts what it should."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

TOOL = Path(__file__).resolve().parents[1] / "tools" / "size.py"

pytestmark = pytest.mark.skipif(not TOOL.exists(), reason="runs in the repository only")


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("size", TOOL)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def package(tool):
    return tool.measure(tool.PACKAGE, tool.modules(tool.PACKAGE, paper=False))


def test_the_package_does_not_grow(tool, package):
    assert package.code_lines <= tool.MAX_CODE_LINES
    assert package.files <= tool.MAX_FILES
    assert package.classes.total() <= tool.MAX_CLASSES


def test_the_benchmarks_do_not_grow(tool):
    assert tool.benchmark_lines() <= tool.MAX_BENCHMARK_LINES


def test_no_further_class_name_exists_twice(tool, package):
    paper = tool.measure(tool.PACKAGE, tool.modules(tool.PACKAGE, paper=True))
    shared = set(package.classes) & set(paper.classes)
    assert sorted({*package.twice, *paper.twice, *shared} - tool.STILL_TWICE) == []


def test_no_file_and_no_function_is_too_long(tool, package):
    paper = tool.measure(tool.PACKAGE, tool.modules(tool.PACKAGE, paper=True))
    assert package.long + paper.long == []


def test_the_algebra_is_explained(tool, tmp_path):
    for room in tool.EXPLAINED:
        assert tool.comment_share(tool.PACKAGE / room) >= tool.MIN_COMMENTS
    (tmp_path / "one.py").write_text('"""No code. # No comment."""\n# why\nx = 1  # so\ny = "#"\n')
    assert tool.comment_share(tmp_path) == 1.0


def test_what_counts_as_code(tool, tmp_path):
    text = '"""Title.\n\nMore.\n"""\n# why\n\nx = (\n    1\n)\ny = "a\\nb"  # so\n'
    assert tool.code_lines(text) == 4
    (tmp_path / "paper").mkdir()
    (tmp_path / "paper" / "one.py").write_text("class A:\n    pass\n")
    for name in ("one", "two"):
        (tmp_path / f"{name}.py").write_text('class A:\n    """Say."""\n')
    found = tool.measure(tmp_path, tool.modules(tmp_path, paper=False))
    assert (found.code_lines, found.files, found.twice) == (2, 2, ["A"])
    assert str(found) == "2 code lines, 2 files, 2 classes"
    apart = tool.measure(tmp_path, tool.modules(tmp_path, paper=True))
    assert (apart.code_lines, apart.files, apart.twice) == (2, 1, [])


def test_what_is_too_long(tool, tmp_path):
    body = "    x = 1\n" * tool.MAX_FUNCTION
    (tmp_path / "one.py").write_text(f'def f():\n    """Say."""\n{body}')
    long = tool.measure(tmp_path, tool.modules(tmp_path, paper=False)).long
    assert long == [f"one.py:f ({tool.MAX_FUNCTION + 1} lines)"]
    (tmp_path / "one.py").write_text("x = 1\n" * (tool.MAX_FILE + 1))
    long = tool.measure(tmp_path, tool.modules(tmp_path, paper=False)).long
    assert long == [f"one.py ({tool.MAX_FILE + 1} lines)"]
