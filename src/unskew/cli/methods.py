"""The weighters by their names on the command line, with the defaults that they have in Python."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from enum import StrEnum
from typing import Any

from unskew.errors import ParameterError


class Method(StrEnum):
    """The values of ``--method``; the weighters are in :data:`CLASSES`."""

    AUTO = "auto"
    CLASSIFIER = "classifier"
    LOGISTIC = "logistic"
    TREE = "tree"
    KMM = "kmm"
    RATIO = "ratio"
    KLIEP = "kliep"
    CLUSTER = "cluster"
    HISTOGRAM = "histogram"
    FREQUENCY = "frequency"
    RAKE = "rake"
    PROPENSITY = "propensity"
    LINEAR = "linear"
    LOGIT = "logit"
    LABEL_SHIFT = "label-shift"


class TotalOption(StrEnum):
    """The values of ``--total``."""

    SAMPLE = "sample"
    POPULATION = "population"


CLASSES = {
    Method.AUTO: "AutoWeights",
    Method.CLASSIFIER: "ClassifierWeights",
    Method.LOGISTIC: "ClassifierWeights",
    Method.TREE: "TreeWeights",
    Method.KMM: "KernelMeanMatching",
    Method.RATIO: "DensityRatioWeights",
    Method.KLIEP: "DensityRatioWeights",
    Method.CLUSTER: "ClusterWeights",
    Method.HISTOGRAM: "HistogramWeights",
    Method.FREQUENCY: "FrequencyWeights",
    Method.RAKE: "CalibrationWeights",
    Method.PROPENSITY: "CalibrationWeights",
    Method.LINEAR: "CalibrationWeights",
    Method.LOGIT: "CalibrationWeights",
    Method.LABEL_SHIFT: "LabelShiftWeights",
}
PRESETS: dict[Method, dict[str, Any]] = {
    Method.CLASSIFIER: {"classifier": "boosted"},
    Method.LOGISTIC: {"classifier": "logistic"},
    Method.RATIO: {"loss": "squared"},
    Method.KLIEP: {"loss": "kl"},
    Method.RAKE: {"distance": "raking"},
    Method.PROPENSITY: {"distance": "propensity"},
    Method.LINEAR: {"distance": "linear"},
    Method.LOGIT: {"distance": "logit"},
    Method.LABEL_SHIFT: {"overlap": "ignore"},  # no column decides who is in the sample
}
"""Parameters that the method's name fixes."""

_BY_OPTION = {"total": "--total", "overlap": "--allow-uncovered", "columns": "--columns"}


def option_of(weighter: str) -> str:
    """Return the option that chooses a weighter."""
    return f"--method {next(method for method, name in CLASSES.items() if name == weighter)}"


def make_weighter(method: Method, settings: Sequence[str], **options: Any) -> Any:
    """Return the weighter that ``--method`` names, with the parameters of ``--set``."""
    import unskew
    from unskew.rows.column_names import most_alike

    weighter = getattr(unskew, CLASSES[method])(**options)
    preset = PRESETS.get(method, {})
    weighter.set_params(**preset)
    by_option = _BY_OPTION | dict.fromkeys(preset, "--method")
    known = [name for name in weighter.get_params(deep=False) if name not in by_option]
    for setting in settings:
        name, equals, text = setting.partition("=")
        name = name.strip()
        if not equals or not name:
            raise ParameterError(
                f"--set takes name=value, for example {known[0]}=…; got '{setting}'."
            )
        if name in by_option:
            raise ParameterError(f"--set {name}: use {by_option[name]}.")
        if name not in known:
            alike = most_alike(name, known)
            meant = f" Did you mean {alike}?" if alike else ""
            raise ParameterError(
                f"--set {name}: --method {method} has no such parameter.{meant} It has "
                f"{', '.join(known)}."
            )
        weighter.set_params(**{name: _parse(text.strip())})
    return weighter


def _parse(text: str) -> Any:
    """Return the number, None, boolean, list or dict that the text denotes, else the text."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return text
