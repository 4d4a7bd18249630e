"""What the page holds, without a browser."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise

import pytest
from tests.report.examples import EXAMPLES, HOSTILE, example, notebook_of, page_of

from unskew import __version__
from unskew.diagnostics.diagnosis import Provenance
from unskew.report.untrusted import visible

FORMS = [(name, static) for name in EXAMPLES for static in (False, True)]


class Parsed(HTMLParser):
    """Elements, their attributes, and the text outside of style and script."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self._inside: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag in {"style", "script"}:
            self._inside.append(tag)

    def handle_endtag(self, tag):
        if self._inside and self._inside[-1] == tag:
            self._inside.pop()

    def handle_data(self, data):
        if not self._inside:
            self.texts.append(data)

    def attributes(self, tag: str, name: str) -> list[str | None]:
        return [found[name] for element, found in self.elements if element == tag and name in found]


@pytest.mark.parametrize(("name", "static"), FORMS)
def test_nothing_in_the_page_asks_for_another_file_or_acts_on_an_event(name, static):
    parsed = Parsed(page_of(name, static))
    tags = {tag for tag, _ in parsed.elements}
    assert not tags & {"link", "img", "iframe", "object", "embed", "base", "form", "audio", "video"}
    for tag, attributes in parsed.elements:
        assert not [attribute for attribute in attributes if attribute.startswith("on")]
        assert "style" not in attributes, tag  # the policy would not let it act
        for link in ("src", "href", "xlink:href"):
            assert (attributes.get(link) or "#").startswith("#"), (tag, attributes)
    assert len(parsed.attributes("script", "src")) == 0
    assert ("script" in tags) is not static


