"""One call on a fitted model: what it says, and that it says nothing where it should not."""

from __future__ import annotations

import math
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import KMeans
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR
from tests.theory.helpers import BUCKETS, fitted, ridge

from unskew import (
    ClusterWeights,
    FrequencyWeights,
    HistogramWeights,
    KernelMeanMatching,
    Population,
    Reweighted,
    TreeWeights,
)
from unskew.errors import InputTypeError, LearnerError
from unskew.theory import certificate


def perfect_model(cells, model, learner):
    _, sample, labels, probability = cells
    return learner.fit(sample, labels, sample_weight=model.weighter_.scale_ / probability)


@pytest.mark.parametrize("total", ["sample", "population"])
def test_it_bounds_what_perfect_weights_would_have_changed(cells, total):
    _, sample, _, _ = cells
    model = fitted(cells, weighter=HistogramWeights(**{**BUCKETS.get_params(), "total": total}))
    bound = certificate(model)
    other = perfect_model(cells, model, ridge())
    change = other.predict(sample) - model.predict(sample)
    mean = np.sqrt(np.average(change**2, weights=model.weights_))
    moved = other.dual_coef_ - model.estimator_.dual_coef_
    norm = np.sqrt(moved @ rbf_kernel(sample, gamma=0.3) @ moved)
    assert mean <= bound <= 60 * mean
    assert np.abs(change).max() <= bound.terms["dual certificate, at any single point"]
    assert norm <= bound.terms["dual certificate, in the kernel's norm"]
    assert not bound.vacuous
    printed = bound.terms["Theorem 2, as printed"]
    assert printed.form == "paper"
    assert printed > 50 * bound.terms["dual certificate, at any single point"]


def test_the_answer_reads_as_one(cells):
    text = str(certificate(fitted(cells), 0.05))
    assert text.startswith("With probability 95 %, estimating the weights has moved")
    assert "the bound of the printed theorem is" in text
    assert re.search(r"comes from cell \d+, of which \d+ of \d+ rows are in the sample", text)
    assert "As an estimate, not a bound" in text
    assert "same probability of selection" in text


def test_labels_that_are_all_zero_leave_nothing_to_move(cells):
    population, sample, _, _ = cells
    model = Reweighted(ridge(), BUCKETS).fit(sample, np.zeros(len(sample)), population=population)
    bound = certificate(model)
    assert bound == 0
    assert not bound.vacuous


def test_smaller_delta_promises_less(cells):
    model = fitted(cells)
    assert certificate(model, 0.001) > certificate(model, 0.05) > certificate(model, 0.5)


def test_the_refit_spread_is_what_refits_do(cells):
    _, sample, labels, _ = cells
    model = fitted(cells)
    weighter = model.weighter_
    random = np.random.default_rng(1)
    m, n = weighter.sample_counts_, weighter.population_counts_
    changes = []
    for _ in range(40):
        q = random.beta(m + 0.5, n - m + 0.5)
        other = ridge().fit(sample, labels, sample_weight=weighter.scale_ / q[weighter.cells_])
        changes.append((other.predict(sample) - model.predict(sample)) ** 2)
    refits = math.sqrt(np.average(np.mean(changes, axis=0), weights=model.weights_))
    estimate = certificate(model, refits=40).terms["refit spread (an estimate, no bound)"]
    assert estimate == pytest.approx(refits, rel=0.35)


def test_svr_is_vacuous_at_c_one_says_so_and_gives_the_refit_spread(cells):
    _, sample, _, _ = cells
    model = fitted(cells, SVR(gamma=0.3))
    bound = certificate(model)
    assert bound.vacuous
    assert "This bound is vacuous" in str(bound)
    assert any("kernel K + 1" in line for line in bound.assumptions)
    other = perfect_model(cells, model, SVR(gamma=0.3))
    change = other.predict(sample) - model.predict(sample)
    assert np.abs(change).max() <= bound.terms["dual certificate, at any single point"]
    spread = bound.terms["refit spread (an estimate, no bound)"]
    assert 0.2 * change.std() < spread < 5 * change.std()


