"""The panels of docs/table-1.md besides the table: totals, directions, mechanisms, readings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from scipy import stats

from docs.table_1_rounds import Round
from unskew.paper.methods import METHODS
from unskew.paper.printed import Row, compare
from unskew.paper.results import ExperimentReport, TextTable, by_method, markdown, mechanism_table

PARTS = {"training": "training and predicting", "KMM": "kernel mean matching", "kernel": "kernels"}

MISSING = "*This part of the run was not finished.*"

READINGS = {
    "table": "**ours**",
    "chosen-on-three": "w chosen on three draws, not on ten",
    "first": "the same, three draws in all",
    "any-size": "w not conditioned on the printed \\|S\\|",
    "scaled-by-all": "scaled by all rows, not by U's",
    "standard-w": "w on standardised inputs, any \\|S\\|",
    "range-w": "w on inputs in [0, 1], any \\|S\\|",
    "standard": "standardised inputs for the SVR",
    "first-rows": "U is the first rows, not shuffled",
    "range-target": "target in [0, 1]",
    "raw-target": "target as it is",
}

STORIES = {
    "quadratic": "**quadratic**: both ends of the direction are selected, the middle rarely.",
    "threshold": "**threshold**: selection depends on one column, with probability 88 % on one "
    "side of its median and 12 % on the other.",
    "label": "**label**: selection depends on the label, which violates the assumption of all "
    "these methods. Ideal still uses the true probabilities.",
}


def seconds_spent() -> Counter[str]:
    """Return the seconds of all draws by what they were spent on, from the widest rounds."""
    spent: Counter[str] = Counter()
    for name in ("table", "any-size", "scaled-by-all", "standard-w", "range-w"):
        if Round.exists(name):
            for report in Round(name).reports:
                spent.update(report["run"]["seconds"])
    return spent


def totals() -> dict[str, str]:
    """Return the tables at equal totals, and how much of Ideal's gain is the total's."""
    panel = Round("totals")
    found: dict[str, str] = {}
    for total in ("sample", "population"):
        found[f"total_{total}"] = markdown(by_method("", _over_seeds(panel, total)))
    error = {
        (row["set"], row["method"], total): row["nmse_mean"]
        for total in ("paper", "sample", "population")
        for row in _over_seeds(panel, total)
    }
    shares = []
    for name in dict.fromkeys(key[0] for key in error):
        plain = error[name, "Unweighted", "paper"]
        gain = plain - error[name, "Ideal", "paper"]
        shares.append((plain - error[name, "Unweighted", "population"]) / gain)
    better = sum(
        row["high"] < 0 for row in _over_seeds(panel, "sample") if row["method"] == "Clustered"
    )
    ideal = [
        np.mean([r["ess"] / r["m"] for r in g]) for g in panel.rows(total="paper", method="Ideal")
    ]
    return {
        **found,
        "scale_share": f"{np.median(shares):.0%}",
        "clustered_same_total": f"{better} of {len(shares)}",
        "totals_draws": str(panel.run["draws"]),
        "ideal_ess": f"{np.median(ideal):.0%}",
    }


def _over_seeds(panel: Round, total: str) -> list[Row]:
    """Return means over seeds with Student's interval of the difference over seeds."""
    groups = panel.rows(total=total)
    base = {g[0]["set"]: _errors(g) for g in groups if g[0]["method"] == "Unweighted"}
    rows = []
    for group in groups:
        change = _errors(group) - base[group[0]["set"]]
        margin = stats.t.ppf(0.975, len(group) - 1) * change.std(ddof=1) / np.sqrt(len(group))
        mean = float(change.mean())
        rows.append(
            {
                **group[0],
                "nmse_mean": float(_errors(group).mean()),
                "difference": mean,
                "low": mean - margin,
                "high": mean + margin,
            }
        )
    return rows


def _errors(group: Sequence[Row]) -> np.ndarray:
    return np.array([row["nmse_mean"] for row in group])


