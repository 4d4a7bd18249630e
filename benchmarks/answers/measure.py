"""One draw of a design, answered by a default or by the methods beside it, and measured."""

from __future__ import annotations

import re
import time
import warnings
import zlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from benchmarks.answers.designs import DESIGNS, Draw
from unskew import (
    AutoWeights,
    CalibrationWeights,
    ClassifierWeights,
    DensityRatioWeights,
    FrequencyWeights,
    HistogramWeights,
    KernelMeanMatching,
    TreeWeights,
    Unweighted,
    estimate,
)
from unskew.errors import UnskewError

BESIDE: dict[str, Callable[[], Any]] = {
    "unweighted": lambda: Unweighted(overlap="ignore"),
    "frequency": lambda: FrequencyWeights(overlap="ignore"),
    "histogram": lambda: HistogramWeights(overlap="ignore"),
    "tree": lambda: TreeWeights(overlap="ignore"),
    "calibration": lambda: CalibrationWeights(overlap="ignore"),
    "means": lambda: CalibrationWeights(features="means", overlap="ignore"),
    "margins": lambda: CalibrationWeights(features="margins", overlap="ignore"),
    "logistic": lambda: ClassifierWeights("logistic", overlap="ignore"),
    "classifier": lambda: ClassifierWeights(overlap="ignore"),
    "density ratio": lambda: DensityRatioWeights(overlap="ignore"),
    "kernel": lambda: KernelMeanMatching(overlap="ignore"),
}
"""The methods beside the defaults. What they cost in the search for overlap is left out."""
SEES_Y = ("estimate", "tree")
"""Methods whose weights go by the outcome, too."""
KERNEL_ROWS = 600
"""Kernel mean matching takes part up to this many sample rows."""
TRUST = re.compile(
    r"interval|short|cover|make up for|without sample|unseen|tail|not match|relax|effective",
    re.IGNORECASE,
)
"""Words of a note that says how far to trust a number, and not only what was done."""
Measured = dict[str, Any]


def draw_of(design: str, seed: int, number: int) -> Draw:
    """Return a draw; seed 0 are those that are reported, others are for trials."""
    return DESIGNS[design].make(np.random.default_rng([zlib.crc32(design.encode()), seed, number]))


def estimated(draw: Draw) -> dict[str, Measured]:
    """Answer by the default of ``estimate``."""
    return {"estimate": _estimated(draw)}


def weighed(draw: Draw) -> dict[str, Measured]:
    """Weigh by the default weights, and answer by their means."""
    return {"weights": _weighed(draw, default_weights(draw))}


def beside(draw: Draw) -> dict[str, Measured]:
    """Answer by the weighted means of every other method."""
    found = {}
    for name, make in BESIDE.items():
        if name == "kernel" and len(draw.X) > KERNEL_ROWS:
            continue
        found[name] = _weighed(draw, make())
    return found


def automatic(draw: Draw) -> dict[str, Measured]:
    """Answer by ``estimate(weighter=AutoWeights())``, whose variance is a bootstrap."""
    return {"automatic": _estimated(draw, weighter=AutoWeights())}


PARTS: dict[str, Callable[[Draw], dict[str, Measured]]] = {
    "estimate": estimated,
    "weights": weighed,
    "beside": beside,
    "automatic": automatic,
}


def measure(design: str, seed: int, number: int, part: str) -> Measured:
    """Return the record of a part of a draw."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        draw = draw_of(design, seed, number)
        methods = PARTS[part](draw)
    return {"design": design, "seed": seed, "draw": number, "part": part, "methods": methods}


def default_weights(draw: Draw) -> Any:
    """Return what ``unskew weigh`` takes by default: automatic weights, raking for margins."""
    if draw.has_margins:
        return CalibrationWeights(distance="raking")
    return AutoWeights()


def _estimated(draw: Draw, **options: Any) -> Measured:
    """Return errors, coverage and notes of an estimate; what it says if it refuses."""
    began = time.process_time()
    try:
        found = estimate(draw.X, draw.y, population=draw.population, **draw.options, **options)
    except UnskewError as error:
        return {"failed": str(error)[:200], "seconds": time.process_time() - began}
    seconds = time.process_time() - began
    each = {None: found} if None in draw.truth else found
    errors, covers, ratios, marks = [], [], [], []
    for label, truth in draw.truth.items():
        if label not in each:  # no estimate of a domain is no interval that holds
            return {"failed": f"No estimate of {label}.", "seconds": seconds}
        one, unit = each[label], draw.unit[label]
        low, high = one.interval
        errors.append((one.value - truth) / unit)
        covers.append(bool(low <= truth <= high))
        ratios.append(one.standard_error / unit)
        own = {*one.notes, *getattr(found, "notes", ())}
        marks.append(any(TRUST.search(note) for note in own))
    kinds = sorted({re.sub(r"[\d.,]+", "#", note)[:160] for note in own})
    return {
        "errors": _rounded(errors),
        "covers": covers,
        "standard_errors": _rounded(ratios),
        "trust": marks,
        "notes": kinds,
        "seconds": round(seconds, 3),
    }


def _weighed(draw: Draw, weighter: Any) -> Measured:
    """Return the errors of weighted means, and of the weights themselves."""
    began = time.process_time()
    try:
        weighter.fit(draw.X, draw.y, population=draw.population, sample_weight=draw.design)
    except (UnskewError, ValueError, MemoryError) as error:
        return {"failed": str(error)[:200], "seconds": time.process_time() - began}
    seconds = time.process_time() - began
    weights = weighter.weights_
    numbers = weighted_numbers(draw, weights)
    errors = [(numbers[label] - truth) / draw.unit[label] for label, truth in draw.truth.items()]
    return {
        "errors": _rounded(errors),
        "weight_error": weight_error(weights, draw.ratio),
        "seconds": round(seconds, 3),
    }


def weight_error(weights: Any, ratio: Any) -> float:
    """Return the mean distance of weights from the true ones, both scaled to mean 1."""
    return round(float(np.abs(weights / weights.mean() - ratio / ratio.mean()).mean()), 4)


def weighted_numbers(draw: Draw, weights: Any) -> Mapping[Any, float]:
    """Return what the weighted sample says: means, by domain, or a median."""
    if "q" in draw.options:
        order = np.argsort(draw.y)
        below = np.cumsum(weights[order]) / weights.sum()
        return {None: float(draw.y[order][np.searchsorted(below, draw.options["q"])])}
    if None in draw.truth:
        return {None: float(np.average(draw.y, weights=weights))}
    domains = draw.X[draw.options["by"]].to_numpy()
    found = {}
    for label in draw.truth:
        mine = weights[domains == label]
        total = mine.sum()
        own = draw.y[domains == label]
        found[label] = float(own @ mine / total) if total > 0 else float(own.mean())
    return found


def _rounded(numbers: list[float]) -> list[float]:
    return [round(float(one), 4) for one in numbers]
