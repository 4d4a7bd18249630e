"""From single draws to results: means with intervals, tables of text, a picture.

A result is a row, a dict that is written as JSON: the mean and the standard deviation of the test
error over draws for a set and a kind of weights, and the paired difference from Unweighted in the
same draws, with Student's interval.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from unskew.errors import InputError
from unskew.paper.printed import TABLE_1, Row, agreement
from unskew.paper.protocol import Case, DrawOutcome, Plan, choose_directions
from unskew.paper.run import Kept

CONFIDENCE = 0.95


class ExperimentReport(NamedTuple):
    """Everything that is written of a run: each becomes a JSON file of its name."""

    results: list[Row]
    differences: list[Row]
    averages: list[Row]
    run: Row


def report_on(plan: Plan, kept: Kept) -> ExperimentReport:
    """Summarise the draws of a plan."""
    return ExperimentReport(
        results=results(plan, kept.outcomes),
        differences=differences(plan, kept.outcomes),
        averages=averages(plan, kept.outcomes),
        run=about(plan, kept),
    )


def results(plan: Plan, outcomes: Mapping[Case, DrawOutcome]) -> list[Row]:
    """Return one object for each set, scaling, total, mechanism and method.

    ``nmse_mean`` and ``nmse_sd`` are over ``draws`` draws, of the chosen direction where the
    mechanism is logistic; ``m`` is the mean sample size and ``ess`` the mean effective sample size.
    """
    rows = []
    for name, scaling, mechanism, number, drawn in _panels(plan, outcomes):
        for total in plan.totals:
            for method in plan.methods:
                errors = _errors(drawn, method, total)
                printed = None
                if total == "paper" and mechanism == "logistic" and name in TABLE_1:
                    printed = TABLE_1[name].nmse.get(method)
                rows.append(
                    {
                        "set": name,
                        "scaling": scaling,
                        "total": total,
                        "mechanism": mechanism,
                        "method": method,
                        "nmse_mean": float(errors.mean()),
                        "nmse_sd": _spread(errors),
                        "draws": len(drawn),
                        "m": round(float(np.mean([each.m for each in drawn]))),
                        "n": drawn[0].n,
                        "n_test": drawn[0].n_test,
                        "ess": float(np.mean([each.methods[method].ess for each in drawn])),
                        "paper_nmse_mean": printed.mean if printed else None,
                        "paper_nmse_sd": printed.sd if printed else None,
                        "direction": number,
                    }
                )
    return rows


def differences(plan: Plan, outcomes: Mapping[Case, DrawOutcome]) -> list[Row]:
    """Return how each method's error differs from Unweighted's in the same draw.

    ``low`` and ``high`` bound Student's 95 % interval of the mean over draws; ``better`` counts the
    draws with a smaller error.
    """
    return [
        {
            "set": name,
            "scaling": scaling,
            "total": total,
            "mechanism": mechanism,
            "method": method,
            "against": "Unweighted",
            **_interval(_errors(drawn, method, total) - _errors(drawn, "Unweighted", total)),
        }
        for name, scaling, mechanism, _, drawn in _panels(plan, outcomes)
        for total in plan.totals
        for method in plan.methods
        if method != "Unweighted"
    ]


def averages(plan: Plan, outcomes: Mapping[Case, DrawOutcome]) -> list[Row]:
    """Return the means over all directions of the logistic selection, under the first scaling.

    The unit is the direction: ``nmse_sd`` and the interval of the difference from Unweighted are
    over the means of the directions.
    """
    if "logistic" not in plan.mechanisms or not plan.averaging_draws:
        return []
    n_draws = min(plan.averaging_draws, plan.choosing_draws)
    scaling = plan.scalings[0]
    rows = []
    for data in plan.sets:
        drawn = [
            _drawn(outcomes, data.name, scaling, "logistic", number, n_draws)
            for number in range(plan.directions)
        ]
        for total in plan.averaging_totals:
            base = _direction_means(drawn, "Unweighted", total)
            for method in plan.all_methods:
                means = _direction_means(drawn, method, total)
                rows.append(
                    {
                        "set": data.name,
                        "scaling": scaling,
                        "total": total,
                        "method": method,
                        "directions": plan.directions,
                        "draws_per_direction": n_draws,
                        "nmse_mean": float(means.mean()),
                        "nmse_sd": _spread(means),
                        "against": "Unweighted",
                        **_interval(means - base),
                    }
                )
    return rows


def _direction_means(drawn: Sequence[Sequence[DrawOutcome]], method: str, total: str) -> np.ndarray:
    return np.array([_errors(each, method, total).mean() for each in drawn])


def about(plan: Plan, kept: Kept) -> Row:
    """Return how a run was made: settings, sizes, chosen directions, time, warnings."""
    spent: Counter[str] = Counter()
    warned: Counter[str] = Counter()
    for outcome in kept.outcomes.values():
        spent.update(outcome.seconds)
        warned.update(outcome.warnings)
    return {
        "settings": plan.settings,
        "draws": plan.draws,
        "directions": plan.directions,
        "choosing_draws": plan.choosing_draws,
        "averaging_draws": min(plan.averaging_draws, plan.choosing_draws),
        "sources": {data.name: Path(data.source).name for data in plan.sets},
        "calls": kept.calls,
        "seconds": {part: round(seconds, 1) for part, seconds in spent.most_common()},
        "warnings": dict(warned),
    }


def _panels(
    plan: Plan, outcomes: Mapping[Case, DrawOutcome]
) -> Iterator[tuple[str, str, str, int | None, list[DrawOutcome]]]:
    """Yield each set, scaling and mechanism with its direction and draws."""
    chosen = choose_directions(plan, outcomes)
    for data in plan.sets:
        for mechanism in plan.mechanisms:
            logistic = mechanism == "logistic"
            for scaling in plan.scalings if logistic else plan.scalings[:1]:
                number = chosen[data.name, scaling] if logistic else None
                drawn = _drawn(outcomes, data.name, scaling, mechanism, number, plan.draws)
                yield data.name, scaling, mechanism, number, drawn


def _drawn(
    outcomes: Mapping[Case, DrawOutcome],
    name: str,
    scaling: str,
    mechanism: str,
    number: int | None,
    n_draws: int,
) -> list[DrawOutcome]:
    return [outcomes[Case(name, scaling, mechanism, number, draw)] for draw in range(n_draws)]


def _errors(drawn: Sequence[DrawOutcome], method: str, total: str) -> np.ndarray:
    return np.array([each.methods[method].nmse[total] for each in drawn])


def _spread(values: np.ndarray) -> float | None:
    return float(values.std(ddof=1)) if len(values) > 1 else None


def _interval(change: np.ndarray) -> Row:
    n_draws = len(change)
    mean = float(change.mean())
    margin = None
    if n_draws > 1:
        quantile = stats.t.ppf((1 + CONFIDENCE) / 2, n_draws - 1)
        margin = float(quantile * change.std(ddof=1) / np.sqrt(n_draws))
    return {
        "difference": mean,
        "low": None if margin is None else mean - margin,
        "high": None if margin is None else mean + margin,
        "better": int((change < 0).sum()),
        "of": n_draws,
    }


class TextTable(NamedTuple):
    """Headings and rows; ``words`` counts the leading columns that are not numbers."""

    title: str
    headings: tuple[str, ...]
    rows: list[tuple[str, ...]]
    words: int


def tables(plan: Plan, report: ExperimentReport) -> list[TextTable]:
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


def mechanism_table(
    report: ExperimentReport, mechanism: str, scaling: str, total: str
) -> TextTable:
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


COLOURS = {"Unweighted": "#c1440e", "Ideal": "#7f8c8d", "Clustered": "#1b6ca8", "KMM": "#8e6bb0"}
OTHER_COLOUR = "#2e8b57"


def has_matplotlib() -> bool:
    """Return whether a figure can be drawn."""
    return find_spec("matplotlib") is not None


def draw_results(rows: Sequence[Row], scaling: str, path: Path) -> None:
    """Draw one panel per total weight: dots are means, bars standard deviations over draws.

    Crosses are the paper's means, with its standard deviations, where it has any. It needs
    matplotlib, but none of its global state. The file is always a PNG.
    """
    from matplotlib.figure import Figure

    rows = [row for row in rows if (row["scaling"], row["mechanism"]) == (scaling, "logistic")]
    if not rows:
        raise InputError(f"There are no results of logistic selection under '{scaling}' scaling.")
    totals = list(dict.fromkeys(row["total"] for row in rows))
    sets = list(dict.fromkeys(row["set"] for row in rows))
    figure = Figure(figsize=(3.6 * len(totals) + 1.4, 0.62 * len(sets) + 1.9), layout="constrained")
    panels = figure.subplots(1, len(totals), sharex=True, sharey=True, squeeze=False)[0]
    for axes, total in zip(panels, totals, strict=True):
        _panel(axes, [row for row in rows if row["total"] == total], sets)
        axes.set_title(_TITLES[total], fontsize="medium")
        axes.set_xlabel("test error (NMSE)")
    panels[0].set_yticks(range(len(sets)), sets)
    panels[0].set_ylim(len(sets) - 0.45, -0.55)
    panels[0].set_xlim(left=0)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(labels), frameon=False)
    figure.savefig(path, format="png", dpi=160)


_TITLES = {
    "paper": "total weights as in the paper",
    "sample": "every method at Σw = m",
    "population": "every method at Σw = n",
}


def _panel(axes: Any, rows: Sequence[Row], sets: Sequence[str]) -> None:
    methods = list(dict.fromkeys(row["method"] for row in rows))
    step = 0.78 / len(methods)
    for band in range(0, len(sets), 2):
        axes.axhspan(band - 0.5, band + 0.5, color="#f4f4f4", linewidth=0, zorder=0)
    for place, method in enumerate(methods):
        shown = [row for row in rows if row["method"] == method]
        colour = COLOURS.get(method, OTHER_COLOUR)
        heights = [
            sets.index(row["set"]) + (place - (len(methods) - 1) / 2 + 0.15) * step for row in shown
        ]
        axes.errorbar(
            [row["nmse_mean"] for row in shown],
            heights,
            xerr=[row["nmse_sd"] or 0.0 for row in shown],
            fmt="o",
            color=colour,
            markersize=5,
            linewidth=1.4,
            label=method,
        )
        printed = [
            (row, height)
            for row, height in zip(shown, heights, strict=True)
            if row["paper_nmse_mean"] is not None
        ]
        if printed:
            axes.errorbar(
                [row["paper_nmse_mean"] for row, _ in printed],
                [height - step / 3 for _, height in printed],  # so that both bars can be seen
                xerr=[row["paper_nmse_sd"] for row, _ in printed],
                fmt="x",
                color="black",
                markersize=5,
                linewidth=0.6,
                zorder=3,
                label="printed in the paper" if place == len(methods) - 1 else None,
            )
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="x", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
