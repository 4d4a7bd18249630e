"""Kernel sums by fold: parts merge to what one pass gives, and folds to the whole."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from unskew.numerics.kernels import GaussianKernel
from unskew.numerics.point_folds import N_FOLDS, PointFolds
from unskew.population.feature_space import FeatureSpace
from unskew.population.fold_sums import FoldSums
from unskew.population.summaries import RowBlock

RANDOM = np.random.default_rng(0)
ROWS = RANDOM.normal(size=(200, 2)).round(1)
WEIGHT = RANDOM.uniform(0.5, 2.0, 200)


def batch(rows):
    return pa.record_batch({"a": rows[:, 0], "b": rows[:, 1]})


def ask(frequent=0):
    space = FeatureSpace(scaling=None).fit(batch(ROWS))
    counts = np.where(np.arange(200) < frequent, 100, 1)
    folds = PointFolds.learn(ROWS, counts, np.random.RandomState(0))
    kernel = GaussianKernel(1.0)
    return FoldSums(
        space, kernel, ROWS[:10], np.zeros(2), folds=folds, squares=True, frequencies=None
    )


@pytest.mark.parametrize("frequent", [0, 30])
def test_folds_add_up_and_parts_merge(frequent):
    whole, first, second = (ask(frequent) for _ in range(3))
    whole.update(RowBlock(batch(ROWS), WEIGHT))
    first.update(RowBlock(batch(ROWS[:70]), WEIGHT[:70]))
    second.update(RowBlock(batch(ROWS[70:]), WEIGHT[70:]))
    first.merge(second)
    basis = np.exp(-((ROWS[:, None] - ROWS[:10]) ** 2).sum(axis=2) / 2)
    for answer in (whole, first):
        total = answer.total()
        assert total.mass == pytest.approx(1)
        assert total.first == pytest.approx(WEIGHT @ basis / WEIGHT.sum())
        assert total.second == pytest.approx((WEIGHT[:, None] * basis).T @ basis / WEIGHT.sum())
        parts = [answer.held_out(fold) for fold in range(N_FOLDS)]
        for name in ("mass", "first", "second"):
            added = sum(getattr(part, name) for part in parts)
            assert added == pytest.approx(getattr(total, name))
        assert answer.sums / answer.mass == pytest.approx(total.first)
        assert all(0.05 < part.mass < 0.4 for part in parts)
