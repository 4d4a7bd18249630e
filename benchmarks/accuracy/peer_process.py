"""Asks peers for weights, in a process of their own environment."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.accuracy.draws import Draw
from benchmarks.accuracy.tables import texts_of


class Peers:
    """The peers of one environment, which read a draw from files and answer with weights."""

    def __init__(self, part: str, python: str, folder: Path) -> None:
        script = str(Path(__file__).with_name("peers.py"))
        self.files = folder / f"draw-{part}"
        self.files.mkdir(exist_ok=True)
        self.process = subprocess.Popen(
            [python, script, part, str(self.files)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __call__(self, draw: Draw) -> dict[str, Any]:
        """Return each peer's weights and processor seconds, or why it has none."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        draw.sample.to_csv(self.files / "sample.csv", index=False)
        draw.population.to_csv(self.files / "population.csv", index=False)
        (self.files / "texts.json").write_text(json.dumps(texts_of(draw.sample)))
        np.savez(self.files / "draw.npz", sample=draw.sample_matrix, population=draw.matrix)
        self.process.stdin.write("weigh\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        return {name: self._checked(found) for name, found in answer.items()}

    @staticmethod
    def _checked(found: Any) -> Any:
        if isinstance(found, str):
            return found
        weights, seconds = np.array(found[0], dtype=float), found[1]
        if not np.isfinite(weights).all():
            return "weights are not finite"
        if (weights < 0).any() or weights.sum() <= 0:
            return "weights are negative or all zero"
        return weights, seconds
