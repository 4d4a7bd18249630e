"""The benchmark of accuracy: its draws and measures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from unskew import AutoWeights, Reweighted

ROOT = Path(__file__).resolve().parents[1]
if not (ROOT / "benchmarks" / "accuracy" / "results.json").exists():
    pytest.skip("runs in the repository only", allow_module_level=True)

from benchmarks.accuracy import tables  # noqa: E402
from benchmarks.accuracy.cells import measure  # noqa: E402
from benchmarks.accuracy.draws import make_draw  # noqa: E402
from benchmarks.accuracy.methods import Found  # noqa: E402


@pytest.fixture(scope="module")
def diabetes():
    return tables._bundled("diabetes", tables.datasets.load_diabetes, is_class=False)


@pytest.mark.parametrize("mechanism", ["threshold", "category", "none"])
def test_a_row_is_selected_with_its_probability(diabetes, mechanism):
    """Over draws, the sum of 1/p over the sample is the population's size."""
    draws = [make_draw(diabetes, mechanism, number, 7) for number in range(20)]
    totals = [(1 / one.chances).sum() for one in draws]
    assert np.mean(totals) == pytest.approx(len(draws[0].population), rel=0.08)
    rows = [set(map(tuple, part.to_numpy())) for part in (draws[0].sample, draws[0].population)]
    assert rows[0] < rows[1]


def test_true_weights_have_no_error(diabetes):
    draw = make_draw(diabetes, "logistic 2", 0, 7)
    assert measure(3 / draw.chances, draw)["weight"] == pytest.approx(0, abs=1e-12)
    equal = measure(np.ones(len(draw.sample)), draw)
    truth = draw.chances**-1.0 / np.mean(draw.chances**-1.0)
    assert equal["weight"] == pytest.approx(np.abs(1 - truth).mean(), rel=1e-3)
    assert equal["effective"] == 1


@pytest.mark.parametrize("mechanism", ["threshold", "none"])
def test_weights_found_before_give_the_same_model(diabetes, mechanism):
    """What is timed and measured is ``Reweighted(learner)``, with its weights fitted once."""
    draw = make_draw(diabetes, mechanism, 1, 7)
    weights = AutoWeights(overlap="ignore").fit(draw.sample, population=draw.population).weights_
    models = [
        Reweighted(Ridge(), weighter, overlap="ignore").fit(
            draw.sample, draw.labels, population=draw.population
        )
        for weighter in (None, Found.of(weights))
    ]
    np.testing.assert_allclose(models[0].weights_, models[1].weights_, rtol=1e-9)
    assert models[0].power_ == models[1].power_
