"""``unskew apply``: weights for new rows, from a saved weighter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unskew.cli.options import Given, command

if TYPE_CHECKING:
    import pyarrow as pa


@command(
    *("weighter", "new", "output", "identifier of NEW", "categories of NEW", "delimiter", "quiet")
)
def apply(given: Given) -> None:
    r"""Weigh new rows, selected as the sample was, with a saved weighter.

    The weights are in the scale of the sample's weights. A file that holds
    anything but a weighter of unskew is refused, and nothing in it is run.

    Save a weighter, then use it:

    unskew weigh answers.csv customers.parquet --target spend \
      -o weights.csv --save weighter.skops

    unskew apply weighter.skops later-answers.csv -o later-weights.csv
    """
    from unskew import load_weighter
    from unskew.cli.inputs import read_rows, row_identifiers
    from unskew.cli.outputs import (
        check_outputs,
        format_effective_size,
        print_note,
        write_weights,
    )
    from unskew.files import whole_file

    check_outputs([given.output], [str(given.weighter), given.new])
    with whole_file(given.output) as temporary:
        loaded = load_weighter(given.weighter)
        rows = read_rows(given.new, given.identifier, given.categories, given.delimiter, "NEW")
        features = _features(rows, loaded, given.new)
        others = set(rows.column_names) - {*features.column_names, given.identifier}
        if others and not given.quiet:
            print_note(f"Ignoring columns that are not features: {', '.join(sorted(others))}.")
        weights = _weigh(loaded, features, given)
        identifiers = row_identifiers(rows, given.identifier)
        write_weights(identifiers, weights, temporary, given.output)
    if not given.quiet:
        print(f"{rows.num_rows:,} rows weighed by {type(loaded).__name__}.")
        if weights.any():
            print(format_effective_size(weights))
        print(f"Written: {given.output}")


def _weigh(loaded: Any, features: pa.Table, given: Given) -> Any:
    from unskew.cli.outputs import warnings_as_notes
    from unskew.cli.progress import progress_shown
    from unskew.errors import InputError, UnskewError

    try:
        with progress_shown("Weighing", quiet=given.quiet), warnings_as_notes(given):
            return loaded.weigh(features)
    except UnskewError:
        raise
    except Exception as error:  # the file's parts may be valid and yet not fit together
        why = f"{type(error).__name__}: {error}"
        raise InputError(f"The weighter in '{given.weighter}' does not work ({why}).") from error


def _features(rows: pa.Table, weighter: Any, source: str) -> pa.Table:
    """Return the columns that the weighter was fitted with."""
    from unskew.errors import InputError, which_there_are

    fitted = list(getattr(weighter, "feature_names_in_", rows.column_names))
    missing = [name for name in fitted if name not in rows.column_names]
    if missing:
        raise InputError(
            f"'{source}' lacks column '{missing[0]}', which the weighter was fitted with."
            f"{which_there_are(missing[0], rows.column_names)}"
        )
    return rows.select(fitted)


COMMAND = apply
