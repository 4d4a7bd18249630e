"""Any weighter that can weigh new rows as a model of the density ratio, fitted fold by fold."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from sklearn.base import clone

from unskew.errors import OverlapError, UnskewError
from unskew.numerics.typing import FloatArray, IntArray
from unskew.population.about import About
from unskew.population.rows import Rows
from unskew.population.sample import Sample
from unskew.population.summaries import RowBlock
from unskew.weighters.ratio_models import RatioModels, outside
from unskew.weighters.two_samples import TwoSamples

LEAST_SHARE = 1e-4
"""A ratio that counts as zero, as a multiple of the mean."""


class WeighterModels(RatioModels):
    """Clones of a weighter, each fitted on the rows outside of a fold.

    The population's rows are those that were drawn. A fold in which the weighter finds no weights
    has a ratio of one.

    Parameters
    ----------
    weighter : InductiveWeighter
    about : About
    """

    def __init__(self, weighter: Any, about: About) -> None:
        self.weighter = weighter
        self.about = about

    def fit(self, rows: TwoSamples, dealt: IntArray, n_folds: int) -> FloatArray:
        """Fit a clone outside of each fold."""
        table = rows.joined_table
        self.n_models, self.models, self.scales = n_folds, list[Any](), list[float]()
        log_ratio = np.zeros(len(rows.values))
        for number in range(n_folds):
            self._fit_one(rows, outside(rows, dealt, number, n_folds))
            inside = np.flatnonzero(dealt == number) if n_folds > 1 else np.arange(len(dealt))
            if len(inside):
                log_ratio[inside] = self.predict(number, table.take(pa.array(inside)))
        return log_ratio

    def _fit_one(self, rows: TwoSamples, train: IntArray) -> None:
        mine, theirs = train[train < rows.n_mine], train[train >= rows.n_mine] - rows.n_mine
        sample = rows.sample.take(mine)
        sample.order = np.arange(len(sample))  # which no order of the columns changes
        about = replace(self.about, n_rows=len(theirs), selected=False)
        weighter = clone(self.weighter).set_params(overlap="ignore")
        batch, weight = rows.batch.take(pa.array(theirs)), rows.shares.theirs[theirs]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the fit on all rows says it again
                question = weighter._question(sample, about)
                if question is not None:
                    question.update(RowBlock(batch, weight * len(weight) / weight.sum()))
                    question.finish()
                raw = weighter._solve(sample, question)
            mean = float(raw.sum() / sample.design.sum())
            self.models.append(weighter if mean > 0 else None)
            self.scales.append(1.0 / mean if mean > 0 else 1.0)
        except (OverlapError, UnskewError):
            self.models.append(None)
            self.scales.append(1.0)

    def encode(self, codes: FloatArray, table: pa.Table) -> pa.Table:  # noqa: ARG002
        """Return the rows as they are."""
        return table

    def predict(self, number: int, encoded: pa.Table) -> FloatArray:
        """Return the logarithm of the weight over its mean."""
        weighter = self.models[number]
        if weighter is None:
            return np.zeros(encoded.num_rows)
        rows = Rows(encoded, named=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            weights = weighter._weigh(Sample(rows, None, np.ones(len(rows))))
        return np.log(np.maximum(weights * self.scales[number], LEAST_SHARE))
