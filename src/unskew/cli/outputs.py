"""What a command writes and prints: tables, reports, a diagnosis in lines, notes on standard error.

A file is written under a temporary name and appears when it is whole. Whatever is printed comes
from data that anybody may have written: no text of it can make a terminal do anything.
"""

from __future__ import annotations

import io
import re
import shlex
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from unskew.cli.methods import excluding, in_options, step_in_options
from unskew.errors import ColumnWarning, ParameterError, plain

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.console import Console

    from unskew.paper.results import TextTable
    from unskew.results import Diagnosis, OverlapRule


_CSV = (".csv", ".csv.gz")
_TABLES = (".parquet", ".pq", *_CSV)
REPORTS = (".html", ".htm", ".md", ".json")
_MOST = 5
"""How many columns and regions are shown; the report has them all."""
_CLASSES = 20
"""How many classes are shown."""
_WIDEST = 120
"""How many characters of a region's description are shown."""


def check_table(path: Path | None) -> Path | None:
    """Refuse a name whose ending is not that of a table."""
    if path is not None and not path.name.lower().endswith(_TABLES):
        raise ParameterError(
            f"The output '{path}' must end in one of {', '.join(_TABLES)}, which selects the "
            "format."
        )
    return path


def check_report(path: Path | None) -> Path | None:
    """Refuse a report whose ending is not that of a format."""
    if path is not None and path.suffix.lower() not in REPORTS:
        raise ParameterError(
            f"The report '{path}' must end in one of {', '.join(REPORTS)}, which selects the "
            "format. For a PDF, print the .html from a browser."
        )
    return path


def check_outputs(outputs: Sequence[Path], inputs: Sequence[str]) -> None:
    """Refuse two outputs in one file, and an output that is an input now or in the next run."""
    places = [path.resolve() for path in outputs]
    for place, path in zip(places, outputs, strict=True):
        if places.count(place) > 1:
            raise ParameterError(f"Two outputs have the same name, '{path}'.")
        for given in inputs:
            if _is_part_of(place, Path(given).resolve()):
                raise ParameterError(
                    f"The output '{path}' is part of the input '{given}'. Write it elsewhere."
                )


def _is_part_of(place: Path, given: Path) -> bool:
    if place == given or not place.name.lower().endswith(_TABLES):
        return place == given
    # A table in a folder, or one that a glob matches, would be read as an input the next time.
    if "**" in given.parts:
        beginning = Path(*given.parts[: given.parts.index("**")])
        return place.is_relative_to(beginning) and place.match(given.name)
    return place.match(str(given)) or (given.is_dir() and place.is_relative_to(given))


def write_weights(
    identifiers: pa.Table, weights: Any, temporary: Path, path: Path, replicates: Any = None
) -> None:
    """Write identifiers and weights to a temporary file that will become ``path``.

    Columns of replicate weights follow, named ``weight_1`` and so on.
    """
    import pyarrow as pa

    table = identifiers.append_column("weight", pa.array(weights, pa.float64()))
    for number, column in enumerate([] if replicates is None else replicates.T, start=1):
        table = table.append_column(f"weight_{number}", pa.array(column, pa.float64()))
    write_table(table, temporary, path)


def write_table(table: pa.Table, temporary: Path, path: Path) -> None:
    """Write a table to a temporary file that will become ``path``, whose ending is the format."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyarrow import csv

    from unskew.files import writing

    name = path.name.lower()
    with writing(path):
        if not name.endswith(_CSV):
            pq.write_table(table, temporary)
            return
        compression = "gzip" if name.endswith(".gz") else None
        with pa.output_stream(str(temporary), compression=compression) as stream:
            csv.write_csv(table, stream)


def print_table(table: TextTable, console: Console) -> None:
    """Print a table; where several columns are words, its rows are grouped by the first."""
    from rich import box
    from rich.table import Table

    shown = Table(title=table.title, box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 0, 0, 1))
    for place, heading in enumerate(table.headings):
        side: Any = "left" if place < table.words else "right"
        shown.add_column(heading, justify=side, no_wrap=True)
    last = None
    for row in table.rows:
        if table.words > 1 and last not in (None, row[0]):
            shown.add_section()
        shown.add_row("" if row[0] == last else row[0], *row[1:])
        last = row[0]
    console.print(shown)


def print_note(text: str) -> None:
    """Print a remark that is not an error."""
    print(f"unskew: note: {plain(in_options(text))}", file=sys.stderr, flush=True)


class _PlainStream:
    """A stream to which no text from the data can write what a terminal obeys.

    Consoles of Rich find the stream behind it, to which their colours and moves may be written.
    """

    def __init__(self, stream: TextIO, allowed: str, console: _PlainStream | None = None) -> None:
        self._stream, self._allowed = stream, allowed
        if console is not None:
            self.rich_proxied_file = console

    def write(self, text: str) -> int:
        parts = re.split(self._allowed, text)  # at odd places stands what is allowed
        shown = (part if odd % 2 else plain(part, lines=True) for odd, part in enumerate(parts))
        self._stream.write("".join(shown))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


_NOTHING, _STYLES_AND_MOVES = r"((?!))", r"(\x1b\[[0-9;?]*[A-Za-z]|\r)"


@contextmanager
def plain_streams() -> Iterator[None]:
    """Let standard output and error take any text in the block, and obey none of it."""
    before = {"stdout": sys.stdout, "stderr": sys.stderr}
    ours: dict[str, Any] = {}
    for name, stream in before.items():
        if isinstance(stream, io.TextIOWrapper):  # whose encoding may lack a minus sign, say
            stream.reconfigure(errors="backslashreplace")
        console = _PlainStream(stream, _STYLES_AND_MOVES)
        ours[name] = _PlainStream(stream, _NOTHING, console)
        setattr(sys, name, ours[name])
    try:
        yield
    finally:
        for name, stream in before.items():
            if getattr(sys, name) is ours[name]:  # Typer replaces it where nobody reads any more
                setattr(sys, name, stream)


@contextmanager
def warnings_as_notes(given: Any) -> Iterator[None]:
    """Print the warnings of a block as notes, each once; if it fails, only those of columns."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield
        except Exception:
            caught[:] = [one for one in caught if issubclass(one.category, ColumnWarning)]
            raise
        finally:
            for message in {str(one.message): one.message for one in caught}.values():
                print_warning(message, given)


