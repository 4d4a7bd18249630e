from __future__ import annotations

import re

import pytest
from markdown_it import MarkdownIt
from tests.report.examples import EXAMPLES, HOSTILE, example

from unskew.report import to_markdown
from unskew.report.untrusted import markdown_code, markdown_text, visible

PARSER = MarkdownIt("commonmark", {"html": True}).enable("table")


def inline(text: str) -> list:
    (paragraph,) = [token for token in PARSER.parse(text) if token.type == "inline"]
    return paragraph.children


@pytest.mark.parametrize("bad", [visible(text) for text in HOSTILE])
def test_escaped_text_reads_as_it_was(bad):
    for escaped, kinds in (
        (markdown_text(bad), {"text"}),
        (markdown_code(bad), {"text", "code_inline"}),
    ):
        children = inline(f"- a {escaped} b")
        assert {child.type for child in children} <= {*kinds, "text_special"}
        assert "".join(child.content for child in children) == f"a {bad} b"


@pytest.mark.parametrize("bad", [visible(text) for text in HOSTILE])
def test_a_cell_holds_its_text_and_does_not_end_early(bad):
    table = f"| a | b |\n|---|---|\n| {markdown_code(bad)} | {markdown_text(bad)} |\n"
    cells = [token for token in PARSER.parse(table) if token.type == "inline"]
    assert ["".join(child.content for child in cell.children) for cell in cells] == [
        "a",
        "b",
        bad,
        bad,
    ]


@pytest.mark.parametrize("name", list(EXAMPLES))
def test_tables_are_even_and_no_markup_comes_from_the_data(name):
    text = to_markdown(example(name))
    tokens = PARSER.parse(text)
    assert not [token for token in tokens if token.type == "html_block"]
    kinds = {child.type for token in tokens if token.type == "inline" for child in token.children}
    assert kinds <= {"text", "text_special", "code_inline", "strong_open", "strong_close"}
    html = PARSER.render(text)
    for table in re.findall("<table>.*?</table>", html, flags=re.DOTALL):
        widths = {len(re.findall("<t[hd][ >]", row)) for row in table.split("<tr>")[1:]}
        assert len(widths) == 1
    assert text.startswith("# ")
    assert example(name).to_markdown() == text


def test_long_tables_are_cut_with_a_note():
    text = to_markdown(example("500"))
    rows = sum(len(feature.lines) for feature in example("500").bias.features)
    assert f"The first 50 of {rows} rows." in text
