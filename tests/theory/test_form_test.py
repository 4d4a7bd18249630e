"""The test of the form of weights with parameters: its level, what it finds, and its formulas."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom
from tests.theory.helpers import by_ratio, raking

from unskew.rows.sample import Sample
from unskew.theory.assumption_tests import _Functions, check_form
from unskew.theory.flips import PopulationSource


def p_value(sample, population):
    weighter = raking().fit(sample, population=population)
    rows = Sample.from_data(sample)
    shares = weighter.weights_ / weighter.weights_.sum()
    theirs = PopulationSource(population, sample).rows(weighter.columns_)
    return check_form(weighter.linearisation(rows), rows, shares, theirs).p_value


def with_a_jump(seed):
    """Return a sample that was drawn with rates that jump, and rise within each half."""
    random = np.random.default_rng(seed)
    population = random.normal(size=(2400, 4))
    rate = 0.45 + 0.3 * (population[:, 0] > 0) - 0.08 * np.clip(population[:, 0], -2, 2)
    return population[random.uniform(size=2400) < rate], population


def test_weights_of_the_right_form_are_rejected_at_the_level():
    found = [p_value(one.sample, one.population) for one in map(by_ratio, range(500, 650))]
    assert sum(p < 0.05 for p in found) <= binom.ppf(0.999, len(found), 0.05)


def test_a_square_and_a_jump_are_found():
    squares = (by_ratio(seed, 600, 1200, square=0.2) for seed in range(20))
    assert np.mean([p_value(one.sample, one.population) < 0.05 for one in squares]) >= 0.8
    assert np.mean([p_value(*with_a_jump(seed)) < 0.05 for seed in range(20)]) >= 0.8


@pytest.mark.parametrize("centred", [True, False])
def test_sums_over_blocks_are_those_over_all_rows(centred):
    population = np.random.default_rng(0).normal(size=(5000, 3))
    sample = population[::3]
    weighter = raking().fit(sample, population=population)
    rows = Sample.from_data(sample)
    theirs = PopulationSource(population, sample).rows(weighter.columns_)
    space, points = rows.points("standard")
    functions = _Functions(lambda batch: space.transform(batch, side="population").values, theirs)
    mine = functions.of(points)
    influence = weighter.linearisation(rows).influence(mine.T - mine.mean(axis=1), "hc3")
    means, variance = functions.in_population(influence._replace(centred=centred))
    # All rows at once, by the definition.
    values = functions.of(space.transform(theirs.batch, side="population").values).T
    parts = theirs.shares @ values - values + influence.population(theirs.batch)
    known = np.diag(theirs.variance(parts, influence.n_population, centred))
    assert means == pytest.approx(theirs.shares @ values)
    assert variance == pytest.approx(known)
