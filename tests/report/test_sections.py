"""One list of sections, which the page and Markdown both render."""

from __future__ import annotations

from dataclasses import replace

from tests.report.examples import example
from tests.report.test_html import Parsed

from unskew.diagnostics.diagnosis import Outcome
from unskew.report import sections, to_html, to_markdown
from unskew.report.blocks import Charts, Column, Paragraph, Section, Table


def test_a_new_section_is_one_function_in_the_list(monkeypatch):
    def sensitivity(diagnosis):
        columns = [Column("Feature", ["<b>age</b>"], "data"), Column("Factor", ["1.5"])]
        table = Table("factors", "Factors by feature", columns)
        return Section("sensitivity", "Sensitivity", [Paragraph("Hidden selection."), table])

    monkeypatch.setattr(sections, "SECTIONS", (*sections.SECTIONS, sensitivity))
    text = to_markdown(example("survey"))
    assert "## Sensitivity\n\nHidden selection." in text
    assert "| `<b>age</b>` | 1.5 |" in text
    parsed = Parsed(to_html(example("survey"), static=True))
    assert {"Sensitivity", "Hidden selection.", "<b>age</b>", "1.5"} <= set(parsed.texts)


def test_page_and_markdown_show_the_same_sections_in_order():
    diagnosis = example("survey")
    report = sections.build_report(diagnosis)
    assert len(report.sections) == len(sections.SECTIONS)
    shown = Parsed(diagnosis.to_html(static=True)).texts
    places = [shown.index(section.title) for section in report.sections]
    assert places == sorted(places)
    headings = [line[3:] for line in diagnosis.to_markdown().splitlines() if line[:3] == "## "]
    assert headings == [
        section.title  # Markdown leaves out sections that hold nothing but charts
        for section in report.sections
        if not all(isinstance(block, Charts) for block in section.blocks)
    ]


def test_thresholds_are_shown_with_their_labels():
    diagnosis = example("survey")
    strict = replace(diagnosis.thresholds, balanced_difference=0.02)
    text = to_markdown(replace(diagnosis, thresholds=strict))
    assert "| Standardised difference up to which a feature counts as balanced | 0.020 |" in text
    assert (
        "| Effective share of the sample below which weights are costly | 50\N{NO-BREAK SPACE}% |"
        in text
    )
    assert "differ by more than ± 0.020" in text


def test_a_class_that_is_called_mean_is_a_class():
    outcome = Outcome("shares", ("mean",), (0.25,), (0.01,), None, None)
    text = to_markdown(replace(example("unweighted"), outcome=outcome))
    assert (
        "| `mean` | 25\N{NO-BREAK SPACE}% (23\N{NO-BREAK SPACE}% to 27\N{NO-BREAK SPACE}%) |"
        in text
    )
