"""The site has every public name, says on each page what it answers, and is up to date."""

from __future__ import annotations

import importlib
import inspect
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import unskew
from unskew import errors, results, theory

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
pytestmark = pytest.mark.skipif(
    not (DOCS / "conf.py").exists(), reason="runs in the repository only"
)
MADE = {"gallery", "generated", "examples", "_made", "table-1"}
PAGES = [page for page in sorted(DOCS.glob("**/*.md")) if not set(page.parts) & MADE]
GUIDE = [page for page in PAGES if page.name not in ("changelog.md", "contributing.md")]
NAMES = [name for name in unskew.__all__ if name not in {"errors", "results", "theory"}]


def module(name: str):
    sys.path.insert(0, str(ROOT))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(ROOT))


def listed(groups) -> list[str]:
    return sorted(name for _, names in groups.values() for name in names)


def test_the_reference_has_every_public_name_once():
    reference = module("docs.building.reference")
    assert listed(reference.public_names()) == NAMES
    assert listed(reference.result_names()) == results.__all__
    assert listed(reference.error_names()) == errors.__all__
    assert listed(reference.theory_names()) == theory.__all__


@pytest.mark.parametrize("home", [unskew, errors, results, theory], ids=lambda home: home.__name__)
def test_every_public_name_has_an_example(home):
    names = NAMES if home is unskew else home.__all__
    assert not [name for name in names if ">>>" not in inspect.getdoc(getattr(home, name))]


def test_every_public_name_is_in_the_guide():
    text = " ".join(page.read_text(encoding="utf-8") for page in GUIDE)
    words = set(re.findall(r"\w+", text))
    missing = [
        name
        for name in (*NAMES, *errors.__all__, *results.__all__, *theory.__all__)
        if name not in words
    ]
    assert not missing


def test_every_weighter_has_a_page():
    reference = module("docs.building.reference")
    pages = sorted(page for page in DOCS.glob("methods/*.md") if page.stem != "index")
    headings = ["What it solves", "What it asks of the population", "When it fails"]
    headings += ["Parameters that matter", "What it is called elsewhere", "Read on"]
    described = []
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert re.findall(r"^## (.*)$", text, re.MULTILINE) == headings, page
        described += re.findall(r"{weighter-facts} (\w+)", text)
    assert sorted(described) == reference.public_names()[reference.WEIGHTERS][1]


@pytest.mark.parametrize("page", GUIDE, ids=lambda page: str(page.relative_to(DOCS)))
def test_a_page_begins_with_the_question_that_it_answers(page):
    text = re.sub(r"\A---\n.*?\n---\n", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    title, question = text.strip().split("\n\n")[:2]
    assert title.startswith("# ")
    assert title.endswith("?") or re.fullmatch(r"\*[^*]+\?\*", question.replace("\n", " "))


def test_the_drawings_are_those_of_their_scripts():
    chart, diagrams = module("docs.building.chart"), module("docs.building.diagrams")
    assert chart.svg() == chart.PICTURE.read_text(encoding="utf-8")
    for name, text in diagrams.drawings().items():
        assert text == (diagrams.IMAGES / name).read_text(encoding="utf-8")
    page = " ".join((DOCS / "which-method.md").read_text(encoding="utf-8").split())
    for number, step in enumerate(chart.STEPS, start=1):
        assert f"{number}. **{step.question}**" in page


def test_checked_against_is_made_of_tests_that_exist():
    made = module("docs.checked_against")
    assert all(made.file_of(check).exists() for check in made.CHECKS)


def test_results_side_by_side_are_those_that_the_tests_compare():
    noted = json.loads((DOCS / "checked-against.json").read_text(encoding="utf-8"))
    pairs = [pair for found in noted.values() for pair in found]
    shown = 0
    for name in ("survey", "weightit", "nonprobsvy", "sampleselection"):
        text = (DOCS / "coming-from" / f"{name}.md").read_text(encoding="utf-8")
        for theirs, ours in re.findall(r"^\| .* \| (-?[\d.]+) \| (-?[\d.]+) \|$", text, re.M):
            digits = len(theirs.partition(".")[2])
            held = [(f"{mine:.{digits}f}", f"{printed:.{digits}f}") for mine, printed in pairs]
            assert (ours, theirs) in held, (name, theirs)
            shown += 1
    assert shown == 28


def test_the_build_finds_pages_that_do_not_show_the_stored_results(tmp_path):
    check = module("docs.building.check_pages")
    (tmp_path / "one.md").write_text("a table\n\n| 1 | 2 |\n")

    def found(text: str, whole: bool) -> list[str]:
        return check.problems(check.Made("one.md", text, whole, "make it"), tmp_path)

    assert found("| 1 | 2 |", whole=False) == []
    assert found("| 1 | 3 |", whole=False) == [
        "docs/one.md does not show the stored results: make it"
    ]
    assert len(found("a table\n", whole=True)) == 1


def test_the_gallery_has_examples_in_five_tiers():
    examples = sorted(ROOT.glob("examples/*/plot_*.py"))
    assert len(examples) >= 14
    assert len({example.parent for example in examples}) == 5
    for example in examples:
        text = example.read_text(encoding="utf-8")
        title, rule = text.split("\n")[1:3]
        assert rule == "=" * len(title), example
        assert "plt.show()" in text


def test_examples_without_their_data_are_not_run():
    pattern = module("docs.building.gallery").run_pattern
    assert re.search(pattern([]), "examples/5_science/plot_mroz.py")
    assert not re.search(pattern(["mroz", "spark"]), "examples/5_science/plot_mroz.py")
    assert re.search(pattern(["mroz", "spark"]), "examples/5_science/plot_table_1.py")


def test_one_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == unskew.__version__
    assert f"version: {unskew.__version__}\n" in (ROOT / "CITATION.cff").read_text("utf-8")
    printed = subprocess.run(
        [sys.executable, "-m", "unskew", "--version"], capture_output=True, text=True, check=True
    )
    assert printed.stdout.split() == ["unskew", unskew.__version__]


def test_dead_links_and_loads_from_the_network_are_found(tmp_path):
    problems = module("docs.building.check_site").problems
    (tmp_path / "a.html").write_text('<a href="b.html#here">b</a> <a href="https://x.y">x</a>')
    (tmp_path / "b.html").write_text('<p id="here"></p>')
    assert problems(tmp_path) == []
    (tmp_path / "b.html").write_text('<a href="c.html">c</a><script src="https://x.y/z.js">')
    assert problems(tmp_path) == [
        "a.html: no anchor b.html#here",
        "b.html: dead link c.html",
        "b.html loads https://x.y/z.js",
    ]


def test_no_page_is_overwritten_by_a_file_that_the_build_makes():
    made = re.findall(r'EXTRA / "(.*)\.html"', inspect.getsource(module("docs.building.pages")))
    assert made
    assert not set(made) & {page.stem for page in DOCS.glob("*.md")}
