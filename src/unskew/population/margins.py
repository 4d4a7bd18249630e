"""Known totals of a population, such as a census table, without any rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any, Self

from unskew.errors import InputError, ParameterError
from unskew.population.about import About
from unskew.population.rows import Rows
from unskew.population.summaries import Summary, SummaryType, Total


class Margins:
    """Totals of a population that are known, where its rows are not.

    They take the place of a :class:`unskew.Population`. So far only :class:`unskew.Unweighted` and
    :class:`unskew.KnownProbability`, which ask nothing of the population, can be fitted with
    margins; weighters that need rows refuse them.

    Parameters
    ----------
    counts : mapping from column, or tuple of columns, to mapping from category to count
        How many members of the population are in each category.
    shares : the same with shares instead of counts
        They add up to one.
    means : mapping from column to float
        Means of columns of numbers.
    totals : mapping from column to float
        Totals of columns of numbers.
    size : float, optional
        The number of members of the population; by default what the counts add up to.

    Examples
    --------
    >>> from unskew import Margins
    >>> Margins(counts={"sex": {"f": 3159, "m": 3035}}).mass
    6194.0
    """

    def __init__(
        self,
        counts: Mapping[Any, Any] | None = None,
        *,
        shares: Mapping[Any, Any] | None = None,
        means: Mapping[str, float] | None = None,
        totals: Mapping[str, float] | None = None,
        size: float | None = None,
    ) -> None:
        self.counts, self.shares = dict(counts or {}), dict(shares or {})
        self.means, self.totals = dict(means or {}), dict(totals or {})
        if not self.about.margins:
            raise ParameterError("Margins needs counts, shares, means or totals; all are empty.")
        if size is not None and (not isinstance(size, Real) or not size > 0):
            raise ParameterError(f"size must be a positive number; got {size!r}.")
        tables = (table for table in self.counts.values() if isinstance(table, Mapping))
        counted = next((float(sum(table.values())) for table in tables), None)
        self.size = counted if size is None else float(size)

    def __repr__(self) -> str:
        return f"Margins({', '.join(map(str, self.about.margins or ()))}, size={self.size})"

    named = True  # their keys are names

    @property
    def columns(self) -> list[str]:
        """The columns of which something is known."""
        return list(self.about.columns)

    @property
    def about(self) -> About:
        """What is known: the margins, and no rows."""
        margins = (*self.counts, *self.shares, *self.means, *self.totals)
        names = [name for key in margins for name in (key if isinstance(key, tuple) else (key,))]
        return About(tuple(dict.fromkeys(names)), None, margins=margins)

    @property
    def mass(self) -> float:
        """The number of members of the population."""
        if self.size is None:
            raise InputError("The size of the population is not known: pass Margins(size=...).")
        return self.size

    @property
    def n_selected(self) -> int | None:
        """Margins mark no rows."""
        return None

    def matched(
        self, sample: Rows, *, among: Sequence[str] | None = None, ignored: Sequence[str] = ()
    ) -> Self:
        """Return these margins for a sample with some of their columns."""
        del among, ignored
        missing = [name for name in sample.table.column_names if name not in self.columns]
        if missing:
            raise InputError(f"No margin of column '{missing[0]}' is known.")
        return self

    def can_answer(self, summary: Summary) -> bool:
        """Whether the totals that are known answer a question."""
        return type(summary) is Total and self.size is not None

    def reduce(self, summary: SummaryType, *, threads: int | None = None) -> SummaryType:
        """Answer a question from the totals that are known."""
        del threads
        summary.check_empty()
        if not (isinstance(summary, Total) and self.can_answer(summary)):
            raise InputError(
                f"Margins hold totals, not rows, and cannot answer {type(summary).__name__}. Give "
                "the rows of the population."
            )
        summary.rows, summary.mass = round(self.mass), self.mass
        summary.finish()
        return summary
