"""What people wait for: one table, each line a job beside its limit or peer in the same run.

    python -m benchmarks.speed                   # every topic
    python -m benchmarks.speed fits overlap      # some
    python -m benchmarks.speed fits --only Tree  # the jobs whose name has this text
    python -m benchmarks.speed --store           # keep the figures in benchmarks/speed/results
    python -m benchmarks.speed --page            # measure nothing: write them to docs/speed.md

A topic is a file in this folder with a function ``jobs()`` that yields ``Job``; a new file is a
new topic. Times are medians of alternating repeats: wall seconds, and beside them the seconds of
processor time, which other work on the machine moves less: a job whose wall time is above its limit
and whose processor time is not is marked as such.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import pkgutil
import re
import warnings
from collections.abc import Iterable
from pathlib import Path

from benchmarks.speed.jobs import Job, Line, measure

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "speed.md"
MARK = "<!-- made by benchmarks.speed -->"
TOPICS = sorted(
    module.name
    for module in pkgutil.iter_modules([str(HERE)])
    if module.name not in ("__main__", "jobs")
)
HEAD = (
    "| job | wall, s | processor, s | limit | its wall, s | its processor, s | ratio | at most | |"
)
RULE = "|---" * (HEAD.count("|") - 1) + "|"


def stored() -> str:
    """Return the page's table of the figures that were kept; the ratio of a miss is bold."""
    rows = ["| job | s | beside | its s | ratio | at most |", "|---|--:|---|--:|--:|--:|"]
    for topic in TOPICS:
        path = HERE / "results" / f"{topic}.json"
        kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
        for line in (Line(**one) for one in kept):
            name = re.sub(r"--\w+", r"`\g<0>`", line.name)  # two hyphens, not a dash
            its = "" if line.limit_wall is None else f"{line.limit_wall:.3g}"
            ratio = f"{line.ratio:.2f}" if line.reached else f"**{line.ratio:.2f}**"
            found = (name, f"{line.wall:.3g}", line.limit, its, ratio, f"{line.at_most:g}")
            rows.append(f"| {' | '.join(found)} |")
    return "\n".join(rows)


def write_page() -> None:
    """Put the table between the marks of the page."""
    before, _, after = PAGE.read_text(encoding="utf-8").split(MARK)
    text = MARK.join([before, f"\n\n{stored()}\n\n", after])
    PAGE.write_text(text, encoding="utf-8")


def cells(line: Line) -> str:
    """Return a line of the table."""
    limit = [
        "" if seconds is None else f"{seconds:.3g}"
        for seconds in (line.limit_wall, line.limit_processor)
    ]
    found = [
        line.name + (f" ({line.note})" if line.note else ""),
        f"{line.wall:.3g}",
        f"{line.processor:.3g}",
        line.limit,
        *limit,
        f"{line.ratio:.2f}",
        f"{line.at_most:g}",
        line.verdict,
    ]
    return f"| {' | '.join(found)} |"


def run(topic: str, only: str, repeats: int | None, *, store: bool) -> None:
    """Measure the jobs of a topic, printing each line when it is known."""
    jobs: Iterable[Job] = importlib.import_module(f"benchmarks.speed.{topic}").jobs()
    lines = []
    for job in jobs:
        if only.lower() not in job.name.lower():
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            lines.append(measure(job, repeats))
        print(cells(lines[-1]), flush=True)
    if store and lines:
        folder = HERE / "results"
        folder.mkdir(exist_ok=True)
        text = json.dumps([line.as_dict() for line in lines], indent=1)
        (folder / f"{topic}.json").write_text(text + "\n")


def main() -> None:
    """Run the given topics, or all."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("topics", nargs="*", choices=[*TOPICS, []], help="Default: all.")
    parser.add_argument("--only", default="", metavar="TEXT", help="Jobs whose name has this text.")
    parser.add_argument("--repeats", type=int, help="Of each job, instead of the job's own.")
    parser.add_argument("--store", action="store_true", help="Keep the figures beside the code.")
    parser.add_argument("--page", action="store_true", help="Write the kept figures to the docs.")
    given = parser.parse_args()
    if given.page:
        write_page()
        return
    print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}\n")
    print(HEAD)
    print(RULE)
    for topic in given.topics or TOPICS:
        run(topic, given.only, given.repeats, store=given.store)


if __name__ == "__main__":
    main()
