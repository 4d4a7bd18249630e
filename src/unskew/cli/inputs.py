"""Sample and population of a command: which columns are features, which have other roles."""

from __future__ import annotations

import shlex
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from unskew.cli.options import Given, columns_of
from unskew.cli.outputs import print_note, print_warning, warnings_as_notes
from unskew.errors import InputError, InputTypeError, ParameterError, listing, which_there_are

if TYPE_CHECKING:
    import pyarrow as pa

    from unskew import Margins, Population

STDIN = "-"
_UNNAMED = ""  # as pandas calls its index in a CSV file
_OPTION = {"identifier": "--id", "sample_weight": "--sample-weight"}
_ONLY_OF_SAMPLES = ("target", "identifier", "sample_weight")


class Inputs(NamedTuple):
    """A sample, its columns sorted by their roles, and its population."""

    X: pa.Table
    """The features; also the groups of --by, where the population lacks them."""
    population: Population | Margins
    identifiers: pa.Table
    """One column: the one that was named, else ``row``, the numbers from 0."""
    roles: dict[str, Any]
    """Labels, design weights, strata and clusters, as parameters of Python's functions."""
    columns: list[str] | None
    """The features, if they were named."""


@contextmanager
def open_inputs(given: Given) -> Iterator[Inputs]:
    """Give sample and population; passes over the population in the block show their progress."""
    from unskew.cli.progress import progress_shown

    with progress_shown("Reading", quiet=given.quiet) as progress:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            table = read_rows(given.sample, given.identifier, given.categories, given.delimiter)
        kept = _labelled_rows(table, given)
        rows = table if len(kept) == table.num_rows else table.take(kept)
        known = _open_population(given, progress)
        features = _features(rows, [] if known is None else known.columns, given)
        _check_target([one.message for one in caught], given)
        for one in caught:
            if set(getattr(one.message, "columns", features)) & set(features):
                print_warning(one.message, given)
        if not given.quiet:
            _print_notes(table, rows, features, given)
        identifiers = row_identifiers(rows, given.identifier, kept)
        roles = _roles(rows, given)
        opened = _population_of(known, table, features, kept, given, progress)
        columns = features if given.columns else None
        found = Inputs(rows.select(features), opened, identifiers, roles, columns)
        if getattr(given, "by", None) not in (None, *features):
            found = found._replace(X=found.X.append_column(given.by, rows.column(given.by)))
        yield found
    labelled = known is not None and given.population and given.target in known.columns
    if labelled and not given.quiet and found.population.size < table.num_rows:
        print_note(
            f"'{given.population}' has the target '{given.target}' and fewer rows than "
            f"'{given.sample}' ({found.population.size:,} and {table.num_rows:,}). If it is the "
            f"sample, the two are swapped. {_swapped(given)}"
        )


def file_of_population(given: Given) -> str:
    """Return the file that describes the population; there must be exactly one."""
    population, margins, weight = given.population, given.margins, given.population_weight
    if given.unlabelled == "population":
        for one, name in ((population, "POPULATION"), (margins, "--margins")):
            if one is not None:
                raise ParameterError(
                    "--unlabelled population makes all rows of SAMPLE the population, labelled "
                    f"or not: leave {name} out."
                )
        if weight is not None:
            raise ParameterError(
                "--population-weight is for another file; with --unlabelled population, "
                "--sample-weight names the weights of all rows."
            )
        return str(given.sample)
    if (population is None) == (margins is None):
        both = "both are given" if population is not None else "neither is given"
        raise ParameterError(
            f"Give either POPULATION, a file of rows, or --margins, a file of totals; {both}."
        )
    if margins is not None and weight is not None:
        raise ParameterError("--population-weight is for rows; --margins has none.")
    if population == STDIN:
        raise ParameterError(
            "Only SAMPLE can be - (standard input): POPULATION may be read more than once."
        )
    return str(margins if population is None else population)


def read_rows(
    source: str,
    identifier: str | None = None,
    categories: Sequence[str] | None = None,
    delimiter: str | None = None,
    side: str = "sample",
) -> pa.Table:
    """Read a file or glob, or standard input for "-"; columns of categories become text."""
    from unskew import read_sample

    data = sys.stdin.buffer if source == STDIN else source
    codes = [name for entry in categories or () for name in (entry, *entry.split(","))]
    identifiers = [*([identifier] if identifier else []), *codes]  # 02 stays 02
    table = read_sample(data, identifiers=identifiers, delimiter=_character(delimiter), side=side)
    for name in _split(table, categories):
        text = decoded(named_column(table, name, "--categories")).cast("string")
        table = table.set_column(table.column_names.index(name), name, text)
    return table


