"""The README's and the docs' Python and shell examples work as pasted."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
MADE = ("gallery", "generated", "examples", "_made")
PAGES = [page for page in sorted(ROOT.glob("docs/**/*.md")) if not set(page.parts) & set(MADE)]


def run_cli(arguments: list[str]) -> None:
    subprocess.run([sys.executable, "-m", "unskew", *arguments], check=True, capture_output=True)


@pytest.mark.skipif(not (ROOT / "README.md").exists(), reason="runs in the repository only")
def test_the_readmes_examples_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert blocks
    namespace: dict = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), namespace)
    assert len(namespace["weighter"].weights_) == len(namespace["sample"])
    assert (tmp_path / "report.html").exists()


def python_blocks(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize(
    "page",
    [page for page in (*PAGES, *ROOT.glob("CONTRIBUTING.md")) if python_blocks(page)],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_the_docs_examples_run(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    if page.name == "start.md":  # it reads what its shell examples write
        for name in ("vacancies", "census"):
            run_cli(["example", name])
    namespace: dict = {}
    for block in python_blocks(page):
        exec(compile(block, page.name, "exec"), namespace)
    if page.name == "start.md":
        shown = re.findall(r"\n\n((?:    .*\n+)+)", page.read_text(encoding="utf-8"))
        blocks = [block for block in shown if "pip install" not in block]
        assert len(blocks) == 5
        assert_printed(blocks, capsys.readouterr().out)


def assert_printed(blocks: list[str], printed: str) -> None:
    """Check that what a page shows was printed, its numbers within 3 %."""
    number = r"\d[\d,]*\.?\d*"
    line = " ".join(printed.split())
    words, numbers = re.sub(number, "#", line), re.findall(number, line)
    for text in (" ".join(block.split()) for block in blocks):
        before, found, _ = words.partition(re.sub(number, "#", text))
        assert found, text
        expected = [float(one.replace(",", "")) for one in re.findall(number, text)]
        there = numbers[before.count("#") :][: len(expected)]
        assert [float(one.replace(",", "")) for one in there] == pytest.approx(expected, rel=0.03)


@pytest.mark.skipif(not (ROOT / "README.md").exists(), reason="runs in the repository only")
def test_which_names_are_stable_is_documented():
    import unskew
    from unskew import theory

    for page in ("README.md", "docs/guide.md"):
        text = " ".join((ROOT / page).read_text(encoding="utf-8").split())
        modules = "`unskew`, `unskew.results`, `unskew.errors` and `unskew.theory`"
        assert f"Only the names in {modules} are public" in text
    for name in (*unskew.__all__, *(f"theory.{name}" for name in theory.__all__)):
        found = unskew
        for part in name.split("."):
            found = getattr(found, part)
        assert found.__doc__, name


@pytest.fixture(scope="module")
def run_shell(tmp_path_factory):
    """A function that runs a page's shell examples, but those that it has run already."""
    folder, temporary = tmp_path_factory.mktemp("shell"), tmp_path_factory.mktemp("temporary")
    seen: set[str] = set()

    def run(page: Path) -> tuple[Path, str]:
        text = page.read_text(encoding="utf-8").replace("\\\n", " ")
        blocks = re.findall(r"```sh\n(.*?)```", text, flags=re.DOTALL)
        commands = [" ".join(line.split()) for block in blocks for line in block.splitlines()]
        fresh = [command for command in commands if command not in seen]
        assert fresh
        seen.update(fresh)
        result = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", "\n".join(fresh)],
            cwd=folder,
            env={
                **os.environ,
                "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
                "TMPDIR": str(temporary),
            },
            capture_output=True,
            text=True,
            check=False,
        )
        assert result.returncode == 0, result.stderr
        assert "Traceback" not in result.stderr
        return folder, result.stdout

    return run


@pytest.mark.skipif(not (ROOT / "README.md").exists(), reason="runs in the repository only")
def test_the_shell_examples_run(run_shell):
    folder, printed = run_shell(ROOT / "README.md")
    assert "effective sample size" in printed
    assert "Effective sample size" in printed
    assert {"clinic", "weights.csv", "report.html"} <= {path.name for path in folder.iterdir()}
    folder, printed = run_shell(ROOT / "docs" / "command-line.md")
    assert "exit code 3" in printed
    names = {path.name for path in folder.iterdir()}
    assert {"weights.parquet", "weighter.skops"} <= names
    assert "refused.csv" not in names
    assert (folder / "weights.csv").read_bytes() == (folder / "again.csv").read_bytes()


@pytest.mark.skipif(not (ROOT / "README.md").exists(), reason="runs in the repository only")
def test_links_in_the_docs_lead_somewhere():
    # The site's build makes these, and checks links to them: an example's page from its script.
    made = {"errors.rst", "results.rst", "theory.rst", "gallery/index.rst"}
    examples = (ROOT / "examples").glob("*/plot_*.py")
    made |= {f"gallery/{path.parent.name}/{path.stem}.rst" for path in examples}
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *PAGES]:
        links = re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8"))
        links = [link for link in links if link.removeprefix("../") not in made]
        missing = [link for link in links if not (page.parent / link).exists()]
        assert not missing, (page, missing)
