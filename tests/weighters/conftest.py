from __future__ import annotations

import pytest

from unskew import TreeWeights


@pytest.fixture(scope="module")
def saved_population(mixed):
    return mixed.iloc[:3000].assign(unknown=None)


@pytest.fixture(scope="module")
def saved_tree(saved_population):
    sample = saved_population[saved_population["income"].fillna(0) > -0.5].iloc[:400]
    labels = sample["rooms"].to_numpy() % 3
    weighter = TreeWeights(min_samples_leaf=20)
    return weighter.fit(sample, labels, population=saved_population)
