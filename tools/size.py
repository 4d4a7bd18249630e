"""Print the size of the package: code lines, files, classes, repeated names, what is too long.

A code line is one that is not blank, not a comment and not part of a docstring. ``paper``, the
paper's experiment, has a home of its own: its lines are printed apart and count for no limit.

    python tools/size.py [FOLDER]

The limits below are a ratchet, held by a test: whoever makes the package smaller lowers them.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "unskew"

# Targets: 25,000 code lines, 180 files, 300 classes.
MAX_CODE_LINES = 28_640
MAX_FILES = 165
MAX_CLASSES = 355
MAX_BENCHMARK_LINES = 5_000  # all lines of benchmarks
MAX_FILE, MAX_FUNCTION = 700, 60  # lines of a file; of a function, its docstrings excluded
EXPLAINED = ("numerics", "theory")  # where the algebra is, and comments say why
MIN_COMMENTS = 0.05  # of the code lines there
STILL_TWICE: set[str] = set()  # class names that exist more than once

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


@dataclass
class Size:
    """How large a set of modules is; ``long`` names files and functions above their limit."""

    code_lines: int = 0
    files: int = 0
    classes: Counter[str] = field(default_factory=Counter)
    long: list[str] = field(default_factory=list)

    @property
    def twice(self) -> list[str]:
        """The class names that exist more than once."""
        return sorted(name for name, count in self.classes.items() if count > 1)

    def __str__(self) -> str:
        classes = f"{self.classes.total()} classes"
        return f"{self.code_lines:,} code lines, {self.files} files, {classes}"


def measure(folder: Path, files: Iterable[Path]) -> Size:
    """Return the size of some modules of a folder."""
    size = Size()
    for path in files:
        text = path.read_text(encoding="utf-8")
        size.files += 1
        size.code_lines += code_lines(text)
        name, tree = path.relative_to(folder), ast.parse(text)
        size.classes.update(node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
        if len(text.splitlines()) > MAX_FILE:
            size.long.append(f"{name} ({len(text.splitlines())} lines)")
        size.long += [f"{name}:{function}" for function in _long_functions(tree)]
    return size


def modules(folder: Path, *, paper: bool) -> list[Path]:
    """Return the modules of the paper's experiment, or all others."""
    files = sorted(folder.rglob("*.py"))
    return [path for path in files if (path.relative_to(folder).parts[0] == "paper") == paper]


def benchmark_lines(root: Path = ROOT) -> int:
    """Return how many lines the programs of the benchmarks have."""
    files = (root / "benchmarks").rglob("*.py")
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files)


def comment_share(folder: Path) -> float:
    """Return how many comments the modules of a folder have for each of their code lines."""
    texts = [path.read_text(encoding="utf-8") for path in folder.rglob("*.py")]
    comments = sum(
        token.type == tokenize.COMMENT
        for text in texts
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
    )
    return comments / max(sum(map(code_lines, texts)), 1)


def code_lines(text: str) -> int:
    """Return how many lines of a module are code."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - _docstring_lines(ast.parse(text)))


def _docstring_lines(tree: ast.Module) -> set[int]:
    lines: set[int] = set()
    for node in ast.walk(tree):
        if not isinstance(node, _DOCUMENTED):
            continue
        if ast.get_docstring(node, clean=False) is not None:
            text = node.body[0]
            lines.update(range(text.lineno, (text.end_lineno or text.lineno) + 1))
    return lines


def _long_functions(tree: ast.Module) -> Iterator[str]:
    documented = _docstring_lines(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = set(range(node.lineno, (node.end_lineno or node.lineno) + 1)) - documented
            if len(lines) > MAX_FUNCTION:
                yield f"{node.name} ({len(lines)} lines)"


def main(folder: Path) -> None:
    """Print the sizes of the package in ``folder``."""
    size = measure(folder, modules(folder, paper=False))
    print(size)
    print(f"paper, apart: {measure(folder, modules(folder, paper=True))}")
    print(f"benchmarks: {benchmark_lines():,} lines")
    names = ", ".join(size.twice) or "none"
    print(f"{len(size.twice)} class names that exist more than once: {names}")
    print(f"too long: {', '.join(size.long) or 'nothing'}")
    for room in EXPLAINED:
        print(f"comments in {room}: {comment_share(folder / room):.1%} of the code lines")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else PACKAGE)
