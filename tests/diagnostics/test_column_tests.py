"""Each column tested by itself."""

import numpy as np
import pandas as pd
import pytest

from unskew import Population, diagnose
from unskew.diagnostics.compared_rows import ComparedRows
from unskew.diagnostics.shift_tests import columns_test
from unskew.population.reservoir import Reservoir
from unskew.rows.sample import Sample

SHARES = np.array([0.5, 0.3, 0.18, 0.02])


def rows(random, n, shares=SHARES):
    return pd.DataFrame(
        {"kind": random.choice(list("abcd"), n, p=shares), "z": random.normal(size=n)}
    )


def three_times(seed):
    """A sample of 300 rows in which one category has 6 % instead of 2 %."""
    random = np.random.default_rng(seed)
    shares = np.append(SHARES[:3] * 0.94 / 0.98, 0.06)
    return rows(random, 300, shares), rows(random, 3000)


def p_value(sample, people, sample_weight=None):
    own = Sample.from_data(sample, sample_weight=sample_weight)
    drawn = Population(people).matched(own.rows, among=list(sample)).reduce(Reservoir(20_000))
    rows = ComparedRows.from_reservoir(own, drawn, even=sample_weight is None)
    return columns_test(rows).before.p_value


def test_a_category_three_times_too_frequent_is_found():
    found = [p_value(*three_times(seed)) < 0.025 for seed in range(20)]
    assert sum(found) >= 13  # 0.83 of 60 draws; 13 of 20 have a chance of 0.98
    diagnosis = next(diagnose(*three_times(seed)) for seed, one in enumerate(found) if one)
    assert diagnosis.bias_left
    assert "kind = d" in diagnosis.bias.columns.method


@pytest.mark.parametrize("weighted", [False, True])
def test_the_level_holds(weighted):
    """Also with design weights, and categories of which some samples have no row."""
    values = []
    for seed in range(60):
        random = np.random.default_rng(seed)
        people, sample, weight = rows(random, 1000), rows(random, 300), None
        if weighted:
            sample = rows(random, 1000)
            chance = np.exp(0.5 * sample["z"] - 1.7).clip(upper=1)
            taken = random.uniform(size=1000) < chance
            sample, weight = sample[taken], 1 / chance[taken]
        values.append(p_value(sample, people, weight))
    assert np.mean(np.array(values) < 0.05) <= 0.13  # 8 of 60: a chance of 0.006 at a level of 5 %


def test_one_column_of_one_value():
    sample, people = pd.DataFrame({"a": [1.0] * 30}), pd.DataFrame({"a": [1.0] * 100})
    assert p_value(sample, people) == 1.0