def print_warning(warning: Warning | str, given: Any) -> None:
    """Print a warning of the library; of columns that hardly describe a row, name the options."""
    text, columns = in_options(str(warning)), getattr(warning, "columns", [])
    advice = f"leave {'it' if len(columns) == 1 else 'them'} out with {excluding(columns)}"
    if "looks like an identifier" in text and given.identifier is None:
        advice += f", or name the identifier with --id {shlex.quote(columns[0])}"
    print_note(text.replace("choose the columns to weigh by with --columns …", advice))


def write_report(diagnosis: Diagnosis, temporary: Path, path: Path) -> None:
    """Write the report to a temporary file that will become ``path``; its ending is the format."""
    from unskew.files import writing

    formats = {".md": diagnosis.to_markdown, ".json": diagnosis.to_json}
    text = formats.get(path.suffix.lower(), diagnosis.to_html)()
    with writing(path):
        temporary.write_text(text, encoding="utf-8")


def name_inputs(
    diagnosis: Diagnosis, given: Any, population: str, identifiers: pa.Table | None = None
) -> Diagnosis:
    """Return the diagnosis with the files and the target that it is about, and rows by name."""
    names = ("title", "sample", "target", "identifier", "weights")
    named: dict[str, Any] = {name: getattr(given, name, None) for name in names}
    named["population"] = population
    if named["sample"] == "-":
        named["sample"] = "standard input"
    weights = diagnosis.weights
    if identifiers is not None and weights is not None:
        values = identifiers.column(0)
        heaviest = (replace(row, row=values[row.row].as_py()) for row in weights.heaviest)
        weights = replace(weights, heaviest=tuple(heaviest))
    provenance = replace(diagnosis.provenance, **named)
    return replace(diagnosis, provenance=provenance, weights=weights)


def format_diagnosis(diagnosis: Diagnosis) -> list[str]:
    """Return the diagnosis in a few lines."""
    lines, more = diagnosis.largest_lines(_MOST)
    limit = diagnosis.thresholds.largest_difference
    headline, *step = format_verdict(diagnosis)
    return [
        headline,
        *(f"  {text}" for text in diagnosis.verdict.sentences),
        *step,
        "Most biased columns (standardised mean difference):",
        *(f"  {_format_line(feature, line)}" for feature, line in lines),
        *([f"  … and {more:,} more columns or categories outside ± {limit:.2g}"] if more else []),
        *format_regions(diagnosis.overlap.rules if diagnosis.overlap else ()),
    ]


def format_verdict(diagnosis: Diagnosis) -> list[str]:
    """Return the verdict in a sentence and, where it is not good, the next step."""
    verdict = diagnosis.verdict
    if verdict.next_step is None:
        return [verdict.headline]
    return [verdict.headline, f"Next step: {step_in_options(verdict.next_step)}"]


def format_effective_size(weights: Any) -> str:
    """Return a line with the effective sample size of some weights."""
    from unskew import effective_sample_size

    effective = effective_sample_size(weights)
    return f"Effective sample size: {effective:,.1f} ({effective / len(weights):.0%} of the rows)."


def format_classes(weighter: Any) -> list[str]:
    """Return the shares of the classes in sample and population, in a few lines."""
    rows = zip(
        weighter.classes_,
        weighter.sample_shares_,
        weighter.population_shares_,
        weighter.class_weights_,
        strict=True,
    )
    lines = [
        f"  {label}: {share:.1%} of the sample, {wanted:.1%} of the population: weight {weight:.3g}"
        for label, share, wanted, weight in rows
    ]
    more = [f"  … and {len(lines) - _CLASSES} more"] if len(lines) > _CLASSES else []
    return ["Classes:", *lines[:_CLASSES], *more, str(weighter.shift_test_)]


def format_rule(rule: OverlapRule) -> str:
    """Return a region in a line; long values, as of free text, are cut."""
    text = rule.text if len(rule.text) <= _WIDEST else f"{rule.text[: _WIDEST - 1]}…"
    return str(replace(rule, text=text))


def format_regions(rules: Sequence[OverlapRule]) -> list[str]:
    """Return the regions that the sample does not cover, in a few lines."""
    if not rules:
        return []
    more = [f"  … and {len(rules) - _MOST} more"] if len(rules) > _MOST else []
    return [
        "Regions not covered by the sample:",
        *(f"  {format_rule(rule)}" for rule in rules[:_MOST]),
        *more,
    ]


def _format_line(feature: Any, line: Any) -> str:
    name = feature.name if line.category is None else f"{feature.name} = {line.category}"
    before = _format_number(line.before)
    if feature.after is None:
        return f"{name}: {before}"
    return f"{name}: {before}, with the weights {_format_number(line.after)}"


def _format_number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:+.2f}"
