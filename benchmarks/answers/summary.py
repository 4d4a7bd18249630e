"""From the records of draws to a line for each design, and which limits it misses."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.stats import beta

from benchmarks.answers.designs import DESIGNS
from benchmarks.answers.measure import SEES_Y

HOLDS = (0.93, 0.97)
"""How often intervals hold."""
NOTED, NOT_NOTED = 0.80, 0.05
"""The least share of draws with a note where they do not, the most where they do."""
ON_AVERAGE, AT_MOST = 1.1, 1.5
"""How many times the best error, over all designs and in each."""
SMALL, NEAR = 0.3, 0.15
"""Where the best root mean square error is below the first, the distance allowed."""
SMALL_WEIGHT, NEAR_WEIGHT = 0.05, 0.05
"""The same for weights, such that a best error of zero has a limit."""
ENOUGH = 0.9
"""The share of draws in which a method must answer to be the best."""
SETTLED = 30
"""The draws from which on a miss of the root mean square error is no longer put in brackets."""
Record = Mapping[str, Any]
Line = dict[str, Any]


def summarise(records: Iterable[Record]) -> dict[str, Line]:
    """Return a line for each design that has draws."""
    by_design: dict[str, dict[str, dict[int, Any]]] = {}
    for one in records:
        methods = by_design.setdefault(one["design"], {})
        for name, found in one["methods"].items():
            methods.setdefault(name, {})[one["draw"]] = found
    return {name: line_of(by_design[name]) for name in DESIGNS if name in by_design}


def line_of(methods: Mapping[str, Mapping[int, Any]]) -> Line:
    """Return what is known of a design from its methods' draws."""
    line = intervals_of(methods["estimate"])
    line["automatic"] = intervals_of(methods["automatic"]) if "automatic" in methods else None
    line["seconds"] = {
        name: round(float(np.mean([one["seconds"] for one in draws.values()])), 3)
        for name, draws in methods.items()
    }
    # Compared on the draws that all methods have.
    own = set.intersection(*(set(methods[name]) for name in methods if name != "automatic"))
    line["weighed"] = len(methods.get("weights", ()))
    line["compared"] = len(own)
    rmse, errors, failed = {}, {}, {}
    for name, draws in methods.items():
        answered = [draws[k] for k in sorted(own & set(draws)) if "failed" not in draws[k]]
        missing = len(own) - len(answered)
        if missing and name != "automatic":
            failed[name] = missing
        if name == "automatic" or len(answered) < ENOUGH * len(own) or not answered:
            continue
        squares = [error**2 for one in answered for error in one["errors"]]
        rmse[name] = round(float(np.mean(squares)) ** 0.5, 3)
        if name not in SEES_Y:
            errors[name] = round(float(np.mean([one["weight_error"] for one in answered])), 4)
    line |= {"rmse": rmse, "weight_error": errors, "failed": failed}
    return line


def intervals_of(draws: Mapping[int, Any]) -> Line:
    """Return how often intervals hold, their length against the spread, and the notes."""
    answered = [one for one in draws.values() if "failed" not in one]
    covers = [held for one in answered for held in one["covers"]]
    trust = [said for one in answered for said in one["trust"]]
    each = len(answered[0]["covers"]) if answered else 1
    refused = each * (len(draws) - len(answered))  # no answer is no interval, and says why
    total = len(covers) + refused
    errors = np.array([one["errors"] for one in answered])
    spread = errors.std(axis=0, ddof=1) if len(answered) > 1 else np.full(each, np.nan)
    widths = np.array([one["standard_errors"] for one in answered])
    notes = Counter(note for one in answered for note in one["notes"])
    return {
        "draws": len(draws),
        "refused": len(draws) - len(answered),
        "holds": round(sum(covers) / total, 4),
        "intervals": total,
        "bias": round(float(errors.mean()), 3) if answered else None,
        "error_over_spread": (
            round(float((widths.mean(axis=0) / spread).mean()), 3) if len(answered) > 1 else None
        ),
        "noted": round(sum(trust) / max(len(trust), 1), 4),
        "notes": dict(notes.most_common(6)),
    }


def best_of(found: Mapping[str, float], own: str) -> tuple[str, float] | None:
    """Return the method with the least error beside our default, and its error."""
    others = {name: value for name, value in found.items() if name != own}
    if not others or own not in found:
        return None
    name = min(others, key=lambda one: others[one])
    return name, others[name]


