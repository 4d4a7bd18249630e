"""The README's and the docs' Python and shell examples work as pasted."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.skipif(not (ROOT / "README.md").exists(), reason="runs in the repository only")
def test_the_readmes_examples_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert len(blocks) >= 2
    namespace: dict = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), namespace)
    assert namespace["weighter"].uncovered_ == 0
    assert len(namespace["model"].weights_) == len(namespace["sample"])


@pytest.mark.parametrize("page", sorted(ROOT.glob("docs/*.md")), ids=lambda page: page.name)
def test_the_docs_examples_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace: dict = {}
    for block in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
        exec(compile(block, page.name, "exec"), namespace)
    assert "weighter" in namespace or "```python" not in page.read_text(encoding="utf-8")


def _run_shell_examples(page: Path, folder: Path) -> str:
    """Run a page's shell examples one after the other, and return what they printed."""
    blocks = re.findall(r"```sh\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    result = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", "\n".join(blocks)],
        cwd=folder,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert "Traceback" not in result.stderr
    return result.stdout


@pytest.mark.skipif(not (ROOT / "README.md").exists(), reason="runs in the repository only")
def test_the_readmes_shell_example_runs(tmp_path):
    printed = _run_shell_examples(ROOT / "README.md", tmp_path)
    assert "Effective sample size" in printed
    assert {"clinic", "weights.csv", "report.html"} <= {path.name for path in tmp_path.iterdir()}


@pytest.mark.skipif(not (ROOT / "docs").exists(), reason="runs in the repository only")
def test_the_pages_shell_examples_run(tmp_path):
    printed = _run_shell_examples(ROOT / "docs" / "command-line.md", tmp_path)
    assert "exit code 3" in printed
    names = {path.name for path in tmp_path.iterdir()}
    assert {"weights.csv", "weights.parquet", "weighter.skops", "report.html"} <= names
    assert "refused.csv" not in names
    tree, again = (
        (tmp_path / name).read_text().splitlines() for name in ("weights.csv", "again.csv")
    )
    assert tree == again


@pytest.mark.skipif(not (ROOT / "README.md").exists(), reason="runs in the repository only")
def test_links_in_the_docs_lead_somewhere():
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/*.md"))]:
        links = re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8"))
        missing = [link for link in links if not (page.parent / link).exists()]
        assert not missing, (page, missing)
