"""The paper's nine sets under its protocol: its SVR by automatic strength, Ideal, Clustered."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

from benchmarks.accuracy.tables import SHARED
from unskew import AutoWeights, Reweighted
from unskew.paper.datasets import load
from unskew.paper.methods import METHODS, BiasedSample, Weighting
from unskew.paper.printed import TABLE_1
from unskew.paper.protocol import Case, PaperReading, run_case

SCALING, MECHANISM, TOTAL = "range", "logistic", "population"
AUTO = "Reweighted, auto"
KEPT = ("Unweighted", "Ideal", "Clustered")
READING = PaperReading(selecting=StandardScaler, scaled_by="all", sized=False)
DIRECTIONS = {
    "abalone": 7,
    "bank32nh": 0,
    "bank8FM": 7,
    "cal-housing": 8,
    "cpu-act": 0,
    "cpu-small": 9,
    "housing": 3,
    "kin8nm": 7,
    "puma8NH": 9,
}
"""Under this reading, the w of seed 0 on which Ideal gains most over Unweighted, of ten."""


class Strength:
    """The weights of ``Reweighted(SVR)``, in the form of a weighter; C makes their total n."""

    def __init__(self, drawn: BiasedSample) -> None:
        rate = len(drawn.population) / len(drawn.sample)
        learner = SVR(C=rate, epsilon=0.1, gamma=1.0 / drawn.sample.shape[1])
        self.model = Reweighted(learner, AutoWeights(overlap="ignore"))

    def fit(self, sample: Any, labels: Any, *, population: Any) -> Strength:
        """Choose among not weighting, automatic weights, their square roots and leaf weights."""
        self.model.fit(sample, labels, population=population)
        self.weights_ = self.model.weights_
        return self


def run_paper(folder: Path, draws: int, minutes: float) -> None:
    """Run draw by draw over the sets, the smallest first, until it is done or time is up."""
    path = folder / "paper.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    done = {(one["set"], one["draw"]) for one in lines}
    methods = {name: METHODS[name] for name in KEPT} | {AUTO: Weighting(Strength)}
    begun = time.monotonic()
    for draw in range(draws):
        for name in sorted(TABLE_1, key=lambda one: TABLE_1[one].n):
            if (name, draw) in done:
                continue
            if time.monotonic() - begun > 60 * minutes:
                return
            case = Case(name, SCALING, MECHANISM, DIRECTIONS[name], draw)
            wanted = {method: [TOTAL] for method in methods}
            data = load(name, SHARED / "datasets")
            outcome = run_case(case, data, methods, wanted, seed=0, reading=READING)
            errors = {key: round(one.nmse[TOTAL], 5) for key, one in outcome.methods.items()}
            record = {"set": name, "draw": draw, "m": outcome.m, "nmse": errors}
            with path.open("a") as lines_out:
                lines_out.write(json.dumps(record) + "\n")
            print(time.strftime("%H:%M:%S"), record, flush=True)
