"""What to do where weights are refused, leave bias or cost too much.

The advice is the same in Python and on the command line; only the words for weighters, parameters
and columns differ.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from unskew.rows.column_names import listing
from unskew.rows.doubtful_columns import Doubt


class Words(NamedTuple):
    """How an interface names weighters, parameters, and the choice of columns."""

    weighter: Callable[[str], str]
    setting: Callable[[str], str]
    leave_out: Callable[[Sequence[str]], str]
    fewer_columns: str


PYTHON = Words(str, str, lambda names: "columns=[...]", "columns=[...]")  # noqa: ARG005


@dataclass(frozen=True)
class NextStep:
    """The next step; it prints as what follows "Next step:".

    Attributes
    ----------
    reason : str
        Why, without a full stop.
    leave_out : tuple of str
        Columns to leave out.
    settings : tuple of str
        Parameters to set, for example "buckets=2".
    weighters : tuple of str
        The names of weighters to try, the most promising first.
    fewer_columns : bool
        Whether it would help to weigh by fewer columns.
    otherwise : str
        What else to do, in words that every interface can use.

    Examples
    --------
    >>> print(NextStep("the columns make 3,125 cells", settings=("buckets=2",), fewer_columns=True))
    try buckets=2, or weigh by fewer columns (columns=[...]): the columns make 3,125 cells.
    """

    reason: str = ""
    leave_out: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    weighters: tuple[str, ...] = ()
    fewer_columns: bool = False
    otherwise: str = ""

    def __str__(self) -> str:
        return self.say(PYTHON)

    def say(self, words: Words) -> str:
        """Return the step in the words of an interface, to follow "Next step:"."""
        ways = []
        if self.leave_out:
            ways.append(f"leave out {listing(self.leave_out)} ({words.leave_out(self.leave_out)})")
        tried = [*map(words.setting, self.settings), *map(words.weighter, self.weighters)]
        if tried:
            ways.append(f"try {' or '.join(tried)}")
        if self.fewer_columns:
            ways.append(f"weigh by fewer columns ({words.fewer_columns})")
        if self.otherwise:
            ways.append(self.otherwise)
        return f"{', or '.join(ways)}{': ' if self.reason else ''}{self.reason}."

    def sentence(self, words: Words = PYTHON) -> str:
        """Return the step as a sentence of its own."""
        text = self.say(words)
        return f"{text[0].upper()}{text[1:]}"


def leave_out(doubts: Sequence[Doubt]) -> NextStep:
    """Return the advice to leave out columns that hardly describe a row."""
    return NextStep(
        "values that hardly recur cannot be compared with the population's",
        leave_out=tuple(doubt.column for doubt in doubts),
    )
