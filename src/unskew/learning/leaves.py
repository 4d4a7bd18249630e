"""Leaf weights as candidates: trees on the labels, counted in the pass of the automatic weights."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from unskew._compat import _safe_indexing
from unskew.errors import UnskewError
from unskew.learning.strength import Weighing
from unskew.numerics.typing import FloatArray, IntArray
from unskew.population.open_sample import match_columns
from unskew.population.population import Population
from unskew.population.sample import Sample
from unskew.weighters.tree import TreeWeights

LEAF_SIZES = (4, 20)


class Leaves:
    """Trees on the labels of any rows of the sample.

    A tree that is to be judged on some rows must not have seen their labels, so one is grown on
    each set of training rows; all of them count the population in one pass.
    """

    def __init__(self, weighter: Any, X: Any, y: Any, sample_weight: Any) -> None:
        self.X, self.y = X, y
        self.design = None if sample_weight is None else np.asarray(sample_weight, dtype=float)
        self.weighters = [
            TreeWeights(min_samples_leaf=size, overlap="ignore", columns=weighter.columns)
            for size in LEAF_SIZES
        ]

    def ask(self, population: Population, training: list[IntArray]) -> None:
        """Have the next pass count the leaves of a tree on each of these sets of rows, and all."""
        for rows in (*training, np.arange(len(np.asarray(self.y)))):
            for weighter in self.weighters:
                sample = Sample.of(*self._rows(rows))
                sample, matched = match_columns(sample, population, weighter.columns)
                try:
                    question = weighter._question(sample, matched.about)
                except UnskewError:
                    continue  # labels that no tree takes; there is no candidate then
                matched.ask_as_well(question)

    def candidates(self, population: Population) -> list[Weighing]:
        """Return the leaf weights of each size."""
        found = []
        for weighter in self.weighters:
            name = f"TreeWeights({weighter.min_samples_leaf})"
            try:
                self._weigh(weighter, population, np.arange(len(np.asarray(self.y))))
            except UnskewError:
                continue
            weigh = partial(self._weigh, weighter, population)
            found.append(Weighing(name, 1.0, weigh))
        return found

    def _weigh(self, weighter: TreeWeights, population: Population, rows: IntArray) -> FloatArray:
        X, y, design = self._rows(rows)
        return weighter.fit(X, y, population=population, sample_weight=design).weights_

    def _rows(self, rows: IntArray) -> tuple[Any, Any, FloatArray | None]:
        design = None if self.design is None else self.design[rows]
        return _safe_indexing(self.X, rows), _safe_indexing(self.y, rows), design
