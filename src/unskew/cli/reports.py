"""A diagnosis as a page in a file or as lines on a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unskew import OverlapRule
    from unskew.diagnostics.diagnosis import Diagnosis, FeatureBalance, Verdict


_MOST = 5
"""How many columns and regions are shown; the report has them all."""
_WIDEST = 120
"""How many characters of a region's description are shown."""


def write_report(diagnosis: Diagnosis, temporary: Path, path: Path) -> None:
    """Write the page to a temporary file that will become ``path``."""
    from unskew.files import writing

    page = diagnosis.to_html()
    with writing(path):
        temporary.write_text(page, encoding="utf-8")


def format_diagnosis(diagnosis: Diagnosis) -> list[str]:
    """Return the diagnosis in a few lines."""
    headline, *step = format_verdict(diagnosis.verdict)
    return [
        headline,
        *(f"  {text}" for text in diagnosis.verdict.sentences),
        *step,
        "Most biased columns (standardised mean difference):",
        *(f"  {_format_balance(feature)}" for feature in diagnosis.bias.features[:_MOST]),
        *format_regions(diagnosis.overlap.rules),
    ]


def format_verdict(verdict: Verdict) -> list[str]:
    """Return the verdict in a sentence and, where it is not good, the next step."""
    from unskew.cli.words import OPTIONS

    if verdict.next_step is None:
        return [verdict.headline]
    return [verdict.headline, f"Next step: {verdict.next_step.say(OPTIONS)}"]


def format_effective_size(weights: Any) -> str:
    """Return a line with the effective sample size of some weights."""
    from unskew import effective_sample_size

    effective = effective_sample_size(weights)
    return f"Effective sample size: {effective:,.1f} ({effective / len(weights):.0%} of the rows)."


def format_rule(rule: OverlapRule) -> str:
    """Return a region in a line; long values, as of free text, are cut."""
    text = rule.text if len(rule.text) <= _WIDEST else f"{rule.text[: _WIDEST - 1]}…"
    return str(replace(rule, text=text))


def format_regions(rules: Sequence[OverlapRule]) -> list[str]:
    """Return the regions that the sample does not cover, in a few lines."""
    if not rules:
        return []
    more = [f"  … and {len(rules) - _MOST} more"] if len(rules) > _MOST else []
    return [
        "Regions not covered by the sample:",
        *(f"  {format_rule(rule)}" for rule in rules[:_MOST]),
        *more,
    ]


def _format_balance(feature: FeatureBalance) -> str:
    before = _format_number(feature.before.mean)
    if feature.after is None:
        return f"{feature.name}: {before}"
    return f"{feature.name}: {before}, with the weights {_format_number(feature.after.mean)}"


def _format_number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:+.2f}"
