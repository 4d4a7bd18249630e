"""``unskew apply``: weights for new rows, from a saved weighter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from unskew.cli import options

if TYPE_CHECKING:
    import pyarrow as pa


def apply(
    weighter: options.Weighter,
    new: options.New,
    output: options.Output,
    identifier: options.IdentifierOfNew = None,
    delimiter: options.Delimiter = None,
    quiet: options.Quiet = False,
) -> None:
    r"""Weigh new rows, selected as the sample was, with a saved weighter.

    The weights are in the scale of the sample's weights. A file that holds
    anything but a weighter of unskew is refused, and nothing in it is run.

    [bold]Save a weighter, then use it:[/bold]

    unskew weigh answers.csv customers.parquet --target spend \
      -o weights.csv --save weighter.skops

    unskew apply weighter.skops later-answers.csv -o later-weights.csv
    """
    from unskew import InputError, UnskewError, load_weighter
    from unskew.cli.columns import row_identifiers
    from unskew.cli.inputs import read_rows
    from unskew.cli.outputs import (
        check_outputs,
        check_table,
        print_note,
        warnings_as_notes,
        write_weights,
    )
    from unskew.cli.reports import format_effective_size
    from unskew.files import whole_file

    check_outputs([check_table(output)], [str(weighter), new])
    with whole_file(output) as temporary:
        loaded = load_weighter(weighter)
        rows = read_rows(new, identifier=identifier, delimiter=delimiter)
        features = _features(rows, loaded, new)
        others = set(rows.column_names) - {*features.column_names, identifier}
        if others and not quiet:
            print_note(f"Ignoring columns that are not features: {', '.join(sorted(others))}.")
        with warnings_as_notes():
            try:
                weights = loaded.weigh(features)
            except UnskewError:
                raise
            except Exception as error:  # the file's parts may be valid and yet not fit together
                raise InputError(
                    f"The weighter in '{weighter}' does not work ({type(error).__name__}: {error})."
                ) from error
        write_weights(row_identifiers(rows, identifier), weights, temporary, output)
    if not quiet:
        typer.echo(f"{rows.num_rows:,} rows weighed by {type(loaded).__name__}.")
        if weights.any():
            typer.echo(format_effective_size(weights))
        typer.echo(f"Written: {output}")


def _features(rows: pa.Table, weighter: Any, source: str) -> pa.Table:
    """Return the columns that the weighter was fitted with."""
    from unskew import InputError
    from unskew.population.column_names import which_there_are

    fitted = list(getattr(weighter, "feature_names_in_", rows.column_names))
    missing = [name for name in fitted if name not in rows.column_names]
    if missing:
        raise InputError(
            f"'{source}' lacks column '{missing[0]}', which the weighter was fitted with."
            f"{which_there_are(missing[0], rows.column_names)}"
        )
    return rows.select(fitted)
