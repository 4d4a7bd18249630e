"""Two-sample tests between the sample and rows drawn from the population."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from unskew.diagnostics.column_tests import MAX_ROWS as COLUMN_ROWS
from unskew.diagnostics.column_tests import MAX_VALUES, test_columns
from unskew.diagnostics.diagnosis import Comparison, TwoSampleTest
from unskew.diagnostics.discrepancy import MAX_ROWS as MMD_ROWS
from unskew.diagnostics.discrepancy import (
    N_RESAMPLES,
    MaximumMeanDiscrepancy,
    flipped,
    swapped,
)
from unskew.diagnostics.discrimination import MAX_ROWS as CLASSIFIER_ROWS
from unskew.diagnostics.discrimination import classifier_two_sample_test
from unskew.diagnostics.sides import DrawnSides, Sides
from unskew.numerics.typing import BoolArray, FloatArray, IntArray
from unskew.weighters.base import Family

MAX_CATEGORIES = 200
ROWS_A_CATEGORY = 8
"""The trees treat ranks as numbers where there are more categories, or fewer rows for each: they
pass over categories of a few rows, and with no others would give every row the same score."""


@dataclass(frozen=True)
class Comparator:
    """Compares the sample with rows drawn from the population.

    Parameters
    ----------
    sides : Sides
        The rows of both.
    design : ndarray
        The design weights of the sample's rows.
    even : bool
        Whether neither side has design weights, so that rows can be swapped.
    seed : int
    judged : str
        How the weights relate to the rows that they are judged on, in a sentence.
    """

    sides: Sides
    design: FloatArray
    even: bool
    seed: int
    judged: str = ""
    _made: dict[bytes, dict[bytes, tuple[Any, Any]]] = field(default_factory=dict, init=False)
    """The kernel features of the rows tested last: before and after weighting they are the same."""

    def discrepancy(self, after: FloatArray | None) -> TwoSampleTest:
        """Test by the maximum mean discrepancy, before and after weighting."""
        drawn = self.sides.draw(self.design, MMD_ROWS, self.seed)
        test = self._mmd(drawn)
        by = "swapping rows between the two" if self.even else "flipping signs at random"
        first = test.permutation_test if self.even else test.wild_bootstrap_test
        before, second = first(drawn.sample, drawn.population), None
        if after is not None:
            now = self.sides.draw(after, MMD_ROWS, self.seed)
            if not np.array_equal(now.rows, drawn.rows):  # some rows have no weight now
                test = self._mmd(now)
            second = test.wild_bootstrap_test(now.sample, now.population)
        return TwoSampleTest(
            name="maximum mean discrepancy",
            method=self._method(
                "Gaussian kernel with the median distance as its width",
                drawn,
                f"p by {by} {N_RESAMPLES} times"
                + ("" if after is None else ", with weights by flipping signs"),
                weighted=after is not None,
            ),
            before=before,
            after=second,
        )

    def columns(self) -> TwoSampleTest:
        """Test each column by itself, before weighting."""
        most = max(500, min(COLUMN_ROWS, MAX_VALUES // max(1, self.sides.values.shape[1])))
        drawn = self.sides.draw(self.design, most, self.seed)
        null = (swapped if self.even else flipped)(drawn.sample - drawn.population, self.seed)
        found, where, n_cells = test_columns(self.sides, drawn, null)
        by = "swapping rows between the two" if self.even else "flipping signs at random"
        how = (
            f"largest difference of {n_cells:,} shares, of categories and below quintiles, "
            f"over its standard deviation: {where}"
        )
        test = f"p by {by} {N_RESAMPLES} times, corrected for the number of shares"
        return TwoSampleTest(
            "columns one by one",
            self._method(how, drawn, test, weighted=False),
            found,
            None,
        )

    def discrimination(
        self, family: Family, after: FloatArray | None
    ) -> tuple[TwoSampleTest, float]:
        """Test by a classifier, before and after weighting.

        Also return the effective share of the sample that weights can be expected to keep.
        """
        drawn = self.sides.draw(self.design, CLASSIFIER_ROWS, self.seed)
        before, log_odds = self._separated(family, drawn, two_sided=False)
        by = "boosted trees" if family == "trees" else "logistic regression on kernel features"
        test = TwoSampleTest(
            name="classifier",
            method=self._method(
                f"{by}, each fold scored by a model of those before",
                drawn,
                "area under the curve, with a 95 % interval; p one-sided"
                + ("" if after is None else ", with weights two-sided"),
                weighted=after is not None,
            ),
            before=before,
            after=None if after is None else self.separated(family, after),
        )
        return test, _expected_share(drawn, log_odds, self.sides.is_seen[drawn.rows])

    def separated(self, family: Family, weights: FloatArray) -> Comparison:
        """Return how well a classifier separates the weighted sample from the population."""
        drawn = self.sides.draw(weights, CLASSIFIER_ROWS, self.seed)
        return self._separated(family, drawn, two_sided=True)[0]

    def _separated(
        self, family: Family, drawn: DrawnSides, *, two_sided: bool
    ) -> tuple[Comparison, FloatArray]:
        values, categories = self._judged_values(family, drawn.rows)
        key = drawn.rows.tobytes()
        if key not in self._made:
            self._made.clear()
        return classifier_two_sample_test(
            family,
            values,
            drawn.sample,
            drawn.population,
            categories=categories,
            seed=self.seed,
            two_sided=two_sided,
            made=self._made.setdefault(key, {}),
        )

    def _mmd(self, drawn: DrawnSides) -> MaximumMeanDiscrepancy:
        points, categories = self.sides.points(drawn.rows), self.sides.categories(drawn.rows)
        return MaximumMeanDiscrepancy(points, categories, seed=self.seed)

    def _judged_values(self, family: Family, rows: IntArray) -> tuple[Any, BoolArray]:
        """Return the rows as the classifier sees them, and which columns are categories."""
        sides = self.sides
        if family == "smooth":
            points = sides.sparse_points if sides.is_category.any() else sides.points
            return points(rows), sides.is_category
        counts = map(sides.codes.n_categories, range(sides.values.shape[1]))
        most = min(MAX_CATEGORIES, len(rows) // ROWS_A_CATEGORY)
        few = np.array([0 < count <= most for count in counts])
        return sides.values[rows], few

    def _method(self, how: str, drawn: DrawnSides, test: str, *, weighted: bool) -> str:
        sides = self.sides
        n_others = len(drawn.rows) - drawn.n_sample
        shared = "The sample's rows are taken to be drawn apart from the population's."
        if sides.n_shared:
            known = "as marked" if sides.marked else "by their values"
            shared = (
                f"{sides.n_shared:,} of the population rows examined are sample rows, {known}: "
                "each is one row with a place on both sides."
            )
        text = f"{how}; {drawn.n_sample:,} sample rows and {n_others:,} others of the population"
        return f"{text}; {test}. {shared}" + (f" {self.judged}" if weighted else "")


def _expected_share(drawn: DrawnSides, log_odds: FloatArray, is_seen: BoolArray) -> float:
    """Return the effective share of the sample that weights can be expected to keep.

    The odds of population over sample are estimated weights. With weights w of mean one on the
    sample, E_S[w²] = E_U[w], and the latter is not raised by noise in the odds. Rows with values
    that no sample row has are left out: no weights represent them, at any cost.
    """
    scored = np.isfinite(log_odds) & is_seen
    if not drawn.sample[scored].any() or not drawn.population[scored].any():
        return 1.0
    # The odds are those of rows that are not in the sample; the others count as they are.
    shared = float(drawn.population[: drawn.n_sample].sum())
    odds = (1 - shared) * np.exp(np.clip(-log_odds[scored], -20, 20)) + shared
    sample, population = drawn.sample[scored], drawn.population[scored]
    return min(1.0, float(np.average(odds, weights=sample) / np.average(odds, weights=population)))
