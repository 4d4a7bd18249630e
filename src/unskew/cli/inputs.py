"""Sample and population of a command: which columns are features, which have other roles."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from unskew.cli.columns import decoded, named_column, numbers, row_identifiers
from unskew.cli.outputs import print_note
from unskew.cli.swapped import NoSuchColumnError, smaller_and_labelled
from unskew.errors import InputError, ParameterError

if TYPE_CHECKING:
    import pyarrow as pa

    from unskew import Margins, Population
    from unskew.population.doubtful_columns import Doubt


STDIN = "-"
_UNNAMED = ""  # as pandas calls its index in a CSV file


class Unlabelled(StrEnum):
    """The values of ``--unlabelled``: what to do with sample rows without a label."""

    RAISE = "raise"
    DROP = "drop"
    POPULATION = "population"


@dataclass(frozen=True)
class Roles:
    """The columns that the options name; an entry of a list may hold several names with commas."""

    target: str | None = None
    identifier: str | None = None
    sample_weight: str | None = None
    columns: Sequence[str] | None = None
    exclude: Sequence[str] | None = None
    population_weight: str | None = None
    unlabelled: Unlabelled = Unlabelled.RAISE
    aside: Mapping[str, str] = field(default_factory=dict)
    """Columns that are read and are no features, by the option that names them."""


class Everyone(NamedTuple):
    """All rows of the sample's file, labelled or not: its population."""

    features: pa.Table
    labelled: Any
    design: Any


@dataclass(frozen=True)
class SampleFile:
    """A sample, its columns sorted by their roles."""

    features: pa.Table
    labels: Any
    design: Any
    identifiers: pa.Table
    """One column: the one that was named, else ``row``, the numbers from 0."""
    unlabelled: int = 0
    """How many rows of the file have no label and are left out."""
    doubts: Sequence[Doubt] = ()
    """Columns that hardly describe a row, unless the features were named."""
    notes: Sequence[str] = ()
    """What was done with the file."""
    everyone: Everyone | None = None
    """All rows of the file, where they are the population."""
    aside: Mapping[str, Any] = field(default_factory=dict)
    """The values of columns that are no features, by option."""

    def __len__(self) -> int:
        return int(self.features.num_rows)


@contextmanager
def open_inputs(
    sample: str,
    population: str | None,
    roles: Roles,
    *,
    quiet: bool,
    checkpoint: Path | None = None,
    delimiter: str | None = None,
    margins: str | None = None,
) -> Iterator[tuple[SampleFile, Population | Margins]]:
    """Give sample and population; passes over the population in the block show their progress."""
    from rich.console import Console

    from unskew.cli.progress import population_progress, show_progress

    if roles.unlabelled is Unlabelled.POPULATION:
        yield _open_one_file(sample, roles, quiet, checkpoint, delimiter)
        return
    if population is None:
        yield _open_margins(sample, margins, roles, quiet, delimiter)
        return
    try:
        rows = open_sample(sample, roles, delimiter)
    except NoSuchColumnError as error:
        raise error.unless_swapped(sample, population) from None
    _print_notes(rows, rows.doubts, roles, quiet)
    console = Console(stderr=True, highlight=False)
    with show_progress("Reading the population", console, quiet=quiet) as show:
        options = {
            "weight": roles.population_weight,
            "progress": population_progress(show),
            "checkpoint": checkpoint,
            "delimiter": character(delimiter),
        }
        names = rows.features.column_names
        opened, labelled = _open_population(population, names, roles.target, quiet, options)
        yield rows, opened
    in_file = len(rows) + rows.unlabelled
    if labelled and opened.size < in_file and roles.target is not None and not quiet:
        print_note(smaller_and_labelled(sample, population, roles.target, in_file, opened.size))


def check_one_population(
    sample: str, population: str | None, margins: str | None, roles: Roles
) -> str:
    """Return the file that describes the population; there must be exactly one."""
    if roles.unlabelled is Unlabelled.POPULATION:
        for given, name in ((population, "POPULATION"), (margins, "--margins")):
            if given is not None:
                raise ParameterError(
                    "--unlabelled population makes all rows of SAMPLE the population, labelled or "
                    f"not: leave {name} out."
                )
        if roles.population_weight is not None:
            raise ParameterError(
                "--population-weight is for another file; with --unlabelled population, "
                "--sample-weight names the weights of all rows."
            )
        return sample
    if (population is None) == (margins is None):
        given = "both are given" if population is not None else "neither is given"
        raise ParameterError(
            f"Give either POPULATION, a file of rows, or --margins, a file of totals; {given}."
        )
    if margins is not None and roles.population_weight is not None:
        raise ParameterError("--population-weight is for rows; --margins has none.")
    return str(margins if population is None else population)


