"""The chart of docs/which-method.md: questions in the order in which to ask them.

``python -m docs.building.chart`` draws it.
"""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import NamedTuple

PICTURE = Path(__file__).resolve().parents[1] / "images" / "which-method.svg"
WIDTH, STEP, BOX = 420, 92, 40


class Step(NamedTuple):
    """A question, and what to use if the answer is yes."""

    question: str
    use: str


STEPS = [
    Step("Do you know each row's probability of selection?", "KnownProbability"),
    Step(
        "Does the label decide who is in the sample?",
        "HeckmanRegressor, -Classifier|LabelShiftWeights (class alone)",
    ),
    Step("Do you know only totals, and no rows?", "CalibrationWeights with Margins"),
    Step("Few columns with few values each?", "FrequencyWeights (values)|HistogramWeights (bands)"),
    Step("Must means agree exactly, as in surveys?", "CalibrationWeights"),
    Step("Fewer than about 100 sample rows?", 'CalibrationWeights|(features="means")'),
    Step(
        "Do you want a certificate for a trained model?",
        "TreeWeights(honest=True)|HistogramWeights",
    ),
    Step(
        "Must whole distributions of numbers match?",
        "KernelMeanMatching|DensityRatioWeights (new rows)",
    ),
]
LAST = "AutoWeights"


def svg() -> str:
    """Return the chart: a question in each box, the answer yes to its right, no below."""
    height = STEP * len(STEPS) + 70
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
        f'height="{height}" font-family="system-ui, sans-serif" font-size="14" role="img" '
        'aria-labelledby="title"><title id="title">Which method? Questions in the order in which '
        "to ask them; the text of the page has the same list.</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
    ]
    for number, step in enumerate(STEPS):
        parts += _step(number, step)
    top = STEP * len(STEPS) + 8
    parts += [
        f'<rect x="10" y="{top}" width="200" height="{BOX}" rx="6" fill="#1b6ca8"/>',
        f'<text x="110" y="{top + 25}" text-anchor="middle" fill="white">{LAST}</text>',
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _step(number: int, step: Step) -> list[str]:
    top = STEP * number + 8
    low = top + BOX
    uses = step.use.split("|")
    first = low + 21 - 8 * (len(uses) - 1)
    answer = [
        f'<text x="132" y="{first + 17 * line}" fill="#1b6ca8" font-weight="600">'
        f"{escape(use)}</text>"
        for line, use in enumerate(uses)
    ]
    bottom = top + STEP
    return [
        f'<rect x="10" y="{top}" width="400" height="{BOX}" rx="6" fill="#eef2f5" '
        'stroke="#7f8c8d"/>',
        f'<text x="22" y="{top + 25}" fill="#222">{number + 1}. {escape(step.question)}</text>',
        f'<path d="M30 {low} V{bottom - 4}" stroke="#7f8c8d" stroke-width="1.5" fill="none"/>',
        f'<path d="M25 {bottom - 9} L30 {bottom - 2} L35 {bottom - 9}" fill="#7f8c8d"/>',
        f'<text x="38" y="{bottom - 12}" fill="#555">no</text>',
        f'<path d="M76 {low} V{low + 16} H124" stroke="#1b6ca8" fill="none"/>',
        f'<path d="M119 {low + 11} L126 {low + 16} L119 {low + 21}" fill="#1b6ca8"/>',
        f'<text x="84" y="{low + 11}" fill="#1b6ca8">yes</text>',
        *answer,
    ]


if __name__ == "__main__":
    PICTURE.write_text(svg(), encoding="utf-8")
