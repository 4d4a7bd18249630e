"""The search for overlap within a fit: which rows it draws, and when."""

from __future__ import annotations

from unskew.overlap.measure import measure_overlap
from unskew.overlap.overlap import Overlap
from unskew.population.population import Population
from unskew.population.reservoir import Reservoir
from unskew.population.summaries import Summary
from unskew.rows.sample import Sample


class OverlapSearch:
    """Searches in rows of the population that are drawn at once, or by the fit's own pass.

    Parameters
    ----------
    sample : Sample
    population : Population
        With the sample's columns. Rows in memory are drawn here; of others the fit's pass is to ask
        for what is in ``asked``.
    thorough : bool
        Whether to draw and compare twenty and ten times as many rows.
    """

    def __init__(self, sample: Sample, population: Population, *, thorough: bool) -> None:
        self._sample, self._population = sample, population
        # So many that a category is named whose absence from the sample is not chance.
        n_columns = max(1, len(population.columns))
        self._drawn = Reservoir(20_000 if thorough else max(1000, min(10_000, 10**6 // n_columns)))
        self._grow_on, self._search_in = (5000, 20_000) if thorough else (500, 1000)
        self.asked: list[Summary] = [] if population.draw(self._drawn) else [self._drawn]

    def result(self) -> Overlap:
        """Return what is found in the rows drawn."""
        return measure_overlap(
            self._sample,
            self._drawn,
            self._population.size,
            grow_on=self._grow_on,
            search_in=self._search_in,
        )
