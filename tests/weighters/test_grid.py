from __future__ import annotations

import numpy as np
import pytest

from unskew.weighters.histogram import FEW_BORDERS, GridPartition, pieces


@pytest.mark.parametrize("n_borders", [0, 1, 5, FEW_BORDERS, FEW_BORDERS + 1, 300])
def test_buckets_are_what_a_search_finds(n_borders):
    random = np.random.default_rng(n_borders)
    borders = np.unique(random.normal(size=n_borders).round(2))
    column = np.concatenate([random.normal(size=1000), borders, [-9.0, 9.0, np.nan]])
    expected = np.searchsorted(borders, column, side="right")
    expected[-1] = len(borders) + 1
    assert np.array_equal(pieces(column, borders, by_value=False), expected)


@pytest.mark.parametrize("values", [[], [3.0], [-2.0, 0.0, 7.0], [0.5, 1.0], [-1e9, 0.0, 1e15]])
def test_values_are_found_and_no_others(values):
    column = np.array([*values, -2.0, 0.25, 6.0, 1e300, -1e300, np.nan])
    known = {value: place for place, value in enumerate(values)}
    expected = [known.get(value, -1) for value in column[:-1]] + [len(values) + 1]
    assert pieces(column, np.array(values), by_value=True).tolist() == expected


def test_rows_of_no_cell_have_none():
    sample = np.array([[1.0, 0.1], [1.0, 0.9], [4.0, np.nan]])
    partition = GridPartition([np.array([1.0, 4.0]), np.array([0.5])], [True, False], sample)
    assert partition.n_cells == 3
    assert sorted(partition.cells(sample)) == [0, 1, 2]
    others = np.array([[2.0, 0.1], [4.0, 0.1], [1.0, np.nan], [np.nan, 0.1], [9.0, 9.0]])
    assert partition.cells(others).tolist() == [-1] * 5
