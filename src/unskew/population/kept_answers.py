"""Answers that do not depend on the sample, kept for the next question to the same population."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import pyarrow as pa

from unskew.numerics.typing import IntArray
from unskew.population.reading import Reading
from unskew.population.reservoir import Reservoir
from unskew.population.seen import Seen
from unskew.population.sources import Source
from unskew.population.summaries import Question, Summaries, Summary, Total

_MOST_KEYS = 1 << 20
"""Rows of a table from which a reservoir is drawn at once: the key of each is held meanwhile."""


def questions_in(summary: Summary) -> list[Summary]:
    """Return the single questions of which a summary is composed."""
    if not isinstance(summary, Summaries | Question):
        return [summary]
    return [single for part in summary.nested() for single in questions_in(part)]


class KeptAnswers:
    """What earlier passes have found.

    These are totals, the largest reservoir of each seed, and what they were to ask as well. A
    reservoir contains every smaller one of its seed, so one answers them all: those of one
    pass, and those of later passes over the same columns.
    """

    def __init__(self) -> None:
        self._reservoirs: dict[Hashable, Reservoir] = {}
        self._waiting: dict[Hashable, dict[Hashable, Summary]] = {}
        self._others: dict[Hashable, Summary] = {}

    def ask_as_well(self, question: Summary, columns: Hashable) -> None:
        """Have the next pass over these columns answer a question beside its own."""
        for single in questions_in(question):
            self._waiting.setdefault(columns, {})[_name(single, columns)] = single

    def waiting(self, columns: Hashable) -> list[Summary]:
        """Return what the next pass over these columns is to answer as well."""
        return list(self._waiting.get(columns, {}).values())

    def answer(self, question: Summary, columns: Hashable, seen: Seen) -> bool:
        """Fill a question without reading any rows, if possible; return whether it was."""
        if not seen.whole:
            return False
        kept = self._reservoirs.get((getattr(question, "seed", None), columns))
        if type(question) is Total:
            question.rows, question.mass = seen.rows, seen.mass
        elif type(question) is not Reservoir:
            alike = any(type(other) is type(question) for other in self._others.values())
            other = self._others.get(_name(question, columns)) if alike else None
            if other is None:
                return False
            question.merge(other)
        elif kept is None:
            return False
        elif question.size <= kept.size or kept.whole(seen.rows):
            question.merge(kept)
        else:
            return False
        question.finish()
        return True

    @staticmethod
    def draw(question: Summary, source: Source, reading: Reading) -> bool:
        """Fill a reservoir from rows in memory, which needs no pass; return whether it was."""
        roles, n_rows = (reading.weight, reading.selected), source.n_rows or 0
        by_name = any(isinstance(role, str) for role in roles)
        if type(question) is not Reservoir or not source.in_memory or by_name or not n_rows:
            return False
        if n_rows > _MOST_KEYS:
            return False

        def take(numbers: IntArray) -> pa.RecordBatch:
            return source.take(reading.columns, numbers).rename_columns(reading.names)

        question.draw(n_rows, *roles, take)
        question.finish()
        return True

    def to_ask(self, questions: Sequence[Summary]) -> list[Summary]:
        """Return the questions that a pass has to answer: of the reservoirs of a seed the largest.

        The others are then answered by the one that is kept.
        """
        reservoirs = [question for question in questions if type(question) is Reservoir]
        reservoirs.sort(key=lambda reservoir: reservoir.size)
        largest = {reservoir.seed: reservoir for reservoir in reservoirs}
        return [q for q in questions if type(q) is not Reservoir or largest[q.seed] is q]

    def keep(self, questions: Sequence[Summary], columns: Hashable) -> None:
        """Keep the reservoirs among the answers of a pass, and what it was to answer as well."""
        for question in questions:
            if type(question) is Reservoir:
                self._reservoirs[question.seed, columns] = question
        for name, question in self._waiting.pop(columns, {}).items():
            if type(question) is not Reservoir:
                question.finish()
                self._others[name] = question


def _name(question: Summary, columns: Hashable) -> Hashable:
    """Return what equal questions about the same columns share as long as they are not answered."""
    import joblib  # here, as most passes do without it

    return columns, joblib.hash(question)
