"""To what one of two sides is rounded."""

import numpy as np
import pytest

from unskew.numerics.grids import common_grid


def incomes(seed, n):
    return np.random.default_rng(seed).lognormal(np.log(2000), 0.5, n)


@pytest.mark.parametrize("step", [5, 10, 100, 250, 1000, 100 / 30.4])
@pytest.mark.parametrize("of_first", [True, False])
def test_the_step_and_the_side_are_found(step, of_first):
    mine, theirs = incomes(0, 1000), incomes(1, 5000)
    sides = (
        [step * np.round(mine / step), theirs]
        if of_first
        else [mine, step * np.round(theirs / step)]
    )
    grid = common_grid(*sides)
    assert grid.step == pytest.approx(step, rel=1e-5)
    assert (grid.origin, grid.of_first) == (0.0, of_first)
    rounded = [grid.nearest(side) for side in sides]
    assert all(grid.holds(side).all() for side in rounded)


def test_what_is_no_grid():
    mine, theirs = incomes(0, 1000), incomes(1, 5000)
    heaped = np.where(np.random.default_rng(2).uniform(size=5000) < 0.6, theirs.round(-2), theirs)
    assert common_grid(mine, theirs) is None
    assert common_grid(mine, heaped) is None  # 60 % on it
    assert common_grid(mine.round(-2), theirs.round(-2)) is None  # both are rounded
    assert common_grid(np.repeat(mine, 2), theirs) is None  # values that recur without steps
    doses = np.random.default_rng(3).choice([0.0, 100.0, 200.0], 500)
    assert common_grid(doses, theirs) is None  # too few values to tell


def test_steps_that_begin_elsewhere_and_a_few_values_between():
    ages = np.random.default_rng(0).uniform(18, 90, 3000)
    bands = 10 * np.floor(ages / 10) + 5
    bands[::40] = ages[::40]  # 2.5 %
    assert common_grid(ages[:1000], bands)[:2] == (10.0, 5.0)


def test_whole_numbers_beside_others_and_missing_values():
    ages = np.random.default_rng(0).uniform(18, 90, 3000)
    years = np.where(ages > 80, np.nan, np.floor(ages))
    assert common_grid(years, ages).step == 1.0
    assert common_grid(np.full(100, np.nan), ages) is None
