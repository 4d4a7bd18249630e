"""Sample and population of a command: which columns are features, which play other parts."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unskew.errors import InputError, InputTypeError, ParameterError

if TYPE_CHECKING:
    import pyarrow as pa

    from unskew import Population, Progress

__all__ = [
    "Roles",
    "SampleFile",
    "both_sides",
    "identifiers_of",
    "read_rows",
    "read_weights",
]

STDIN = "-"


@dataclass(frozen=True)
class Roles:
    """What the options say of columns; entries of a list may be several names with commas."""

    target: str | None = None
    identifier: str | None = None
    weight: str | None = None
    columns: Sequence[str] = ()
    exclude: Sequence[str] = ()


@dataclass(frozen=True)
class SampleFile:
    """A sample, its columns sorted by the parts that they play."""

    features: pa.Table
    labels: Any
    design: Any
    identifiers: pa.Table
    """One column: the one that was named, else ``row``, the numbers from 0."""

    def __len__(self) -> int:
        return int(self.features.num_rows)


def read_rows(source: str, *, identifier: str | None = None) -> pa.Table:
    """Read a file or glob, or standard input for "-"."""
    from unskew import read_sample

    data = sys.stdin.buffer if source == STDIN else source
    return read_sample(data, identifiers=[identifier] if identifier else [])


@contextmanager
def both_sides(
    sample: str,
    population: str,
    roles: Roles,
    *,
    weight: str | None,
    quiet: bool,
    checkpoint: Path | None = None,
) -> Iterator[tuple[SampleFile, Population]]:
    """Give sample and population; passes over the population in the block are shown."""
    from rich.console import Console

    from unskew.cli.outputs import note_to_stderr
    from unskew.cli.progress import of_a_pass, progress_shown

    rows = open_sample(sample, roles)
    console = Console(stderr=True, highlight=False)
    with progress_shown("Reading the population", console, quiet=quiet) as show:
        yield (
            rows,
            open_population(
                population,
                rows,
                target=roles.target,
                weight=weight,
                checkpoint=checkpoint,
                progress=of_a_pass(show),
                note=(lambda _: None) if quiet else note_to_stderr,
            ),
        )


def open_sample(source: str, roles: Roles) -> SampleFile:
    """Read the sample and tell its features from its other columns."""
    table = read_rows(source, identifier=roles.identifier)
    for option, name in (
        ("--target", roles.target),
        ("--id", roles.identifier),
        ("--sample-weight", roles.weight),
    ):
        if name is not None:
            _check_present(option, name, table)
    features = _features(table, roles)
    return SampleFile(
        features=table.select(features),
        labels=_labels(table, roles.target),
        design=_design(table, roles.weight),
        identifiers=identifiers_of(table, roles.identifier),
    )


def open_population(
    source: str,
    sample: SampleFile,
    *,
    target: str | None = None,
    weight: str | None = None,
    checkpoint: Path | None = None,
    progress: Callable[[Progress], object] | None = None,
    note: Callable[[str], None],
) -> Population:
    """Open the population with the sample's features; say which of its columns are left out."""
    from unskew import Population

    if source == STDIN:
        raise ParameterError("Only SAMPLE may be - (standard input): POPULATION may be read again.")
    options: dict[str, Any] = {"weight": weight, "progress": progress, "checkpoint": checkpoint}
    population = Population(source, **options)
    features = sample.features.column_names
    missing = [name for name in features if name not in population.columns]
    if missing:
        raise InputError(
            f"The population lacks {_listing(missing)}, which the sample has; its columns are "
            f"{_listing(population.columns)}. Name what is no feature by --target, --id or "
            "--sample-weight, or leave it out by --exclude."
        )
    extra = [name for name in population.columns if name not in features]
    if target in extra:
        note(f"The population's '{target}' is the target, and not used.")
    if others := [name for name in extra if name != target]:
        note(f"The population's {_listing(others)}: no feature of the sample, and not used.")
    if extra:
        population = Population(source, columns=features, **options)
    return population