def _character(delimiter: str | None) -> str | None:
    r"""Return the delimiter that --delimiter names: in a shell a tab is tab or \t."""
    return "\t" if delimiter in ("tab", r"\t") else delimiter


def _open_population(given: Given, progress: Any) -> Population | Margins | None:
    """Return what is known of the population; None if it is the sample's file."""
    from unskew import Population, read_margins

    if given.margins is not None:
        with warnings_as_notes(given):
            return read_margins(given.margins, reconcile="scale" if given.reconcile else "raise")
    if given.population is None:
        return None
    return Population(
        given.population,
        weight=given.population_weight,
        progress=progress,
        delimiter=_character(given.delimiter),
    )


def _population_of(
    known: Population | Margins | None,
    table: pa.Table,
    features: list[str],
    kept: Any,
    given: Given,
    progress: Any,
) -> Population | Margins:
    """Return the population with the sample's features, and note which columns are ignored."""
    import numpy as np

    from unskew import Margins, Population

    if known is None:
        design = given.sample_weight
        return Population(
            table.select(features),
            selected=np.isin(np.arange(table.num_rows), kept),
            weight=None if design is None else numbers(table, design, "--sample-weight"),
            progress=progress,
        )
    if isinstance(known, Margins):
        return known
    narrow = Population(
        given.population,
        columns=features,
        weight=given.population_weight,
        progress=progress,
        delimiter=_character(given.delimiter),
    )
    extra = [name for name in known.columns if name not in features]
    others = [name for name in extra if name != given.target]
    if given.target in extra and not given.quiet:
        print_note(f"Ignoring population column '{given.target}': it is the target.")
    if others and not given.quiet:
        print_note(f"Ignoring population columns that are not features: {listing(others)}.")
    return narrow


def _roles(rows: pa.Table, given: Given) -> dict[str, Any]:
    """Return the columns that have another role than features, by the parameter that takes them."""
    roles = {"y": None, "sample_weight": None}
    if given.target is not None:
        roles["y"] = decoded(rows.column(given.target)).to_numpy()
    if given.sample_weight is not None:
        roles["sample_weight"] = numbers(rows, given.sample_weight, "--sample-weight")
    for name in ("strata", "clusters"):
        if (column := getattr(given, name, None)) is not None:
            roles[name] = decoded(rows.column(column)).to_numpy()
    return roles


def _check_target(caught: Sequence[Any], given: Given) -> None:
    """Refuse labels of an estimate that are numbers but for some words, which make them classes."""
    if getattr(given, "statistic", "proportion") == "proportion":
        return
    for warning in caught:
        if getattr(warning, "columns", None) == [given.target]:
            value = str(warning).partition("categories: ")[2].partition(" is not")[0]
            raise InputError(
                f"The target '{given.target}' is read as text, since {value} is not a number. "
                "Write numbers with a decimal point, not a comma, and missing ones as empty "
                "fields; --statistic proportion takes every value as a class."
            )


def _print_notes(table: pa.Table, rows: pa.Table, features: list[str], given: Given) -> None:
    """Print what was done with the sample's file."""
    if _UNNAMED in set(table.column_names) - {*features, *(given.exclude or ())}:
        print_note("Ignoring the sample's column without a name, as pandas writes its index.")
    lacking = table.num_rows - rows.num_rows
    if given.unlabelled == "population":
        print_note(
            f"The population is all {table.num_rows:,} rows of the file: {lacking:,} without a "
            f"label, and {rows.num_rows:,} with one, which are the sample."
        )
    elif lacking:
        print_note(
            f"Using the {rows.num_rows:,} rows of the sample that have a label; "
            f"{lacking:,} have none (--unlabelled drop)."
        )


def read_weights(source: str, identifiers: pa.Table) -> Any:
    """Read weights as ``unskew weigh`` writes them, in the order of the sample's identifiers."""
    import numpy as np
    import pyarrow.compute as pc

    (name,) = identifiers.column_names
    table = read_rows(source, name, side="weights")
    if name not in table.column_names or "weight" not in table.column_names:
        raise InputError(
            f"'{source}' must have the columns '{name}' and 'weight'; it has "
            f"{listing(table.column_names)}. Name the column that both files share with --id."
        )
    written, ours = row_identifiers(table, name).column(name), identifiers.column(name)
    if written.type != ours.type:
        written, ours = (column.cast("string") for column in (written, ours))
    places = pc.index_in(ours, value_set=written.combine_chunks())
    if len(written) != len(ours) or places.null_count:
        lost = ours.filter(pc.is_null(places))
        example = f", such as '{lost[0]}'" if len(lost) else ""
        raise InputError(
            f"The weights in '{source}' do not match the sample: they have {len(written):,} rows, "
            f"the sample {len(ours):,}, of which {len(lost):,} have no weight{example}."
        )
    return numbers(table, "weight", f"'{source}'")[np.asarray(places.to_numpy())]


