"""How many rows of either side a weighter learns from, within bytes that are stated.

Weighters that learn from drawn rows hold a matrix of them: their codes, and features of these. Of a
population it takes few rows, of a large sample too: beyond those that fit, more rows of one side
hardly help, because the error has a part of either, and both sides get half of the room. All
sample rows are weighed, in blocks, whichever have been learned from.
"""

from __future__ import annotations

from typing import Literal

from unskew.population.encode import ColumnCodes

LEAST = 100_000
PER_SAMPLE_ROW = 20
"""Drawing that many population rows for each sample row adds about 5 % to the variance that the
sample's own rows cause."""
MEMORY = 2**30
"""The bytes that the rows of both sides may take, with what is computed of them."""
BYTES_PER_VALUE = 8
FEWEST = 1_000


def rows_within(
    population_rows: int | Literal["auto"], sample_rows: int, width: int
) -> tuple[int, int]:
    """Return the rows of sample and population: for "auto", all and max(100,000, 20 m).

    Where these do not fit in 1 GB with ``width`` numbers a row, the population gets fewer, down to
    half of the room, and only then the sample.

    Examples
    --------
    >>> rows_within("auto", 1_000, 128), rows_within("auto", 50_000, 128)
    ((1000, 100000), (50000, 998576))
    >>> rows_within("auto", 2_000_000, 128), rows_within(500, 2_000_000, 128)
    ((524288, 524288), (1048076, 500))
    """
    room = max(2 * FEWEST, MEMORY // (BYTES_PER_VALUE * max(width, 1)))
    given = population_rows if isinstance(population_rows, int) else None
    wanted = given or max(LEAST, PER_SAMPLE_ROW * sample_rows)
    mine = min(sample_rows, max(room // 2, room - wanted))
    return mine, given or max(FEWEST, min(wanted, room - mine))


def width_of_models(codes: ColumnCodes) -> int:
    """Return how many numbers a row takes while models of the density ratio are fitted."""
    from unskew.weighters.selection_features import MAX_FEATURES, MAX_LEVELS, MOST_A_NUMBER

    levels = [codes.n_categories(place) for place in range(len(codes.names))]
    features = [min(n, MAX_LEVELS) + 1 if n else MOST_A_NUMBER for n in levels]
    fewest = sum(width if n else 2 for n, width in zip(levels, features, strict=True))
    # Codes, bins and copies of either; losses, scores and shares.
    return max(fewest, min(sum(features), MAX_FEATURES)) + 4 * len(levels) + 20