def read_weights(source: str, sample: SampleFile) -> Any:
    """Read weights as ``unskew weigh`` writes them, in the sample's order."""
    import numpy as np
    import pyarrow.compute as pc

    (name,) = sample.identifiers.column_names
    table = read_rows(source, identifier=name)
    if name not in table.column_names or "weight" not in table.column_names:
        raise InputError(
            f"The weights in '{source}' must have columns '{name}' and 'weight'; they have "
            f"{_listing(table.column_names)}. --id names the column that both files share."
        )
    theirs = identifiers_of(table, name).column(name)
    mine = sample.identifiers.column(name)
    if theirs.type != mine.type:
        theirs, mine = (column.cast("string") for column in (theirs, mine))
    places = pc.index_in(mine, value_set=theirs.combine_chunks())
    if len(theirs) != len(mine) or places.null_count:
        raise InputError(
            f"The weights in '{source}' are not this sample's: {len(theirs):,} rows against "
            f"{len(mine):,}, and {places.null_count:,} of the sample's have none."
        )
    values = numbers_of(table, "weight", source)
    return values[np.asarray(places.to_numpy())]


def identifiers_of(table: pa.Table, identifier: str | None) -> pa.Table:
    """Return the column that names the rows, or their numbers."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    if identifier is None:
        return pa.table({"row": np.arange(table.num_rows)})
    if identifier == "weight":
        raise ParameterError("--id weight: the column of weights has that name. Rename it.")
    column = _check_present("--id", identifier, table)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if column.null_count:
        raise InputError(
            f"The column '{identifier}' of --id is missing in {column.null_count:,} rows."
        )
    counts = pc.value_counts(column.combine_chunks())
    twice = counts.filter(pc.greater(counts.field("counts"), 1))
    if len(twice):
        first = twice[0]
        raise InputError(
            f"The column '{identifier}' of --id does not name rows: '{first['values']}' occurs "
            f"{first['counts'].as_py():,} times."
        )
    return pa.table({identifier: column})


def numbers_of(table: pa.Table, name: str, option: str) -> Any:
    """Return a column of numbers, missing ones as NaN."""
    import pyarrow as pa

    column = _check_present(option, name, table)
    try:
        return column.cast(pa.float64()).to_numpy()
    except pa.ArrowException as error:
        raise InputTypeError(
            f"The column '{name}' of {option} must hold numbers; it is of type {column.type}."
        ) from error


def _check_present(option: str, name: str, table: pa.Table) -> Any:
    if name not in table.column_names:
        raise InputError(
            f"{option} names '{name}', which is not a column of the sample. Its columns are "
            f"{_listing(table.column_names)}."
        )
    return table.column(name)


def _features(table: pa.Table, roles: Roles) -> list[str]:
    parts: dict[str, str] = {}
    for option, name in (
        ("--sample-weight", roles.weight),
        ("--id", roles.identifier),
        ("--target", roles.target),
    ):
        if name is None:
            continue
        if name in parts:
            raise ParameterError(
                f"{parts[name]} and {option} both name '{name}'; a column has one role."
            )
        parts[name] = option
    excluded = _names(roles.exclude, "--exclude", table)
    index = (table.schema.pandas_metadata or {}).get("index_columns", [])
    chosen = _names(roles.columns, "--columns", table) or [
        name for name in table.column_names if name not in parts and name not in index
    ]
    if clash := [name for name in chosen if name in parts]:
        raise ParameterError(f"'{clash[0]}' is named by --columns and by {parts[clash[0]]}.")
    features = [name for name in chosen if name not in excluded]
    if not features:
        raise InputError("No column of the sample is left to be a feature.")
    return features


def _names(given: Sequence[str], option: str, table: pa.Table) -> list[str]:
    """Return the columns that are named, in a list with commas or by themselves."""
    names = []
    for entry in given:
        names += [entry] if entry in table.column_names else entry.split(",")
    for name in names:
        _check_present(option, name, table)
    return list(dict.fromkeys(names))


def _labels(table: pa.Table, target: str | None) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    if target is None:
        return None
    column = table.column(target)
    if pa.types.is_dictionary(column.type):
        column = column.combine_chunks().dictionary_decode()
    missing = pc.sum(pc.is_null(column, nan_is_null=True)).as_py()
    if missing:
        raise InputError(
            f"The target '{target}' is missing in {missing:,} of {len(column):,} rows of the "
            "sample; every row needs one. Drop those rows."
        )
    return (
        column.to_numpy(zero_copy_only=False) if isinstance(column, pa.Array) else column.to_numpy()
    )


def _design(table: pa.Table, weight: str | None) -> Any:
    return None if weight is None else numbers_of(table, weight, "--sample-weight")


def _listing(names: Sequence[str]) -> str:
    shown = ", ".join(f"'{name}'" for name in names[:10])
    return shown + (f" and {len(names) - 10} more" if len(names) > 10 else "")