def test_svr_with_a_strong_penalty_is_not_vacuous(cells):
    model = fitted(cells, SVR(gamma=0.3, C=1e-3))
    loose, tight = certificate(fitted(cells, SVR(gamma=0.3))), certificate(model)
    assert tight < 0.1 * loose


def test_first_order_refits_of_svr_are_near_refits(cells):
    _, sample, labels, _ = cells
    model = fitted(cells, SVR(gamma=0.3))
    weighter = model.weighter_
    random = np.random.default_rng(1)
    m, n = weighter.sample_counts_, weighter.population_counts_
    kept = model.estimator_.support_
    changes = []
    for _ in range(15):
        q = random.beta(m + 0.5, n - m + 0.5)
        other = SVR(gamma=0.3).fit(
            sample, labels, sample_weight=weighter.scale_ / q[weighter.cells_]
        )
        changes.append((other.predict(sample[kept]) - model.predict(sample[kept])) ** 2)
    refits = math.sqrt(np.average(np.mean(changes, axis=0), weights=model.weights_[kept]))
    estimate = certificate(model, refits=15).terms["refit spread (an estimate, no bound)"]
    assert 0.4 * refits < estimate < 2.5 * refits


def test_pipelines_are_read(cells):
    scaled = fitted(cells, make_pipeline(StandardScaler(), ridge()))
    bound = certificate(scaled)
    X = scaled.estimator_[0].transform(cells[1])
    a = scaled.estimator_[-1].dual_coef_
    predictions = rbf_kernel(X, gamma=0.3) @ a
    spread = math.sqrt(np.cov(predictions, aweights=scaled.weights_, ddof=0))
    assert bound.terms["spread of the predictions"] == pytest.approx(spread)


@pytest.mark.parametrize(
    "weighter",
    [
        TreeWeights(min_samples_leaf=60),
        TreeWeights(min_samples_leaf=80, honest=True),
        ClusterWeights(KMeans(5, n_init=1, random_state=0)),
    ],
    ids=lambda weighter: type(weighter).__name__,
)
def test_partitions_with_enough_rows_are_not_vacuous(cells, weighter):
    bound = certificate(fitted(cells, weighter=weighter))
    assert not bound.vacuous
    assert 0 < bound < bound.terms["spread of the predictions"]


def test_points_are_cells_too():
    random = np.random.default_rng(0)
    population = pd.DataFrame({"town": random.choice(["a", "b", "c"], 900)})
    sample = population[random.uniform(size=900) < 0.4]
    labels = (sample["town"] == "a").astype(float)
    learner = make_pipeline(_one_hot(), ridge(gamma=1.0))
    model = Reweighted(learner, FrequencyWeights()).fit(sample, labels, population=population)
    bound = certificate(model)
    assert not bound.vacuous
    assert any("cells are points" in line for line in bound.assumptions)


def _one_hot():
    from sklearn.preprocessing import OneHotEncoder

    return OneHotEncoder(sparse_output=False)


def test_small_leaves_get_a_second_certificate_on_coarser_cells(cells):
    population, _, _, _ = cells
    random = np.random.default_rng(0)
    sample = population[random.uniform(size=2500) < 0.5]  # even selection allows any merging
    labels = np.sin(2 * sample[:, 0]) + sample[:, 1] + 0.2 * random.normal(size=len(sample))
    cells = population, sample, labels, np.full(len(sample), 0.5)
    bound = certificate(fitted(cells, weighter=TreeWeights()))
    coarse = bound.terms["on coarser cells"]
    assert bound.vacuous
    assert not coarse.vacuous
    assert coarse.terms["its sample count"] >= 60
    assert any("share one probability" in line for line in coarse.assumptions)
    wider = certificate(fitted(cells, weighter=TreeWeights()), coarse_cells=200)
    assert wider.terms["on coarser cells"].terms["cells"] < coarse.terms["cells"]


