"""The tables of docs/guarantees.md from the stored results."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path(__file__).parent / "results"
DRAWS = 1000
"""Of each learner and region, unless the tables say another number."""
REGIONS = {
    "cells": "cells",
    "calibration": "raking",
    "logistic": "logistic",
    "penalised": "logistic, penalised",
    "bootstrap": "raking, bootstrap",
}


def stored() -> dict[str, Any]:
    """Return the results of all parts."""
    return {path.stem: json.loads(path.read_text()) for path in sorted(RESULTS.glob("*.json"))}


def tables(result: dict[str, Any]) -> Iterator[list[str]]:
    """Yield the lines of each table."""
    yield validity(result)
    yield qualified(result)
    yield tightness(result)
    yield cost(result)


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _head(names: list[str]) -> list[str]:
    return [_line(names), "|" + "---|" * len(names)]


def by_learner(steps: dict[str, dict[str, dict[str, float]]]) -> dict[str, dict[str, float]]:
    """Return the sums of draws, failures and flips of each learner, and medians over the steps."""
    found: dict[str, dict[str, float]] = {}
    for name in dict.fromkeys(name for step in steps.values() for name in step):
        records = [step[name] for step in steps.values() if name in step]
        found[name] = {field: sum(one[field] for one in records) for field in ("draws", "failed")}
        for field in ("bound over realised", "bound over spread", "certified flips", "flipped"):
            found[name][field] = float(np.median([one[field] for one in records]))
    return found


def validity(result: dict[str, Any]) -> list[str]:
    """Return failures, and medians of how large bounds are."""
    regions = {title: by_learner(result.get(part, {})) for part, title in REGIONS.items()}
    learners = list(dict.fromkeys(name for found in regions.values() for name in found))
    lines = _head(["learner", *regions])
    for name in learners:
        lines.append(_line([name, *(_entry(found.get(name)) for found in regions.values())]))
    return lines


def _entry(found: dict[str, float] | None) -> str:
    if found is None:
        return ""
    over, spread = found["bound over realised"], found["bound over spread"]
    draws = "" if found["draws"] == DRAWS else f" of {found['draws']:.0f}"
    text = f"{found['failed']:.0f}{draws}; {over:.1f}; {spread:.2f}"
    return f"{text}; {100 * found['certified flips']:.1f} %" if found["flipped"] else text


def qualified(result: dict[str, Any]) -> list[str]:
    """Return how often the headline is qualified, with and without what it assumes."""
    lines = _head(["design", "draws", "fails", "qualified"])
    for name, found in result["broken"].items():
        shares = [found[field] / found["draws"] for field in ("failed", "qualified")]
        lines.append(_line([name, f"{found['draws']:,}", *(f"{share:.3f}" for share in shares)]))
    return lines


def tightness(result: dict[str, Any]) -> list[str]:
    """Return bounds over realised changes, and certified flips, of the nine sets."""
    lines = _head(
        [
            "set",
            "Ridge",
            "LogisticRegression",
            "SVC",
            "flips, cells",
            "realised",
            "flips, calibration",
            "realised",
        ]
    )
    for name, found in result["tightness"].items():
        ratios = [found[f"{one}, dual over realised"] for one in ("Ridge", "LogisticRegression")]
        flips = [
            found[f"LogisticRegression, {one}, {what}"]
            for one in ("cells", "calibration")
            for what in ("flips", "flipped")
        ]
        doubt = " (qualified)" if found["LogisticRegression, calibration, qualified"] else ""
        lines.append(
            _line(
                [
                    name,
                    f"{ratios[0]:.2f}",
                    f"{ratios[1]:.1f}",
                    f"{found['SVC, dual over realised']:.1f}",
                    f"{100 * flips[0]:.1f} %",
                    f"{100 * flips[1]:.1f} %",
                    f"{100 * flips[2]:.1f} %{doubt}",
                    f"{100 * flips[3]:.1f} %",
                ]
            )
        )
    return lines


def cost(result: dict[str, Any]) -> list[str]:
    """Return processor seconds."""
    lines = _head(["learner, weights", "fit, s", "certificate, s", "ratio"])
    for name, found in result["cost"].items():
        numbers = [f"{found['fit']:.2f}", f"{found['certificate']:.2f}", f"{found['ratio']:.2f}"]
        lines.append(_line([name, *numbers]))
    return lines
