"""Write docs/table-1.md from the results in docs/table-1.

python -m docs.table_1            write the page
python -m docs.table_1 FOLDER     first copy the results of ``unskew reproduce -o FOLDER``
"""

from __future__ import annotations

import json
import shutil
import sys
from collections import Counter
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from unskew.experiments.results import Report, Row, agreement
from unskew.experiments.table import (
    TextTable,
    average_table,
    markdown,
    mechanism_table,
    paper_table,
)

HERE = Path(__file__).parent
RESULTS = HERE / "table-1"
PAGE = HERE / "table-1.md"
TEMPLATE = HERE / "table-1.md.in"


def main() -> None:
    """Copy results from the given folders, if any, and write the page."""
    if sys.argv[1:]:
        take_over([Path(folder) for folder in sys.argv[1:]])
    PAGE.write_text(page(), encoding="utf-8")


def take_over(folders: list[Path]) -> None:
    """Combine the results of several folders in docs/table-1."""
    RESULTS.mkdir(exist_ok=True)
    reports = [_read(folder) for folder in folders]
    together = Report(
        results=[row for report in reports for row in report.results],
        differences=[row for report in reports for row in report.differences],
        averages=[row for report in reports for row in report.averages],
        run=_joined([report.run for report in reports]),
    )
    for name, content in together._asdict().items():
        text = json.dumps(content, indent=1) + "\n"
        (RESULTS / f"{name}.json").write_text(text, encoding="utf-8")
    shutil.copyfile(folders[0] / "figure.png", RESULTS / "figure.png")


def _read(folder: Path) -> Report:
    return Report(
        **{
            name: json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
            for name in Report._fields
        }
    )


def _joined(runs: list[Row]) -> Row:
    if any(run["settings"] != runs[0]["settings"] for run in runs):
        raise SystemExit("The folders were made with different settings or versions.")
    seconds: Counter[str] = Counter()
    warnings: Counter[str] = Counter()
    for run in runs:
        seconds.update(run["seconds"])
        warnings.update(run["warnings"])
    return {
        **runs[0],
        "calls": [call for run in runs for call in run["calls"]],
        "seconds": dict(seconds.most_common()),
        "warnings": dict(warnings),
    }


def page() -> str:
    """Return the page's text."""
    report = _read(RESULTS)
    template = Template(TEMPLATE.read_text(encoding="utf-8"))
    readings = (RESULTS / "readings.md").read_text(encoding="utf-8").strip()
    return template.substitute(
        _tables(report), readings=readings, **_figures(report), **_words(report)
    )


def _tables(report: Report) -> dict[str, str]:
    others = dict.fromkeys(row["mechanism"] for row in report.results)
    del others["logistic"]
    return {
        "table_range": markdown(paper_table(report.results, "range")),
        "table_standard": markdown(paper_table(report.results, "standard")),
        "same_total": markdown(mechanism_table(report, "logistic", "range", "sample")),
        "same_total_n": markdown(mechanism_table(report, "logistic", "range", "population")),
        "average_paper": markdown(average_table(report.averages, "range", "paper")),
        "average_sample": markdown(average_table(report.averages, "range", "sample")),
        "mechanisms": "\n\n".join(
            f"{_STORIES[name]}\n\n{markdown(mechanism_table(report, name, 'range', 'sample'))}"
            for name in others
        ),
        "wins": markdown(_wins(report, ["logistic", *others])),
    }


_STORIES = {
    "quadratic": "**quadratic**: both ends of the direction are selected, the middle rarely.",
    "threshold": "**threshold**: selection depends on one column, with probability 88 % on one "
    "side of its median and 12 % on the other.",
    "label": "**label**: selection depends on the label, which violates the assumption of all "
    "these methods. Ideal still uses the true probabilities.",
}


def _wins(report: Report, mechanisms: list[str]) -> TextTable:
    """Count the sets on which each method's interval lies below or above Unweighted's error."""
    methods = list(dict.fromkeys(row["method"] for row in report.differences))
    lines = []
    for mechanism in mechanisms:
        rows = [
            row
            for row in report.differences
            if (row["mechanism"], row["scaling"], row["total"]) == (mechanism, "range", "sample")
        ]
        counts = (
            (
                sum(row["high"] < 0 for row in rows if row["method"] == method),
                sum(row["low"] > 0 for row in rows if row["method"] == method),
            )
            for method in methods
        )
        lines.append((mechanism, *(f"{better} better, {worse} worse" for better, worse in counts)))
    return TextTable("", ("selection", *methods), lines, 1)


