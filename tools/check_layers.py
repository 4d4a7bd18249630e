"""Check that imports go one way through the layers, as CONTRIBUTING.md draws them.

A module may import its own layer and any layer below it. Experiments and benchmarks use only what
``unskew`` and its public modules export, experiments also one another and the errors.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

LAYERS = [  # from the bottom up; names in one entry may not import one another
    {"errors", "_compat"},
    {"files"},
    {"numerics"},
    {"population"},
    {"weighters"},
    {"learning", "theory"},
    {"diagnostics"},
    {"report"},
    {"experiments"},
    {"cli"},
]
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
PUBLIC_MODULES = {"unskew.theory"}
PUBLIC_ONLY = {"experiments": {"experiments", "errors"}, "benchmarks": {"experiments", "errors"}}

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "unskew"


def imported_layers(path: Path, *, public: bool = False) -> Iterator[tuple[int, str]]:
    """Yield the line and the layer of each import of an unskew module in a file.

    Imports of public modules are left out where only these are allowed.
    """
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            modules = [node.module]
            if node.module == "unskew":
                modules = [f"unskew.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        else:
            continue
        for module in modules:
            if public and module in PUBLIC_MODULES:
                continue
            parts = module.split(".")
            if parts[0] == "unskew" and len(parts) > 1 and parts[1] in RANK:
                yield node.lineno, parts[1]


def violations() -> Iterator[str]:
    """Yield a line for each import that goes the wrong way."""
    for path in sorted(PACKAGE.rglob("*.py")):
        layer = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if layer == "__init__":
            continue  # the front door imports lazily from everywhere
        if layer not in RANK:
            yield f"{path.relative_to(ROOT)}: '{layer}' is in no layer; add it to {__file__}"
            continue
        for line, target in imported_layers(path, public=layer in PUBLIC_ONLY):
            where = f"{path.relative_to(ROOT)}:{line}"
            if layer in PUBLIC_ONLY:
                if target not in PUBLIC_ONLY[layer]:
                    yield f"{where}: {layer} may use only the public interface, not {target}"
            elif target != layer and RANK[target] >= RANK[layer]:
                yield f"{where}: {layer} must not import {target}"
    for path in sorted((ROOT / "benchmarks").rglob("*.py")):
        for line, target in imported_layers(path, public=True):
            if target not in PUBLIC_ONLY["benchmarks"]:
                yield f"{path.relative_to(ROOT)}:{line}: benchmarks use only the public interface"


def main() -> int:
    """Print the violations; return 1 if there are any."""
    found = list(violations())
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
