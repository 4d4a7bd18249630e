"""The tables of docs/guarantees.md from the stored results."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np

REGIONS = {
    "cells": "cells",
    "calibration": "raking",
    "logistic": "logistic",
    "penalised": "logistic, penalised",
    "bootstrap": "raking, bootstrap",
}


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


def by_learner(steps: dict[str, Any]) -> dict[str, list[dict[str, float]]]:
    """Return the steps of each learner."""
    found: dict[str, list[dict[str, float]]] = defaultdict(list)
    for step, values in steps.items():
        found[step.split(":")[0]].append(values)
    return dict(found)


def validity(result: dict[str, Any]) -> list[str]:
    """Return failures, and medians over steps of how large bounds are."""
    regions = {title: by_learner(result.get(part, {})) for part, title in REGIONS.items()}
    learners = list(dict.fromkeys(name for found in regions.values() for name in found))
    lines = _head(["learner", *regions])
    for name in learners:
        lines.append(_line([name, *(_entry(found.get(name, [])) for found in regions.values())]))
    return lines


def _entry(steps: list[dict[str, float]]) -> str:
    if not steps:
        return ""
    draws, failed = (sum(step[field] for step in steps) for field in ("draws", "failed"))
    over, spread, flips = (
        float(np.median([step[field] for step in steps]))
        for field in ("bound over realised", "bound over spread", "certified flips")
    )
    text = f"{failed:.0f} of {draws:,.0f}; {over:.1f}; {spread:.2f}"
    return f"{text}; {100 * flips:.1f} %" if flips else text


def qualified(result: dict[str, Any]) -> list[str]:
    """Return how often the headline is qualified, with and without what it assumes."""
    found: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    # Designs that hold are drawn more often in a part of their own.
    longer = {name for step in result.get("level", {}).values() for name in step}
    for part in ("level", "broken"):
        for step in result.get(part, {}).values():
            for name, values in step.items():
                if part == "broken" and name in longer:
                    continue
                for field, number in values.items():
                    found[name][field] += number
    lines = _head(["design", "draws", "fails", "qualified"])
    for name, sums in found.items():
        shares = [sums[field] / sums["draws"] for field in ("failed", "qualified")]
        lines.append(_line([name, f"{sums['draws']:,}", *(f"{share:.3f}" for share in shares)]))
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