def _open_one_file(
    sample: str, roles: Roles, quiet: bool, checkpoint: Path | None, delimiter: str | None
) -> tuple[SampleFile, Population]:
    """Return the labelled rows as the sample, and all rows as the population."""
    from unskew import Population

    rows = open_sample(sample, roles, delimiter)
    _print_notes(rows, rows.doubts, roles, quiet)
    everyone = rows.everyone
    assert everyone is not None  # as the option asks for it
    marks, weight = everyone.labelled, everyone.design
    return rows, Population(everyone.features, selected=marks, weight=weight, checkpoint=checkpoint)


def _print_notes(rows: SampleFile, doubts: Sequence[Doubt], roles: Roles, quiet: bool) -> None:
    for note in () if quiet else rows.notes:
        print_note(note)
    if doubts:
        print_note(_describe(doubts, named=roles.identifier is not None))


def _open_margins(
    sample: str, margins: str | None, roles: Roles, quiet: bool, delimiter: str | None
) -> tuple[SampleFile, Margins]:
    """Return the sample and the margins; only columns that these know are features."""
    from unskew import read_margins

    known = read_margins(margins)
    rows = open_sample(sample, roles, delimiter)
    shared = known.shared_with(rows.features.column_names)
    _print_notes(rows, [doubt for doubt in rows.doubts if doubt.column in shared], roles, quiet)
    return rows, known


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
    import numpy as np

    from unskew.population.doubtful_columns import doubtful_columns

    whole = read_rows(source, identifier=roles.identifier, delimiter=delimiter)
    features, weight = _features(whole, roles), roles.sample_weight
    kept = _labelled_rows(whole, roles)
    table = whole if len(kept) == whole.num_rows else whole.take(kept)
    everyone = None
    if roles.unlabelled is Unlabelled.POPULATION:
        design = None if weight is None else numbers(whole, weight, "--sample-weight")
        labelled = np.isin(np.arange(whole.num_rows), kept)
        everyone = Everyone(whole.select(features), labelled, design)
    return SampleFile(
        features=table.select(features),
        labels=None if roles.target is None else decoded(table.column(roles.target)).to_numpy(),
        design=None if weight is None else numbers(table, weight, "--sample-weight"),
        identifiers=row_identifiers(table, roles.identifier, np.asarray(kept)),
        unlabelled=whole.num_rows - table.num_rows,
        doubts=() if roles.columns else doubtful_columns(table.select(features)),
        notes=_notes(whole, table, features, roles),
        everyone=everyone,
        aside={key: decoded(table.column(name)).to_numpy() for key, name in roles.aside.items()},
    )


def _notes(whole: pa.Table, table: pa.Table, features: Sequence[str], roles: Roles) -> list[str]:
    """Return what was done with the sample's file."""
    from unskew.population.doubtful_columns import numbers_read_as_text

    notes = [
        f"Column '{name}' is read as text, its values as categories: '{value}' is not a number. "
        "Write numbers without separators, and missing ones as empty fields."
        for name, value in numbers_read_as_text(table.select(features)).items()
    ]
    if _UNNAMED in set(whole.column_names) - {*features, *(roles.exclude or ())}:
        notes.append("Ignoring the sample's column without a name, as pandas writes its index.")
    lacking = whole.num_rows - table.num_rows
    if roles.unlabelled is Unlabelled.POPULATION:
        notes.append(
            f"The population is all {whole.num_rows:,} rows of the file: {lacking:,} without a "
            f"label, and {table.num_rows:,} with one, which are the sample."
        )
    elif lacking:
        notes.append(
            f"Using the {table.num_rows:,} rows of the sample that have a label; "
            f"{lacking:,} have none (--unlabelled drop)."
        )
    return notes


def _describe(doubts: Sequence[Doubt], *, named: bool) -> str:
    """Return a note on columns that hardly describe a row."""
    from unskew.cli.words import OPTIONS

    found = " ".join(map(str, doubts))
    identifiers = [doubt.column for doubt in doubts if doubt.looks_like == "an identifier"][:1]
    advice = f"leave {'it' if len(doubts) == 1 else 'them'} out with "
    advice += OPTIONS.leave_out([doubt.column for doubt in doubts])
    if identifiers and not named:
        advice += f", or name the identifier with --id {shlex.quote(identifiers[0])}"
    return f"{found} As features, such columns only add noise: {advice}."


