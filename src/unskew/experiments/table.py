"""The results as tables of text, for the terminal and for Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from unskew.experiments.agreement import agreement
from unskew.experiments.plan import Plan
from unskew.experiments.results import Report, Row


class TextTable(NamedTuple):
    """Headings and rows; ``words`` counts the leading columns that are not numbers."""

    title: str
    headings: tuple[str, ...]
    rows: list[tuple[str, ...]]
    words: int


def tables(plan: Plan, report: Report) -> list[TextTable]:
    """Return all tables: beside the paper, at equal totals, over all w, other mechanisms."""
    equal = [total for total in plan.totals if total != "paper"] or ["paper"]
    made = []
    for scaling in plan.scalings if "logistic" in plan.mechanisms else ():
        made.append(paper_table(report.results, scaling))
        made += [mechanism_table(report, "logistic", scaling, total) for total in equal]
    if report.averages:
        made += [
            average_table(report.averages, plan.scalings[0], total)
            for total in plan.averaging_totals
        ]
    others = (mechanism for mechanism in plan.mechanisms if mechanism != "logistic")
    return made + [mechanism_table(report, name, plan.scalings[0], equal[0]) for name in others]


def paper_table(rows: Sequence[Row], scaling: str) -> TextTable:
    """Return our figures beside the printed ones, and what they become at the same total weight."""
    cells = {_key(row): row for row in rows}
    lines = []
    for row in rows:
        if (row["scaling"], row["mechanism"], row["total"]) != (scaling, "logistic", "paper"):
            continue
        at = [cells.get(_key({**row, "total": total})) for total in ("sample", "population")]
        printed = row["paper_nmse_mean"]
        lines.append(
            (
                row["set"],
                row["method"],
                _with_spread(row["nmse_mean"], row["nmse_sd"]),
                _with_spread(printed, row["paper_nmse_sd"]),
                "" if printed is None else f"{row['nmse_mean'] - printed:+.3f}",
                *("" if cell is None else f"{cell['nmse_mean']:.3f}" for cell in at),
                f"{row['ess'] / row['m']:.0%}",
            )
        )
    headings = ("set", "weights", "ours", "paper", "diff.", "Σw=m", "Σw=n", "ESS")
    return TextTable(f"Table 1, inputs scaled: {scaling}", headings, lines, 2)


def average_table(rows: Sequence[Row], scaling: str, total: str) -> TextTable:
    """Return the means over all directions, with the intervals of the gains over Unweighted."""
    chosen = [row for row in rows if (row["scaling"], row["total"]) == (scaling, total)]
    return by_method(f"All directions w, inputs scaled: {scaling}, {_total(total)}", chosen)


def mechanism_table(report: Report, mechanism: str, scaling: str, total: str) -> TextTable:
    """Return the means over draws of one mechanism, with the intervals of the gains."""
    gains = {_key(row): row for row in report.differences}
    chosen = [
        {**gains.get(_key(row), {}), **row}
        for row in report.results
        if (row["mechanism"], row["scaling"], row["total"]) == (mechanism, scaling, total)
    ]
    chosen_w = "the chosen w" if mechanism == "logistic" else "a new w in each draw"
    title = f"Selection: {mechanism}, {chosen_w}, inputs scaled: {scaling}, {_total(total)}"
    return by_method(title, chosen)


def verdict(rows: Sequence[Row], scaling: str) -> str:
    """Return, in a sentence, how far the results are from the printed table."""
    found = agreement(rows, scaling)
    if not found["cells"]:
        return "The paper has none of these sets."
    spearman = (
        f"Rank correlation with the printed {found['cells']} figures: {found['spearman']:.2f}, "
        f"without KMM {found['without_kmm']:.2f}. "
    )
    deviations = ", ".join(f"{method} {off:.0%}" for method, off in found["deviations"].items())
    return (
        (spearman if found["cells"] > 4 else "")
        + f"Clustered is better than Unweighted on {found['clustered_better']} of {found['sets']} "
        f"sets. Median deviation from the printed columns: {deviations}."
    )


def markdown(table: TextTable) -> str:
    """Return a table as Markdown, without its title.

    Examples
    --------
    >>> print(markdown(TextTable("", ("set", "error"), [("housing", "0.5")], 1)))
    | set | error |
    |---|--:|
    | housing | 0.5 |
    """
    rule = ["---" if place < table.words else "--:" for place in range(len(table.headings))]
    lines = [" | ".join(table.headings), "|".join(rule), *(" | ".join(row) for row in table.rows)]
    head, ruled, *body = lines
    return "\n".join([f"| {head} |", f"|{ruled}|", *(f"| {line} |" for line in body)])


def by_method(title: str, rows: Sequence[Row]) -> TextTable:
    """Return a line per set and a column per method; an asterisk marks the smallest error."""
    methods = list(dict.fromkeys(row["method"] for row in rows))
    by_set: dict[str, dict[str, Row]] = {}
    for row in rows:
        by_set.setdefault(row["set"], {})[row["method"]] = row
    lines = []
    for name, cells in by_set.items():
        best = min(cells.values(), key=lambda row: row["nmse_mean"])["method"]
        shown = []
        for method in methods:
            text = f"{cells[method]['nmse_mean']:.3f}"
            if method != "Unweighted":
                text += f" ({_change(cells[method])})"
            shown.append(f"{text}{' *' if method == best else ''}")
        lines.append((name, *shown))
    return TextTable(title, ("set", *methods), lines, 1)


def _key(row: Row) -> tuple[Any, ...]:
    return tuple(row[key] for key in ("set", "scaling", "total", "mechanism", "method"))


def _total(total: str) -> str:
    return {"sample": "Σw = m", "population": "Σw = n", "paper": "the paper's total weights"}[total]


def _change(row: Row) -> str:
    if row["low"] is None:
        return f"{row['difference']:+.3f}"
    return f"{row['difference']:+.3f} ± {(row['high'] - row['low']) / 2:.3f}"


def _with_spread(mean: float | None, spread: float | None) -> str:
    if mean is None:
        return ""
    return f"{mean:.3f}" if spread is None else f"{mean:.3f}±{spread:.3f}"
