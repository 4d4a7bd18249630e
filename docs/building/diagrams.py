"""The drawings of docs/how-it-works.md: ``python -m docs.building.diagrams`` makes them."""

from __future__ import annotations

from html import escape
from pathlib import Path

IMAGES = Path(__file__).resolve().parents[1] / "images"
LAYERS = {
    "cli": "commands, one file each",
    "report": "a diagnosis in, a page out",
    "diagnostics": "is there bias, did the weights help",
    "theory": "bounds and certificates",
    "estimation": "numbers with intervals",
    "learning": "train and judge with weights",
    "weighters": "one method a file",
    "overlap": "what the sample does not cover",
    "population": "rows of any engine, margins, the pass",
    "numerics": "pure functions of arrays",
}


def _drawing(width: int, height: int, title: str, parts: list[str]) -> str:
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}" font-family="system-ui, sans-serif" '
            f'font-size="14" role="img" aria-label="{escape(title)}">',
            f'<rect width="{width}" height="{height}" fill="white"/>',
            *parts,
            "</svg>\n",
        ]
    )


def _box(x: int, y: int, width: int, text: str, *, strong: bool = False) -> str:
    fill, ink = ("#1b6ca8", "white") if strong else ("#eef2f5", "#222")
    return (
        f'<rect x="{x}" y="{y}" width="{width}" height="34" rx="6" fill="{fill}" '
        f'stroke="#7f8c8d"/><text x="{x + width // 2}" y="{y + 22}" text-anchor="middle" '
        f'fill="{ink}">{escape(text)}</text>'
    )


def _arrow(x: int, y: int, to_x: int, to_y: int) -> str:
    return (
        f'<path d="M{x} {y} L{to_x} {to_y}" stroke="#7f8c8d" stroke-width="1.5"/>'
        f'<circle cx="{to_x}" cy="{to_y}" r="3.5" fill="#7f8c8d"/>'
    )


def layers() -> str:
    """Return the layers, one below the other."""
    parts = []
    for place, (name, purpose) in enumerate(LAYERS.items()):
        y = 8 + 42 * place
        parts.append(_box(8, y, 120, name, strong=name in ("weighters", "population")))
        parts.append(f'<text x="142" y="{y + 22}" fill="#444">{escape(purpose)}</text>')
        if place:
            parts.append(_arrow(68, y - 8, 68, y - 1))
    return _drawing(420, 42 * len(LAYERS) + 12, "The layers of the code", parts)


def one_pass() -> str:
    """Return a pass: ask, fill copies, merge, solve."""
    parts = [_box(110, 8, 200, "sample: one question", strong=True)]
    for place, x in enumerate((8, 146, 284)):
        parts.append(_arrow(210, 42, x + 64, 78))
        parts.append(_box(x, 80, 128, f"rows, part {place + 1}"))
        parts.append(_arrow(x + 64, 114, x + 64, 140))
        parts.append(_box(x, 142, 128, f"small answer {place + 1}"))
        parts.append(_arrow(x + 64, 176, 210, 212))
    parts += [
        _box(90, 214, 240, "answers merged, in row order"),
        _arrow(210, 248, 210, 274),
        _box(110, 276, 200, "solve: weights", strong=True),
    ]
    return _drawing(420, 320, "A pass over the population", parts)


def drawings() -> dict[str, str]:
    """Return the drawings by their files' names."""
    return {"layers.svg": layers(), "pass.svg": one_pass()}


if __name__ == "__main__":
    for name, text in drawings().items():
        (IMAGES / name).write_text(text, encoding="utf-8")
