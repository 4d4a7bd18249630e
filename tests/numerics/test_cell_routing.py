from __future__ import annotations

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from unskew.numerics.cell_routing import NearestCentre, TreeRouting


def test_cells_are_those_of_k_means():
    random = np.random.default_rng(0)
    points = random.normal(size=(4000, 5))
    clusters = KMeans(17, n_init=1, random_state=0).fit(points)
    cells = NearestCentre(clusters.cluster_centers_).cells(points)
    assert np.array_equal(cells, clusters.predict(points))


def test_ties_fall_the_same_way_in_blocks_of_any_size():
    """On a lattice every other row is equally far from several centres."""
    random = np.random.default_rng(1)
    centres = random.integers(0, 4, (40, 6)) / 7
    rows = random.integers(0, 9, (3000, 6)) / 14
    nearest = NearestCentre(centres)
    whole = nearest.cells(rows)
    squares = ((rows[:, None, :] - centres) ** 2).sum(axis=2)
    assert np.isclose(squares[np.arange(3000), whole], squares.min(axis=1), rtol=1e-12).all()
    for size in (1, 7, 513):
        pieces = [nearest.cells(rows[start : start + size]) for start in range(0, 3000, size)]
        assert np.array_equal(np.concatenate(pieces), whole)


@pytest.mark.parametrize("scale", [1.0, 1e-8, 1e200])
@pytest.mark.parametrize(("n_centres", "d"), [(1, 2), (5, 1), (141, 8), (300, 50)])
def test_rounding_decides_nothing(n_centres, d, scale):
    random = np.random.default_rng(2)
    centres = random.normal(size=(n_centres, d)) + 1e4
    rows = np.concatenate(
        [
            random.normal(size=(2000, d)) + 1e4,
            random.normal(size=(100, d)) * 1e12,
            centres,
            (centres[:1] + centres) / 2 + 1e-9 * random.normal(size=centres.shape),
        ]
    )
    squares = sum(
        (mine[:, None] - theirs) ** 2 for mine, theirs in zip(rows.T, centres.T, strict=True)
    )
    cells = NearestCentre(centres * scale).cells(rows * scale)
    chosen = squares[np.arange(len(rows)), cells]
    assert np.isclose(chosen, squares.min(axis=1), rtol=1e-11, atol=0).all()


@pytest.mark.parametrize("decimals", [0, 6])  # with 0 decimals there are many ties
@pytest.mark.parametrize("offset", [0.0, 1e5])
def test_all_nearest_centres_ties_included(decimals, offset):
    random = np.random.default_rng(3)
    centres = random.normal(size=(700, 3)).round(decimals) + offset
    rows = random.normal(size=(1500, 3)).round(decimals) + offset
    row, centre = NearestCentre(centres).all_nearest(rows)
    distances = np.linalg.norm(rows[:, None] - centres, axis=2)
    expected = np.nonzero(distances <= distances.min(axis=1, keepdims=True) * (1 + 1e-9))
    assert np.array_equal(row, expected[0])
    assert np.array_equal(centre, expected[1])
    assert (decimals == 0) == (len(row) > 2000)


def test_a_row_without_a_finite_squared_distance_has_no_nearest_centre():
    nearest = NearestCentre(np.array([[0.0, 0.0], [1.0, 1.0]]))
    rows = np.array([[1e300, 0.0], [-1e300, 1.0], [0.9, 0.9], [np.inf, 0.0], [1e100, 0.0]])
    with np.errstate(all="raise"):
        cells = nearest.cells(rows)
        row, centre = nearest.all_nearest(rows)
    assert cells.tolist() == [-1, -1, 1, -1, 0]
    assert row.tolist() == [2, 4, 4]
    assert centre.tolist() == [1, 0, 1]


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
    routing = TreeRouting.from_tree(tree.tree_)
    for rows in (values, new, border_rows, new[:0]):
        assert np.array_equal(routing.cells(rows), tree.tree_.apply(rows))


def test_a_tree_of_one_leaf():
    tree = DecisionTreeRegressor().fit(np.zeros((3, 1)), np.zeros(3))
    assert (
        TreeRouting.from_tree(tree.tree_).cells(np.zeros((4, 1), dtype=np.float32)).tolist()
        == [0] * 4
    )
