from __future__ import annotations

import numpy as np
import pytest

from unskew import weighted_risk
from unskew.errors import InputError, ParameterError


def test_risk_of_known_numbers():
    assert weighted_risk([1.0, 2.0], [1.0, 4.0], [1.0, 1.0]) == 2.0
    assert weighted_risk([1.0, 2.0], [1.0, 4.0], [3.0, 1.0]) == 1.0
    assert weighted_risk([1.0, 2.0], [1.0, 4.0], [1.0, 3.0], loss="absolute") == 1.5
    assert weighted_risk(["a", "b"], ["a", "c"], [1.0, 3.0], loss="zero-one") == 0.75
    assert weighted_risk([1.0, 2.0], [0.0, 0.0], [1, 1], loss=lambda y, h: y - h) == 1.5


def test_true_weights_make_the_risk_of_a_biased_sample_unbiased():
    """The paper's Proposition 1, by simulation."""
    random = np.random.default_rng(0)
    values = np.arange(4.0)
    probability = np.array([0.9, 0.5, 0.3, 0.1])
    truth = np.mean((values - 1.0) ** 2)
    risks, plain = [], []
    for _ in range(2000):
        drawn = values[random.integers(0, 4, 400)]
        sample = drawn[random.uniform(size=400) < probability[drawn.astype(int)]]
        weights = 1 / probability[sample.astype(int)]
        risks.append(weighted_risk(sample, np.ones(len(sample)), weights))
        plain.append(weighted_risk(sample, np.ones(len(sample)), np.ones(len(sample))))
    assert np.mean(risks) == pytest.approx(truth, rel=0.02)
    assert abs(np.mean(plain) - truth) > 0.3 * truth


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([1.0], [1.0, 2.0], [1.0]), InputError, "shapes"),
        (([], [], []), InputError, "empty"),
        (([1.0], [1.0], [1.0, 2.0]), InputError, "weights has 2 entries for 1 rows"),
        (([1.0], [1.0], [-1.0]), InputError, "negative"),
    ],
)
def test_bad_arguments(arguments, error, message):
    with pytest.raises(error, match=message):
        weighted_risk(*arguments)


def test_bad_losses():
    with pytest.raises(ParameterError, match="loss must be one of"):
        weighted_risk([1.0], [1.0], [1.0], loss="hinge")
    with pytest.raises(InputError, match="one number per row"):
        weighted_risk([1.0], [1.0], [1.0], loss=lambda y, h: 3.0)


def test_the_risk_of_small_integers_and_huge_weights():
    small = np.array([0], np.uint8), np.array([1], np.uint8)
    assert weighted_risk(*small, [1.0], loss="absolute") == 1
    assert weighted_risk(np.array([200], np.uint8), np.array([0], np.uint8), [1.0]) == 40_000
    assert weighted_risk([1.0, 2.0], [1.0, 3.0], [1e308, 1.5e308]) == pytest.approx(0.6)
    with pytest.raises(InputError, match="loss of row 1 is nan"):
        weighted_risk([1.0, 2.0], [1.0, np.nan], [1.0, 1.0])
    with pytest.raises(InputError, match="loss could not be computed"):
        weighted_risk(["a"], ["b"], [1.0])
    with pytest.raises(ParameterError, match="got None"):
        weighted_risk([1.0], [1.0], [1.0], loss=None)
