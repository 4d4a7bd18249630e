"""The weighters by their names on the command line, and the translator of Python's words.

A method is a class with the defaults that it has in Python, and the parameters that its name fixes.
Messages of the library name parameters, weighters and columns as Python does; :func:`in_options`
turns them into options, for every message that a command prints.
"""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Sequence
from typing import Any

from unskew.errors import ParameterError, most_alike

METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "auto": ("AutoWeights", {}),
    "classifier": ("ClassifierWeights", {"classifier": "boosted"}),
    "logistic": ("ClassifierWeights", {"classifier": "logistic"}),
    "tree": ("TreeWeights", {}),
    "kmm": ("KernelMeanMatching", {}),
    "ratio": ("DensityRatioWeights", {"loss": "squared"}),
    "kliep": ("DensityRatioWeights", {"loss": "kl"}),
    "cluster": ("ClusterWeights", {}),
    "histogram": ("HistogramWeights", {}),
    "frequency": ("FrequencyWeights", {}),
    "rake": ("CalibrationWeights", {"distance": "raking"}),
    "propensity": ("CalibrationWeights", {"distance": "propensity"}),
    "linear": ("CalibrationWeights", {"distance": "linear"}),
    "logit": ("CalibrationWeights", {"distance": "logit"}),
    # No column decides who is in the sample.
    "label-shift": ("LabelShiftWeights", {"overlap": "ignore"}),
}
"""The class of each method, and the parameters that its name fixes."""
_CLASSES = [name for name, _ in METHODS.values()]
_BY_OPTION = {"total": "--total", "overlap": "--allow-uncovered", "columns": "--columns"}


def make_weighter(method: str, settings: Sequence[str], **options: Any) -> Any:
    """Return the weighter that ``--method`` names, with the parameters of ``--set``."""
    import unskew

    class_name, preset = METHODS[method]
    weighter = getattr(unskew, class_name)(**options | preset)
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


_PHRASES = {
    'unit="percent"': "the heading percent",
    'reconcile="scale"': "--reconcile",
    "finite_population=True": "--finite-population",
    "Margins(size=...)": "a row of the variable (size) in the file of --margins",
    "Population(weight=...)": "--population-weight",
    ", which columns names.": ", which the sample has. Name what is no feature with --target, --id "
    "or --sample-weight, or leave it out with --exclude.",
    **{
        text: f"--method {method}"
        for method, (class_name, preset) in METHODS.items()
        for name, value in preset.items()
        for text in (f'{class_name}({name}="{value}")', f'{name}="{value}"')
        if name != "overlap"
    },
}
_OPTIONS = {
    name: f"--{name}"
    for name in (
        *("columns", "by", "outcome", "variance", "level", "strata", "clusters", "total"),
        *("replicates", "statistic"),
    )
} | {
    "weighter": "--method",
    "q": "--quantile",
    "sample_weight": "--sample-weight",
    "overlap": "--allow-uncovered",
}
_PARAMETER = re.compile(
    r"(?<![\w-])(?<!--set )(?<!--set ')(?<!got )([a-z_]+)="
    r'("[^"]*"|\.\.\.|\[[^\]]*\]|\([^)]*\)|[\w.]*\w|(?=[ ,.;)]))'
)


def in_options(message: str) -> str:
    """Return a message of the library with options where it names parameters and weighters.

    Examples
    --------
    >>> in_options('Use bounds=(0, None), features="means" or AutoWeights().')
    "Use --set 'bounds=(0, None)', --set features=means or --method auto."
    """
    for phrase, option in _PHRASES.items():
        message = message.replace(phrase, option)
    return _PARAMETER.sub(
        _option,
        re.sub(
            rf"(?:weighter=)?\b({'|'.join(_CLASSES)})\b(?:\(([^()]*)\))?",
            lambda found: f"--method {_method_of(found[1])} {found[2] or ''}".rstrip(),
            message,
        ),
    )


def _method_of(class_name: str) -> str:
    return next(method for method, (name, _) in METHODS.items() if name == class_name)


def _option(found: re.Match[str]) -> str:
    import unskew

    name, value = found[1], found[2].strip('"')
    value = "…" if value in ("", "...", "[...]") else value
    if name in _OPTIONS:
        return f"{_OPTIONS[name]} {value}"
    if any(hasattr(getattr(unskew, each), name) for each in set(_CLASSES)):
        return f"--set {shlex.quote(f'{name}={value}')}".replace("'…'", "…")
    return found[0]


def step_in_options(step: Any) -> str:
    """Return the next step after a verdict in terms of options."""
    text = in_options(str(step))
    if step.leave_out:
        text = text.replace("(--columns …)", f"({excluding(step.leave_out)})", 1)
    for setting in step.settings:
        if "=" not in setting:  # such as "a larger ridge"
            text = text.replace(setting, f"{setting} (--set {setting.split()[-1]}=…)", 1)
    return text


def excluding(columns: Sequence[str]) -> str:
    """Return the option that leaves out columns."""
    if any("," in name for name in columns):
        return " ".join(f"--exclude {shlex.quote(name)}" for name in columns)
    return f"--exclude {shlex.quote(','.join(columns))}"