def _open_population(
    source: str, features: list[str], target: str | None, quiet: bool, options: dict[str, Any]
) -> tuple[Population, bool]:
    """Open the population with the sample's features, and note which columns are ignored.

    Also return whether it has the target.
    """
    from unskew import Population
    from unskew.population.column_names import listing, names_alike

    if source == STDIN:
        raise ParameterError(
            "Only SAMPLE can be - (standard input): POPULATION may be read more than once."
        )
    population = Population(source, **options)
    if missing := [name for name in features if name not in population.columns]:
        raise InputError(
            f"The population lacks {listing(missing)}, which the sample has."
            f"{names_alike(missing, population.columns)} Its columns are "
            f"{listing(population.columns)}. If it is not a feature, name it with --target, --id "
            "or --sample-weight, or drop it with --exclude."
        )
    extra = [name for name in population.columns if name not in features]
    if not extra:
        return population, False
    others = [name for name in extra if name != target]
    if target in extra and not quiet:
        print_note(f"Ignoring population column '{target}': it is the target.")
    if others and not quiet:
        print_note(f"Ignoring population columns that are not features: {listing(others)}.")
    return Population(source, columns=features, **options), target in extra


def read_weights(source: str, sample: SampleFile) -> Any:
    """Read weights as ``unskew weigh`` writes them, in the sample's order."""
    import numpy as np
    import pyarrow.compute as pc

    from unskew.population.column_names import listing

    (name,) = sample.identifiers.column_names
    table = read_rows(source, identifier=name)
    if name not in table.column_names or "weight" not in table.column_names:
        raise InputError(
            f"'{source}' must have the columns '{name}' and 'weight'; it has "
            f"{listing(table.column_names)}. Name the column that both files share with --id."
        )
    theirs = row_identifiers(table, name).column(name)
    ours = sample.identifiers.column(name)
    if theirs.type != ours.type:
        theirs, ours = (column.cast("string") for column in (theirs, ours))
    places = pc.index_in(ours, value_set=theirs.combine_chunks())
    if len(theirs) != len(ours) or places.null_count:
        lost = ours.filter(pc.is_null(places))
        example = f", such as '{lost[0]}'" if len(lost) else ""
        raise InputError(
            f"The weights in '{source}' do not match the sample: they have {len(theirs):,} rows, "
            f"the sample {len(ours):,}, of which {len(lost):,} have no weight{example}."
        )
    return numbers(table, "weight", f"'{source}'")[np.asarray(places.to_numpy())]


def _features(table: pa.Table, roles: Roles) -> list[str]:
    chosen, excluded = _split(table, roles.columns), _split(table, roles.exclude)
    option_of: dict[str, str] = {}
    named: list[tuple[str, Sequence[str | None]]] = [
        ("--columns", chosen),
        ("--sample-weight", [roles.sample_weight]),
        ("--id", [roles.identifier]),
        ("--target", [roles.target]),
        *((option, [name]) for option, name in roles.aside.items()),
    ]
    for option, names in named:
        for name in names:
            if name is None:
                continue
            named_column(table, name, option)
            if name in option_of:
                raise ParameterError(
                    f"{option_of[name]} and {option} both name '{name}'; a column has one role."
                )
            option_of[name] = option
    for name in excluded:
        named_column(table, name, "--exclude")
    index = (table.schema.pandas_metadata or {}).get("index_columns", [])
    index = [*index, _UNNAMED]
    free = [name for name in table.column_names if name not in option_of and name not in index]
    features = [name for name in chosen or free if name not in excluded]
    if not features:
        raise InputError("No feature is left: every column is excluded or has another role.")
    return features


def _split(table: pa.Table, given: Sequence[str] | None) -> list[str]:
    """Return the names in a list whose entries are names or names with commas between them."""
    names = [[entry] if entry in table.column_names else entry.split(",") for entry in given or ()]
    return list(dict.fromkeys(name for entry in names for name in entry))


def _labelled_rows(table: pa.Table, roles: Roles) -> Any:
    """Return the numbers of the rows to weigh: those with a label, which all should have."""
    import numpy as np
    import pyarrow.compute as pc

    given = roles.unlabelled
    if roles.target is None:
        if given is not Unlabelled.RAISE:
            raise ParameterError(f"--unlabelled {given} needs --target, the label's column.")
        return np.arange(table.num_rows)
    missing = pc.is_null(decoded(table.column(roles.target)), nan_is_null=True).to_numpy()
    kept = np.flatnonzero(~missing)
    if not len(kept):
        raise InputError(f"The target '{roles.target}' is missing in every row of the sample.")
    if len(kept) < len(missing) and given is Unlabelled.RAISE:
        raise InputError(
            f"The target '{roles.target}' is missing in {missing.sum():,} of {len(missing):,} rows "
            f"of the sample. --unlabelled drop uses only the {len(kept):,} rows that have it; "
            "--unlabelled population, instead of POPULATION, weighs these against all rows."
        )
    if len(kept) == len(missing) and given is Unlabelled.POPULATION:
        raise InputError(
            f"The target '{roles.target}' is there in every row of the sample, so --unlabelled "
            "population finds no other rows. Give a POPULATION."
        )
    return kept
