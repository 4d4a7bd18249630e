"""Check that imports go one way through the layers, as CONTRIBUTING.md draws them.

A module may import its own layer and any layer below it. ``paper``, the paper's experiment, and
benchmarks may use only the names that ``unskew`` exports, the public modules, the errors and
``paper``. These count as an import of a layer:

- ``import unskew.<layer>...``, ``from unskew.<layer>... import ...``, ``from unskew import
  <layer>`` and their relative forms, at the top, in a function or under ``TYPE_CHECKING``;
- ``from unskew import Name``, of the layer from which ``unskew/__init__.pyi`` takes the name;
- a string that is nothing but a dotted path ``unskew.<layer>...``, wherever it is: an argument of
  ``import_module`` or ``__import__``, a value of a dict, an entry of a list of trusted types. So
  does such an f-string; one whose layer is a variable, ``f"unskew.{name}"``, is refused.

These do not: docstrings, a path inside a longer text such as a message, and the program after
``"-m"`` in a command. ``unskew/__init__.py`` is not checked: it imports lazily from everywhere.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

LAYERS = [  # from the bottom up; names in one entry may not import one another
    {"errors"},
    {"_compat"},
    {"files"},
    {"numerics"},
    {"population"},
    {"overlap"},
    {"weighters"},
    {"learning"},
    {"estimation"},
    {"theory"},
    {"diagnostics"},
    {"report"},
    {"paper"},
    {"cli"},
    {"__main__"},
]
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
PUBLIC_MODULES = {"unskew.theory"}
PUBLIC_ONLY = {"paper", "benchmarks"}
ALWAYS_PUBLIC = {"paper", "errors"}
EXCEPTIONS = {
    # Diagnosis.to_html() loads the report when it is called, so that a Diagnosis can show itself.
    ("src/unskew/diagnostics/diagnosis.py", "unskew.report"),
    ("src/unskew/estimation/sensitivity.py", "unskew.report"),  # in the same way
}

ROOT = Path(__file__).resolve().parent.parent
_DOTTED = re.compile(r"unskew(\.[\w{}]+)+")


def imported_modules(tree: ast.Module, package: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the dotted path of each import of unskew in a module of ``package``."""
    ignored = _not_imports(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = _absolute(node, package)
            if module == "unskew":
                yield from ((node.lineno, f"unskew.{alias.name}") for alias in node.names)
            else:
                yield node.lineno, module
        elif (
            isinstance(node, ast.expr)
            and id(node) not in ignored
            and _DOTTED.fullmatch(text := _text(node))
        ):
            yield node.lineno, text


def _text(node: ast.expr) -> str:
    """Return the text of a string or f-string with ``{}`` for what is filled in, else nothing."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) or "{}" for part in node.values)
    return ""


def _not_imports(tree: ast.Module) -> set[int]:
    """Return the ids of strings that are no imports: docstrings, programs, parts of f-strings."""
    found: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            found.add(id(node.value))
        elif isinstance(node, ast.JoinedStr):
            found.update(map(id, node.values))
        elif isinstance(node, ast.List | ast.Tuple):
            for option, program in zip(node.elts, node.elts[1:], strict=False):
                if isinstance(option, ast.Constant) and option.value == "-m":
                    found.add(id(program))
    return found


def _absolute(node: ast.ImportFrom, package: str) -> str:
    if not node.level:
        return node.module or ""
    parents = package.split(".")
    kept = parents[: len(parents) - node.level + 1]
    return ".".join([*kept, *([node.module] if node.module else [])])


def exported_layers(package: Path) -> dict[str, str]:
    """Return the layer of each name that ``unskew/__init__.pyi`` lists."""
    front = package / "__init__.pyi"
    if not front.exists():
        return {}
    return {
        alias.asname or alias.name: node.module.split(".")[1]
        for node in ast.walk(ast.parse(front.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("unskew.")
        for alias in node.names
    }


def _violations_in(
    path: Path, root: Path, package: str, layer: str, exports: Mapping[str, str]
) -> Iterator[str]:
    file = path.relative_to(root).as_posix()
    for line, module in imported_modules(ast.parse(path.read_text(encoding="utf-8")), package):
        first, target = (*module.split("."), "")[:2]
        if first != "unskew" or (file, module) in EXCEPTIONS:
            continue
        if "{" in target:
            yield f"{file}:{line}: the layer of an import must not be a variable"
        elif layer in PUBLIC_ONLY:
            if target in RANK and target not in ALWAYS_PUBLIC and module not in PUBLIC_MODULES:
                yield f"{file}:{line}: {layer} may use only the public interface, not {target}"
        else:
            target = exports.get(target, target)
            if target in RANK and target != layer and RANK[target] >= RANK[layer]:
                yield f"{file}:{line}: {layer} must not import {target}"


def violations(root: Path = ROOT) -> Iterator[str]:
    """Yield a line for each import that goes the wrong way."""
    source = root / "src"
    exports = exported_layers(source / "unskew")
    for path in sorted((source / "unskew").rglob("*.py")):
        inside = path.relative_to(source / "unskew")
        layer = inside.parts[0].removesuffix(".py")
        if layer == "__init__":
            continue
        if layer not in RANK:
            yield f"{path.relative_to(root)}: '{layer}' is in no layer; add it to {__file__}"
            continue
        package = ".".join(path.relative_to(source).parent.parts)
        yield from _violations_in(path, root, package, layer, exports)
    for path in sorted((root / "benchmarks").rglob("*.py")):
        package = ".".join(path.relative_to(root).parent.parts)
        yield from _violations_in(path, root, package, "benchmarks", exports)


def main() -> int:
    """Print the violations; return 1 if there are any."""
    found = list(violations())
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
