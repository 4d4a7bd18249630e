"""Each probabilistic bound, in simulated populations whose selection is known.

A short form of ``python -m benchmarks.theory``. A bound passes if its rate of failure
could be δ, as far as its interval tells; a bound that is wrong does not.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from benchmarks.theory.simulations import (
    CERTIFIED,
    SETTINGS,
    Outcome,
    certificate_outcomes,
    count_outcomes,
    matching_outcomes,
    validity_of,
    weighting_outcomes,
)

from unskew.theory import cell_intervals


def check(outcomes, delta):
    for name, found in outcomes.items():
        validity = validity_of(found)
        assert validity.interval[0] <= delta, (name, validity)


@pytest.mark.parametrize("delta", [0.1, 0.01])
@pytest.mark.parametrize("setting", SETTINGS)
def test_bounds_made_of_counts(setting, delta):
    check(count_outcomes(SETTINGS[setting], delta, 300), delta)


@pytest.mark.parametrize("setting", CERTIFIED)
def test_certificates(setting):
    check(certificate_outcomes(CERTIFIED[setting], 0.1, 30), 0.1)


@pytest.mark.parametrize("delta", [0.1, 0.01])
def test_kernel_mean_matching(delta):
    check(matching_outcomes(delta, 40), delta)


@pytest.mark.parametrize("delta", [0.1, 0.01])
def test_effective_sample_size(delta):
    check(weighting_outcomes(delta, 2000), delta)


def test_a_wrong_bound_fails():
    outcomes = count_outcomes(SETTINGS["large cells, even"], 0.1, 300)
    for name in ("Lemma 3, corrected", "worst case over the joint region, l1"):
        halved = [Outcome(bound / 2.5, realised) for bound, realised in outcomes[name]]
        with pytest.raises(AssertionError, match="Validity"):
            check({name: halved}, 0.1)


def test_exact_intervals_are_not_idle():
    # They are exact: large cells must fail in nearly a share δ of the draws.
    random = np.random.default_rng(0)
    failed = 0
    for _ in range(1500):
        sample = random.binomial(400, 0.5, size=10)
        lower, upper = cell_intervals(population_counts=[400] * 10, sample_counts=sample, delta=0.1)
        failed += not ((lower <= 0.5) & (upper >= 0.5)).all()
    assert 0.05 < failed / 1500 < 0.12


def test_tightness_is_bound_over_what_happened():
    assert validity_of([Outcome(3.0, 1.0), Outcome(8.0, 2.0), Outcome(1.0, 0.0)]).tightness == 3.5
    assert validity_of([Outcome(1.0, 2.0)]).rate == 1
    assert math.isnan(validity_of([Outcome(1.0, 0.0)]).tightness)