@pytest.mark.parametrize(("name", "static"), FORMS)
def test_the_page_is_well_formed_for_readers_of_every_kind(name, static):
    text = page_of(name, static)
    parsed = Parsed(text)
    assert parsed.attributes("html", "lang") == ["en"]
    ids = [attributes["id"] for _, attributes in parsed.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    for reference in ("aria-labelledby", "aria-controls", "for"):
        for _, attributes in parsed.elements:
            assert attributes.get(reference) in {None, *ids}
    assert {link[1:] for link in parsed.attributes("a", "href")} <= set(ids)
    levels = [int(tag[1]) for tag, _ in parsed.elements if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(level <= before + 1 for before, level in pairwise(levels))
    assert all(scope in {"col", "row"} for scope in parsed.attributes("th", "scope"))
    assert len(parsed.attributes("th", "scope")) == sum(tag == "th" for tag, _ in parsed.elements)
    tables = sum(tag == "table" for tag, _ in parsed.elements)
    assert sum(tag == "caption" for tag, _ in parsed.elements) == tables
    charts = [found for _, found in parsed.elements if found.get("class") == "chart"]
    assert charts
    assert all(chart["role"] == "img" and len(chart["aria-label"] or "") > 20 for chart in charts)


@pytest.mark.parametrize("static", [False, True])
def test_hostile_text_comes_out_as_text(static):
    text = page_of("hostile", static)
    parsed = Parsed(text)
    shown = "\n".join(parsed.texts)
    for bad in HOSTILE:
        assert visible(bad) in shown
    scripts = sum(tag == "script" for tag, _ in parsed.elements)
    assert scripts == (0 if static else 3)
    raw = re.sub("<script>.*?</script>", "", text, flags=re.DOTALL)  # Vega, not the data
    for markup in ("<img", "<svg onload", "</style><style>", "window.hit = 1</script>", "\u202e"):
        assert markup not in raw


def test_bars_of_regions_are_to_scale():
    parsed = Parsed(page_of("hopeless", True))
    rules = example("hopeless").overlap.rules
    bars = [found for tag, found in parsed.elements if tag == "rect" and "width" in found]
    whole = {float(bar["width"]) for bar in bars if bar.get("class") == "whole"}
    parts = [float(bar["width"]) for bar in bars if bar.get("class") == "part"]
    assert whole == {100.0}
    assert parts == pytest.approx([100 * rule.share for rule in rules], abs=0.01)


def test_the_page_says_what_it_is_about_and_when_it_was_made():
    about = Provenance("<b>a</b>.csv", "u.parquet", "w.csv", "spend", "2026-03-01T09:05:00+02:00")
    diagnosis = replace(example("survey"), provenance=about)
    words = " ".join(" ".join(Parsed(diagnosis.to_html(static=True)).texts).split())
    for text in (
        "Sample <b>a</b>.csv Population u.parquet Target spend Weights w.csv",
        f"Made 2026-03-01 09:05 UTC+02:00 by unskew {__version__}",
    ):
        assert text in words
    unnamed = replace(diagnosis, provenance=replace(about, sample=None, weights=None))
    words = " ".join(" ".join(Parsed(unnamed.to_html(static=True)).texts).split())
    assert "Population u.parquet Target spend Weights TreeWeights(min_samples_leaf=40)" in words


def test_a_page_of_fifty_features_is_below_one_and_a_half_megabytes():
    assert len(page_of("50").encode()) < 1_500_000


def test_a_page_of_five_hundred_features_shows_the_worst_and_says_so():
    text = page_of("500")
    assert len(text.encode()) < 2_000_000
    words = " ".join("".join(Parsed(text).texts).split())
    assert "The 25 most biased of 500 features" in words
    assert "the 12 most biased of 500 features" in words


def test_parts_without_content_say_so_or_are_absent():
    words = " ".join("".join(Parsed(page_of("unbiased", True)).texts).split())
    assert "No weights were given" in words
    assert "The sample covers every part" in words
    assert "Theoretical bounds" not in words
    assert "after weighting" not in words
    assert "weighted sample" not in words


@pytest.mark.parametrize("name", [name for name in EXAMPLES if name != "hostile"])
def test_numbers_are_written_for_people(name):
    words = " ".join(Parsed(page_of(name, True)).texts)
    assert not re.findall(r"\d[eE][+-]?\d", words)
    assert not re.findall(r"\d\.\d{5,}", words)
    assert not re.findall(r"\b(nan|inf|None|True|False)\b", words)


def test_a_page_is_the_same_each_time_and_goes_to_a_file_whole(tmp_path):
    diagnosis = example("unbiased")
    path = tmp_path / "report.html"
    text = diagnosis.to_html(path)
    assert text == page_of("unbiased") == path.read_text(encoding="utf-8")
    assert list(tmp_path.iterdir()) == [path]


def test_in_a_notebook_the_page_is_alone_in_a_frame():
    parsed = Parsed(notebook_of("hostile"))
    assert [tag for tag, _ in parsed.elements] == ["iframe"]
    assert parsed.attributes("iframe", "sandbox") == [""]
    assert parsed.attributes("iframe", "srcdoc") == [page_of("hostile", True)]
    assert example("unbiased")._repr_html_().startswith("<iframe srcdoc=")


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is Linux's")
def test_a_limit_of_addresses_leaves_charts_out_and_the_process_alive():
    code = (
        "import resource, warnings\n"
        "from tests.report.examples import example\n"
        "found = example('survey')\n"
        "limit = 8 * 2**30\n"
        "resource.setrlimit(resource.RLIMIT_AS, (limit, limit))\n"
        "with warnings.catch_warnings(record=True) as caught:\n"
        "    warnings.simplefilter('always')\n"
        "    pages = found.to_html(static=True), found._repr_html_()\n"
        "print(*(page.count('Not drawn') > 0 for page in pages), len(caught) > 0)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (run.returncode, run.stdout.split()) == (0, ["True"] * 3), run.stderr[-500:]


@pytest.mark.parametrize("name", ["survey", "hopeless", "hostile"])
def test_percentages_have_one_style(name):
    page = re.sub(r"<style.*?</style>", "", page_of(name, True), flags=re.S)
    words = re.sub(r"<[^>]*>", "|", page)
    assert re.findall(r"[^|]{0,20}\d%[^|]{0,20}", words) == []
    assert re.search(r"\|40 %\|", words)  # on an axis


def test_title_and_identifiers_are_shown():
    found = example("survey")
    heaviest = tuple(replace(row, row=f"C{row.row:04d}") for row in found.weights.heaviest)
    named = replace(
        found,
        weights=replace(found.weights, heaviest=heaviest),
        provenance=replace(found.provenance, title="Poll of <May>", identifier="customer"),
    )
    page, text = named.to_html(), named.to_markdown()
    assert "<title>Poll of &lt;May&gt;: " in page
    for written in (page, text):
        assert heaviest[0].row in written
        assert "Rows are counted from 0" not in written
    assert "Rows are counted from 0" in found.to_html()
    assert "<title>Bias report: " in found.to_html()


def test_a_bound_of_a_learner_is_not_in_a_report():
    found = example("survey")
    bound = replace(found.bounds[0], statement="An error rate.", of_learner=True)
    assert "An error rate" not in replace(found, bounds=(bound,)).to_html()
    assert "An error rate" in replace(found, bounds=(replace(bound, of_learner=False),)).to_html()
