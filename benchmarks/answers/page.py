"""results.json from the draws, and docs/answers.md from it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.answers.designs import DESIGNS
from benchmarks.answers.summary import Line, misses, summarise, table, verdict

ROOT = Path(__file__).resolve().parents[2]
RESULTS = Path(__file__).with_name("results.json")
PAGE = ROOT / "docs" / "answers.md"
TEMPLATE = PAGE.with_suffix(".md.in")
NOTHING = "*Not run yet.*"
DRAWS, BESIDE = 300, 60
"""How many the protocol asks for."""


def write_page(folder: Path, seed: int) -> None:
    """Store the draws' summary, if there are any, and write the page from what is stored."""
    from benchmarks.answers.__main__ import records_of

    records = records_of(folder, seed)
    if records:
        doors = folder / f"doors-{seed}.json"
        store(summarise(records), json.loads(doors.read_text()) if doors.exists() else {})
    PAGE.write_text(page(stored()), encoding="utf-8")


def store(lines: Mapping[str, Line], doors: Mapping[str, Any]) -> None:
    """Write the results, a line for each design."""
    rows = [
        json.dumps(name) + ": " + json.dumps({**line, "doors": doors.get(name)}, ensure_ascii=False)
        for name, line in lines.items()
    ]
    RESULTS.write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")


def stored() -> dict[str, Any]:
    """Return the stored results; none if there was no run."""
    return json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}


def page(lines: Mapping[str, Line]) -> str:
    """Return the page's text."""
    text = TEMPLATE.read_text(encoding="utf-8")
    for name, part in {
        "verdict": verdict,
        "counts": counts,
        "results": table,
        "misses": missed,
        "automatic": automatic,
        "doors": doors_said,
    }.items():
        text = text.replace(f"${{{name}}}", part(lines) if lines else NOTHING)
    sentences = "\n".join(f"| {one.name} | {one.sentence} |" for one in DESIGNS.values())
    return text.replace("${designs}", f"| design | what it is |\n|---|---|\n{sentences}")


def counts(lines: Mapping[str, Line]) -> str:
    """Say how many draws were made."""
    draws, weighed, compared = (
        [line[key] for line in lines.values()] for key in ("draws", "weighed", "compared")
    )
    said = [_range(one) for one in (draws, weighed, compared)]
    wanted = (
        ""
        if min(draws) >= DRAWS and min(compared) >= BESIDE
        else (f" The protocol asks for {DRAWS} and {BESIDE}; there was no time for more.")
    )
    return (
        f"Draws of a design: {said[0]} of `estimate`, {said[1]} of the default weights, {said[2]} "
        f"of all methods, on which errors are compared.{wanted}"
    )


def _range(numbers: list[int]) -> str:
    least, most = min(numbers), max(numbers)
    return str(least) if least == most else f"{least} to {most}"


def missed(lines: Mapping[str, Line]) -> str:
    """Return the designs that miss a limit, with their notes."""
    rows = [
        "| design | misses | mean error | notes, with the draws that have them |",
        "|---|---|--:|---|",
    ]
    for name, line in lines.items():
        if misses(line):
            notes = "; ".join(f"{note} ({count})" for note, count in line["notes"].items())
            bias = "" if line["bias"] is None else f"{line['bias']:+.2f}"
            rows.append(f"| {name} | {', '.join(misses(line))} | {bias} | {notes or 'none'} |")
    return "\n".join(rows) if len(rows) > 2 else "No design misses a limit."


def automatic(lines: Mapping[str, Line]) -> str:
    """Return how often the intervals of automatic weights hold, and what both cost."""
    rows = [
        "| design | draws | holds | SE / SD | noted | seconds | of the default |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for name, line in lines.items():
        one = line["automatic"]
        if one is None:
            continue
        over = "" if one["error_over_spread"] is None else f"{one['error_over_spread']:.2f}"
        cost = line["seconds"]
        rows.append(
            f"| {name} | {one['draws']} | {one['holds']:.0%} | {over} | {one['noted']:.0%} | "
            f"{cost['automatic']:.2f} | {cost['estimate']:.2f} |".replace("%", " %")
        )
    return "\n".join(rows) if len(rows) > 2 else "Not measured."


def doors_said(lines: Mapping[str, Line]) -> str:
    """Say in how many designs the shell gives Python's numbers."""
    asked = {name: line["doors"] for name, line in lines.items() if line.get("doors")}
    said = []
    for door in ("weigh", "estimate"):
        other = {name: one[door] for name, one in asked.items() if one[door] != "same"}
        listed = "".join(f" {name}: {what}." for name, what in other.items())
        said.append(
            f"`unskew {door}`: the same bits in {len(asked) - len(other)} of {len(asked)} designs."
            + listed
        )
    return "\n\n".join(said)
