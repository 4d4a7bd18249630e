"""What margins answer: sums of features, and counts of cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from unskew.errors import InputError
from unskew.numerics.typing import FloatArray
from unskew.population.cell_counts import CellCounts
from unskew.population.feature_sums import FeatureSums
from unskew.population.features import Block, FeatureSet, Levels, Number, Term
from unskew.population.known_levels import KnownLevels
from unskew.population.summaries import RowBlock


class MarginAnswers(NamedTuple):
    """Answers from what is known.

    Parameters
    ----------
    known : list of KnownLevels
    totals : dict of str to float
        Totals of columns of numbers.
    mass : float
        The population's size.
    """

    known: list[KnownLevels]
    totals: dict[str, float]
    mass: float

    def source(self, features: FeatureSet, term: Term) -> KnownLevels | float | None:
        """Return what answers a term: the total of a number, or a table; None if nothing does."""
        columns = features.columns_of(term)
        if isinstance(term, Number) and columns[0] in self.totals:
            return self.totals[columns[0]]
        if isinstance(term, Levels) and term.of_margin is not None:
            return next((one for one in self.known if list(one.columns) == columns), None)
        return self._table(columns)

    def _table(self, columns: Sequence[str]) -> KnownLevels | None:
        """Return the smallest table with the values of some columns, not only bands of them."""
        fitting = [
            one
            for one in self.known
            if set(columns) <= set(one.columns) and not set(columns) & set(one.bands)
        ]
        return min(fitting, key=lambda one: len(one.columns), default=None)

    def sum_features(self, asked: FeatureSums) -> None:
        """Fill the sums; a level that no sample row has is uncovered, and its margin scaled.

        The share of the population that is uncovered is at least the largest of any margin.
        """
        means, uncovered = [], 0.0
        for term in asked.features.terms:
            source = self.source(asked.features, term)
            if isinstance(source, KnownLevels):
                place = term.of_margin if isinstance(term, Levels) else None
                values = (
                    np.empty(0) if place is not None else self._values(asked.features, term, source)
                )
                seen = np.isfinite(values).all(axis=1) if place is None else np.asarray(place >= 0)
                total, here = source.weight.sum(), source.weight[seen].sum()
                uncovered = max(uncovered, float(1.0 - here / total) if not seen.all() else 0.0)
                # Whole counts stay whole where every level is covered.
                scale = 1.0 if seen.all() else self.mass / max(here, np.finfo(float).tiny)
                weight = source.weight[seen]
                if place is None:
                    means.append(weight @ values[seen] * scale)
                else:
                    means.append(np.bincount(place[seen], weight, len(term.names)) * scale)
            elif isinstance(term, Number) and source is not None:
                means.append(np.array([source - term.origin * self.mass]))
        covered = self.mass * (1.0 - uncovered)
        sums = np.concatenate(means)
        asked.sums[0] = sums if not uncovered else sums * (covered / self.mass)
        asked.mass[0] = covered
        asked.uncovered = self.mass * uncovered

    @staticmethod
    def _values(features: FeatureSet, term: Term, known: KnownLevels) -> FloatArray:
        codes = np.full((len(known.levels), len(features.codes.names)), np.nan)
        for position in term.positions:
            column = known.rows[features.codes.names[position]].combine_chunks()
            codes[:, position] = features.codes.encode_column(column, position, side="population")
        return term.of(Block(codes, pa.RecordBatch.from_pydict({})))

    def joint(self, columns: Sequence[str]) -> KnownLevels | None:
        """Return a table of all these columns together."""
        fitting = [one for one in self.known if set(one.columns) == set(columns)]
        return fitting[0] if fitting else None

    def count_cells(self, asked: CellCounts, columns: Sequence[str]) -> None:
        """Count the cells of a joint table; a band must lie within one cell."""
        known = self.joint(columns)
        assert known is not None
        rows = known.rows.select(list(columns)).combine_chunks()
        if known.bands:
            ends = [_end_rows(rows, known, end).to_batches()[0] for end in ("lows", "highs")]
            first, last = (asked.locator.locate(batch)[0] for batch in ends)
            if not np.array_equal(first, last):
                level = known.levels[int(np.flatnonzero(first != last)[0])]
                raise InputError(
                    f"The level {', '.join(map(str, level))} of the margin of "
                    f"{', '.join(known.columns)} is a band that lies in several cells. Give the "
                    "histogram the bands' borders, or use CalibrationWeights."
                )
        asked.update(RowBlock(rows.to_batches()[0], known.weight))


def _end_rows(rows: pa.Table, known: KnownLevels, end: str) -> pa.Table:
    """Return the rows with the first or the last number of each band."""
    for name, bands in known.bands.items():
        groups = bands.of(rows[name].to_numpy())
        # An open end is as far as whole numbers can be distinguished.
        numbers = np.clip(getattr(bands, end)[groups], -(2.0**52), 2.0**52)
        numbers = numbers if end == "lows" else np.nextafter(numbers, -np.inf)
        numbers = pa.array(np.where(groups < 0, np.nan, numbers))
        rows = rows.set_column(rows.column_names.index(name), name, numbers)
    return rows.combine_chunks()
