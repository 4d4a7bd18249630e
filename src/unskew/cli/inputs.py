"""Sample and population of a command: which columns are features, which have other roles."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from unskew.cli.arguments import SampleArguments, Unlabelled, character, known_margins
from unskew.cli.options import columns_of
from unskew.cli.outputs import print_note, warnings_as_notes
from unskew.errors import InputError, InputTypeError, ParameterError

if TYPE_CHECKING:
    import pyarrow as pa

    from unskew import Margins, Population
    from unskew.rows.doubtful_columns import Doubt


STDIN = "-"
_UNNAMED = ""  # as pandas calls its index in a CSV file


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
def open_inputs(given: SampleArguments) -> Iterator[tuple[SampleFile, Population | Margins]]:
    """Give sample and population; passes over the population in the block show their progress."""
    from unskew.cli.progress import progress_shown

    sample, population, quiet = given.sample, given.population, given.quiet
    with progress_shown("Reading", quiet=quiet) as progress:
        if given.unlabelled is Unlabelled.POPULATION:
            yield _open_one_file(given)
            return
        if population is None:
            yield _open_margins(given)
            return
        try:
            rows = open_sample(given)
        except NoSuchColumnError as error:
            raise error.unless_swapped(sample, population) from None
        _print_notes(rows, rows.doubts, given)
        options = {
            "weight": given.population_weight,
            "progress": progress,
            "delimiter": character(given.delimiter),
        }
        names = rows.features.column_names
        opened, labelled = _open_population(population, names, given.target, quiet, options)
        yield rows, opened
    in_file = len(rows) + rows.unlabelled
    if labelled and opened.size < in_file and given.target is not None and not quiet:
        print_note(smaller_and_labelled(sample, population, given.target, in_file, opened.size))


def _open_one_file(given: SampleArguments) -> tuple[SampleFile, Population]:
    """Return the labelled rows as the sample, and all rows as the population."""
    from unskew import Population

    rows = open_sample(given)
    _print_notes(rows, rows.doubts, given)
    everyone = rows.everyone
    assert everyone is not None  # as the option asks for it
    marks, weight = everyone.labelled, everyone.design
    return rows, Population(everyone.features, selected=marks, weight=weight)


def _print_notes(rows: SampleFile, doubts: Sequence[Doubt], given: SampleArguments) -> None:
    for note in () if given.quiet else rows.notes:
        print_note(note)
    if doubts:
        print_note(_describe(doubts, named=given.identifier is not None))


def _open_margins(given: SampleArguments) -> tuple[SampleFile, Margins]:
    """Return the sample and the margins; only columns that these know are features."""
    with warnings_as_notes():
        known = known_margins(given)
    rows = open_sample(given)
    shared = known.known_of(rows.features.column_names)
    _print_notes(rows, [doubt for doubt in rows.doubts if doubt.column in shared], given)
    return rows, known


def read_rows(
    source: str,
    *,
    identifier: str | None = None,
    categories: Sequence[str] | None = None,
    delimiter: str | None = None,
    side: str = "sample",
) -> pa.Table:
    """Read a file or glob, or standard input for "-"; columns of categories become text."""
    from unskew.population.sample_files import read_table

    data = sys.stdin.buffer if source == STDIN else source
    codes = [name for entry in categories or () for name in (entry, *entry.split(","))]
    identifiers = [*([identifier] if identifier else []), *codes]  # 02 stays 02
    table = read_table(data, identifiers, character(delimiter), side)
    for name in _split(table, categories):
        text = decoded(named_column(table, name, "--categories")).cast("string")
        table = table.set_column(table.column_names.index(name), name, text)
    return table


def open_sample(given: SampleArguments) -> SampleFile:
    """Read the sample and separate its features from its other columns."""
    import numpy as np

    from unskew.rows.doubtful_columns import doubtful_columns

    whole = read_rows(
        given.sample,
        identifier=given.identifier,
        categories=given.categories,
        delimiter=given.delimiter,
    )
    features, weight = _features(whole, given), given.sample_weight
    kept = _labelled_rows(whole, given)
    table = whole if len(kept) == whole.num_rows else whole.take(kept)
    everyone = None
    if given.unlabelled is Unlabelled.POPULATION:
        design = None if weight is None else numbers(whole, weight, "--sample-weight")
        labelled = np.isin(np.arange(whole.num_rows), kept)
        everyone = Everyone(whole.select(features), labelled, design)
    return SampleFile(
        features=table.select(features),
        labels=None if given.target is None else decoded(table.column(given.target)).to_numpy(),
        design=None if weight is None else numbers(table, weight, "--sample-weight"),
        identifiers=row_identifiers(table, given.identifier, np.asarray(kept)),
        unlabelled=whole.num_rows - table.num_rows,
        doubts=() if given.features else doubtful_columns(table.select(features)),
        notes=_notes(whole, table, features, given),
        everyone=everyone,
        aside={key: decoded(table.column(name)).to_numpy() for key, name in given.aside.items()},
    )


def _notes(
    whole: pa.Table, table: pa.Table, features: Sequence[str], given: SampleArguments
) -> list[str]:
    """Return what was done with the sample's file."""
    from unskew.rows.doubtful_columns import numbers_read_as_text

    notes = [
        f"Column '{name}' is read as text, its values as categories: '{value}' is not a number. "
        "Write numbers with a decimal point and no other separators, missing ones as empty fields."
        for name, value in numbers_read_as_text(table.select(features)).items()
    ]
    if _UNNAMED in set(whole.column_names) - {*features, *(given.exclude or ())}:
        notes.append("Ignoring the sample's column without a name, as pandas writes its index.")
    lacking = whole.num_rows - table.num_rows
    if given.unlabelled is Unlabelled.POPULATION:
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
    from unskew.cli.phrases import OPTIONS

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
    from unskew.rows.column_names import listing, names_alike

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

    from unskew.rows.column_names import listing

    (name,) = sample.identifiers.column_names
    table = read_rows(source, identifier=name, side="weights")
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