def directions() -> dict[str, str]:
    """Return the averages over all directions."""
    if not Round.exists("directions"):
        return {"average_paper": MISSING, "average_sample": MISSING} | dict.fromkeys(
            ("all_directions", "direction_seeds", "spread"), "?"
        )
    panel = Round("directions")
    plain = panel.averaged(total="paper", method="Unweighted")
    return {
        "average_paper": markdown(by_method("", panel.averaged(total="paper"))),
        "average_sample": markdown(by_method("", panel.averaged(total="sample"))),
        "all_directions": str(plain[0]["directions"]),
        "direction_seeds": ", ".join(str(report["seed"]) for report in panel.reports),
        "spread": f"{np.median([row['nmse_sd'] / row['nmse_mean'] for row in plain]):.0%}",
    }


def today() -> dict[str, str]:
    """Return the errors of what the library offers today, beside those of the paper's weights."""
    if not Round.exists("today"):
        return {
            "today": MISSING,
            "today_changes": MISSING,
            "today_words": "*not finished*",
            "least_harm": "?",
            "today_directions": "?",
        }
    rows = _at_equal_totals(Round("today"))
    methods = list(dict.fromkeys(row["method"] for row in rows))
    sets = list(dict.fromkeys(row["set"] for row in rows))
    cell = {(row["set"], row["method"]): row for row in rows}
    lines = []
    for name in sets:
        errors = [cell[name, method]["nmse_mean"] for method in methods]
        marks = [" *" if error == min(errors) else "" for error in errors]
        lines.append((name, *(f"{e:.3f}{mark}" for e, mark in zip(errors, marks, strict=True))))
    changes, words = [], []
    worst: dict[str, float] = {}
    for method in methods[1:]:
        mine = [cell[name, method] for name in sets]
        plain = [cell[name, "Unweighted"]["nmse_mean"] for name in sets]
        relative = [row["nmse_mean"] / p - 1 for row, p in zip(mine, plain, strict=True)]
        changes.append(
            (
                method,
                f"{np.mean(relative):+.1%}",
                f"{max(relative):+.1%}",
                str(sum(row["high"] < 0 for row in mine)),
                str(sum(row["low"] > 0 for row in mine)),
            )
        )
        worst[method] = max(relative)
        if method != "Ideal":
            words.append(f"{method} {np.mean(relative):+.1%} (at worst {max(relative):+.1%})")
    headings = ("weights", "mean change", "worst set", "sets better", "sets worse")
    return {
        "today": markdown(TextTable("", ("set", *methods), lines, 1)),
        "today_changes": markdown(TextTable("", headings, changes, 1)),
        "today_words": ", ".join(words),
        "least_harm": min(worst, key=worst.__getitem__),
        "today_directions": str(rows[0]["directions"]),
    }


def _at_equal_totals(panel: Round) -> list[Row]:
    """Return the averages of seed 0 with all weights of sum m; the paper's from another round."""
    (same,) = [report for report in Round("directions").reports if report["seed"] == 0]
    equal = {
        (row["set"], row["method"]): row for row in same["averages"] if row["total"] == "sample"
    }
    rows = panel.averaged(total="paper")
    made = [equal.get((row["set"], row["method"]), row) for row in rows]
    assert {row["directions"] for row in made} == {rows[0]["directions"]}
    return made


def mechanisms() -> dict[str, str]:
    """Return the tables of the other mechanisms, and on how many sets each method helps."""
    if not Round.exists("mechanisms"):
        return {"mechanisms": MISSING, "wins": "", "mechanism_draws": "?"}
    panel = Round("mechanisms")
    report = ExperimentReport(**{key: panel.reports[0][key] for key in ExperimentReport._fields})
    names = list(dict.fromkeys(row["mechanism"] for row in report.results))
    tables = (
        f"{STORIES[name]}\n\n{markdown(mechanism_table(report, name, 'range', 'sample'))}"
        for name in names
    )
    return {
        "mechanisms": "\n\n".join(tables),
        "wins": markdown(_wins(report, names)),
        "mechanism_draws": str(panel.run["draws"]),
    }


