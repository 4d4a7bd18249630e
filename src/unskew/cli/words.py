"""The words of the command line for weighters, parameters and columns."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from unskew.cli.methods import option_of
from unskew.weighters.next_step import Words


def _setting(text: str) -> str:
    return f"--set {text}" if "=" in text else f"{text} (--set {text.split()[-1]}=…)"


def _exclude(names: Sequence[str]) -> str:
    if any("," in name for name in names):
        return " ".join(f"--exclude {shlex.quote(name)}" for name in names)
    return f"--exclude {shlex.quote(','.join(names))}"


OPTIONS = Words(option_of, _setting, _exclude, "--columns")
