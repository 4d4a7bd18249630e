"""One table of options, from which the parsers of all commands are made.

A command is a function of the values that were given, a namespace with an attribute for each of its
options; its docstring is its help, and :func:`command` says which options it takes. They are named
as the parameters of Python's functions are, so that :func:`call` can hand them on.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any, Literal, NamedTuple

import typer

from unskew.cli.methods import METHODS
from unskew.cli.outputs import check_report, check_table

REQUIRED = inspect.Parameter.empty
Given = SimpleNamespace
"""The values of a command's options."""
_Entry = tuple[Any, Any, Any]
"""The type of an option, what Typer is to know of it, and its default."""
MAX_UNCOVERED = 0.05
"""The share of the population that may be uncovered by the sample before weights are refused."""


def complete_columns(position: int) -> Callable[[typer.Context, str], list[str]]:
    """Return a function that completes the names of columns in the file at a position."""

    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        *before, last = incomplete.split(",")  # --columns takes a list
        prefix = "".join(f"{name}," for name in before)
        # An option that still lacks its value leaves the arguments before it unassigned.
        source = next(iter(ctx.args[position:]), None)
        return [prefix + name for name in columns_of(source) if name.startswith(last)]

    return complete


def columns_of(source: Any) -> list[str]:
    """Return the columns of files, from their beginnings; none if they cannot be read."""
    from unskew import Population
    from unskew.errors import UnskewError

    if not source or source == "-":
        return []
    try:
        return Population(source).columns
    except UnskewError:
        return []


def _argument(name: str, text: str, default: Any = REQUIRED) -> _Entry:
    kind = str if default is REQUIRED else str | None
    return kind, typer.Argument(metavar=name, help=text, show_default=False), default


def option(kind: Any, text: str, *names: str, default: Any = None, **more: Any) -> _Entry:
    """Return an option that is not required unless its default says so."""
    if default is None and kind is not bool:
        kind |= None
    elif kind is bool:
        default = bool(default)
    return kind, typer.Option(*names, help=text, **more), default


def choice(values: Sequence[str], text: str, default: str | None = None, **more: Any) -> _Entry:
    """Return an option that takes one of some words."""
    return option(one_of(values), text, default=default, **more)


def one_of(values: Sequence[str]) -> Any:
    """Return the type of one of some words."""
    return Literal[tuple(values)]


def column(text: str, *names: str, position: int = 0, default: Any = None) -> _Entry:
    """Return an option that names a column of the file at a position among the arguments."""
    complete = complete_columns(position)
    return option(str, text, *names, default=default, metavar="COLUMN", autocompletion=complete)


def _columns(text: str, position: int = 0) -> _Entry:
    complete = complete_columns(position)
    return option(list[str], text, metavar="COLUMN,…", autocompletion=complete)


def method(default: str) -> _Entry:
    """Return the option that names a method, with what is the default in words."""
    text = f"How to weigh: {', '.join(METHODS)}. Default: {default}."
    return choice(list(METHODS), text, metavar="NAME")


def output(text: str, default: Any = None) -> _Entry:
    """Return the option of a file, or a folder, to write."""
    return option(Path, text, "--output", "-o", default=default)


_ROWS = "a Parquet, CSV, TSV or text file (also .gz), a glob in quotes, or - for standard input."
_POPULATION, _NEW = 1, 1  # their positions among the arguments
_IDENTIFIER = "The column that identifies the rows. Default: row numbers from 0."
_CATEGORIES = "Columns whose numbers are codes of categories, such as regions 1 to 16."

