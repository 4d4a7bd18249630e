"""The page on Table 1 is what the committed results make of it."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[1]
pytestmark = pytest.mark.skipif(
    not (ROOT / "docs" / "table_1.py").exists(), reason="runs in the repository only"
)


@pytest.fixture
def generator(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    yield importlib.import_module("docs.table_1")
    for name in [name for name in sys.modules if name.startswith("docs.table_1")]:
        sys.modules.pop(name)


@pytest.fixture
def table(generator):
    return generator.Round("table")


def test_the_page_is_up_to_date(generator):
    assert generator.page() == generator.PAGE.read_text(encoding="utf-8")


def test_the_abstract_fits_on_a_screen(generator):
    text = generator.PAGE.read_text(encoding="utf-8")
    abstract = text[: text.index("![Our errors")]
    assert len(abstract) < 3000
    assert abstract.count("\n") <= 40


def test_the_committed_results_are_a_full_run(table):
    assert [report["seed"] for report in table.reports] == [0, 1, 2, 3, 4]
    for report in table.reports:
        assert len(report["results"]) == 9 * 4
        assert all(row["draws"] >= 10 for row in report["results"])
        assert "sized=True" in report["run"]["settings"]["reading"]
        assert "selecting=FunctionTransformer" in report["run"]["settings"]["reading"]


def test_our_mean_table_agrees_with_the_printed_one(table):
    found = table.found
    assert found["cells"] == 36
    assert found["clustered_better"] == 9
    assert found["without_kmm"] >= 0.93


def test_without_kmm_the_paper_ranks_as_one_more_seed_and_with_it_not(generator, table):
    """What the abstract says of the correlations."""
    rounds = importlib.import_module("docs.table_1_rounds")
    for without, alike in (("KMM", True), (None, False)):
        between = rounds.between_seeds(table.tables, without=without)
        with_paper = [
            rounds.rank_correlation(cells, table.printed, without=without) for cells in table.tables
        ]
        assert (max(with_paper) > min(between)) == alike


def test_directions_of_several_seeds_are_put_together(generator):
    """Against Student's interval of one sample of them all, of equal seed means."""
    rounds = importlib.import_module("docs.table_1_rounds")
    results = importlib.import_module("unskew.paper.results")
    random = np.random.default_rng(0)
    change = random.normal(size=(5, 10))
    change -= change.mean(axis=1, keepdims=True) - 0.3
    group = [
        {"directions": 10, "nmse_mean": 1.0, "nmse_sd": 0.5, **results._interval(seed)}
        for seed in change
    ]
    joined = rounds._joined(group)
    assert joined["directions"] == 50
    assert joined["difference"] == pytest.approx(0.3)
    whole = results._interval(change.ravel())
    # 45 degrees of freedom within seeds, 49 in one sample.
    assert joined["high"] == pytest.approx(whole["high"], rel=0.05)


def test_the_printed_sizes_fit_raw_inputs_alone(generator):
    sizes = json.loads((generator.RESULTS / "sizes.json").read_text())
    density = sizes["log_density"]
    assert density["raw"] > max(density["standardised"], density["[0, 1]"]) + 10
    assert sizes["sex_as_a_number"]["least"] > sizes["sex_as_a_number"]["m"] + 50


def test_the_density_of_a_size_under_a_random_w(generator):
    """One direction: the normal density; X symmetric: half of the rows in the mean."""
    module = importlib.import_module("benchmarks.table_1.sizes")
    X = np.array([[-1.0], [1.0]])
    mean, variance = module.size_moments(X, np.array([[0.5]]), 100)
    p = 1 / (1 + np.exp(-4))
    assert mean == pytest.approx([50.0])
    assert variance == pytest.approx([100 * p * (1 - p)])
    expected = -0.5 * np.log(2 * np.pi * variance[0]) - 2.0**2 / 2 / variance[0]
    assert module.log_density(52, mean, variance) == pytest.approx(expected)


def test_the_matching_programs_solve_the_program(generator):
    """The trials' interior point and projected gradients, against the library's exact solution."""
    module = importlib.import_module("benchmarks.table_1.matchings")
    random = np.random.default_rng(0)
    population = random.uniform(size=(300, 2))
    sample = population[:60] ** 2
    solved = module.Matching(lambda L, kappa: module.interior_point(L, kappa, gap=1e-9))
    steps = module.Matching(lambda L, kappa: module.projected_gradient(L, kappa, steps=500))
    exact = module.TRIALS["gradient to 1e-5"].weighter(
        module.BiasedSample(sample, None, None, population)
    )
    kernel = module.rbf_kernel(sample, gamma=0.5)
    kappa = module.rbf_kernel(sample, population, gamma=0.5).sum(axis=1) * 60 / 300
    objective = {}
    for name, weighter in (("exact", exact), ("solved", solved), ("steps", steps)):
        weights = weighter.fit(sample, np.zeros(60), population=population).weights_
        assert weights.sum() == pytest.approx(60, rel=1e-6)
        assert weights.min() >= -1e-12
        objective[name] = weights @ kernel @ weights / 2 - kappa @ weights
    ones = kernel.sum() / 2 - kappa.sum()
    gain = ones - objective["exact"]
    assert objective["solved"] - objective["exact"] == pytest.approx(0.0, abs=1e-3 * gain)
    assert objective["exact"] - 1e-3 * gain <= objective["steps"] < ones
