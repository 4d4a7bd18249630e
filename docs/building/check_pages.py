"""Whether pages say what the stored results say: ``python -m docs.building.check_pages``.

Pages with figures of benchmarks are made from the results that are stored beside the benchmark.
This step of ``make docs`` and ``make docs-smoke`` makes each of them again, in memory, and names
those that differ, with the command that writes them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


class Made(NamedTuple):
    """A page, what it must be or contain, and the command that writes it."""

    page: str
    text: str
    whole: bool
    command: str


def table_1() -> Iterator[Made]:
    """Yield the page on the paper's table."""
    from docs import table_1

    yield Made("table-1.md", table_1.page(), True, "python -m docs.table_1")


def checked_against() -> Iterator[Made]:
    """Yield the page of published numbers."""
    from docs import checked_against

    page = checked_against.page()
    yield Made("checked-against.md", page, True, "python -m docs.checked_against")


def accuracy() -> Iterator[Made]:
    """Yield the page on accuracy, and the table that another page shows of it."""
    from benchmarks.accuracy import page, results

    stored, command = results.Results(), "python -m benchmarks.accuracy page"
    yield Made("accuracy.md", page.page(stored), True, command)
    yield Made("which-method.md", page.chooser(stored), True, command)


def answers() -> Iterator[Made]:
    """Yield the page on the defaults' answers."""
    from benchmarks.answers import page

    yield Made("answers.md", page.page(page.stored()), True, "python -m benchmarks.answers page")


def speed() -> Iterator[Made]:
    """Yield the table on how long things take."""
    from benchmarks.speed import __main__ as speed

    yield Made("speed.md", speed.stored(), False, "python -m benchmarks.speed --page")


def estimation() -> Iterator[Made]:
    """Yield the table on how often intervals cover."""
    from benchmarks.estimation import __main__ as estimation

    table = estimation.table(json.loads(estimation.RESULTS.read_text(encoding="utf-8")))
    yield Made("estimates.md", table, False, "python -m benchmarks.estimation, and paste")


CHECKS: list[Callable[[], Iterator[Made]]] = [
    table_1,
    checked_against,
    accuracy,
    answers,
    speed,
    estimation,
]


def problems(made: Made, folder: Path = DOCS) -> list[str]:
    """Return what is wrong with a page, in a line."""
    shown = (folder / made.page).read_text(encoding="utf-8")
    if shown == made.text or (not made.whole and made.text in shown):
        return []
    return [f"docs/{made.page} does not show the stored results: {made.command}"]


def main() -> int:
    """Print the problems; return 1 if there are any."""
    found = [line for check in CHECKS for made in check() for line in problems(made)]
    for line in found:
        print(line, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
