import numpy as np
import pytest

from unskew.numerics.empty_boxes import empty_boxes
from unskew.numerics.far_rows import far_rows


def covered_by(boxes, points):
    return np.any([box.holds(points) for box in boxes], axis=0) if boxes else np.zeros(len(points))


HOLES = {
    "a tail": lambda x: x[:, 0] > 1,
    "a corner": lambda x: (x[:, 0] > 0.8) & (x[:, 1] > 0),
    "a band": lambda x: np.abs(x[:, 2]) < 0.3,
    "everything": lambda x: x[:, 3] > -0.5,
}


class TestBoxes:
    @pytest.mark.parametrize("hole", HOLES.values(), ids=HOLES)
    @pytest.mark.parametrize("seed", range(3))
    def test_the_share_is_right_within_a_point(self, hole, seed):
        random = np.random.default_rng(seed)
        others, points = random.normal(size=(4000, 5)), random.normal(size=(6000, 5))
        points = points[~hole(points)]
        found = covered_by(empty_boxes(points, others, np.ones(4000)), others)
        assert abs(found.mean() - hole(others).mean()) < 0.01

    def test_no_box_holds_a_point(self):
        random = np.random.default_rng(0)
        points = random.normal(size=(500, 3))
        points[random.uniform(size=(500, 3)) < 0.1] = np.nan
        points = points[~(points[:, 0] > 0.5)]
        boxes = empty_boxes(points, random.normal(size=(2000, 3)) * 2, np.ones(2000))
        assert boxes
        assert not any(box.holds(points).any() for box in boxes)

    def test_one_distribution_yields_boxes_no_more_often_than_promised(self):
        # 1 % for each number of conditions; with 200 draws, 12 or more would happen by a rate of
        # 3 % less than once in a hundred times.
        found = 0
        for seed in range(200):
            random = np.random.default_rng(seed)
            points, others = random.normal(size=(300, 4)), random.normal(size=(1000, 4))
            found += bool(empty_boxes(points, others, np.ones(1000), grow_on=200))
        assert found <= 12

    def test_mass_counts_and_not_rows(self):
        points, others = np.linspace(0, 1, 200)[:, None], np.linspace(0, 2, 200)[:, None]
        mass = np.where(others[:, 0] > 1, 3.0, 1.0)
        (box,) = empty_boxes(points, others, mass)
        assert box.share == pytest.approx(0.75, abs=0.01)

    def test_the_border_may_lie_anywhere_in_its_gap(self):
        points, others = np.arange(0, 100.0)[:, None], np.arange(0.0, 200, 2)[:, None]
        (box,) = empty_boxes(points, others, np.ones(100))
        assert box.conditions[0].gap == (99.0, 100.0)

    @pytest.mark.parametrize(("m", "r", "d"), [(1000, 20, 10), (5000, 50, 5), (500, 3, 2)])
    def test_few_others_prove_little(self, m, r, d):
        found = 0
        for seed in range(25):
            random = np.random.default_rng(seed)
            points, others = random.normal(size=(m, d)), random.normal(size=(r, d))
            found += bool(empty_boxes(points, others, np.ones(r), seed=seed))
        assert found <= 2

    def test_skewed_weights_of_the_others_prove_little(self):
        found = 0
        for seed in range(25):
            random = np.random.default_rng(seed)
            points, others = random.normal(size=(1000, 3)), random.normal(size=(2000, 3))
            found += bool(empty_boxes(points, others, random.pareto(1.2, size=2000), seed=seed))
        assert found <= 2


class TestFarRows:
    def test_disjoint_shells_are_far_in_any_dimension(self):
        random = np.random.default_rng(0)
        for d in (2, 5, 30):
            ball = random.normal(size=(600, d))
            ball /= np.linalg.norm(ball, axis=1)[:, None]
            assert far_rows(ball, 3 * ball[:300], even(300)).all()

    @pytest.mark.parametrize("d", [1, 3, 20])
    def test_one_distribution_has_none(self, d):
        found = 0
        for seed in range(40):
            random = np.random.default_rng(seed)
            draws = random.standard_t(3, size=(900, d))
            found += far_rows(draws[:500], draws[500:], even(400)).any()
        assert found <= 3

    def test_a_single_point_says_nothing(self):
        assert not far_rows(np.zeros((1, 2)), np.ones((3, 2)), even(3)).any()

    def test_mass_counts_and_not_rows(self):
        random = np.random.default_rng(0)
        ring = random.normal(size=(4000, 4))
        ring *= 6 / np.linalg.norm(ring, axis=1)[:, None]
        others = np.concatenate([ring[:2000], random.normal(size=(20, 4)) / 10])
        mass = np.append(np.ones(2000), np.full(20, 40.0))
        far = far_rows(ring, others, mass / mass.sum())
        assert far[2000:].all()
        assert not far[:2000].any()

    def test_those_far_from_some_points_are_compared_with_all(self):
        random = np.random.default_rng(0)
        few = random.normal(12, 0.01, size=(10, 3))
        points = np.concatenate([random.normal(size=(20_000, 3)), few])
        others = np.concatenate([random.normal(size=(900, 3)), np.repeat(few, 10, axis=0)])
        assert far_rows(few, others, even(1000)).any()
        assert not far_rows(points, others, even(1000), judge_on=500).any()


def even(n_rows):
    return np.full(n_rows, 1 / n_rows)
