"""Effects of levels: additive effects, cells beside them, and levels that no sample row has."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from unskew import AutoWeights, CalibrationWeights
from unskew.weighters.ratio_models import HELD, NO_EFFECT, LevelBlock, LevelModels, LevelTilt
from unskew.weighters.ratio_models import solve_effects as solve


def two_categories(seed, together=0.0, m=800, n=4000):
    """Rows of two columns whose levels decide who is in the sample; ``together``, their pairs."""
    random = np.random.default_rng(seed)
    first, second = (random.normal(size=size) for size in (12, 8))
    pairs = together * random.normal(size=(12, 8))
    codes = random.integers((12, 8), size=(6 * n, 2))
    odds = np.exp(0.5 * (first[codes[:, 0]] + second[codes[:, 1]]) + pairs[tuple(codes.T)])
    chosen = random.choice(len(codes), size=m, replace=False, p=odds / odds.sum())
    names = np.array(list("abcdefghijkl"))
    frame = pd.DataFrame({"one": names[codes[:, 0]], "two": names[codes[:, 1]]})
    truth = 1 / odds[chosen]
    return frame.iloc[chosen], frame.sample(n, random_state=seed), truth / truth.mean()


def off(weights, truth):
    return np.abs(weights / weights.mean() - truth).mean()


def test_effects_that_add_up_are_weighed_as_well_as_by_a_calibration_to_them():
    errors = {"auto": [], "means": []}
    for seed in range(5):
        sample, population, truth = two_categories(seed)
        means = CalibrationWeights(features="means", overlap="ignore")
        for name, weighter in (("auto", AutoWeights(overlap="ignore")), ("means", means)):
            errors[name].append(off(weighter.fit(sample, population=population).weights_, truth))
    assert np.mean(errors["auto"]) < 1.15 * np.mean(errors["means"])


@pytest.mark.parametrize(("together", "apart"), [(0.0, False), (1.0, True)])
def test_cells_have_effects_of_their_own_where_levels_do_not_add_up(together, apart):
    found = []
    for seed in range(3):
        sample, population, _ = two_categories(seed, together)
        weighter = AutoWeights(overlap="ignore").fit(sample, population=population)
        found.append(weighter.models_["levels"].ridges[-1])
    assert (max(found) < 30) if apart else (min(found) >= 30)


def test_effects_solve_their_equations():
    random = np.random.default_rng(0)
    place, weight = random.integers(4, size=60), random.uniform(size=60)
    target, penalty = np.array([5.0, 8.0, 6.0, 0.0]), np.array([0.1, 2.0, NO_EFFECT, HELD])

    def derivatives(total):
        own = weight * np.exp(total)
        return own, own

    (found,) = solve([np.zeros(4)], [place], [penalty], derivatives, [target])
    left = np.bincount(place, weight * np.exp(found[place])) + penalty * found - target
    assert left[:2] == pytest.approx(0.0, abs=1e-3)
    assert found[2:] == pytest.approx(0.0, abs=1e-4)


def tilted(counts, shares, ridge=1e-6):
    """Return the weighted share of each level; the last share is that of an unseen one."""
    models = LevelModels()
    models.blocks, models.ridges = [LevelBlock(0, np.arange(float(len(counts))))], [ridge]
    codes = np.repeat(np.arange(float(len(counts))), counts)[:, None]
    tilt = LevelTilt(models)
    values = np.append(np.arange(float(len(counts))), -1.0)[:, None]
    tilt.fit(codes, np.ones(len(codes)), values, np.array(shares))
    weights = np.exp(tilt.of(codes))
    return np.bincount(codes[:, 0].astype(int), weights) / weights.sum()


def test_weights_have_the_shares_of_levels():
    assert tilted([40, 30, 30], [0.2, 0.3, 0.5, 0.0]) == pytest.approx([0.2, 0.3, 0.5], abs=1e-3)


def test_rare_levels_stand_for_those_that_no_sample_row_has():
    found = tilted([60, 37, 3], [0.5, 0.4, 0.06, 0.04])
    assert found == pytest.approx([0.5, 0.4, 0.1], abs=1e-3)


def test_but_for_no_more_than_they_have_themselves():
    found = tilted([60, 37, 3], [0.4, 0.3, 0.05, 0.25])
    assert found == pytest.approx(np.array([0.4, 0.3, 0.1]) / 0.8, abs=1e-3)


def test_frequent_levels_do_not():
    assert tilted([60, 40], [0.5, 0.3, 0.2]) == pytest.approx([0.625, 0.375], abs=1e-3)
