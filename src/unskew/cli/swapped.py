"""A column that the sample lacks, and whether SAMPLE and POPULATION are swapped."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence

from unskew.errors import InputError, UnskewError

_ONLY_OF_SAMPLES = ("--target", "--id", "--sample-weight")


class NoSuchColumnError(InputError):
    """An option names a column that the sample does not have."""

    def __init__(self, option: str, name: str, available: Sequence[str]) -> None:
        from unskew.population.column_names import which_there_are

        super().__init__(
            f"{option} names '{name}', which is not a column of the sample."
            f"{which_there_are(name, available)}"
        )
        self.option, self.name = option, name

    def unless_swapped(self, sample: str, population: str) -> InputError:
        """Return the error, or one that says that the files are swapped if they seem to be."""
        if self.option not in _ONLY_OF_SAMPLES or self.name not in columns_of(population):
            return self
        return InputError(
            f"SAMPLE and POPULATION seem to be swapped: '{self.name}' ({self.option}) is a column "
            f"of '{population}' and not of '{sample}'. {_advice(sample, population)}"
        )


def columns_of(population: str) -> list[str]:
    """Return the columns of a population, from the beginnings of its files; none if unreadable."""
    from unskew import Population

    try:
        return Population(population).columns
    except UnskewError:
        return []


def smaller_and_labelled(sample: str, population: str, target: str, rows: int, size: int) -> str:
    """Return a note on a population that has the label and fewer rows than the sample."""
    return (
        f"'{population}' has the target '{target}' and fewer rows than '{sample}' ({size:,} and "
        f"{rows:,}). If it is the sample, the two are swapped. {_advice(sample, population)}"
    )


def _advice(sample: str, population: str) -> str:
    """Return the command that is running, with the two files in the other order."""
    swap = {sample: population, population: sample}
    words = [swap.pop(word, word) for word in sys.argv[1:]]
    return f"SAMPLE comes first: {shlex.join(['unskew', *words])}"
