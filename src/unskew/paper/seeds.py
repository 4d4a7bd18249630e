"""The same plan under several seeds: its mean table, the spread of seeds, the agreement with print.

A seed draws its own ten directions of selection and its own samples, so that the spread between
seeds says how much of a deviation from the printed table is chance. If a seed's table correlates
with the printed one as two seeds correlate with each other, the paper is one more seed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from unskew.paper.printed import Cells, Row, compare, ours, printed, rank_correlation
from unskew.paper.results import TextTable


class SeededRuns:
    """The reports of one plan by seed, as ``benchmarks/table_1`` stores them.

    Parameters
    ----------
    reports : list of dict
        For each seed, ``seed``, ``run`` and some of ``results``, ``differences``, ``averages``.
    scaling : str
        Of the inputs.
    """

    def __init__(self, reports: Sequence[Row], scaling: str = "range") -> None:
        self.reports = list(reports)
        self.scaling = scaling

    @classmethod
    def from_file(cls, path: Path) -> SeededRuns:
        """Read what was stored."""
        return cls(json.loads(path.read_text(encoding="utf-8"))["reports"])

    @property
    def seeds(self) -> int:
        """The number of seeds."""
        return len(self.reports)

    @property
    def run(self) -> Row:
        """What is known of the first seed's run; the others differ in their seed alone."""
        return dict(self.reports[0]["run"])

    @cached_property
    def tables(self) -> list[Cells]:
        """The cells of each seed."""
        return [ours(report["results"], self.scaling) for report in self.reports]

    @cached_property
    def printed(self) -> Cells:
        """The paper's cells."""
        return printed(self.reports[0]["results"], self.scaling)

    @cached_property
    def mean(self) -> Cells:
        """The mean over seeds of each cell."""
        return over_seeds(self.tables)[0]

    @cached_property
    def spread(self) -> Cells:
        """The standard deviation between seeds of each cell."""
        return over_seeds(self.tables)[1]

    def rows(self, **wanted: Any) -> list[list[Row]]:
        """Return, for each cell of the results that fits, its rows of all seeds."""
        chosen = [_fitting(report["results"], wanted) for report in self.reports]
        return [list(group) for group in zip(*chosen, strict=True)]

    def against_unweighted(self, total: str) -> list[Row]:
        """Return means over seeds, with Student's interval of the difference from Unweighted."""
        groups = self.rows(total=total)
        base = {g[0]["set"]: _errors(g) for g in groups if g[0]["method"] == "Unweighted"}
        rows = []
        for group in groups:
            change = _errors(group) - base[group[0]["set"]]
            margin = stats.t.ppf(0.975, len(group) - 1) * change.std(ddof=1) / np.sqrt(len(group))
            mean = float(change.mean())
            interval = {"difference": mean, "low": mean - margin, "high": mean + margin}
            rows.append({**group[0], "nmse_mean": float(_errors(group).mean()), **interval})
        return rows

    def averaged(self, **wanted: Any) -> list[Row]:
        """Return the averages over directions, put together over seeds.

        The directions of all seeds are one sample; a seed's interval gives its variance.
        """
        chosen = [_fitting(report["averages"], wanted) for report in self.reports]
        return [_joined(group) for group in zip(*chosen, strict=True)]


def _fitting(rows: Sequence[Row], wanted: Row) -> list[Row]:
    return [row for row in rows if all(row[key] == value for key, value in wanted.items())]


def _errors(group: Sequence[Row]) -> np.ndarray:
    return np.array([row["nmse_mean"] for row in group])


def _joined(group: Sequence[Row]) -> Row:
    k = group[0]["directions"]
    quantile = stats.t.ppf(0.975, k - 1)
    variances = [((row["high"] - row["low"]) / 2 / quantile) ** 2 for row in group]
    error = np.sqrt(np.sum(variances)) / len(group)
    difference = float(np.mean([row["difference"] for row in group]))
    margin = float(stats.t.ppf(0.975, len(group) * (k - 1)) * error)
    spreads = [row["nmse_sd"] for row in group]
    return {
        **group[0],
        "nmse_mean": float(np.mean([row["nmse_mean"] for row in group])),
        "nmse_sd": float(np.sqrt(np.mean(np.square(spreads)))),
        "difference": difference,
        "low": difference - margin,
        "high": difference + margin,
        "directions": k * len(group),
    }


