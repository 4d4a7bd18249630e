"""How many population rows a weighter draws."""

from __future__ import annotations

from typing import Literal

LEAST = 100_000
PER_SAMPLE_ROW = 20
"""Drawing that many population rows for each sample row adds about 5 % to the variance that the
sample's own rows cause."""
MEMORY = 2**30
BYTES_PER_VALUE = 8


def reservoir_rows(
    population_rows: int | Literal["auto"] | None, sample_rows: int, columns: int
) -> int:
    """Return the size of the reservoir: for "auto", max(100,000, 20 m) within 1 GB.

    Examples
    --------
    >>> reservoir_rows("auto", 1_000, 8), reservoir_rows("auto", 10_000, 8)
    (100000, 200000)
    >>> reservoir_rows("auto", 10**7, 64), reservoir_rows(500, 10_000, 8)
    (2097152, 500)
    """
    if isinstance(population_rows, int):
        return population_rows
    wanted = max(LEAST, PER_SAMPLE_ROW * sample_rows)
    return max(1_000, min(wanted, MEMORY // (BYTES_PER_VALUE * max(columns, 1))))
