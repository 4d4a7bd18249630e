"""The results: collecting them in results.json, and what follows from them."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.stats import t

from benchmarks.accuracy.cells import Record
from benchmarks.accuracy.draws import POPULATION_ROWS

STORED = Path(__file__).with_name("results.json")
PARTS = ("every-draw", "some-draws", "kernel", "survey")
MEASURES = ("weight", "effective", "label mean", "column means", "seconds", "change")
CANDIDATES = ("Unweighted", "AutoWeights, power ½", "AutoWeights", "TreeWeights(4)")
CANDIDATES += ("TreeWeights(20)",)
REWEIGHTED = "Reweighted(learner)"


def collect(folder: Path) -> None:
    """Write the records of all parts to one file, one line a record."""
    lines = []
    for part in PARTS:
        for record in _lines(folder / f"{part}.jsonl"):
            record["part"] = part
            record["methods"] = {
                name: [found[measure] for measure in MEASURES]
                for name, found in record["methods"].items()
            }
            record["failed"] = {name: text[:60] for name, text in record["failed"].items()}
            lines.append(record)
    text = ",\n".join(json.dumps(one, ensure_ascii=False, separators=(",", ":")) for one in lines)
    STORED.write_text(f"[\n{text}\n]\n", encoding="utf-8")


def _lines(path: Path) -> list[Record]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


Average = Callable[[Iterable[tuple[Record, float]]], "Interval"]


class Interval(NamedTuple):
    """A mean over tables with half the width of its 95 % interval."""

    mean: float
    half: float

    @property
    def below_zero(self) -> bool:
        """Whether the interval lies below zero."""
        return self.mean + self.half < 0


def over_tables(values: Iterable[tuple[Record, float]]) -> Interval:
    """Average over draws, then mechanisms, then tables, which are the units of the interval."""
    cells: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for record, value in values:
        cells[record["table"]][record["mechanism"]].append(value)
    tables = [np.mean([np.mean(draws) for draws in by.values()]) for by in cells.values()]
    n = len(tables)
    half = t.ppf(0.975, n - 1) * np.std(tables, ddof=1) / np.sqrt(n) if n > 1 else np.nan
    return Interval(float(np.mean(tables)), float(half))


def over_cells(values: Iterable[tuple[Record, float]]) -> Interval:
    """Average all draws, as the units of the interval: for these tables, not for others."""
    found = np.array([value for _, value in values])
    return Interval(float(found.mean()), float(1.96 * found.std(ddof=1) / np.sqrt(len(found))))


class Results:
    """The stored records, and averages of them.

    Parameters
    ----------
    records : list of dict, optional
        By default those of results.json.
    """

    def __init__(self, records: list[Record] | None = None) -> None:
        stored = STORED.read_text(encoding="utf-8") if records is None else ""
        self.cells: list[Record] = json.loads(stored) if records is None else records
        self.core = [one for one in self.cells if one["part"] == "every-draw"]
        self._core_of = {self._key(one): one for one in self.core}

    @staticmethod
    def _key(record: Record) -> tuple[str, str, int]:
        return record["table"], record["mechanism"], record["draw"]

    @property
    def methods(self) -> list[str]:
        """The names of all weights, in the order of their first appearance."""
        return list(dict.fromkeys(name for one in self.cells for name in one["methods"]))

    def of(self, method: str, *, full_size: bool = False) -> list[Record]:
        """Return the cells in which a method has weights, and for which AutoWeights were run."""
        return [
            one
            for one in self.cells
            if method in one["methods"]
            and self._key(one) in self._core_of
            and (not full_size or one["n"] == POPULATION_ROWS)
        ]

    def mean(self, method: str, measure: str, cells: list[Record]) -> Interval:
        """Return the mean of a measure over cells."""
        place = MEASURES.index(measure)
        return over_tables((one, one["methods"][method][place]) for one in cells)

    def nearer(self, method: str) -> Interval:
        """Return the weight error of AutoWeights less a method's, on the same draws."""
        place = MEASURES.index("weight")
        pairs = ((one, self._core_of[self._key(one)]) for one in self.of(method))
        return over_tables(
            (one, core["methods"]["AutoWeights"][place] - one["methods"][method][place])
            for one, core in pairs
        )

    def mechanism(self, name: str) -> list[Record]:
        """Return the cells of every draw under a mechanism."""
        return [one for one in self.core if one["mechanism"] == name]

    def flat(self, mechanism: str) -> float:
        """Return the share of draws in which the automatic weights are all equal."""
        return float(np.mean([one["flat"] for one in self.mechanism(mechanism)]))

    def change(self, method: str, keep: Callable[[Record], bool] = bool) -> Interval:
        """Return the change of the learner's error against not weighting."""
        return over_tables((one, change_of(one, method)) for one in self.core if keep(one))

    def against(self, method: str, average: Average = over_tables) -> Interval:
        """Return the relative difference of the error of Reweighted from a method's."""
        cells = self.core if method in CANDIDATES else self.of(method)
        pairs = ((one, self._core_of[self._key(one)]) for one in cells)
        return average(
            (one, (1 + change_of(core, REWEIGHTED)) / (1 + change_of(one, method)) - 1)
            for one, core in pairs
        )

    def regret(self, method: str) -> Interval:
        """Return the error above that of the best candidate in hindsight."""
        return over_tables(
            (
                one,
                (1 + change_of(one, method))
                / (1 + min(change_of(one, candidate) for candidate in CANDIDATES))
                - 1,
            )
            for one in self.core
        )

    def harm(self, method: str) -> np.ndarray:
        """Return the changes in all draws, the largest last."""
        return np.sort([change_of(one, method) for one in self.core])


def change_of(record: Record, method: str) -> float:
    """Return the change of the learner's error by a method, in one cell."""
    if method == REWEIGHTED:
        return record["reweighted"]["change"]
    return record["methods"][method][MEASURES.index("change")]
