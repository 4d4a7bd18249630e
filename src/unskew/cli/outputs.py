"""What a command writes: tables, and notes on standard error."""

from __future__ import annotations

import io
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from unskew.errors import ColumnWarning, ParameterError, plain

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.console import Console

    from unskew.paper.results import TextTable


_CSV = (".csv", ".csv.gz")
_TABLES = (".parquet", ".pq", *_CSV)
REPORTS = (".html", ".htm", ".md", ".json")


def check_table(path: Path) -> Path:
    """Refuse a name whose ending is not that of a table."""
    if not path.name.lower().endswith(_TABLES):
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
    from unskew.cli.phrases import in_options

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
def warnings_as_notes() -> Iterator[None]:
    """Print the warnings of a block that succeeds as notes, each once.

    Of columns that hardly describe a row, the inputs have reported already, in terms of options.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", ColumnWarning)
        yield
    for message in dict.fromkeys(str(warning.message) for warning in caught):
        print_note(message)
