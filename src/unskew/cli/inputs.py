"""Sample and population of a command: which columns are features, which have other roles."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unskew.cli.outputs import print_note
from unskew.errors import InputError, InputTypeError, ParameterError

if TYPE_CHECKING:
    import pyarrow as pa

    from unskew import Population


STDIN = "-"


@dataclass(frozen=True)
class Roles:
    """The columns that the options name; an entry of a list may hold several names with commas."""

    target: str | None = None
    identifier: str | None = None
    sample_weight: str | None = None
    columns: Sequence[str] | None = None
    exclude: Sequence[str] | None = None
    population_weight: str | None = None


@dataclass(frozen=True)
class SampleFile:
    """A sample, its columns sorted by their roles."""

    features: pa.Table
    labels: Any
    design: Any
    identifiers: pa.Table
    """One column: the one that was named, else ``row``, the numbers from 0."""

    def __len__(self) -> int:
        return int(self.features.num_rows)


@contextmanager
def open_inputs(
    sample: str,
    population: str,
    roles: Roles,
    *,
    quiet: bool,
    checkpoint: Path | None = None,
    delimiter: str | None = None,
) -> Iterator[tuple[SampleFile, Population]]:
    """Give sample and population; passes over the population in the block show their progress."""
    from rich.console import Console

    from unskew.cli.progress import population_progress, show_progress

    rows = open_sample(sample, roles, delimiter)
    console = Console(stderr=True, highlight=False)
    with show_progress("Reading the population", console, quiet=quiet) as show:
        options = {
            "weight": roles.population_weight,
            "progress": population_progress(show),
            "checkpoint": checkpoint,
            "delimiter": character(delimiter),
        }
        names = rows.features.column_names
        yield rows, _open_population(population, names, roles.target, quiet, options)


def character(delimiter: str | None) -> str | None:
    r"""Return the delimiter that --delimiter names: in a shell a tab is tab or \t."""
    return "\t" if delimiter in ("tab", r"\t") else delimiter


def read_rows(
    source: str, *, identifier: str | None = None, delimiter: str | None = None
) -> pa.Table:
    """Read a file or glob, or standard input for "-"."""
    from unskew import read_sample

    data = sys.stdin.buffer if source == STDIN else source
    identifiers = [identifier] if identifier else []
    return read_sample(data, identifiers=identifiers, delimiter=character(delimiter))


def open_sample(source: str, roles: Roles, delimiter: str | None = None) -> SampleFile:
    """Read the sample and separate its features from its other columns."""
    table = read_rows(source, identifier=roles.identifier, delimiter=delimiter)
    weight = roles.sample_weight
    return SampleFile(
        features=table.select(_features(table, roles)),
        labels=None if roles.target is None else _labels(table, roles.target),
        design=None if weight is None else _numbers(table, weight, "--sample-weight"),
        identifiers=row_identifiers(table, roles.identifier),
    )


def _open_population(
    source: str, features: list[str], target: str | None, quiet: bool, options: dict[str, Any]
) -> Population:
    """Open the population with the sample's features, and note which columns are ignored."""
    from unskew import Population

    if source == STDIN:
        raise ParameterError(
            "Only SAMPLE can be - (standard input): POPULATION may be read more than once."
        )
    population = Population(source, **options)
    if missing := [name for name in features if name not in population.columns]:
        raise InputError(
            f"The population lacks {_join(missing)}, which the sample has. Its columns are "
            f"{_join(population.columns)}. If it is not a feature, name it with --target, --id "
            "or --sample-weight, or drop it with --exclude."
        )
    extra = [name for name in population.columns if name not in features]
    if not extra:
        return population
    others = [name for name in extra if name != target]
    if target in extra and not quiet:
        print_note(f"Ignoring population column '{target}': it is the target.")
    if others and not quiet:
        print_note(f"Ignoring population columns that are not features: {_join(others)}.")
    return Population(source, columns=features, **options)


