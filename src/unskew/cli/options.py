"""The options and arguments that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from unskew.cli.completion import columns_of

__all__ = [
    "Columns",
    "Exclude",
    "Identifier",
    "IdentifierOfNew",
    "Population",
    "PopulationWeight",
    "Quiet",
    "Report",
    "Sample",
    "SampleWeight",
    "Target",
]

_SAMPLE, _POPULATION, _NEW = 0, 1, 1  # their positions among the arguments

Sample = Annotated[
    str,
    typer.Argument(
        metavar="SAMPLE",
        help="The rows to weigh: a Parquet or CSV file (also .csv.gz), a glob in quotes, or - for "
        "CSV from standard input.",
        show_default=False,
    ),
]
Population = Annotated[
    str,
    typer.Argument(
        metavar="POPULATION",
        help="Rows as the world draws them: a Parquet or CSV file, a glob in quotes, or a folder.",
        show_default=False,
    ),
]
Target = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="The label's column in SAMPLE; POPULATION needs none.",
        autocompletion=columns_of(_SAMPLE),
    ),
]


def _identifier(position: int) -> Any:
    return typer.Option(
        "--id",
        metavar="COLUMN",
        help="Names the rows; otherwise they have numbers, from 0.",
        autocompletion=columns_of(position),
    )


Identifier = Annotated[str | None, _identifier(_SAMPLE)]
IdentifierOfNew = Annotated[str | None, _identifier(_NEW)]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN,…",
        help="The features. Default: every column without another part.",
        autocompletion=columns_of(_SAMPLE),
    ),
]
Exclude = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN,…",
        help="Columns of SAMPLE that are no features.",
        autocompletion=columns_of(_SAMPLE),
    ),
]
SampleWeight = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Design weights of SAMPLE's rows.",
        autocompletion=columns_of(_SAMPLE),
    ),
]
PopulationWeight = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Design weights of POPULATION's rows.",
        autocompletion=columns_of(_POPULATION),
    ),
]
Report = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Write a report for people (.html): one file, no network."),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but warnings and errors.")]
