"""Check that imports go one way through the layers, as CONTRIBUTING.md draws them.

1. A module may import its own layer and any layer below it.
2. ``paper``, the paper's experiment, and benchmarks may use only the names that ``unskew`` exports,
   the public modules, the errors and ``paper``; ``cli`` also ``files``.
3. A name with an underscore belongs to its layer: no other layer may import it, or read it as an
   attribute (``weighter._name``, ``getattr(weighter, "_name")``). An attribute counts as another
   layer's if only other layers define it. ``_compat``, the door to scikit-learn's private names, is
   free.
4. No import in a function or under ``TYPE_CHECKING`` may close a cycle of modules.

These count as an import of a layer:

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
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

LAYERS = [  # from the bottom up; names in one entry may not import one another
    {"errors"},
    {"_compat"},
    {"files"},
    {"numerics"},
    {"rows"},
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
FRONT = {"__init__", "_public", "results"}  # public names, imported when they are first used
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
PUBLIC_MODULES = {"unskew.theory", "unskew.results"}
PUBLIC_ONLY = {  # and which layers they may use besides
    "paper": {"paper", "errors"},
    "benchmarks": {"paper", "errors"},
    "cli": {"cli", "paper", "errors", "files", "results"},
    "__main__": {"cli"},
}
EXCEPTIONS = {
    # Diagnosis.to_html() loads the report when it is called, so that a Diagnosis can show itself.
    ("src/unskew/diagnostics/diagnosis.py", "unskew.report"),
    ("src/unskew/estimation/results.py", "unskew.report"),  # in the same way
}
FOREIGN = {"_gamma"}  # private names of scikit-learn that a layer of ours happens to define, too
ROOT = Path(__file__).resolve().parent.parent
_DOTTED = re.compile(r"unskew(\.[\w{}]+)+")


class Import(NamedTuple):
    """An import of unskew: its line, the module, the name taken from it, and whether it is late.

    ``late`` is what is imported when a function runs or for types alone.
    """

    line: int
    module: str
    name: str
    late: bool


class Module(NamedTuple):
    """A module of the package or of the benchmarks, as its source says."""

    name: str
    layer: str
    file: str
    tree: ast.Module
    is_package: bool

    @property
    def package(self) -> str:
        """The package that relative imports start from."""
        return self.name if self.is_package else self.name.rpartition(".")[0]


def read_modules(root: Path) -> list[Module]:
    """Return all modules of the package and of the benchmarks."""
    found = []
    for base, folder in ((root / "src", "unskew"), (root, "benchmarks")):
        for path in sorted((base / folder).rglob("*.py")):
            parts = path.relative_to(base).with_suffix("").parts
            is_package = parts[-1] == "__init__"
            layer = "benchmarks" if folder == "benchmarks" else parts[1]
            name = ".".join(parts[:-1] if is_package else parts)
            tree = ast.parse(path.read_text(encoding="utf-8"))
            found.append(Module(name, layer, path.relative_to(root).as_posix(), tree, is_package))
    return found


def imports_of(module: Module) -> Iterator[Import]:
    """Yield each import of unskew in a module, by statement or by string."""
    late, ignored = _late_nodes(module.tree), _not_imports(module.tree)
    for node in ast.walk(module.tree):
        is_late = id(node) in late
        if isinstance(node, ast.Import):
            yield from (Import(node.lineno, alias.name, "", is_late) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            source = _absolute(node, module.package)
            for alias in node.names:
                yield Import(node.lineno, source, alias.name, is_late)
        elif (
            isinstance(node, ast.expr)
            and id(node) not in ignored
            and _DOTTED.fullmatch(text := _text(node))
        ):
            yield Import(node.lineno, text, "", is_late)


def _late_nodes(tree: ast.Module) -> set[int]:
    """Return the ids of what is inside functions or under ``TYPE_CHECKING``."""
    found: set[int] = set()
    for node in ast.walk(tree):
        is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if is_function or (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)):
            found.update(map(id, ast.walk(node)))
    return found


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


def exported_homes(package: Path) -> dict[str, str]:
    """Return the module of each name that ``unskew/__init__.pyi`` lists."""
    front = package / "__init__.pyi"
    if not front.exists():
        return {}
    return {
        alias.asname or alias.name: node.module
        for node in ast.walk(ast.parse(front.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("unskew.")
        for alias in node.names
    }


# The rules: each yields a line and what is wrong there. ------------------------------------------


def wrong_ways(module: Module, homes: Mapping[str, str]) -> Iterator[tuple[int, str]]:
    """Yield imports of a higher layer, and past the public names where these alone are allowed."""
    allowed = PUBLIC_ONLY.get(module.layer)
    for line, source, name, _ in imports_of(module):
        from_front = source == "unskew" and name
        target = (f"unskew.{name}" if from_front else source).partition(".")[2].split(".")[0]
        if not source.startswith("unskew") or (module.file, source) in EXCEPTIONS:
            continue
        if "{" in target:
            yield line, "the layer of an import must not be a variable"
        elif allowed is None:
            home = homes.get(target, f"unskew.{target}").split(".")[1] if target else ""
            if home in RANK and home != module.layer and RANK[home] >= RANK[module.layer]:
                yield line, f"{module.layer} must not import {home}"
        elif target in RANK and target not in allowed:
            taken = f"unskew.{target}" if from_front else f"{source}.{name}".rstrip(".")
            if not {source, taken} & PUBLIC_MODULES:
                yield line, f"{module.layer} may use only public names, not {taken}"


def private_names(module: Module, owners: Mapping[str, set[str]]) -> Iterator[tuple[int, str]]:
    """Yield names with an underscore that another layer defines."""
    for line, source, name, _ in imports_of(module):
        target = (*source.split("."), "")[1]
        if source.startswith("unskew.") and target not in {module.layer, "_compat"}:
            for part in filter(_is_private, (*source.split(".")[2:], name)):
                yield line, f"{module.layer} must not use {part}, private elsewhere"
    for line, name in _attributes(module.tree):
        if name in owners and module.layer not in owners[name] and name not in FOREIGN:
            yield line, f"{module.layer} must not use {name}, private elsewhere"


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def _attributes(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the private attributes that are read from anything but ``self`` and ``cls``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and _is_private(node.attr):
            if not (isinstance(node.value, ast.Name) and node.value.id in {"self", "cls"}):
                yield node.lineno, node.attr
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in {"getattr", "hasattr"}
            and _is_private(name := _text(node.args[1]))
        ):
            yield node.lineno, name


def private_owners(modules: Iterable[Module]) -> dict[str, set[str]]:
    """Return, for each private name, the layers that define it; variables of functions are none."""
    owners: dict[str, set[str]] = defaultdict(set)
    for module in modules:
        inside = _late_nodes(module.tree)
        for node in ast.walk(module.tree):
            name = ""
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                name = node.name
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                name = "" if id(node) in inside else node.id
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                name = node.attr
            if _is_private(name):
                owners[name].add(module.layer)
    return owners


class Cycles:
    """The graph of all imports between modules, and which late ones close a cycle in it."""

    def __init__(self, modules: Iterable[Module], homes: Mapping[str, str]) -> None:
        self.names = {module.name for module in modules}
        self.homes = homes
        self.edges: dict[str, set[str]] = defaultdict(set)
        for module in modules:
            self.edges[module.name] = {self._target(one) for one in imports_of(module)} - {""}

    def _target(self, one: Import) -> str:
        """Return the module that an import loads, or nothing if it is not ours."""
        if one.module == "unskew":
            return self.homes.get(one.name, "")
        inner = f"{one.module}.{one.name}"
        return inner if inner in self.names else one.module if one.module in self.names else ""

    def closed_by(self, module: Module) -> Iterator[tuple[int, str]]:
        """Yield the late imports of a module from which a way leads back to it."""
        for one in imports_of(module):
            target = self._target(one)
            is_own = f"{module.name}.".startswith(f"{target}.")  # a module's package comes with it
            if not one.late or not target or is_own or (module.file, one.module) in EXCEPTIONS:
                continue
            if self._leads(target, module.name):
                yield one.line, f"{module.name} imports {target} late: a cycle"

    def _leads(self, start: str, end: str) -> bool:
        seen, left = set(), [start]
        while left:
            place = left.pop()
            if place == end:
                return True
            if place not in seen:
                seen.add(place)
                left += self.edges[place]
        return False


def found(root: Path = ROOT) -> Iterator[tuple[str, str]]:
    """Yield where something is wrong, and what."""
    homes = exported_homes(root / "src" / "unskew")
    modules = read_modules(root)
    ours = [module for module in modules if module.layer not in {*FRONT, "benchmarks"}]
    owners, cycles = private_owners(ours), Cycles(ours, homes)
    for module in modules:
        if module.layer in FRONT:
            continue
        if module.layer not in {*RANK, "benchmarks"}:
            yield module.file, f"'{module.layer}' is in no layer; add it to {__file__}"
            continue
        wrong = [
            *wrong_ways(module, homes),
            *private_names(module, owners),
            *cycles.closed_by(module),
        ]
        yield from ((f"{module.file}:{line}", what) for line, what in sorted(wrong))


def violations(root: Path = ROOT) -> list[str]:
    """Return a line for each violation."""
    return [f"{place}: {what}" for place, what in found(root)]


def main() -> int:
    """Print the violations; return 1 if there are any."""
    lines = violations()
    for line in lines:
        print(line)
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