def read_weights(source: str, sample: SampleFile) -> Any:
    """Read weights as ``unskew weigh`` writes them, in the sample's order."""
    import numpy as np
    import pyarrow.compute as pc

    (name,) = sample.identifiers.column_names
    table = read_rows(source, identifier=name)
    if name not in table.column_names or "weight" not in table.column_names:
        raise InputError(
            f"'{source}' must have the columns '{name}' and 'weight'; it has "
            f"{_join(table.column_names)}. Name the column that both files share with --id."
        )
    theirs = row_identifiers(table, name).column(name)
    ours = sample.identifiers.column(name)
    if theirs.type != ours.type:
        theirs, ours = (column.cast("string") for column in (theirs, ours))
    places = pc.index_in(ours, value_set=theirs.combine_chunks())
    if len(theirs) != len(ours) or places.null_count:
        raise InputError(
            f"The weights in '{source}' do not match the sample: they have {len(theirs):,} rows, "
            f"the sample {len(ours):,}, of which {places.null_count:,} have no weight."
        )
    return _numbers(table, "weight", f"'{source}'")[np.asarray(places.to_numpy())]


def row_identifiers(table: pa.Table, identifier: str | None) -> pa.Table:
    """Return the column that identifies the rows, or their numbers."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    if identifier is None:
        return pa.table({"row": np.arange(table.num_rows)})
    if identifier == "weight":
        raise ParameterError("--id weight: the output's weights have this name. Rename the column.")
    column = _decoded(_column(table, identifier, "--id"))
    if column.null_count:
        raise InputError(
            f"Column '{identifier}' (--id) is missing in {column.null_count:,} rows; every row "
            "needs an identifier."
        )
    counts = pc.value_counts(column.combine_chunks())
    repeated = counts.filter(pc.greater(counts.field("counts"), 1))
    if len(repeated):
        value, count = repeated[0]["values"], repeated[0]["counts"].as_py()
        raise InputError(
            f"Column '{identifier}' (--id) does not identify rows: '{value}' occurs {count:,} "
            "times."
        )
    return pa.table({identifier: column})


def _features(table: pa.Table, roles: Roles) -> list[str]:
    chosen, excluded = _split(table, roles.columns), _split(table, roles.exclude)
    option_of: dict[str, str] = {}
    for option, names in (
        ("--columns", chosen),
        ("--sample-weight", [roles.sample_weight]),
        ("--id", [roles.identifier]),
        ("--target", [roles.target]),
    ):
        for name in names:
            if name is None:
                continue
            _column(table, name, option)
            if name in option_of:
                raise ParameterError(
                    f"{option_of[name]} and {option} both name '{name}'; a column has one role."
                )
            option_of[name] = option
    for name in excluded:
        _column(table, name, "--exclude")
    index = (table.schema.pandas_metadata or {}).get("index_columns", [])
    free = [name for name in table.column_names if name not in option_of and name not in index]
    features = [name for name in chosen or free if name not in excluded]
    if not features:
        raise InputError("No feature is left: every column is excluded or has another role.")
    return features


def _split(table: pa.Table, given: Sequence[str] | None) -> list[str]:
    """Return the names in a list whose entries are names or names with commas between them."""
    names = [[entry] if entry in table.column_names else entry.split(",") for entry in given or ()]
    return list(dict.fromkeys(name for entry in names for name in entry))


def _labels(table: pa.Table, target: str) -> Any:
    import pyarrow.compute as pc

    column = _decoded(table.column(target))
    missing = pc.sum(pc.is_null(column, nan_is_null=True)).as_py()
    if missing:
        raise InputError(
            f"The target '{target}' is missing in {missing:,} of {len(column):,} rows of the "
            "sample; every row needs one. Drop those rows."
        )
    return column.to_numpy()


def _numbers(table: pa.Table, name: str, origin: str) -> Any:
    """Return a column of numbers, missing ones as NaN."""
    import pyarrow as pa

    column = table.column(name)
    try:
        return column.cast(pa.float64()).to_numpy()
    except pa.ArrowException as error:
        raise InputTypeError(
            f"Column '{name}' ({origin}) must hold numbers; its type is {column.type}."
        ) from error


def _column(table: pa.Table, name: str, option: str) -> Any:
    if name not in table.column_names:
        raise InputError(
            f"{option} names '{name}', which is not a column of the sample. Its columns are "
            f"{_join(table.column_names)}."
        )
    return table.column(name)


def _decoded(column: Any) -> Any:
    """Return the values of a column that may be of categories."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        return column.cast(column.type.value_type)
    return column


def _join(names: Sequence[str]) -> str:
    shown = ", ".join(f"'{name}'" for name in names[:10])
    return shown + (f" and {len(names) - 10} more" if len(names) > 10 else "")
