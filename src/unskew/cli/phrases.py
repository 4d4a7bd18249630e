"""The words of the command line for weighters, parameters and columns."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from unskew.cli.methods import CLASSES, PRESETS, option_of
from unskew.weighters.next_step import Words


def _setting(text: str) -> str:
    return f"--set {text}" if "=" in text else f"{text} (--set {text.split()[-1]}=…)"


def _exclude(names: Sequence[str]) -> str:
    if any("," in name for name in names):
        return " ".join(f"--exclude {shlex.quote(name)}" for name in names)
    return f"--exclude {shlex.quote(','.join(names))}"


_PHRASES = {
    'unit="percent"': "the heading percent",
    'reconcile="scale"': "--reconcile",
    "finite_population=True": "--finite-population",
    "Margins(size=...)": "a row of the variable (size) in the file of --margins",
    "Population(weight=...)": "--population-weight",
    **{
        text: f"--method {method}"
        for method, preset in PRESETS.items()
        for name, value in preset.items()
        for text in (f'{CLASSES[method]}({name}="{value}")', f'{name}="{value}"')
        if name != "overlap"
    },
}
_OPTIONS = {
    name: f"--{name}"
    for name in (
        "columns",
        "by",
        "outcome",
        "variance",
        "level",
        "strata",
        "clusters",
        "total",
        "replicates",
        "statistic",
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
    names = "|".join(set(CLASSES.values()))
    return _PARAMETER.sub(
        _option,
        re.sub(
            rf"(?:weighter=)?\b({names})\b(?:\(([^()]*)\))?",
            lambda found: f"{option_of(found[1])} {found[2] or ''}".rstrip(),
            message,
        ),
    )


def _option(found: re.Match[str]) -> str:
    import unskew

    name, value = found[1], found[2].strip('"')
    value = "…" if value in ("", "...", "[...]") else value
    if name in _OPTIONS:
        return f"{_OPTIONS[name]} {value}"
    if any(hasattr(getattr(unskew, each), name) for each in set(CLASSES.values())):
        return f"--set {shlex.quote(f'{name}={value}')}".replace("'…'", "…")
    return found[0]


OPTIONS = Words(option_of, _setting, _exclude, "--columns")