def _features(table: pa.Table, known: Sequence[str], given: Given) -> list[str]:
    """Return the columns that describe a row: those named, or all without another role.

    Strata, clusters and groups are features too where the population knows them.
    """
    excluded = _split(table, given.exclude)
    by, option_of = getattr(given, "by", None), dict[str, str]()
    chosen = [name for name in _split(table, given.columns) if name != by or by in known]
    named = [("columns", name) for name in chosen]
    named += [(role, getattr(given, role)) for role in ("sample_weight", "identifier", "target")]
    for role in ("strata", "clusters", "by"):
        if (name := getattr(given, role, None)) is not None:
            named_column(table, name, f"--{role}")
            named += [] if name in known else [(role, name)]
    for role, name in named:
        if name is None:
            continue
        option = _OPTION.get(role, f"--{role}")
        named_column(table, name, option, given if role in _ONLY_OF_SAMPLES else None)
        if name in option_of:
            raise ParameterError(
                f"{option_of[name]} and {option} both name '{name}'; a column has one role."
            )
        option_of[name] = option
    for name in excluded:
        named_column(table, name, "--exclude")
    index = [*(table.schema.pandas_metadata or {}).get("index_columns", []), _UNNAMED]
    free = [name for name in table.column_names if name not in option_of and name not in index]
    if chosen and by is not None and by in known and by not in chosen:
        chosen.append(by)
    features = [name for name in chosen or free if name not in excluded]
    if not features:
        raise InputError("No feature is left: every column is excluded or has another role.")
    return features


def _split(table: pa.Table, names: Sequence[str] | None) -> list[str]:
    """Return the names in a list whose entries are names or names with commas between them."""
    lists = [[entry] if entry in table.column_names else entry.split(",") for entry in names or ()]
    return list(dict.fromkeys(name for entry in lists for name in entry))


def _labelled_rows(table: pa.Table, given: Given) -> Any:
    """Return the numbers of the rows to weigh: those with a label, which all should have."""
    import numpy as np
    import pyarrow.compute as pc

    choice, target = given.unlabelled, given.target
    if target is None:
        if choice != "raise":
            raise ParameterError(f"--unlabelled {choice} needs --target, the label's column.")
        return np.arange(table.num_rows)
    column = decoded(named_column(table, target, "--target", given))
    missing = pc.is_null(column, nan_is_null=True).to_numpy()
    kept = np.flatnonzero(~missing)
    if not len(kept):
        raise InputError(f"The target '{target}' is missing in every row of the sample.")
    if len(kept) < len(missing) and choice == "raise":
        raise InputError(
            f"The target '{target}' is missing in {missing.sum():,} of {len(missing):,} rows "
            f"of the sample. --unlabelled drop uses only the {len(kept):,} rows that have it; "
            "--unlabelled population, instead of POPULATION, weighs these against all rows."
        )
    if len(kept) == len(missing) and choice == "population":
        raise InputError(
            f"The target '{target}' is there in every row of the sample, so --unlabelled "
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

    column = named_column(table, name, origin)
    try:
        return column.cast(pa.float64()).to_numpy()
    except pa.ArrowException as error:
        raise InputTypeError(
            f"Column '{name}' ({origin}) must hold numbers; its type is {column.type}."
        ) from error


def named_column(table: pa.Table, name: str, option: str, swapped: Given | None = None) -> Any:
    """Return the column that an option names; say so if the two files seem to be swapped."""
    if name in table.column_names:
        return table.column(name)
    if swapped is not None and name in columns_of(swapped.population):
        raise InputError(
            f"SAMPLE and POPULATION seem to be swapped: '{name}' ({option}) is a column "
            f"of '{swapped.population}' and not of '{swapped.sample}'. {_swapped(swapped)}"
        )
    raise InputError(
        f"{option} names '{name}', which is not a column of the sample."
        f"{which_there_are(name, table.column_names)}"
    )


def decoded(column: Any) -> Any:
    """Return the values of a column that may be of categories."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        return column.cast(column.type.value_type)
    return column


def _swapped(given: Given) -> str:
    """Return the command that is running, with the two files in the other order."""
    swap = {given.sample: given.population, given.population: given.sample}
    words = [swap.pop(word, word) for word in sys.argv[1:]]
    return f"SAMPLE comes first: {shlex.join(['unskew', *words])}"