@pytest.mark.parametrize(
    ("weighter", "share", "term"),
    [
        (TreeWeights(overlap="ignore"), 1.0, "on coarser cells"),
        (TreeWeights(min_samples_leaf=40, overlap="ignore"), 1.0, None),
        (
            TreeWeights(min_samples_leaf=30, honest=True, random_state=0, overlap="ignore"),
            0.5,
            None,
        ),
    ],
    ids=["coarser cells", "leaves grown on what they count", "honest leaves"],
)
def test_trees_hold_where_selection_is_even(weighter, share, term):
    # One probability everywhere is constant in all leaves, whatever they are. An honest tree counts
    # half of the sample, so that its weights estimate twice the inverse probability.
    random = np.random.default_rng(3)
    failed = 0
    for _ in range(25):
        population = random.normal(size=(700, 2))
        selected = random.uniform(size=700) < 0.4
        sample = population[selected]
        labels = sample[:, 0] + 0.3 * random.normal(size=len(sample))
        model = Reweighted(ridge(), weighter).fit(sample, labels, population=population)
        perfect = np.full(len(sample), model.weighter_.scale_ / (0.4 * share))
        other = ridge().fit(sample, labels, sample_weight=perfect)
        change = other.predict(sample) - model.predict(sample)
        mean = np.sqrt(np.average(change**2, weights=model.weights_))
        bound = certificate(model, 0.1, refits=1)
        failed += mean > (bound.terms[term] if term else bound)
    assert failed <= 5  # Pr[Bin(25, 0.1) > 5] = 0.03; it fails in none


def test_honest_leaves_say_so_and_others_admit_it(cells):
    honest = certificate(fitted(cells, weighter=TreeWeights(min_samples_leaf=80, honest=True)))
    assert any("counted on the other" in line for line in honest.assumptions)
    plain = certificate(fitted(cells, weighter=TreeWeights(min_samples_leaf=80)))
    assert any("not true here" in line for line in plain.assumptions)
    given = certificate(fitted(cells))
    assert any("borders or clusters that were given" in line for line in given.assumptions)


@pytest.fixture
def matched(cells):
    population, sample, labels, _ = cells
    model = Reweighted(make_pipeline(StandardScaler(), ridge(gamma=None)), KernelMeanMatching())
    return model.fit(sample[:400], labels[:400], population=population)


@pytest.mark.filterwarnings("ignore::unskew.errors.OverlapWarning")
class TestKernelMeanMatching:
    def test_the_mean_prediction_is_as_near_as_promised(self, cells, matched):
        population, sample, _, _ = cells
        mine = np.average(matched.predict(sample[:400]), weights=matched.weights_)
        apart = abs(mine - matched.predict(population).mean())
        exact = certificate(matched, population=population)
        assert apart <= exact
        assert str(exact).startswith("For these rows")

    def test_another_kernel_than_the_weighters(self, cells):
        population, sample, labels, _ = cells
        model = Reweighted(ridge(gamma=2.0), KernelMeanMatching())
        model.fit(sample[:400], labels[:400], population=population)
        mine = np.average(model.predict(sample[:400]), weights=model.weights_)
        apart = abs(mine - model.predict(population).mean())
        assert apart <= certificate(model, population=population)

    def test_a_population_that_is_wrapped(self, cells, matched):
        for asked in (Population(cells[0]), None):
            with pytest.raises(InputTypeError, match="rows as the learner takes them"):
                certificate(matched, population=asked)

    def test_svr_keeps_too_little(self, cells):
        population, sample, labels, _ = cells
        model = Reweighted(SVR(gamma=2.0), KernelMeanMatching())
        model.fit(sample[:300], labels[:300], population=population)
        with pytest.raises(LearnerError, match="not covered: SVR keeps its support vectors"):
            certificate(model, population=population)
