"""The options and arguments that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from unskew.cli.methods import Method
from unskew.cli.outputs import check_report


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


_SAMPLE, _POPULATION, _NEW = 0, 1, 1  # their positions among the arguments
_ROWS = "a Parquet, CSV, TSV or text file (also .gz), a glob in quotes, or - for standard input."


def _argument(name: str, help_text: str) -> Any:
    return typer.Argument(metavar=name, help=help_text, show_default=False)


def column(help_text: str, position: int = _SAMPLE, *names: str, metavar: str = "COLUMN") -> Any:
    """Return an option that names columns of the file at a position among the arguments."""
    return typer.Option(
        *names, metavar=metavar, help=help_text, autocompletion=complete_columns(position)
    )


def method(default: str) -> Any:
    """Return the option that names a method."""
    names = ", ".join(Method)
    return typer.Option(metavar="NAME", help=f"How to weigh: {names}. Default: {default}.")


_CATEGORIES = "Columns whose numbers are codes of categories, such as regions 1 to 16."
_IDENTIFIER = "The column that identifies the rows. Default: row numbers from 0."

Sample = Annotated[str, _argument("SAMPLE", f"The rows to weigh: {_ROWS}")]
New = Annotated[str, _argument("NEW", f"The rows to weigh: {_ROWS}")]
Weighter = Annotated[Path, _argument("WEIGHTER", "The file that unskew weigh --save has written.")]
Population = Annotated[
    str | None,
    _argument(
        "POPULATION",
        "The population, or an unbiased reference sample of it: a Parquet, CSV, TSV or text file "
        "(also .gz), a glob in quotes, or a folder. Or --margins.",
    ),
]
MarginsFile = Annotated[
    str | None,
    typer.Option(
        "--margins",
        metavar="FILE",
        help="Instead of POPULATION, known totals of it: a table with the columns variable, "
        "category and count, share or percent.",
    ),
]
Reconcile = Annotated[
    bool,
    typer.Option(
        "--reconcile",
        help="Scale counts and shares of --margins that add up to different totals.",
    ),
]
Output = Annotated[
    Path,
    typer.Option(
        "--output", "-o", metavar="FILE", help="Where to write the weights: .parquet or .csv."
    ),
]
Target = Annotated[str | None, column("The label's column in SAMPLE; POPULATION does not need it.")]
Identifier = Annotated[str | None, column(_IDENTIFIER, _SAMPLE, "--id")]
IdentifierOfNew = Annotated[str | None, column(_IDENTIFIER, _NEW, "--id")]
Columns = Annotated[
    list[str] | None,
    column("The features. Default: every column without another role.", metavar="COLUMN,…"),
]
Exclude = Annotated[
    list[str] | None, column("Columns of SAMPLE that are not features.", metavar="COLUMN,…")
]
Categories = Annotated[list[str] | None, column(_CATEGORIES, metavar="COLUMN,…")]
CategoriesOfNew = Annotated[list[str] | None, column(_CATEGORIES, _NEW, metavar="COLUMN,…")]
SampleWeight = Annotated[str | None, column("Design weights of SAMPLE's rows.")]
PopulationWeight = Annotated[
    str | None, column("Design weights of POPULATION's rows.", _POPULATION)
]
Delimiter = Annotated[
    str | None,
    typer.Option(
        metavar="CHARACTER",
        help="What separates the columns of text files: a character, or the word tab. Default: by "
        "the file's ending.",
    ),
]
Report = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        callback=check_report,
        help="Write a report: .html, one page that needs no network, .md or .json.",
    ),
]
Title = Annotated[str | None, typer.Option(metavar="TEXT", help="The title of the report.")]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print everything as JSON, for other programs.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only warnings and errors.")]
Seed = Annotated[int, typer.Option(min=0, max=2**32 - 1, help="The seed of the random draws.")]