def comparison(runs: SeededRuns) -> TextTable:
    """Return our mean table beside the printed one."""
    lines: list[tuple[str, ...]] = []
    for group in runs.rows(total="paper"):
        row = group[0]
        key = row["set"], row["method"]
        mean, published = runs.mean[key], runs.printed[key]
        lines.append(
            (
                *key,
                f"{mean:.3f}",
                f"{runs.spread[key]:.3f}",
                f"{_mean_of(group, 'nmse_sd'):.3f}",
                f"{published:.3f}",
                f"{row['paper_nmse_sd']:.3f}",
                f"{mean / published - 1:+.0%}",
                f"{np.mean([each['ess'] / each['m'] for each in group]):.0%}",
            )
        )
    headings = (
        *("set", "weights", "ours", "sd of seeds", "sd of draws"),
        *("paper", "its sd", "diff.", "ESS"),
    )
    return TextTable("", headings, lines, 2)


def _mean_of(group: Sequence[Row], key: str) -> float:
    return float(np.mean([row[key] for row in group]))


def seeds_table(runs: SeededRuns) -> TextTable:
    """Return the agreement of each seed, and of their mean, with the printed table."""
    lines = []
    named = [
        (f"seed {r['seed']}", cells) for r, cells in zip(runs.reports, runs.tables, strict=True)
    ]
    for name, cells in [*named, ("**mean table**", runs.mean)]:
        found = compare(cells, runs.printed)
        lines.append(
            (
                name,
                f"{found['spearman']:.2f}",
                f"{found['without_kmm']:.2f}",
                f"{found['clustered_better']} of {found['sets']}",
                *(f"{off:.1%}" for off in found["deviations"].values()),
            )
        )
    return TextTable(
        "", ("", "all", "without KMM", "Clustered better", *found["deviations"]), lines, 1
    )


def pairs(runs: SeededRuns) -> dict[str, str]:
    """Return the range and mean of the rank correlations between pairs of seeds."""
    both = {"pairs": between_seeds(runs.tables)}
    both["pairs_without"] = between_seeds(runs.tables, without="KMM")
    return {name: f"{np.mean(r):.2f} ({min(r):.2f} to {max(r):.2f})" for name, r in both.items()}


def ceiling(runs: SeededRuns) -> str:
    """Return the correlation of each seed with the mean of the others, in the mean."""
    found = []
    for left_out in range(runs.seeds):
        others = [cells for place, cells in enumerate(runs.tables) if place != left_out]
        found.append(rank_correlation(runs.tables[left_out], over_seeds(others)[0]))
    return f"{np.mean(found):.2f}"


def order_kept(runs: SeededRuns) -> tuple[int, int]:
    """Return how many pairs of columns of a set are in the paper's order, and of how many."""
    same = total = 0
    methods = list(dict.fromkeys(method for _, method in runs.printed))
    for name in dict.fromkeys(s for s, _ in runs.printed):
        for a, b in combinations(methods, 2):
            first = runs.mean[name, a] - runs.mean[name, b]
            same += first * (runs.printed[name, a] - runs.printed[name, b]) > 0
            total += 1
    return same, total


def over_seeds(tables: Sequence[Cells]) -> tuple[dict[tuple[str, str], float], Cells]:
    """Return the mean of tables of several seeds, and the standard deviation between seeds."""
    values = {key: np.array([table[key] for table in tables]) for key in tables[0]}
    means = {key: float(each.mean()) for key, each in values.items()}
    return means, {key: float(each.std(ddof=1)) for key, each in values.items()}


def between_seeds(tables: Sequence[Cells], *, without: str | None = None) -> list[float]:
    """Return the rank correlation of each pair of seeds."""
    return [rank_correlation(a, b, without=without) for a, b in combinations(tables, 2)]
