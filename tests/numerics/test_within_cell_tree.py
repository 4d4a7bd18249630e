"""The tree on bins is scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from unskew.numerics.within_cell_test import BINS, tree_shares


@pytest.mark.parametrize("seed", range(3))
def test_it_is_the_tree_of_scikit_learn(seed):
    random = np.random.default_rng(seed)
    codes = random.integers(0, BINS, size=(3000, 4))
    own = random.uniform(size=3000) < 0.2 + 0.5 * (codes[:, 1] > 70) * (codes[:, 2] < 30)
    weight = random.uniform(0.5, 2, size=3000)
    (shares,) = tree_shares(codes, own, weight, of=(codes,), max_leaves=8, min_leaf=10)
    tree = DecisionTreeClassifier(max_leaf_nodes=8, min_samples_leaf=10, random_state=0)
    tree.fit(codes, own, sample_weight=weight)
    # Ties, which scikit-learn breaks at random, are unlikely with these weights.
    assert shares == pytest.approx(tree.predict_proba(codes)[:, 1])


def test_a_class_alone_and_few_rows():
    codes = np.zeros((12, 2), dtype=int)
    for own in (np.ones(12, dtype=bool), np.arange(12) < 3):
        (shares,) = tree_shares(codes, own, np.ones(12), of=(codes,), max_leaves=4, min_leaf=10)
        assert shares == pytest.approx(own.mean())
