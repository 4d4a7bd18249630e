"""What commands show of a diagnosis: a page in a file, lines on a terminal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unskew.diagnostics.diagnosis import Diagnosis, FeatureBalance

__all__ = ["lines_of", "write_report"]

_MOST = 5
"""How many columns and regions are shown; the report has them all."""


def write_report(diagnosis: Diagnosis, temporary: Path, path: Path) -> None:
    """Write the page to a temporary file that will be ``path``."""
    from unskew.files import writing

    page = diagnosis.to_html()
    with writing(path):
        temporary.write_text(page, encoding="utf-8")


def lines_of(diagnosis: Diagnosis) -> list[str]:
    """Return the diagnosis in a few lines."""
    lines = [diagnosis.verdict.headline, *(f"  {text}" for text in diagnosis.verdict.sentences)]
    lines.append("Most biased columns (standardised mean difference):")
    lines += [f"  {_balance(feature)}" for feature in diagnosis.bias.features[:_MOST]]
    lines += regions(diagnosis.overlap.rules)
    return lines


def regions(rules: tuple[object, ...]) -> list[str]:
    """Return where the sample does not reach, in a few lines."""
    if not rules:
        return []
    more = [f"  … and {len(rules) - _MOST} more"] if len(rules) > _MOST else []
    return ["Where the sample does not reach:", *(f"  {rule}" for rule in rules[:_MOST]), *more]


def _balance(feature: FeatureBalance) -> str:
    before = _number(feature.before.mean)
    if feature.after is None:
        return f"{feature.name}: {before}"
    return f"{feature.name}: {before}, with the weights {_number(feature.after.mean)}"


def _number(value: float | None) -> str:
    return "not known" if value is None else f"{value:+.2f}"
