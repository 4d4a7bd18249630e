from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.svm import SVR

from unskew import KernelMeanMatching, TreeWeights, effective_sample_size
from unskew.errors import InputError
from unskew.paper import protocol
from unskew.paper.datasets import DataSet
from unskew.paper.methods import METHODS, TOTALS, ComparedWeights
from unskew.paper.protocol import (
    READINGS,
    Case,
    direction,
    nmse,
    random_stream,
    run_case,
)
from unskew.paper.selection import expected_size

# Selection is strong and samples are small: regions without rows are told of, and rightly.
pytestmark = pytest.mark.filterwarnings(
    "ignore:.* not covered by the sample:unskew.errors.OverlapWarning"
)

EVERYTHING = {name: tuple(TOTALS) for name in METHODS}


@pytest.fixture
def toy(made_up) -> DataSet:
    columns = made_up(400)
    X = np.column_stack([columns["a"], 100 * columns["b"]])
    return DataSet("toy", X, columns["y"], n=220, n_test=170, source="made up")


def test_nmse_of_the_mean_is_one_and_of_the_truth_is_zero():
    y = np.array([1.0, 2.0, 6.0])
    assert nmse(y, np.full(3, 3.0)) == 1.0
    assert nmse(y, y) == 0.0
    assert nmse(y, y + 1) == pytest.approx(1 / np.var(y))


def test_a_draw_done_by_hand(toy):
    """Repeat the draw with NumPy and scikit-learn's SVR from what the protocol says."""
    case = Case("toy", "range", "logistic", 3, 5)
    outcome = run_case(case, toy, METHODS, EVERYTHING, seed=7)

    random = random_stream(7, "toy", "logistic", 3, 5)
    order = random.permutation(400)
    in_u, in_test = order[:220], order[220:390]
    raw, raw_y = toy.X[in_u], toy.y[in_u]
    ranged = (toy.X - raw.min(axis=0)) / np.ptp(raw, axis=0)
    y = (toy.y - raw_y.mean()) / raw_y.std()
    w = direction(toy, 3, seed=7)
    assert (np.abs(w) <= 1).all()
    z = (raw - raw.mean(axis=0)) @ w
    p = 1 / (1 + np.exp(-4 * z / z.std()))
    selected = random.uniform(size=220) < p
    S, labels, U = ranged[in_u][selected], y[in_u][selected], ranged[in_u]
    m = len(S)
    assert (outcome.m, outcome.n, outcome.n_test) == (m, 220, 170)

    tree = TreeWeights(min_samples_leaf=4, total="population", overlap="ignore")
    tree.fit(S, labels, population=U)
    matching = KernelMeanMatching(bandwidth=1.0, scaling=None, ridge=0.0)  # √(2/2)
    matching.fit(S, population=U)
    paper = {
        "Unweighted": np.ones(m),
        "Ideal": 1 / p[selected],
        "Clustered": tree.weights_,
        "KMM": matching.weights_,
    }
    for name, weights in paper.items():
        scores = outcome.methods[name]
        assert scores.ess == pytest.approx(effective_sample_size(weights))
        for total, scaled in (
            ("paper", weights),
            ("sample", weights * m / weights.sum()),
            ("population", weights * 220 / weights.sum()),
        ):
            svr = SVR(C=1, epsilon=0.1, gamma=1 / 2).fit(S, labels, sample_weight=scaled)
            error = np.mean((svr.predict(ranged[in_test]) - y[in_test]) ** 2) / np.var(y[in_test])
            # Weights that differ in the last bit may stop LIBSVM one step earlier or later.
            assert scores.nmse[total] == pytest.approx(error, rel=2e-3), (name, total)


def test_the_same_rows_are_drawn_under_each_scaling(toy):
    first, second = (
        run_case(Case("toy", scaling, "logistic", 0, 0), toy, METHODS, {"Ideal": ["paper"]}, seed=0)
        for scaling in ("range", "standard")
    )
    assert first.m == second.m
    assert first.methods["Ideal"].ess == second.methods["Ideal"].ess
    assert first.methods["Ideal"].nmse != second.methods["Ideal"].nmse


@pytest.mark.parametrize("name", READINGS)
def test_every_reading_is_a_line(toy, name):
    wanted = {"Ideal": ["paper"]}
    case = Case("toy", "range", "logistic", 0, 0)
    ours, other = (
        run_case(case, toy, METHODS, wanted, seed=0, reading=READINGS[each])
        for each in ("ours", name)
    )
    # toy has no printed size.
    assert (ours.methods == other.methods) == (name in ("ours", "any-size"))


def test_w_is_drawn_given_the_printed_size(monkeypatch):
    random = np.random.default_rng(0)
    X = random.exponential(size=(506, 13)) * np.geomspace(0.1, 100, 13)
    data = DataSet("housing", X, X[:, 0], n=300, n_test=206, source="made up")
    first, given = (
        np.array([direction(data, i, seed=0, reading=READINGS[name]) for i in range(20)])
        for name in ("any-size", "ours")
    )
    within = np.sqrt(116 * (1 - 116 / 300))
    off = [[abs(expected_size(X, w, 300) - 116) / within for w in ws] for ws in (first, given)]
    assert max(off[1]) <= 1 < max(off[0])
    kept = np.array(off[0]) <= 1
    assert kept.any()
    assert (first[kept] == given[kept]).all()  # the first of the stream that fits
    monkeypatch.setattr(protocol, "MAX_TRIALS", 20)
    impossible = replace(data, X=np.sign(X))  # every row is the same: half of them are selected
    with pytest.raises(InputError, match="near the printed 116"):
        direction(impossible, 0, seed=0)


def test_what_else_is_asked_for_does_not_change_a_score(toy):
    case = Case("toy", "standard", "quadratic", None, 2)
    alone = run_case(case, toy, METHODS, {"KMM": ["sample"]}, seed=0)
    among = run_case(case, toy, METHODS, EVERYTHING, seed=0)
    assert alone.methods["KMM"].nmse["sample"] == among.methods["KMM"].nmse["sample"]
    assert set(alone.methods) == {"KMM"}


def test_draws_and_seeds_differ(toy):
    wanted = {"Unweighted": ["paper"]}
    errors = {
        run_case(Case("toy", "range", mechanism, None, draw), toy, METHODS, wanted, seed=seed)
        .methods["Unweighted"]
        .nmse["paper"]
        for mechanism in ("logistic", "threshold", "label")
        for draw in (0, 1)
        for seed in (0, 1)
    }
    assert len(errors) == 12


class Loud:
    """A weighter that is not sure of itself."""

    def fit(self, X, y, *, population):
        warnings.warn("careful", UserWarning, stacklevel=1)
        self.weights_ = np.ones(len(X))


def test_warnings_of_a_weighter_are_kept(toy):
    case = Case("toy", "range", "logistic", 0, 0)
    loud = {"Loud": ComparedWeights(lambda _: Loud())}
    assert run_case(case, toy, loud, {"Loud": ["paper"]}, seed=0).warnings == ["careful"]


def test_a_set_too_small_to_be_sampled_is_named(toy):
    tiny = replace(toy, n=3, n_test=10)
    case = Case("toy", "range", "logistic", 0, 0)
    with pytest.raises(InputError, match="toy, logistic, draw 0"):
        run_case(case, tiny, METHODS, EVERYTHING, seed=0)
