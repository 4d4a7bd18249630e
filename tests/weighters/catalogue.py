"""One catalogue of all weighters, made from the public names: a new one is in it at once.

Whatever must hold of every weighter is tested over ``every_weighter``: its properties, its
contract, the question that leaves no trace, ugly data and scikit-learn's own checks. The default
of ``Reweighted`` is in it, as its weights are what a learner is trained with.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge

import unskew
from unskew import Reweighted
from unskew.weighters.base import Weighter


@dataclass(frozen=True)
class OneHalf:
    """The probability of one half; its name has no address, so that tests have the same names."""

    def __call__(self, X):
        return np.full(len(X if hasattr(X, "__len__") else np.asarray(X)), 0.5)


one_half = OneHalf()
ARGUMENTS: dict[str, dict[str, Any]] = {  # of weighters that cannot be made without
    "KnownProbability": {"probability": one_half},
    "Tempered": {"weighter": unskew.TreeWeights(), "power": 0.5},
}
VARIANTS: dict[str, list[dict[str, Any]]] = {  # ways of working beside the default
    "CalibrationWeights": [
        {"features": "means", "on_infeasible": "relax"},
        {"distance": "linear", "bounds": (0, None), "ridge": 0.1, "total": "population"},
    ],
    "ClassifierWeights": [{"classifier": "logistic"}],
    "DensityRatioWeights": [
        {"loss": "kl"},
        {"relative": 0.2, "bandwidth": "paper", "total": "population"},
    ],
    "FrequencyWeights": [{"empty": "drop"}],
    "HistogramWeights": [{"buckets": 2, "strategy": "width", "total": "population"}],
    "KernelMeanMatching": [{"ridge": 1.0}, {"method": "low-rank", "ridge": 1.0}],
    "TreeWeights": [{"min_samples_leaf": 1}, {"min_samples_leaf": "bound"}, {"honest": True}],
    "Unweighted": [{"total": "population"}],
}


def public_weighters() -> list[type[Weighter]]:
    """Return the weighters that users can import from ``unskew``."""
    found = [getattr(unskew, name) for name in unskew.__all__]
    return [one for one in found if inspect.isclass(one) and issubclass(one, Weighter)]


WEIGHTERS: list[Weighter] = [
    kind(**{**ARGUMENTS.get(kind.__name__, {}), **variant})
    for kind in public_weighters()
    for variant in [{}, *VARIANTS.get(kind.__name__, [])]
]
REWEIGHTED = Reweighted(Ridge())


def shown(weighter: object) -> str:
    """Return a weighter as its constructor, in one line."""
    return " ".join(str(weighter).split())


every_weighter = pytest.mark.parametrize("weighter", [*WEIGHTERS, REWEIGHTED], ids=shown)


def to_sample(weighter: Any) -> Any:
    """Return a copy of a weighter whose weights sum to the number of sample rows."""
    copied = clone(weighter)
    return copied.set_params(total="sample") if "total" in copied.get_params() else copied


def rows_for(weighter: object, rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows that a weighter can use: numbers in place of text for the learner of one."""
    if not isinstance(weighter, Reweighted):
        return rows
    return rows.apply(lambda column: column if column.dtype.kind in "if" else column.map(ord))


def labels_for(weighter: object, labels: Any) -> Any:
    """Return labels that a weighter can use: two classes in place of numbers for label shift."""
    array = np.asarray(labels)
    numbers = array.ndim == 1 and array.size and array.dtype.kind in "if"
    numbers = numbers and np.isfinite(array).all()
    if not (isinstance(weighter, unskew.LabelShiftWeights) and numbers):
        return labels
    return np.where(array > np.median(array), "high", "low")
