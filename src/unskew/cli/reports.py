"""A diagnosis as a page in a file or as lines on a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

    from unskew.diagnostics.diagnosis import BalanceLine, FeatureBalance, Verdict
    from unskew.errors import OverlapError
    from unskew.results import Diagnosis, OverlapRule
    from unskew.rows.doubtful_columns import Doubt


_MOST = 5
"""How many columns and regions are shown; the report has them all."""
_CLASSES = 20
"""How many classes are shown."""
_WIDEST = 120
"""How many characters of a region's description are shown."""


def write_report(diagnosis: Diagnosis, temporary: Path, path: Path) -> None:
    """Write the report to a temporary file that will become ``path``; its ending is the format."""
    from unskew.files import writing

    formats = {".md": diagnosis.to_markdown, ".json": diagnosis.to_json}
    text = formats.get(path.suffix.lower(), diagnosis.to_html)()
    with writing(path):
        temporary.write_text(text, encoding="utf-8")


def name_inputs(
    diagnosis: Diagnosis, identifiers: pa.Table | None = None, **named: Any
) -> Diagnosis:
    """Return the diagnosis with the files and the target that it is about, and rows by name."""
    if named["sample"] == "-":
        named["sample"] = "standard input"
    weights = diagnosis.weights
    if identifiers is not None and weights is not None:
        values = identifiers.column(0)
        heaviest = (replace(row, row=values[row.row].as_py()) for row in weights.heaviest)
        weights = replace(weights, heaviest=tuple(heaviest))
    provenance = replace(diagnosis.provenance, **named)
    return replace(diagnosis, provenance=provenance, weights=weights)


def format_diagnosis(diagnosis: Diagnosis) -> list[str]:
    """Return the diagnosis in a few lines."""
    lines, more = diagnosis.largest_lines(_MOST)
    limit = diagnosis.thresholds.largest_difference
    headline, *step = format_verdict(diagnosis.verdict)
    return [
        headline,
        *(f"  {text}" for text in diagnosis.verdict.sentences),
        *step,
        "Most biased columns (standardised mean difference):",
        *(f"  {_format_line(feature, line)}" for feature, line in lines),
        *([f"  … and {more:,} more columns or categories outside ± {limit:.2g}"] if more else []),
        *format_regions(diagnosis.overlap.rules if diagnosis.overlap else ()),
    ]


def format_verdict(verdict: Verdict) -> list[str]:
    """Return the verdict in a sentence and, where it is not good, the next step."""
    from unskew.cli.phrases import OPTIONS

    if verdict.next_step is None:
        return [verdict.headline]
    return [verdict.headline, f"Next step: {verdict.next_step.say(OPTIONS)}"]


def format_effective_size(weights: Any) -> str:
    """Return a line with the effective sample size of some weights."""
    from unskew import effective_sample_size

    effective = effective_sample_size(weights)
    return f"Effective sample size: {effective:,.1f} ({effective / len(weights):.0%} of the rows)."


def format_classes(weighter: Any) -> list[str]:
    """Return the shares of the classes in sample and population, in a few lines."""
    rows = zip(
        weighter.classes_,
        weighter.sample_shares_,
        weighter.population_shares_,
        weighter.class_weights_,
        strict=True,
    )
    lines = [
        f"  {label}: {share:.1%} of the sample, {wanted:.1%} of the population: weight {weight:.3g}"
        for label, share, wanted, weight in rows
    ]
    more = [f"  … and {len(lines) - _CLASSES} more"] if len(lines) > _CLASSES else []
    return ["Classes:", *lines[:_CLASSES], *more, str(weighter.shift_test_)]


def not_covered(rules: Sequence[OverlapRule], how: str = "") -> str:
    """Say where the population is not covered, and what follows."""
    where = [how] * bool(how) + [format_rule(rule) for rule in rules[:3]]
    where += [f"and {len(rules) - 3} more"] * (len(rules) > 3)
    return (
        f"is not covered by the sample ({'; '.join(where)}), so no weights can make the sample "
        "represent it."
    )


def refusal(
    share: float,
    rules: Sequence[OverlapRule],
    allowed: float,
    why: str,
    doubts: Sequence[Doubt],
) -> OverlapError:
    """Return the error of a command that too much of the population is not covered for.

    Columns that are doubtful as features are what to leave out first.
    """
    from unskew.cli.phrases import OPTIONS
    from unskew.errors import OverlapError
    from unskew.weighters.next_step import leave_out

    drop = f" {leave_out(doubts).sentence(OPTIONS)}" if doubts else ""
    return OverlapError(
        f"Refused: {share:.1%} of the population {why}{drop} At most {allowed:.1%} is allowed; "
        f"--allow-uncovered {share + 0.0005:.3f} would allow it.",
        share,
        rules,
    )


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


def _format_line(feature: FeatureBalance, line: BalanceLine) -> str:
    name = feature.name if line.category is None else f"{feature.name} = {line.category}"
    before = _format_number(line.before)
    if feature.after is None:
        return f"{name}: {before}"
    return f"{name}: {before}, with the weights {_format_number(line.after)}"


def _format_number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:+.2f}"
