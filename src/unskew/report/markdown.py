"""The report as Markdown: the page's words and tables, without its charts."""

from __future__ import annotations

from collections.abc import Iterator

from unskew.diagnostics.diagnosis import Diagnosis
from unskew.report import content
from unskew.report.numbers import share
from unskew.report.untrusted import markdown_code, markdown_text, visible

__all__ = ["to_markdown"]

MOST_FEATURES = 50


def to_markdown(diagnosis: Diagnosis) -> str:
    """Return the report as Markdown, for an issue, a notebook's text or a log.

    Parameters
    ----------
    diagnosis : Diagnosis
    """
    return "\n".join(_lines(diagnosis)) + "\n"


def _lines(diagnosis: Diagnosis) -> Iterator[str]:
    verdict, weights, overlap = diagnosis.verdict, diagnosis.weights, diagnosis.overlap
    yield f"# {markdown_text(visible(verdict.headline, 600))}"
    yield ""
    yield f"**{content.status(diagnosis).word}.**"
    yield ""
    for sentence in verdict.sentences:
        yield f"- {markdown_text(visible(sentence, 900))}"
    yield from _heading("At a glance")
    yield "| Figure | Value | After weighting | |"
    yield "|---|---:|---:|---|"
    for figure in content.figures(diagnosis):
        yield f"| {figure.label} | {figure.value} | {figure.after or ''} | {figure.note} |"

    features = content.feature_table(diagnosis)
    yield from _heading("Where the sample differs")
    yield from _table(features, MOST_FEATURES)
    left_out = len(features.rows) - MOST_FEATURES
    if left_out > 0:
        yield ""
        yield f"The {MOST_FEATURES} most biased features; {left_out:,} are left out."

    yield from _heading("Out of the sample's reach")
    if overlap.rules:
        yield from _table(content.rule_table(diagnosis))
        if overlap.unexplained >= 0.0005:
            yield ""
            yield f"{share(overlap.unexplained)} of the population is out of reach in no region."
    else:
        yield f"{share(overlap.uncovered)} of the population, in no region that can be told."

    yield from _heading("The weights")
    if weights is None:
        yield "No weights were given."
    else:
        yield " ".join(content.weight_sentences(weights, diagnosis.sample_rows, drawn=False))
        if weights.heaviest:
            yield ""
            heavy, _ = content.heavy_table(diagnosis, weights)
            yield from _table(heavy)

    if getattr(diagnosis, "outcome", None) is not None:
        yield from _heading("What weighting does to the labels")
        yield from _table(content.outcome_table(getattr(diagnosis, "outcome", None)))

    if diagnosis.bounds:
        yield from _heading("What the theory says")
        for bound in diagnosis.bounds:
            empty = " (says nothing here)" if bound.vacuous else ""
            theorem, statement = visible(bound.theorem), visible(bound.statement, 1200)
            yield f"- **{markdown_text(theorem)}**{empty}: {markdown_text(statement)}"

    yield from _heading("How it was computed")
    yield from _table(content.test_table(diagnosis))
    yield ""
    for name, text in content.method_table(diagnosis):
        yield f"- {markdown_text(name)}: {markdown_text(text)}"
    if diagnosis.thresholds:
        yield ""
        yield from _table(content.threshold_table(diagnosis))


def _heading(text: str) -> Iterator[str]:
    yield from ("", f"## {text}", "")


def _table(table: content.Table, most: int | None = None) -> Iterator[str]:
    yield _row(markdown_text(heading) for heading in table.headings)
    yield _row("---:" if numeric else "---" for numeric in table.numeric)
    for row in table.rows[:most]:
        yield _row(
            markdown_code(cell.text) if cell.untrusted else markdown_text(cell.text) for cell in row
        )


def _row(cells: Iterator[str]) -> str:
    return f"| {' | '.join(cells)} |"
