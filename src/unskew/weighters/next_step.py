"""What to do where weights are refused, leave bias or cost too much.

The advice names weighters, parameters and columns as Python does; the command line translates it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from unskew.errors import listing
from unskew.rows.doubtful_columns import Doubt


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
        ways = []
        if self.leave_out:
            ways.append(f"leave out {listing(self.leave_out)} (columns=[...])")
        if tried := [*self.settings, *self.weighters]:
            ways.append(f"try {' or '.join(tried)}")
        if self.fewer_columns:
            ways.append("weigh by fewer columns (columns=[...])")
        if self.otherwise:
            ways.append(self.otherwise)
        return f"{', or '.join(ways)}{': ' if self.reason else ''}{self.reason}."

    def sentence(self) -> str:
        """Return the step as a sentence of its own."""
        text = str(self)
        return f"{text[0].upper()}{text[1:]}"


def leave_out(doubts: Sequence[Doubt]) -> NextStep:
    """Return the advice to leave out columns that hardly describe a row."""
    return NextStep(
        "values that hardly recur cannot be compared with the population's",
        leave_out=tuple(doubt.column for doubt in doubts),
    )
