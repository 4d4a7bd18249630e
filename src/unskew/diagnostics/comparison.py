"""Two-sample tests between the sample and rows drawn from the population."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unskew.diagnostics.diagnosis import Comparison, TwoSampleTest
from unskew.diagnostics.discrepancy import MAX_ROWS as MMD_ROWS
from unskew.diagnostics.discrepancy import N_RESAMPLES, MaximumMeanDiscrepancy
from unskew.diagnostics.discrimination import MAX_ROWS as CLASSIFIER_ROWS
from unskew.diagnostics.discrimination import classifier_two_sample_test, draw_rows
from unskew.numerics.typing import BoolArray, FloatArray, IntArray
from unskew.overlap import bounded
from unskew.population.sample import Sample
from unskew.weighters.base import Family

MAX_CATEGORIES = 200
"""The trees treat the ranks of more categories as numbers."""


@dataclass(frozen=True)
class Comparator:
    """Compares the sample with rows drawn from the population.

    Parameters
    ----------
    sample : Sample
    theirs : ndarray
        The codes of the rows drawn.
    weight : ndarray
        Their design weights.
    even : bool
        Whether neither side has design weights, so that rows can be swapped.
    seed : int
    """

    sample: Sample
    theirs: FloatArray
    weight: FloatArray
    even: bool
    seed: int

    def discrepancy(self, after: FloatArray | None) -> TwoSampleTest:
        """Test by the maximum mean discrepancy, before and after weighting."""
        mine = draw_rows(self.sample.design, MMD_ROWS, self.seed)
        theirs = draw_rows(self.weight, MMD_ROWS, self.seed + 1)
        test = MaximumMeanDiscrepancy(*self._points(mine, theirs), seed=self.seed)

        def wild(given: FloatArray) -> Comparison:
            chosen, judge = draw_rows(given, MMD_ROWS, self.seed), test
            if not np.array_equal(chosen, mine):  # some rows have no weight now
                judge = MaximumMeanDiscrepancy(*self._points(chosen, theirs), seed=self.seed)
            return judge.wild_bootstrap_test(given[chosen], self.weight[theirs])

        by = "swapping rows between the two" if self.even else "flipping signs at random"
        return TwoSampleTest(
            name="maximum mean discrepancy",
            method=(
                f"Gaussian kernel with the median distance as its width, {len(mine):,} sample rows "
                f"and {len(theirs):,} of the population; p by {by} {N_RESAMPLES} times"
                + ("" if after is None else ", with weights by flipping signs, weights as given")
                + "."
            ),
            before=test.permutation_test() if self.even else wild(self.sample.design),
            after=None if after is None else wild(after),
        )

    def discrimination(
        self, family: Family, after: FloatArray | None
    ) -> tuple[TwoSampleTest, float]:
        """Test by a classifier, before and after weighting.

        Also return the effective share of the sample that weights can be expected to keep.
        """
        theirs = draw_rows(self.weight, CLASSIFIER_ROWS, self.seed + 1)

        def separated(given: FloatArray) -> tuple[Comparison, FloatArray, BoolArray, FloatArray]:
            mine = draw_rows(given, CLASSIFIER_ROWS, self.seed)
            values, categories = self._judged_values(family, mine, theirs)
            weight = np.concatenate([given[mine], self.weight[theirs]])
            is_sample = np.arange(len(weight)) < len(mine)
            found = classifier_two_sample_test(
                family, values, is_sample, weight, categories=categories, seed=self.seed
            )
            return *found, is_sample, weight

        before, log_odds, is_sample, weight = separated(self.sample.design)
        by = "boosted trees" if family == "trees" else "logistic regression on kernel features"
        test = TwoSampleTest(
            name="classifier",
            method=(
                f"{by}, each fold scored by a model of those before; {is_sample.sum():,} sample "
                f"rows and {len(theirs):,} of the population; area under the curve, with a 95 % "
                "interval"
            ),
            before=before,
            after=None if after is None else separated(after)[0],
        )
        # The odds of population over sample are estimated weights. With weights w of mean one on
        # the sample, E_S[w²] = E_U[w], and the latter is not raised by noise in the odds.
        scored = np.isfinite(log_odds)
        if not scored.any():
            return test, 1.0
        odds = np.exp(np.clip(-log_odds, -20, 20))
        on_sample, on_population = (
            np.average(odds[side], weights=weight[side])
            for side in (scored & is_sample, scored & ~is_sample)
        )
        return test, min(1.0, float(on_sample / on_population))

    def _judged_values(
        self, family: Family, mine: IntArray, theirs: IntArray
    ) -> tuple[FloatArray, BoolArray]:
        """Return the rows as the classifier sees them, and which columns are categories."""
        if family == "smooth":
            points = np.concatenate(self._points(mine, theirs))
            return points, np.zeros(points.shape[1], dtype=bool)
        values = np.concatenate([self.sample.values[mine], self.theirs[theirs]])
        counts = map(self.sample.codes.n_categories, range(values.shape[1]))
        categories = np.array([0 < count <= MAX_CATEGORIES for count in counts])
        return np.where(categories & (values < 0), np.nan, values), categories

    def _points(self, mine: IntArray, theirs: IntArray) -> tuple[FloatArray, FloatArray]:
        space, points = self.sample.points("standard")
        return bounded(points[mine]), bounded(space.of_codes(self.theirs[theirs]))
