"""``unskew apply``: weights for new rows, from a saved weighter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from unskew.cli import options
from unskew.cli.arguments import Command

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, kw_only=True)
class Apply(Command):
    r"""Weigh new rows, selected as the sample was, with a saved weighter.

    The weights are in the scale of the sample's weights. A file that holds
    anything but a weighter of unskew is refused, and nothing in it is run.

    Save a weighter, then use it:

    unskew weigh answers.csv customers.parquet --target spend \
      -o weights.csv --save weighter.skops

    unskew apply weighter.skops later-answers.csv -o later-weights.csv
    """

    weighter: options.Weighter
    new: options.New
    output: options.Output
    identifier: options.IdentifierOfNew = None
    categories: options.CategoriesOfNew = None
    delimiter: options.Delimiter = None
    quiet: options.Quiet = False

    def run(self) -> None:
        """Weigh the new rows and write their weights."""
        from unskew import load_weighter
        from unskew.cli.inputs import read_rows, row_identifiers
        from unskew.cli.outputs import check_outputs, check_table, print_note, write_weights
        from unskew.cli.reports import format_effective_size
        from unskew.files import whole_file

        check_outputs([check_table(self.output)], [str(self.weighter), self.new])
        with whole_file(self.output) as temporary:
            loaded = load_weighter(self.weighter)
            rows = read_rows(
                self.new,
                identifier=self.identifier,
                categories=self.categories,
                delimiter=self.delimiter,
                side="NEW",
            )
            features = _features(rows, loaded, self.new)
            others = set(rows.column_names) - {*features.column_names, self.identifier}
            if others and not self.quiet:
                print_note(f"Ignoring columns that are not features: {', '.join(sorted(others))}.")
            weights = self._weigh(loaded, features)
            identifiers = row_identifiers(rows, self.identifier)
            write_weights(identifiers, weights, temporary, self.output)
        if not self.quiet:
            print(f"{rows.num_rows:,} rows weighed by {type(loaded).__name__}.")
            if weights.any():
                print(format_effective_size(weights))
            print(f"Written: {self.output}")

    def _weigh(self, loaded: Any, features: pa.Table) -> Any:
        from unskew.cli.outputs import warnings_as_notes
        from unskew.cli.progress import progress_shown
        from unskew.errors import InputError, UnskewError

        try:
            with progress_shown("Weighing", quiet=self.quiet), warnings_as_notes():
                return loaded.weigh(features)
        except UnskewError:
            raise
        except Exception as error:  # the file's parts may be valid and yet not fit together
            why = f"{type(error).__name__}: {error}"
            raise InputError(f"The weighter in '{self.weighter}' does not work ({why}).") from error


def _features(rows: pa.Table, weighter: Any, source: str) -> pa.Table:
    """Return the columns that the weighter was fitted with."""
    from unskew.errors import InputError
    from unskew.rows.column_names import which_there_are

    fitted = list(getattr(weighter, "feature_names_in_", rows.column_names))
    missing = [name for name in fitted if name not in rows.column_names]
    if missing:
        raise InputError(
            f"'{source}' lacks column '{missing[0]}', which the weighter was fitted with."
            f"{which_there_are(missing[0], rows.column_names)}"
        )
    return rows.select(fitted)
