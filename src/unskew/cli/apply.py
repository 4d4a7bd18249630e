"""``unskew apply``: weights for new rows, by a weighter that was kept."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unskew.cli import options

if TYPE_CHECKING:
    import pyarrow as pa


def apply(
    weighter: Annotated[
        Path,
        typer.Argument(
            metavar="WEIGHTER", help="What unskew weigh --save has kept.", show_default=False
        ),
    ],
    new: Annotated[
        str,
        typer.Argument(
            metavar="NEW",
            help="The rows to weigh: a Parquet or CSV file, a glob in quotes, or - for CSV from "
            "standard input.",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Where the weights go: .parquet or .csv.")
    ],
    identifier: options.IdentifierOfNew = None,
    quiet: options.Quiet = False,
) -> None:
    r"""Weigh new rows, drawn as the sample was, by a weighter that was kept.

    The weights are in the scale of the sample's own. A file that holds
    anything but a weighter of unskew is refused, and nothing in it is run.

    [bold]Keep a weighter, then use it:[/bold]

    unskew weigh answers.csv customers.parquet --target spend \
      -o weights.csv --save weighter.skops

    unskew apply weighter.skops later-answers.csv -o later-weights.csv
    """
    from unskew import effective_sample_size, load_weighter
    from unskew.cli.inputs import identifiers_of, read_rows
    from unskew.cli.outputs import (
        check_output,
        check_outputs,
        note_to_stderr,
        told_as_notes,
        write_weights,
    )
    from unskew.files import whole_file

    check_outputs([check_output(output)], [str(weighter), new])
    with whole_file(output) as temporary:
        loaded = load_weighter(weighter)
        rows = read_rows(new, identifier=identifier)
        features = _features(rows, loaded)
        others = set(rows.column_names) - {*features.column_names, identifier}
        if others and not quiet:
            note_to_stderr(
                f"No features of the weighter, and not used: {', '.join(sorted(others))}."
            )
        with told_as_notes():
            weights = _weigh(loaded, features, weighter)
        write_weights(identifiers_of(rows, identifier), weights, temporary, output)
    if not quiet:
        typer.echo(f"{rows.num_rows:,} rows weighed by {type(loaded).__name__}.")
        if weights.any():
            effective = effective_sample_size(weights)
            typer.echo(
                f"Effective sample size: {effective:,.1f} ({effective / rows.num_rows:.0%} of the "
                "rows)."
            )
        typer.echo(f"Written: {output}")


def _features(rows: pa.Table, weighter: Any) -> pa.Table:
    """Return the columns that the weighter was fitted with."""
    from unskew import InputError

    fitted = list(getattr(weighter, "feature_names_in_", rows.column_names))
    missing = [name for name in fitted if name not in rows.column_names]
    if missing:
        raise InputError(
            f"The new rows lack column '{missing[0]}', with which the weighter was fitted. Their "
            f"columns are {', '.join(rows.column_names[:10])}."
        )
    return rows.select(fitted)


def _weigh(weighter: Any, features: pa.Table, path: Path) -> Any:
    from unskew import InputError, UnskewError

    try:
        return weighter.weigh(features)
    except UnskewError:
        raise
    except Exception as error:  # a file may be a weighter throughout and yet not fit together
        raise InputError(
            f"The weighter in '{path}' does not work ({type(error).__name__}: {error})."
        ) from error
