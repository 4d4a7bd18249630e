from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from unskew.numerics.row_keys import DistinctRows, row_keys

codes = arrays(
    np.int64, st.tuples(st.integers(1, 30), st.integers(1, 4)), elements=st.integers(0, 3)
)


@given(codes, st.integers(0, 2**32), st.sampled_from([0, 4, 10**6]))
def test_rows_are_found_exactly_where_they_are(known, seed, largest_table):
    distinct = DistinctRows(known, largest_table=largest_table)
    numbers = {
        tuple(row): int(number) for row, number in zip(known, distinct.find(known), strict=True)
    }
    assert len(numbers) == distinct.size
    assert sorted(numbers.values()) == list(range(distinct.size))
    asked = np.random.default_rng(seed).integers(-1, 6, size=(50, known.shape[1]))
    expected = [numbers.get(tuple(row), -1) for row in asked]
    assert distinct.find(asked).tolist() == expected


def test_many_columns_do_not_overflow():
    known = np.random.default_rng(0).integers(0, 1000, size=(500, 40))
    distinct = DistinctRows(known)
    assert distinct.size == 500
    assert np.array_equal(np.sort(distinct.find(known)), np.arange(500))


def test_row_keys_do_not_depend_on_the_pieces():
    whole = row_keys(3, 0, 1000)
    pieces = [row_keys(3, start, 100) for start in range(0, 1000, 100)]
    assert np.array_equal(np.concatenate(pieces), whole)
    assert len(np.unique(whole)) == 1000


def test_row_keys_of_different_seeds_are_unrelated():
    # Equal to shifted copies of one another they would draw overlapping reservoirs.
    first, second = (row_keys(seed, 0, 20_000).astype(np.float64) for seed in (1, 2))
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.03
    assert not np.isin(row_keys(1, 0, 20_000), row_keys(2, 0, 20_000)).any()
    assert abs((first / 2**64).mean() - 0.5) < 0.01