def _features(table: pa.Table, given: SampleArguments) -> list[str]:
    chosen, excluded = _split(table, given.features), _split(table, given.exclude)
    by = given.apart.get("--by")  # which the population lacks: it is no feature then
    chosen = [name for name in chosen if name != by]
    for option, column in given.aside.items():
        named_column(table, column, option)
    option_of: dict[str, str] = {}
    named: list[tuple[str, Sequence[str | None]]] = [
        ("--columns", chosen),
        ("--sample-weight", [given.sample_weight]),
        ("--id", [given.identifier]),
        ("--target", [given.target]),
        *((option, [name]) for option, name in given.apart.items()),
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


def _split(table: pa.Table, names: Sequence[str] | None) -> list[str]:
    """Return the names in a list whose entries are names or names with commas between them."""
    lists = [[entry] if entry in table.column_names else entry.split(",") for entry in names or ()]
    return list(dict.fromkeys(name for entry in lists for name in entry))


def _labelled_rows(table: pa.Table, given: SampleArguments) -> Any:
    """Return the numbers of the rows to weigh: those with a label, which all should have."""
    import numpy as np
    import pyarrow.compute as pc

    choice = given.unlabelled
    if given.target is None:
        if choice is not Unlabelled.RAISE:
            raise ParameterError(f"--unlabelled {choice} needs --target, the label's column.")
        return np.arange(table.num_rows)
    missing = pc.is_null(decoded(table.column(given.target)), nan_is_null=True).to_numpy()
    kept = np.flatnonzero(~missing)
    if not len(kept):
        raise InputError(f"The target '{given.target}' is missing in every row of the sample.")
    if len(kept) < len(missing) and choice is Unlabelled.RAISE:
        raise InputError(
            f"The target '{given.target}' is missing in {missing.sum():,} of {len(missing):,} rows "
            f"of the sample. --unlabelled drop uses only the {len(kept):,} rows that have it; "
            "--unlabelled population, instead of POPULATION, weighs these against all rows."
        )
    if len(kept) == len(missing) and choice is Unlabelled.POPULATION:
        raise InputError(
            f"The target '{given.target}' is there in every row of the sample, so --unlabelled "
            "population finds no other rows. Give a POPULATION."
        )
    return kept


def row_identifiers(table: pa.Table, identifier: str | None, row_numbers: Any = None) -> pa.Table:
    """Return the column that identifies the rows, or their numbers (by default from 0)."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    if identifier is None:
        return pa.table({"row": np.arange(table.num_rows) if row_numbers is None else row_numbers})
    if identifier == "weight":
        raise ParameterError("--id weight: the output's weights have this name. Rename the column.")
    values = decoded(named_column(table, identifier, "--id"))
    if values.null_count:
        raise InputError(
            f"Column '{identifier}' (--id) is missing in {values.null_count:,} rows; every row "
            "needs an identifier."
        )
    counts = pc.value_counts(values.combine_chunks())
    repeated = counts.filter(pc.greater(counts.field("counts"), 1))
    if len(repeated):
        value, count = repeated[0]["values"], repeated[0]["counts"].as_py()
        raise InputError(
            f"Column '{identifier}' (--id) does not identify rows: '{value}' occurs {count:,} "
            "times."
        )
    return pa.table({identifier: values})


def numbers(table: pa.Table, name: str, origin: str) -> Any:
    """Return a column of numbers, missing ones as NaN."""
    import pyarrow as pa

    column = table.column(name)
    try:
        return column.cast(pa.float64()).to_numpy()
    except pa.ArrowException as error:
        raise InputTypeError(
            f"Column '{name}' ({origin}) must hold numbers; its type is {column.type}."
        ) from error


def named_column(table: pa.Table, name: str, option: str) -> Any:
    """Return the column that an option names."""
    if name not in table.column_names:
        raise NoSuchColumnError(option, name, table.column_names)
    return table.column(name)


def decoded(column: Any) -> Any:
    """Return the values of a column that may be of categories."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        return column.cast(column.type.value_type)
    return column


_ONLY_OF_SAMPLES = ("--target", "--id", "--sample-weight")


class NoSuchColumnError(InputError):
    """An option names a column that the sample does not have."""

    def __init__(self, option: str, name: str, available: Sequence[str]) -> None:
        from unskew.rows.column_names import which_there_are

        super().__init__(
            f"{option} names '{name}', which is not a column of the sample."
            f"{which_there_are(name, available)}"
        )
        self.option, self.name = option, name

    def unless_swapped(self, sample: str, population: str) -> InputError:
        """Return the error, or one that says that the files are swapped if they seem to be."""
        if self.option not in _ONLY_OF_SAMPLES or self.name not in columns_of(population):
            return self
        return InputError(
            f"SAMPLE and POPULATION seem to be swapped: '{self.name}' ({self.option}) is a column "
            f"of '{population}' and not of '{sample}'. {_advice(sample, population)}"
        )


def smaller_and_labelled(sample: str, population: str, target: str, rows: int, size: int) -> str:
    """Return a note on a population that has the label and fewer rows than the sample."""
    return (
        f"'{population}' has the target '{target}' and fewer rows than '{sample}' ({size:,} and "
        f"{rows:,}). If it is the sample, the two are swapped. {_advice(sample, population)}"
    )


def _advice(sample: str, population: str) -> str:
    """Return the command that is running, with the two files in the other order."""
    swap = {sample: population, population: sample}
    words = [swap.pop(word, word) for word in sys.argv[1:]]
    return f"SAMPLE comes first: {shlex.join(['unskew', *words])}"
