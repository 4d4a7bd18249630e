"""The report as Markdown: its text and tables, without the charts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from unskew.diagnostics.diagnosis import Diagnosis
from unskew.report.blocks import Block, Figures, Items, Paragraph, Report, Table
from unskew.report.sections import build_report
from unskew.report.untrusted import markdown_code, markdown_text

MAX_ROWS = 50


def to_markdown(diagnosis: Diagnosis) -> str:
    """Return the report as Markdown, for an issue, a notebook's text or a log."""
    return "\n".join(_lines(build_report(diagnosis)))


def _lines(report: Report) -> Iterator[str]:
    yield f"# {markdown_text(report.headline)}\n"
    yield f"{markdown_text(report.title)}: **{report.status}.**\n"
    for reason in report.reasons:
        yield f"- {markdown_text(reason)}"
    origin = (f"{item.name}: {markdown_text(item.text)}" for item in report.origin)
    yield f"\n{' · '.join(origin)}"
    for section in report.sections:
        blocks = [text for block in section.blocks if (text := "\n".join(_block(block)))]
        if blocks:
            yield f"\n## {section.title}\n"
            yield "\n\n".join(blocks)
    yield ""


def _block(block: Block) -> Iterator[str]:
    match block:
        case Paragraph():
            yield markdown_text(block.text)
        case Figures():
            yield _row(["Figure", "Value", "After weighting", ""])
            yield _row(["---", "---:", "---:", "---"])
            for figure in block.figures:
                cells = (figure.label, figure.value, figure.after or "", figure.note)
                yield _row(map(markdown_text, cells))
        case Items():
            for item in block.items:
                yield f"- **{markdown_text(item.name)}**: {markdown_text(item.text)}"
        case Table():
            yield from _table(block)


def _table(table: Table) -> Iterator[str]:
    yield f"**{markdown_text(table.caption)}**\n"
    yield _row(markdown_text(column.heading) for column in table.columns)
    yield _row("---:" if column.content == "number" else "---" for column in table.columns)
    for place in range(min(len(table), MAX_ROWS)):
        yield _row(
            (markdown_code if column.content == "data" else markdown_text)(column.cells[place])
            for column in table.columns
        )
    if len(table) > MAX_ROWS:
        yield f"\nThe first {MAX_ROWS} of {len(table):,} rows."


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
