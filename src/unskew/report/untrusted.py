r"""Safe rendering of text from the data, which anybody may have written.

Column names, categories and cells reach HTML (where Jinja escapes them), JSON inside a script
element, SVG and Markdown. Before that, :func:`visible` replaces invisible control characters.
"""

from __future__ import annotations

import json
import re
from typing import Any

from unskew.errors import plain

LONGEST = 200
"""Characters shown of a name or a value."""


def visible(text: object, longest: int = LONGEST) -> str:
    r"""Return text on one line, without invisible characters, and cut if it is too long.

    Control characters, including those that change the direction of writing, are replaced by their
    escape codes. Letters of every script stay.

    Examples
    --------
    >>> visible("two\nlines"), visible(""), visible("a\u202eb"), visible("x" * 50, longest=10)
    ('two⏎lines', '(empty)', 'a\\u202eb', 'xxxxxxxxx…')
    """
    shown = plain(text)
    if not shown.strip():
        return "(empty)" if not shown else "(blank)"
    return shown if len(shown) <= longest else shown[: longest - 1].rstrip() + "…"


def script_json(value: Any) -> str:
    r"""Return JSON that is safe inside a script element.

    Examples
    --------
    >>> script_json({"name": "</script>&\u2028"})
    '{"name":"\\u003c/script\\u003e\\u0026\\u2028"}'
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return re.sub("[<>&\u2028\u2029]", lambda found: f"\\u{ord(found[0]):04x}", text)


def markdown_text(text: str) -> str:
    r"""Return text with Markdown's markup and the border of table cells escaped.

    Examples
    --------
    >>> print(markdown_text("<b> a|b *c*"))
    \<b\> a&#124;b \*c\*
    """
    escaped = re.sub(r"([\\`*_\[\]<>~&#$!@])", r"\\\1", " ".join(text.split("\n")))
    return escaped.replace("|", "&#124;")


def markdown_code(text: str) -> str:
    r"""Return text as a code span, or escaped if a code span cannot hold it.

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
