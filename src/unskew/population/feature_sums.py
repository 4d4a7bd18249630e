"""The sums of features over a population: what calibration asks for."""

from __future__ import annotations

import numpy as np

from unskew.numerics.typing import FloatArray, IntArray
from unskew.population.features import FeatureSet, Number, Product, Term, is_plain_number
from unskew.population.summaries import RowBlock, Summary

BLOCK = 8192
"""Rows whose features are computed at a time; a block of 40 features then fits a core's cache."""


class SumPlan:
    """How to sum features: products of two numbers by one multiplication of matrices.

    Parameters
    ----------
    features : FeatureSet

    Attributes
    ----------
    others : FeatureSet
        The features that are neither numbers nor products of two.
    """

    def __init__(self, features: FeatureSet) -> None:
        ends = np.cumsum([0, *(len(term.names) for term in features.terms)])
        factors: dict[tuple[int, float], int] = {}

        def place(number: Number) -> int:
            return factors.setdefault((number.positions[0], number.origin), len(factors))

        numbers, products, others = [], [], []
        rest: list[Term] = []
        for term, begin, end in zip(features.terms, ends, ends[1:], strict=False):
            if is_plain_number(term):
                numbers.append((begin, place(term)))
            elif isinstance(term, Product) and (
                is_plain_number(left := term.left) and is_plain_number(right := term.right)
            ):
                products.append((begin, place(left), place(right)))
            else:
                rest.append(term)
                others.append(np.arange(begin, end))
        self.positions = [position for position, _ in factors]
        self.origins = np.array([origin for _, origin in factors])
        self.numbers: IntArray = np.array(numbers, dtype=np.intp).reshape(-1, 2).T
        self.products: IntArray = np.array(products, dtype=np.intp).reshape(-1, 3).T
        self.others = FeatureSet(features.codes, rest)
        self.other_places: IntArray = np.concatenate([np.empty(0, np.intp), *others])
        self.width = int(ends[-1])

    def factors_of(self, codes: FloatArray) -> FloatArray:
        """Return the numbers, from their origins."""
        return np.asarray(codes[:, self.positions] - self.origins)

    def sums(self, factors: FloatArray, others: FloatArray, weight: FloatArray) -> FloatArray:
        """Return the weighted sums of all features."""
        sums = np.empty(self.width)
        sums[self.other_places] = weight @ others
        sums[self.numbers[0]] = (weight @ factors)[self.numbers[1]]
        if self.products.size:
            gram = (factors * weight[:, None]).T @ factors
            sums[self.products[0]] = gram[self.products[1], self.products[2]]
        return sums


class FeatureSums(Summary):
    """The sums of features over rows whose values the sample has, by folds of the rows.

    Attributes
    ----------
    sums : ndarray of shape (n_folds, n_features)
    mass : ndarray of shape (n_folds,)
        The weight of the rows that were summed.
    uncovered : float
        The weight of the rows with a value that no sample row has.
    """

    shared = frozenset({"features", "plan"})
    added = ("sums", "lost", "mass", "uncovered")

    def __init__(self, features: FeatureSet, n_folds: int = 1) -> None:
        self.features = features
        self.plan = SumPlan(features)
        self.sums = np.zeros((n_folds, len(features)))
        self.lost = np.zeros((n_folds, len(features)))  # in rounding, so far
        self.mass = np.zeros(n_folds)
        self.uncovered = 0.0

    def update(self, rows: RowBlock) -> None:
        """Add the rows of a block."""
        codes = self.features.codes.transform(rows.batch, side="population").values
        with np.errstate(over="ignore", invalid="ignore"):  # whoever uses the sums checks them
            self._add(rows, codes)

    def _add(self, rows: RowBlock, codes: FloatArray) -> None:
        n_folds = len(self.mass)
        for begin in range(0, len(codes), BLOCK):
            part = slice(begin, begin + BLOCK)
            batch, weight = rows.batch.slice(begin, BLOCK), rows.weight[part]
            factors = self.plan.factors_of(codes[part])
            values = self.plan.others.of_codes(codes[part], batch)
            if np.isnan(factors.sum() + values.sum()):
                unseen = np.isnan(factors).any(axis=1) | np.isnan(values).any(axis=1)
                self.uncovered += float(weight[unseen].sum())
                factors[unseen], values[unseen] = 0.0, 0.0
                weight = np.where(unseen, 0.0, weight)
            for fold in range(n_folds):
                own = slice((fold - rows.start - begin) % n_folds, None, n_folds)
                self._add_sums(fold, self.plan.sums(factors[own], values[own], weight[own]))
                self.mass[fold] += weight[own].sum()

    def _add_sums(self, fold: int, sums: FloatArray) -> None:
        """Add sums and keep what rounding takes, so that the cut of the rows does not matter."""
        before = self.sums[fold].copy()
        self.sums[fold] += sums
        self.lost[fold] += _error(before, sums, self.sums[fold])

    def merge(self, other: FeatureSums) -> None:
        """Add the sums of later rows."""
        before = self.sums.copy()
        super().merge(other)
        self.lost += _error(before, other.sums, self.sums)

    def finish(self) -> None:
        """Add what rounding took."""
        self.sums, self.lost = self.sums + self.lost, np.zeros_like(self.lost)
        super().finish()


def _error(first: FloatArray, second: FloatArray, total: FloatArray) -> FloatArray:
    """Return what rounding took from a sum of two numbers (Knuth's exact error of an addition)."""
    with np.errstate(over="ignore", invalid="ignore"):  # whoever uses the sums checks them
        share = total - first
        return np.asarray((first - (total - share)) + (second - share))
