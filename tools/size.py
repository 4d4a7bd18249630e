"""Print the size of the package: code lines, files, classes, repeated names, what is too long.

A code line is one that is not blank, not a comment and not part of a docstring; ``paper`` has a
home of its own and is not counted.

    python tools/size.py [FOLDER]
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MAX_FUNCTION, MAX_FILE = 60, 700
_DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
_NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


def docstring_lines(tree: ast.Module) -> set[int]:
    """Return the numbers of the lines that docstrings take."""
    lines: set[int] = set()
    for node in ast.walk(tree):
        if not isinstance(node, _DOCUMENTED):
            continue
        if ast.get_docstring(node, clean=False) is not None:
            text = node.body[0]
            lines.update(range(text.lineno, (text.end_lineno or text.lineno) + 1))
    return lines


def code_lines(text: str) -> int:
    """Return how many lines of a module are code."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - docstring_lines(ast.parse(text)))


def main(folder: Path) -> None:
    """Print the sizes of the package in ``folder``."""
    files = [path for path in sorted(folder.rglob("*.py")) if "paper" not in path.parts]
    total, classes, long = 0, Counter[str](), []
    for path in files:
        text = path.read_text(encoding="utf-8")
        total += code_lines(text)
        if len(text.splitlines()) > MAX_FILE:
            long.append(f"{path.relative_to(folder)} ({len(text.splitlines())} lines)")
        tree = ast.parse(text)
        documented = docstring_lines(tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                classes[node.name] += 1
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = set(range(node.lineno, (node.end_lineno or node.lineno) + 1)) - documented
                if len(lines) > MAX_FUNCTION:
                    long.append(f"{path.relative_to(folder)}:{node.name} ({len(lines)} lines)")
    twice = sorted(name for name, count in classes.items() if count > 1)
    print(f"{total:,} code lines, {len(files)} files, {sum(classes.values())} classes")
    print(f"{len(twice)} class names that exist more than once: {', '.join(twice) or 'none'}")
    print(f"too long: {', '.join(long) or 'nothing'}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "src" / "unskew")