def times(value: float, best: float) -> float:
    """Return how many times the best error an error is, at least 1."""
    return max(1.0, value / best) if best > 0 else (1.0 if value == 0 else math.inf)


def ratios(line: Line) -> dict[str, tuple[str, float, float, bool]]:
    """Return for both comparisons the best, its error, the ratio, and whether it is held."""
    found = {}
    for measure, own, small, near in (
        ("rmse", "estimate", SMALL, NEAR),
        ("weight_error", "weights", SMALL_WEIGHT, NEAR_WEIGHT),
    ):
        best = best_of(line[measure], own)
        if best is None:
            continue
        value = line[measure][own]
        ratio = times(value, best[1])
        within = ratio <= AT_MOST
        if best[1] < small:
            within = value <= best[1] + near
        found[measure] = (*best, ratio, within)
    return found


def by_chance(line: Line) -> bool:
    """Whether so many intervals may hold by chance although 93 to 97 % do in the long run."""
    total = line["intervals"]
    held = round(line["holds"] * total)
    low = beta.ppf(0.025, held, total - held + 1) if held else 0.0
    high = beta.ppf(0.975, held + 1, total - held) if held < total else 1.0
    return bool(low <= HOLDS[1] and high >= HOLDS[0])


def misses(line: Line) -> list[str]:
    """Return which limits a design misses; one in brackets may be chance."""
    found = []
    if line["refused"]:
        found.append("refused")
    if HOLDS[0] <= line["holds"] <= HOLDS[1]:
        if line["noted"] > NOT_NOTED:
            found.append("note without need")
    elif line["noted"] < NOTED:
        found.append("(interval)" if by_chance(line) else "interval")
    for measure, (*_, within) in ratios(line).items():
        if not within:
            word = {"rmse": "RMSE", "weight_error": "weights"}[measure]
            few = measure == "rmse" and line["compared"] < SETTLED
            found.append(f"({word})" if few else word)
    return found


def averages(lines: Mapping[str, Line]) -> dict[str, float]:
    """Return the mean ratio of each comparison over the designs whose best error is not small."""
    found: dict[str, list[float]] = {"rmse": [], "weight_error": []}
    limits = {"rmse": SMALL, "weight_error": SMALL_WEIGHT}
    for line in lines.values():
        for measure, (_, best, ratio, _) in ratios(line).items():
            if best >= limits[measure]:
                found[measure].append(ratio)
    return {name: float(np.mean(values)) for name, values in found.items() if values}


HEAD = (
    "design",
    "draws",
    "holds",
    "SE / SD",
    "noted",
    "RMSE",
    "best beside",
    "times",
    "weight error",
    "best beside",
    "times",
    "misses",
)


def cells(name: str, line: Line) -> list[str]:
    """Return a design's line as text."""
    found = [name, str(line["draws"]), f"{line['holds']:.1%}".replace("%", " %")]
    over = line["error_over_spread"]
    found += ["" if over is None else f"{over:.2f}", f"{line['noted']:.0%}".replace("%", " %")]
    compared = ratios(line)
    for measure, own, form in (("rmse", "estimate", ".2f"), ("weight_error", "weights", ".3f")):
        if measure not in compared:
            found += ["", "", ""]
            continue
        best, error, ratio, _ = compared[measure]
        found += [f"{line[measure][own]:{form}}", f"{best} {error:{form}}", f"{ratio:.2f}"]
    return [*found, ", ".join(misses(line))]


def table(lines: Mapping[str, Line]) -> str:
    """Return the lines as a table in Markdown."""
    rows: list[Sequence[str]] = [HEAD, ["---", *["--:"] * (len(HEAD) - 2), "---"]]
    rows += [cells(name, line) for name, line in lines.items()]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def verdict(lines: Mapping[str, Line]) -> str:
    """Say in a few lines which limits are held."""
    count = Counter(miss for line in lines.values() for miss in misses(line))
    mean = averages(lines)
    held = sum(HOLDS[0] <= line["holds"] <= HOLDS[1] for line in lines.values())
    said = [f"Intervals hold in 93 to 97 % in {held} of {len(lines)} designs."]
    said += [
        f"{words}: {mean[name]:.2f} times the best on average."
        for name, words in (("rmse", "RMSE of estimate"), ("weight_error", "Error of the weights"))
        if name in mean
    ]
    what = ", ".join(f"{name} {number}" for name, number in count.most_common()) or "none"
    return " ".join([*said, f"Limits missed: {what}."])
