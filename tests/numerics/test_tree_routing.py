from __future__ import annotations

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from unskew.numerics.tree_routing import TreeRouting


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("grower", [DecisionTreeRegressor, DecisionTreeClassifier])
def test_every_row_reaches_the_leaf_that_scikit_learn_says(grower, seed):
    random = np.random.default_rng(seed)
    values = random.normal(size=(2000, 4)).round(2).astype(np.float32)
    values[random.uniform(size=values.shape) < 0.1] = np.nan
    tree = grower(min_samples_leaf=3, random_state=seed).fit(values, random.integers(0, 5, 2000))
    new = random.normal(size=(5000, 4)).astype(np.float32)
    new[random.uniform(size=new.shape) < 0.1] = np.nan
    # On the borders themselves, and the closest float32 on either side of them.
    borders = tree.tree_.threshold[tree.tree_.feature >= 0].astype(np.float32)
    close = np.concatenate([np.nextafter(borders, np.float32(s)) for s in (-np.inf, np.inf)])
    border_rows = np.repeat(np.concatenate([borders, close])[:, None], 4, axis=1)
    routing = TreeRouting.of(tree.tree_)
    for rows in (values, new, border_rows, new[:0]):
        assert np.array_equal(routing.cells(rows), tree.tree_.apply(rows))


def test_a_tree_of_one_leaf():
    tree = DecisionTreeRegressor().fit(np.zeros((3, 1)), np.zeros(3))
    assert TreeRouting.of(tree.tree_).cells(np.zeros((4, 1), dtype=np.float32)).tolist() == [0] * 4