def _figures(report: Report) -> dict[str, Any]:
    ranged = [row for row in report.results if row["scaling"] == "range"]
    found, standard = (agreement(report.results, name) for name in ("range", "standard"))
    beside = [row for row in ranged if row["paper_nmse_mean"] is not None]
    apart = [row for row in beside if _apart(row)]
    without = agreement([row for row in report.results if row["method"] != "KMM"], "range")
    run = report.run
    seconds = run["seconds"]
    spent = sum(seconds.values())
    return {
        "draws": run["draws"],
        "choosing": run["choosing_draws"],
        "averaging": run["averaging_draws"],
        "spearman": f"{found['spearman']:.2f}",
        "spearman_without": f"{without['spearman']:.2f}",
        "spearman_standard": f"{standard['spearman']:.2f}",
        "better": f"{found['clustered_better']} of {found['sets']}",
        "deviation": f"{found['clustered_deviation']:.1%}",
        "deviation_standard": f"{standard['clustered_deviation']:.0%}",
        "agree": f"{len(beside) - len(apart)} of {len(beside)}",
        "apart": "; ".join(
            f"{row['set']} {row['method']} ({row['nmse_mean']:.3f}, published "
            f"{row['paper_nmse_mean']:.3f})"
            for row in apart
        ),
        "scale_share": f"{_scale_share(ranged):.0%}",
        "ideal_ess": f"{_median_ess(beside, 'Ideal'):.0%}",
        "kmm_ess": f"{_median_ess(beside, 'KMM'):.1%}",
        **{
            f"sd_{method.lower()}": f"{_sd_ratio(beside, method):.1f}"
            for method in dict.fromkeys(row["method"] for row in beside)
        },
        "spread": f"{_spread_of_directions(report.averages):.0%}",
        "core_minutes": f"{spent / 60:.0f}",
        "shares": ", ".join(
            f"{_PARTS.get(part, part)} {value / spent:.0%}"
            for part, value in seconds.items()
            if value > 0.01 * spent
        ),
        "versions": ", ".join(
            f"{name} {run['settings'][name]}" for name in ("unskew", "numpy", "scipy")
        )
        + f", scikit-learn {run['settings']['scikit-learn']}",
        "warnings": sum(run["warnings"].values()),
    }


def _words(report: Report) -> dict[str, str]:
    """Return notes on the data sets that the other panels omit."""
    shown: dict[tuple[str, str], set[str]] = {}
    for row in report.results:
        shown.setdefault((row["mechanism"], row["scaling"]), set()).add(row["set"])
    table = shown["logistic", "range"]
    others = [sets for (mechanism, _), sets in shown.items() if mechanism != "logistic"]
    return {
        "mechanisms_note": _left_out(table - set.intersection(*others)),
        "standard_note": _left_out(table - shown["logistic", "standard"]),
    }


def _left_out(sets: set[str]) -> str:
    return f"Omitted here because of its cost: {', '.join(sorted(sets))}." if sets else ""


_PARTS = {"training": "training and predicting", "KMM": "kernel mean matching", "kernel": "kernels"}


def _apart(row: Row) -> bool:
    """Return whether two means differ by more than two combined standard deviations."""
    spread = np.hypot(row["nmse_sd"], row["paper_nmse_sd"])
    return bool(abs(row["nmse_mean"] - row["paper_nmse_mean"]) > 2 * spread)


def _scale_share(rows: list[Row]) -> float:
    """Return the median share of Ideal's gain that Unweighted gets if its weights sum to n."""
    error = {
        (row["set"], row["method"], row["total"]): row["nmse_mean"]
        for row in rows
        if row["mechanism"] == "logistic"
    }
    shares = []
    for name in {row["set"] for row in rows}:
        gain = error[name, "Unweighted", "paper"] - error[name, "Ideal", "paper"]
        if gain > 0:
            rescaled = error[name, "Unweighted", "paper"] - error[name, "Unweighted", "population"]
            shares.append(rescaled / gain)
    return float(np.median(shares))


def _median_ess(rows: list[Row], method: str) -> float:
    return float(np.median([row["ess"] / row["m"] for row in rows if row["method"] == method]))


def _sd_ratio(rows: list[Row], method: str) -> float:
    """Return our standard deviation over draws relative to the paper's, median over sets."""
    chosen = [row for row in rows if row["method"] == method]
    return float(np.median([row["nmse_sd"] / row["paper_nmse_sd"] for row in chosen]))


def _spread_of_directions(rows: list[Row]) -> float:
    """Return the median over sets of Unweighted's spread over directions, relative to its mean."""
    wanted = ("range", "Unweighted", "paper")
    chosen = [row for row in rows if (row["scaling"], row["method"], row["total"]) == wanted]
    return float(np.median([row["nmse_sd"] / row["nmse_mean"] for row in chosen]))


if __name__ == "__main__":
    main()
