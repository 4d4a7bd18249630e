"""Drawn rows of both sides at the steps to which one of them is rounded.

Only where rows of sample and population meet: sums and moments use the values as they are.
"""

from __future__ import annotations

from typing import NamedTuple

from unskew.numerics.grids import common_grid
from unskew.numerics.typing import FloatArray
from unskew.rows.encode import ColumnCodes
from unskew.rows.kinds import Kind


class Aligned(NamedTuple):
    """The codes of both sides, and which columns were rounded."""

    in_sample: FloatArray
    in_population: FloatArray
    rounded: dict[int, str]
    """A sentence for each column, by its position."""


def align(codes: ColumnCodes, in_sample: FloatArray, in_population: FloatArray) -> Aligned:
    """Round the columns in which one side is rounded and the other is not, on both sides."""
    rounded: dict[int, str] = {}
    for column, (name, kind) in enumerate(zip(codes.names, codes.kinds, strict=True)):
        grid = None
        if kind != Kind.CATEGORY:
            grid = common_grid(in_sample[:, column], in_population[:, column])
        if grid is None:
            continue
        if not rounded:
            in_sample, in_population = in_sample.copy(), in_population.copy()
        for side in (in_sample, in_population):
            side[:, column] = grid.nearest(side[:, column])
        who, other = ("sample", "population") if grid.of_mine else ("population", "sample")
        step = f"{grid.step:,g} days" if kind == Kind.TIME else f"{grid.step:,g}"
        rounded[column] = (
            f"'{name}': the {who} is rounded to {step}, the {other} is not. Where rows of the two "
            "are compared, both are rounded to it; sums, means and cells use the values as given."
        )
    return Aligned(in_sample, in_population, rounded)
