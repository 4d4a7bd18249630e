"""The committed results behind docs/table-1.md: one file per round, several seeds in each."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from unskew.paper.printed import (
    Cells,
    Row,
    between_seeds,
    compare,
    ours,
    over_seeds,
    printed,
    rank_correlation,
)
from unskew.paper.results import TextTable

RESULTS = Path(__file__).parent / "table-1"


class Round:
    """The reports of one round of benchmarks/table_1, by seed."""

    def __init__(self, name: str, scaling: str = "range") -> None:
        more = RESULTS / f"more-{name}.json"  # the same with more draws, if it was made
        path = more if more.exists() else RESULTS / f"{name}.json"
        text = path.read_text(encoding="utf-8")
        self.reports: list[dict[str, Any]] = json.loads(text)["reports"]
        self.scaling = scaling

    @staticmethod
    def exists(name: str) -> bool:
        """Return whether a round is complete."""
        return any((RESULTS / f"{each}.json").exists() for each in (name, f"more-{name}"))

    @property
    def seeds(self) -> int:
        """The number of seeds."""
        return len(self.reports)

    @property
    def run(self) -> Row:
        """What is known of the first seed's run; the others differ in their seed alone."""
        return dict(self.reports[0]["run"])

    @property
    def seconds(self) -> float:
        """The time spent in draws, over all seeds."""
        return sum(sum(report["run"]["seconds"].values()) for report in self.reports)

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
        return over_seeds(self.tables)[0] if self.seeds > 1 else self.tables[0]

    @cached_property
    def spread(self) -> Cells:
        """The standard deviation between seeds of each cell."""
        return over_seeds(self.tables)[1]

    @cached_property
    def found(self) -> Row:
        """How far the mean table is from the printed one."""
        return compare(self.mean, self.printed)

    def rows(self, **wanted: Any) -> list[list[Row]]:
        """Return, for each cell of the results that fits, its rows of all seeds."""
        chosen = [
            [
                row
                for row in report["results"]
                if all(row[key] == value for key, value in wanted.items())
            ]
            for report in self.reports
        ]
        return [list(group) for group in zip(*chosen, strict=True)]

    def averaged(self, **wanted: Any) -> list[Row]:
        """Return the averages over directions, put together over seeds.

        The directions of all seeds are one sample; a seed's interval gives its variance.
        """
        groups = zip(*(report["averages"] for report in self.reports), strict=True)
        return [
            _joined(group)
            for group in groups
            if all(group[0][key] == value for key, value in wanted.items())
        ]


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


def comparison(table: Round) -> TextTable:
    """Return our mean table beside the printed one."""
    lines = []
    for group in table.rows(total="paper"):
        row = group[0]
        key = row["set"], row["method"]
        mean, published = table.mean[key], table.printed[key]
        lines.append(
            (
                *key,
                f"{mean:.3f}",
                f"{table.spread[key]:.3f}",
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


def seeds_table(table: Round) -> TextTable:
    """Return the agreement of each seed, and of their mean, with the printed table."""
    lines = []
    named = [
        (f"seed {r['seed']}", cells) for r, cells in zip(table.reports, table.tables, strict=True)
    ]
    for name, cells in [*named, ("**mean table**", table.mean)]:
        found = compare(cells, table.printed)
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


def pairs(table: Round) -> dict[str, str]:
    """Return the range and mean of the rank correlations between pairs of seeds."""
    both = {"pairs": between_seeds(table.tables)}
    both["pairs_without"] = between_seeds(table.tables, without="KMM")
    return {name: f"{np.mean(r):.2f} ({min(r):.2f} to {max(r):.2f})" for name, r in both.items()}


def ceiling(table: Round) -> str:
    """Return the correlation of each seed with the mean of the others, in the mean."""
    found = []
    for left_out in range(table.seeds):
        others = [cells for place, cells in enumerate(table.tables) if place != left_out]
        found.append(rank_correlation(table.tables[left_out], over_seeds(others)[0]))
    return f"{np.mean(found):.2f}"


def order_kept(table: Round) -> tuple[int, int]:
    """Return how many pairs of columns of a set are in the paper's order, and of how many."""
    same = total = 0
    methods = list(dict.fromkeys(method for _, method in table.printed))
    for name in dict.fromkeys(s for s, _ in table.printed):
        for a, b in combinations(methods, 2):
            first = table.mean[name, a] - table.mean[name, b]
            same += first * (table.printed[name, a] - table.printed[name, b]) > 0
            total += 1
    return same, total
