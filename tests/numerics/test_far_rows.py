import numpy as np
import pytest
from scipy.spatial.distance import cdist

from unskew.numerics import far_rows as module
from unskew.numerics.far_rows import FAR_FACTOR, OUTERMOST, far_rows


def from_all_pairs(points, others):
    """Return who is far, from every distance there is."""
    points = np.unique(points, axis=0)
    own = cdist(points, points)
    np.fill_diagonal(own, np.inf)
    k = max(1, int(OUTERMOST * len(points)))
    limit = FAR_FACTOR * np.sort(own.min(axis=1))[-k]
    return cdist(others, points).min(axis=1) > limit


@pytest.mark.parametrize("columns", [1, 3, 4, 8, 40])
@pytest.mark.parametrize("form", ["normal", "heavy tails", "grid"])
def test_it_is_what_all_pairs_of_points_give(columns, form):
    random = np.random.default_rng(columns)
    draw = {
        "normal": lambda n, scale: scale * random.normal(size=(n, columns)),
        "heavy tails": lambda n, scale: scale * random.standard_t(1.5, size=(n, columns)),
        # Limits are met exactly: 1.5 steps of 2 are 3 of 1.
        "grid": lambda n, scale: 0.5 * random.poisson(scale, size=(n, columns)),
    }[form]
    points, others = draw(700, 1.0), draw(2000, 2.5)
    expected = from_all_pairs(points, others)
    found = far_rows(points, others, np.full(2000, 1 / 2000), chance=0.9999)
    assert expected.any()
    assert np.array_equal(found, expected)


def test_rows_at_the_limit_are_within_it_wherever_they_stand():
    corners = np.arange(12.0).reshape(3, 4)
    points = module.MixedPoints(corners)
    rows = module.MixedPoints(corners[:1] + np.eye(4)[np.arange(5000) % 4])
    assert not module._beyond(rows, points, limit=1.0).any()
    assert module._beyond(rows, points, limit=np.nextafter(1.0, 0.0)).all()


def test_rows_beyond_any_scale_are_far():
    random = np.random.default_rng(0)
    points, others = random.normal(size=(500, 6)), random.normal(size=(1000, 6))
    others[:100] = 1e15
    assert far_rows(points, others, np.full(1000, 1e-3))[:100].all()


@pytest.mark.parametrize("n_numbers", [0, 3])
def test_labels_are_one_hot_columns(n_numbers, monkeypatch):
    random = np.random.default_rng(0)
    labels, others = random.integers(0, 40, (300, 6)), random.integers(-1, 40, (1000, 6))
    others[:200, :3] = -1  # and none of the one-hot columns is one
    numbers, more = random.normal(size=(300, n_numbers)), random.normal(size=(1000, n_numbers))
    mass = np.full(1000, 1 / 1000)

    def one_hot(numbers, labels):
        return np.hstack([numbers, *((column[:, None] == np.arange(40)) for column in labels.T)])

    mixed = module.MixedPoints(numbers, labels), module.MixedPoints(more, others)
    dense = one_hot(numbers, labels), one_hot(more, others)
    assert mixed[1].inner(mixed[0]) == pytest.approx(dense[1] @ dense[0].T)
    assert mixed[1].distances(mixed[0]) == pytest.approx(cdist(dense[1], dense[0]))
    for factor in (0.6, 0.8):
        monkeypatch.setattr(module, "FAR_FACTOR", factor)
        found = far_rows(*mixed, mass, chance=0.9999)
        assert np.array_equal(found, far_rows(*dense, mass, chance=0.9999))
