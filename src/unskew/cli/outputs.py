"""What a command writes: tables of weights, and notes on standard error."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unskew.errors import ParameterError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["check_output", "check_outputs", "note_to_stderr", "told_as_notes", "write_weights"]

_TABLES = (".parquet", ".pq", ".csv", ".csv.gz")


def check_output(path: Path) -> Path:
    """Refuse a name that does not tell the format of a table."""
    if not path.name.lower().endswith(_TABLES):
        raise ParameterError(
            f"The output '{path}' must end with one of {', '.join(_TABLES)}: that tells its format."
        )
    return path


def check_outputs(outputs: Sequence[Path], inputs: Sequence[str]) -> None:
    """Refuse to write two outputs to one file, or where an input is, or will be the next time."""
    places = [path.resolve() for path in outputs]
    for place, path in zip(places, outputs, strict=True):
        if places.count(place) > 1:
            raise ParameterError(f"Two outputs have the same name, '{path}'.")
        for given in inputs:
            if _is_among(place, Path(given)):
                raise ParameterError(
                    f"The output '{path}' is among the input '{given}'. Write it elsewhere."
                )


def _is_among(place: Path, given: Path) -> bool:
    resolved = given.resolve()
    if place == resolved:
        return True
    # A table in a folder, or one that a glob matches, would be read as an input the next time.
    in_folder = resolved.is_dir() and place.is_relative_to(resolved)
    return place.name.lower().endswith(_TABLES) and (in_folder or _matches(place, resolved))


def _matches(place: Path, pattern: Path) -> bool:
    if "**" not in pattern.parts:
        return place.match(str(pattern))
    beginning = Path(*pattern.parts[: pattern.parts.index("**")])
    return place.is_relative_to(beginning) and place.match(pattern.name)


def write_weights(identifiers: pa.Table, weights: Any, temporary: Path, path: Path) -> None:
    """Write a table of weights to a temporary file in the format that ``path`` tells."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyarrow import csv

    from unskew.files import writing

    table = identifiers.append_column("weight", pa.array(weights, pa.float64()))
    name = path.name.lower()
    with writing(path):
        if name.endswith((".parquet", ".pq")):
            pq.write_table(table, temporary)
            return
        packed = "gzip" if name.endswith(".gz") else None
        with pa.output_stream(str(temporary), compression=packed) as stream:
            csv.write_csv(table, stream)


def note_to_stderr(text: str) -> None:
    """Print a remark that is no error."""
    print(f"unskew: note: {text}", file=sys.stderr, flush=True)


@contextmanager
def told_as_notes() -> Iterator[None]:
    """Turn warnings in a block that succeeds into notes, each once."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for message in dict.fromkeys(str(warning.message) for warning in caught):
        note_to_stderr(message)
