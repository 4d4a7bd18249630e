"""The test of selection that is even within cells, by simulation."""

import numpy as np
import pytest
from scipy.stats import binom

from unskew.numerics.within_cell_test import InCells, even_within_cells

DRAWS = 100


def p_values(rate, *, n=900, drawn=None, draws=DRAWS):
    """Return p-values for rows in four cells, of which some are drawn from the population."""
    found = []
    for seed in range(draws):
        random = np.random.default_rng(seed)
        values = random.normal(size=(n, 3))
        rows = InCells(values, np.searchsorted([-1.0, 0.0, 1.0], values[:, 0]))
        selected = random.uniform(size=n) < rate(rows)
        some = np.ones(n, dtype=bool)
        if drawn is not None:
            some = np.isin(np.arange(n), random.permutation(n)[:drawn])
        found.append(even_within_cells(rows.take(selected), rows.take(some), n, seed=seed))
    return np.array(found)


@pytest.mark.parametrize("drawn", [None, 500], ids=["whole", "some rows"])
@pytest.mark.parametrize("highest", [0.3, 0.9])
def test_even_selection_is_rejected_at_the_level(drawn, highest):
    rates = highest * np.array([0.4, 0.8, 1.0, 0.6])
    found = p_values(lambda rows: rates[rows.cells], drawn=drawn)
    for level in (0.05, 0.2):
        assert (found < level).sum() <= binom.ppf(0.999, DRAWS, level)
    assert (found < 0.5).sum() >= binom.ppf(0.001, DRAWS, 0.25)  # conservative, but a test


@pytest.mark.parametrize(
    "rate",
    [
        lambda rows: 1 / (1 + np.exp(-0.8 * rows.values[:, 1])),
        lambda rows: np.where(np.abs(rows.values[:, 2]) < 0.6, 0.6, 0.25),
        # In opposite directions, so that no column differs over all cells.
        lambda rows: 1 / (1 + np.exp(np.where(rows.cells % 2, 2, -2) * rows.values[:, 1])),
    ],
    ids=["slope", "band", "opposite slopes"],
)
def test_differences_within_cells_are_found(rate):
    assert (p_values(rate, draws=20) < 0.05).sum() >= 19


def test_small_cells_add_up():
    # No cell could show anything by itself: each has six rows.
    random = np.random.default_rng(0)
    rows = InCells(random.normal(size=(3000, 2)), np.repeat(np.arange(500), 6))
    selected = random.uniform(size=3000) < 1 / (1 + np.exp(-rows.values[:, 0]))
    assert even_within_cells(rows.take(selected), rows, 3000) < 1e-6


def test_cells_with_too_few_rows_drawn_are_not_tested():
    random = np.random.default_rng(0)
    rows = InCells(random.normal(size=(3000, 2)), np.repeat(np.arange(500), 6))
    some = random.permutation(3000)[:1000]
    drawn = InCells(rows.values[some], rows.cells[some])
    assert even_within_cells(rows.take(rows.values[:, 0] > 0), drawn, 3000) is None


def test_missing_values_and_rows_in_no_cell():
    random = np.random.default_rng(0)
    values = random.normal(size=(2000, 2))
    values[random.uniform(size=(2000, 2)) < 0.3] = np.nan
    rows = InCells(values, np.repeat([-1, 0, 1, 2], 500))
    selected = random.uniform(size=2000) < np.where(np.isnan(values[:, 0]), 0.2, 0.5)
    assert even_within_cells(rows.take(selected), rows, 2000) < 0.001