def _wins(report: ExperimentReport, names: Sequence[str]) -> TextTable:
    """Count the sets on which each method's interval lies below or above Unweighted's error."""
    methods = list(dict.fromkeys(row["method"] for row in report.differences))
    lines = []
    for name in names:
        rows = [row for row in report.differences if row["mechanism"] == name]
        counts = []
        for method in methods:
            mine = [row for row in rows if row["method"] == method]
            better, worse = sum(r["high"] < 0 for r in mine), sum(r["low"] > 0 for r in mine)
            counts.append(f"{better} better, {worse} worse")
        lines.append((name, *counts))
    return TextTable("", ("selection", *methods), lines, 1)


def matchings() -> dict[str, str]:
    """Return what the program of kernel mean matching gives, solved in other ways."""
    if not Round.exists("matchings"):
        unknown = ("matching_draws", "nearest", "nearest_off", "ranked", "ranked_by")
        return {"matchings": MISSING, **dict.fromkeys(unknown, "?")}
    panel = Round("matchings")
    rows = [row for report in panel.reports for row in report["results"]]
    sets = list(dict.fromkeys(row["set"] for row in rows))
    cell = {(row["set"], row["method"]): row for row in rows}
    published = {name: cell[name, "KMM"]["paper_nmse_mean"] for name in sets}
    trials = [m for m in dict.fromkeys(row["method"] for row in rows) if m not in METHODS]
    lines, off, ranks = [], {}, {}
    for method in ("KMM", *trials):
        errors = {name: cell[name, method]["nmse_mean"] for name in sets}
        off[method] = np.median([abs(errors[s] / published[s] - 1) for s in sets])
        ranks[method] = stats.spearmanr(list(errors.values()), list(published.values()))[0]
        spread = [cell[s, method]["nmse_sd"] / cell[s, "KMM"]["paper_nmse_sd"] for s in sets]
        name = "to 1e-3 (the table's)" if method == "KMM" else method
        cells = (f"{errors[s]:.3f}" for s in sets)
        figures = f"{off[method]:.0%}", f"{ranks[method]:.2f}", f"{np.median(spread):.1f}"
        lines.append((name, *cells, *figures))
    lines.append(("**published**", *(f"{published[s]:.3f}" for s in sets), "", "", ""))
    nearest = min(trials, key=lambda method: off[method])
    ranked = max(trials, key=lambda method: ranks[method])
    return {
        "matchings": markdown(
            TextTable("", ("solved", *sets, "deviation", "ranks", "sd / published"), lines, 1)
        ),
        "matching_draws": str(panel.run["draws"]),
        "nearest": nearest,
        "nearest_off": f"{off[nearest]:.0%}, the table's own {off['KMM']:.0%}",
        "ranked": ranked,
        "ranked_by": f"{ranks[ranked]:.2f}, the table's own {ranks['KMM']:.2f}",
    }


def readings() -> dict[str, str]:
    """Return how near each reading comes."""
    lines, missing = [], []
    for name, words in READINGS.items():
        if not Round.exists(name):
            missing.append(words)
            continue
        panel = Round(name, "standard" if name == "standard" else "range")
        found = compare(panel.mean, panel.printed)
        lines.append(
            (
                words,
                f"{panel.seeds} × {panel.run['draws']}",
                f"{found['spearman']:.2f}",
                f"{found['without_kmm']:.2f}",
                f"{found['clustered_better']} of {found['sets']}",
                *(f"{off:.0%}" for off in found["deviations"].values()),
            )
        )
    headings = ("reading", "seeds × draws", "all", "without KMM", "Clustered better", *METHODS)
    text = markdown(TextTable("", headings, lines, 1))
    if missing:
        text += f"\n\nOptions that this run did not reach: {'; '.join(missing)}."
    return {"readings": text}
