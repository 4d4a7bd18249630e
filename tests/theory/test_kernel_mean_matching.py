"""Proposition 4, Theorem 4 and the certain statement about means."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from unskew.errors import InputError, ParameterError
from unskew.theory import (
    kmm_bound,
    kmm_distance_bound,
    mean_distance,
    mean_matching_bound,
    prefer_clusters_over_kmm,
    rounding_floor,
)

PROGRAM = {
    "kappa": 0.5,
    "lambda_min": 0.25,
    "lambda_max": 9.0,
    "largest_weight": 2.0,
    "sample_size": 400,
    "population_size": 900,
    "delta": 0.1,
}


def test_proposition_4_by_hand():
    deviation = math.sqrt(4 / 400 + 1 / 900) * (1 + math.sqrt(2 * math.log(20)))
    printed = 2 * 0.1 * 2 / 20 + 2 * math.sqrt(0.5 / 0.25) * deviation
    assert kmm_distance_bound(**PROGRAM, slack=0.1, form="paper") == pytest.approx(printed)
    means = 2 * (2 / 20 + 1 / 30) * (1 + math.sqrt(2 * math.log(30)))
    eta = 2 * math.sqrt(math.log(60) / 800)
    corrected = 2 * 0.1 * 2 / 20 + math.sqrt(2) * (means + eta - 0.1)
    assert eta > 0.1
    assert kmm_distance_bound(**PROGRAM, slack=0.1) == pytest.approx(corrected)
    wide = 2 * 0.5 * 2 / 20 + math.sqrt(2) * means  # slack enough for the perfect weights
    assert kmm_distance_bound(**PROGRAM, slack=0.5) == pytest.approx(wide)


def test_theorem_4_by_hand():
    learner = {"lam": 0.2, "lipschitz": 3.0}
    deviation = math.sqrt(4 / 400 + 1 / 900) * (1 + math.sqrt(2 * math.log(20)))
    printed = 9 * 0.5**1.5 * math.sqrt(9 / 0.25) / 0.2 * deviation
    assert kmm_bound(**PROGRAM, **learner, form="paper") == pytest.approx(printed)
    # Corrected beta: kappa^{1/2} in the place of kappa.
    beta = 9 * math.sqrt(0.5) * 3 / 0.4
    assert kmm_bound(**PROGRAM, **learner) == pytest.approx(beta * kmm_distance_bound(**PROGRAM))


@pytest.mark.parametrize("form", ["paper", "corrected"])
@pytest.mark.parametrize("smallest", [0.0, -1e-17, 1e-16, 7e-13])
def test_at_the_rounding_floor_there_is_no_bound_and_a_reason(form, smallest):
    given = {**PROGRAM, "lambda_min": smallest}
    assert rounding_floor(lambda_max=9.0, sample_size=400) > 7e-13
    for bound in (
        kmm_distance_bound(**given, form=form),
        kmm_bound(**given, lam=1.0, lipschitz=1.0, form=form),
    ):
        assert math.isinf(bound)
        assert bound.vacuous
        assert "rounding floor" in str(bound)


def test_further_than_any_two_distributions_is_vacuous():
    assert kmm_distance_bound(**{**PROGRAM, "lambda_min": 1e-4}).vacuous


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"delta": 1.0}, "delta"),
        ({"slack": 0.6}, "slack must be at most 1/2"),
        ({"lambda_min": 10.0}, "larger than lambda_max"),
        ({"lambda_min": math.nan}, "lambda_min"),
        ({"largest_weight": 0.0}, "largest_weight"),
        ({"sample_size": 0}, "sample_size"),
        ({"kappa": -1.0}, "kappa"),
    ],
)
def test_bad_input(change, message):
    with pytest.raises(ParameterError, match=message):
        kmm_distance_bound(**{**PROGRAM, **change})


def test_preference_by_hand():
    given = {"lambda_min": 0.5, "largest_weight": 100.0, "distinct_points": 20}
    threshold = 50 * math.log(20)
    assert prefer_clusters_over_kmm(population_size=math.ceil(threshold), **given)
    kernel = prefer_clusters_over_kmm(population_size=math.floor(threshold), **given)
    assert not kernel
    assert kernel.value is False
    assert "kernel mean matching" in str(kernel)
    ratio = "order of the cluster bound over that of kernel mean matching"
    assert kernel.terms[ratio] == pytest.approx(math.sqrt(threshold / math.floor(threshold)))


def test_the_mean_of_every_function_is_as_near_as_promised():
    random = np.random.default_rng(0)
    sample, population = random.normal(size=(40, 3)), random.normal(0.3, size=(70, 3))
    weights = random.gamma(1.0, size=40)
    gap = mean_distance(sample, weights, population, gamma=0.7)
    joint = np.vstack([sample, population])
    signed = np.append(weights / weights.sum(), np.full(70, -1 / 70))
    K = rbf_kernel(joint, gamma=0.7)
    assert gap == pytest.approx(math.sqrt(signed @ K @ signed))
    for _ in range(50):
        a = random.normal(size=110)
        norm, values = math.sqrt(a @ K @ a), K @ a
        bound = mean_matching_bound(function_norm=norm, mean_distance=gap)
        assert abs(signed @ values) <= bound
    witness = signed  # the function for which it is met
    norm = math.sqrt(witness @ K @ witness)
    bound = mean_matching_bound(function_norm=norm, mean_distance=gap)
    assert abs(signed @ (K @ witness)) == pytest.approx(bound.value)


def test_bad_rows():
    with pytest.raises(InputError, match="sample has 1 columns and population 2"):
        mean_distance([[0.0]], [1.0], [[0.0, 1.0]], gamma=1.0)
    with pytest.raises(InputError, match="weights has 2 entries for 1 rows"):
        mean_distance([[0.0]], [1.0, 1.0], [[0.0]], gamma=1.0)
    with pytest.raises(InputError, match="population must be a table of finite numbers"):
        mean_distance([[0.0]], [1.0], [[math.nan]], gamma=1.0)
