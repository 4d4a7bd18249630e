r"""Text from the data, which may be anything, as text and nothing else.

Column names, categories and cells reach HTML (where Jinja escapes them), JSON inside a script
element, SVG and Markdown. Before that, :func:`visible` takes from them what acts without being
seen.
"""

from __future__ import annotations

import json
import re
import unicodedata
from typing import Any

__all__ = ["markdown_code", "markdown_text", "script_json", "visible"]

LONGEST = 200
"""Characters of a name or a value that are shown."""


def visible(text: object, longest: int = LONGEST) -> str:
    r"""Return text with nothing unseen in it, on one line, and not too long.

    Control characters, among them those that turn the direction of writing around, are told by
    their number. Letters of every script stay.

    Examples
    --------
    >>> visible("two\nlines"), visible(""), visible("a\u202eb"), visible("x" * 50, longest=10)
    ('two⏎lines', '(empty)', 'a\\u202eb', 'xxxxxxxxx…')
    """
    shown = "".join(_visible_character(character) for character in str(text))
    if not shown.strip():
        return "(empty)" if not shown else "(blank)"
    return shown if len(shown) <= longest else shown[: longest - 1].rstrip() + "…"


def _visible_character(character: str) -> str:
    if character == "\n":
        return "⏎"
    if character == "\t":
        return " "
    # Cc control, Cf format (bidirectional overrides), Cs half of a pair, Zl and Zp line breaks.
    if unicodedata.category(character) in {"Cc", "Cf", "Cs", "Zl", "Zp"}:
        return f"\\u{ord(character):04x}"
    return character


def script_json(value: Any) -> str:
    r"""Return JSON that can stand inside a script element whatever it holds.

    Examples
    --------
    >>> script_json({"name": "</script>&\u2028"})
    '{"name":"\\u003c/script\\u003e\\u0026\\u2028"}'
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return re.sub("[<>&\u2028\u2029]", lambda found: f"\\u{ord(found[0]):04x}", text)


def markdown_text(text: str) -> str:
    r"""Return text in which Markdown finds no markup, nor the end of a table's cell.

    Examples
    --------
    >>> print(markdown_text("<b> a|b *c*"))
    \<b\> a&#124;b \*c\*
    """
    escaped = re.sub(r"([\\`*_\[\]<>~&#$!@])", r"\\\1", " ".join(text.split("\n")))
    return escaped.replace("|", "&#124;")


def markdown_code(text: str) -> str:
    r"""Return text as a code span, or with its markup escaped where a span cannot hold it.

    Examples
    --------
    >>> print(markdown_code("a`b"), markdown_code("a|b"))
    ``a`b`` a&#124;b
    """
    if "|" in text:  # ends a table's cell even inside a code span
        return markdown_text(text)
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", text)), default=0))
    padding = " " if text[:1] in "` " or text[-1:] in "` " else ""
    return f"{fence}{padding}{text}{padding}{fence}"