OPTIONS: dict[str, _Entry] = {
    "sample": _argument("SAMPLE", f"The rows to weigh: {_ROWS}"),
    "new": _argument("NEW", f"The rows to weigh: {_ROWS}"),
    "weighter": (
        Path,
        _argument("WEIGHTER", "The file that unskew weigh --save has written.")[1],
        REQUIRED,
    ),
    "population": _argument(
        "POPULATION",
        "The population, or an unbiased reference sample of it: a Parquet, CSV, TSV or text file "
        "(also .gz), a glob in quotes, or a folder. Or --margins.",
        None,
    ),
    "margins": option(
        str,
        "Instead of POPULATION, known totals of it: a table with the columns variable, "
        "category and count, share or percent.",
        metavar="FILE",
    ),
    "reconcile": option(
        bool, "Scale counts and shares of --margins that add up to different totals.", "--reconcile"
    ),
    "target": column("The label's column in SAMPLE; POPULATION does not need it."),
    "identifier": column(_IDENTIFIER, "--id"),
    "columns": _columns("The features. Default: every column without another role."),
    "exclude": _columns("Columns of SAMPLE that are not features."),
    "categories": _columns(_CATEGORIES),
    "unlabelled": choice(
        ("raise", "drop", "population"),
        "What to do with rows of SAMPLE without a label: raise an error, drop them, or "
        "take all rows of SAMPLE as the population, instead of POPULATION.",
        "raise",
    ),
    "sample_weight": column("Design weights of SAMPLE's rows."),
    "population_weight": column("Design weights of POPULATION's rows.", position=_POPULATION),
    "delimiter": option(
        str,
        "What separates the columns of text files: a character, or the word tab. Default: by "
        "the file's ending.",
        metavar="CHARACTER",
    ),
    "quiet": option(bool, "Print only warnings and errors.", "--quiet", "-q"),
    "method": method("auto, or rake with --margins"),
    "setting": option(
        list[str],
        "A parameter of the method, name=value; repeat for more.",
        "--set",
        metavar="NAME=VALUE",
    ),
    "strata": column("The stratum of each row of SAMPLE."),
    "clusters": column("The cluster of each row of SAMPLE."),
    "allow_uncovered": option(
        float,
        "Refuse if more of the population than this is not covered by the sample.",
        default=MAX_UNCOVERED,
        min=0.0,
        max=1.0,
        metavar="SHARE",
    ),
    "output": option(
        Path,
        "Where to write the weights: .parquet or .csv.",
        "--output",
        "-o",
        default=REQUIRED,
        metavar="FILE",
        callback=check_table,
    ),
    "report": option(
        Path,
        "Write a report: .html, one page that needs no network, .md or .json.",
        metavar="FILE",
        callback=check_report,
    ),
    "title": option(str, "The title of the report.", metavar="TEXT"),
    "as_json": option(bool, "Print everything as JSON, for other programs.", "--json"),
    "random_state": option(
        int, "The seed of the random draws.", "--seed", default=0, min=0, max=2**32 - 1
    ),
    "identifier of NEW": column(_IDENTIFIER, "--id", position=_NEW),
    "categories of NEW": _columns(_CATEGORIES, _NEW),
}
SAMPLE = (
    *("sample", "population", "margins", "reconcile", "target", "identifier", "columns"),
    *("exclude", "categories", "unlabelled", "sample_weight", "population_weight"),
    *("delimiter", "quiet"),
)
"""The files of sample and population, and the columns with a role."""
WEIGHING = (*SAMPLE, "method", "setting", "strata", "clusters", "allow_uncovered")
"""The same, how the sample is weighed, and its design."""


class Command(NamedTuple):
    """A function of the values that are given, and its options."""

    run: Callable[[Given], None]
    options: dict[str, _Entry]


def command(*names: str, **own: _Entry) -> Callable[[Callable[[Given], None]], Command]:
    """Make a function a command with options of the table, and with its own."""
    options = {name.split()[0]: OPTIONS[name] for name in names} | own
    return lambda run: Command(run, options)


def register(app: typer.Typer, added: Command) -> None:
    """Add a command to the application, under the name of its function."""

    def parse(**given: Any) -> None:
        added.run(Given(**given))

    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters = [
        inspect.Parameter(name, keyword, default=default, annotation=Annotated[kind, info])
        for name, (kind, info, default) in added.options.items()
    ]
    parameters.sort(key=lambda one: one.default is not REQUIRED)  # what is required comes first
    parse.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    parse.__annotations__ = {one.name: one.annotation for one in parameters}
    story = str(inspect.getdoc(added.run)).split("\n\n")
    as_it_is = ("unskew ", "vacancies: ")  # lines that are not to be wrapped, marked for Click
    text = "\n\n".join("\b\n" * part.startswith(as_it_is) + part for part in story)
    app.command(added.run.__name__, help=text, short_help=story[0])(parse)


def call(function: Callable[..., Any], given: Given, **more: Any) -> Any:
    """Call a function with the options that are named as its parameters are."""
    known = inspect.signature(function).parameters
    own = {name: value for name, value in vars(given).items() if name in known}
    return function(**own | more)
