"""What each point misses of a box, against evaluating the conditions anew."""

import numpy as np

from unskew.numerics.empty_boxes import Condition, Features, Held, all_hold


def test_held_follows_every_change_of_a_box():
    random = np.random.default_rng(0)
    values = random.normal(size=(300, 3))
    values[random.uniform(size=values.shape) < 0.05] = np.nan
    points = Features.of(values)
    conditions = [
        Condition(0, True, -0.5, (0.0, 0.0)),
        Condition(1, False, 0.7, (0.0, 0.0)),
        Condition(2, True, -1.0, (0.0, 0.0)),
        Condition(0, False, 1.0, (0.0, 0.0)),
    ]
    held = Held(conditions, points)
    for place, border in ((1, 0.2), (3, 0.4), (0, -2.0)):
        conditions[place] = Condition(
            conditions[place].feature, conditions[place].above, border, (0.0, 0.0)
        )
        held.replace(place, conditions[place])
        assert (held.all == all_hold(conditions, points)).all()
        assert 0 < held.all.sum() < 300
        for left_out in range(4):
            rest = conditions[:left_out] + conditions[left_out + 1 :]
            assert (held.without(left_out) == all_hold(rest, points)).all()
