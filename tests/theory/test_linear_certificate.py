"""Certificates of linear learners and of classifiers, against refits with the true weights."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression, Ridge, SGDClassifier, SGDRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC, LinearSVR
from tests.theory.helpers import BUCKETS

from unskew import Reweighted, TreeWeights
from unskew.errors import InputError, LearnerError, ParameterError
from unskew.theory import certificate
from unskew.theory.learners import LOSSES

TIGHT = {"max_iter": 20_000, "tol": 1e-6}
REGRESSORS = [
    Ridge(),
    Ridge(fit_intercept=False, alpha=30.0),
    make_pipeline(StandardScaler(), Nystroem(n_components=20, random_state=0), Ridge()),
    LinearSVR(C=0.01, **TIGHT),
    LinearSVR(loss="squared_epsilon_insensitive", epsilon=0.1, **TIGHT),
    SGDRegressor(alpha=0.01, average=True, random_state=0),
    SGDRegressor(loss="huber", epsilon=2.0, alpha=0.01, average=True, random_state=0),
]
CLASSIFIERS = [
    LogisticRegression(tol=1e-8),
    LogisticRegression(solver="liblinear", C=0.1, intercept_scaling=2.0, tol=1e-8),
    make_pipeline(StandardScaler(), LogisticRegression()),
    LinearSVC(**TIGHT),
    LinearSVC(loss="hinge", C=0.01, **TIGHT),
    SGDClassifier(loss="log_loss", alpha=0.1, average=True, random_state=0),
    SVC(C=0.02, gamma=0.3),
]


def name_of(learner):
    last = learner[-1] if hasattr(learner, "steps") else learner
    return type(last).__name__ + "".join(
        f"-{getattr(last, name)}" for name in ("loss", "solver") if hasattr(last, name)
    )


@pytest.fixture(scope="module")
def classes(cells):
    population, sample, labels, probability = cells
    return population, sample, (labels > 0.3).astype(int), probability


def fitted(cells, learner, weighter=BUCKETS):
    population, sample, labels, _ = cells
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return Reweighted(learner, weighter).fit(sample, labels, population=population)


def refit(cells, model, learner):
    _, sample, labels, probability = cells
    last = learner.steps[-1][0] + "__" if hasattr(learner, "steps") else ""
    weights = model.weighter_.scale_ / probability
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return clone(learner).fit(sample, labels, **{f"{last}sample_weight": weights})


@pytest.mark.parametrize("learner", REGRESSORS, ids=name_of)
def test_regressors_move_no_further(cells, learner):
    _, sample, labels, _ = cells
    model = fitted(cells, learner)
    bound = certificate(model, X=sample, y=labels)
    change = refit(cells, model, learner).predict(sample) - model.predict(sample)
    assert np.sqrt(np.average(change**2, weights=model.weights_)) <= bound
    assert np.abs(change).max() <= bound.terms["at the sample row that moves most"]


@pytest.mark.parametrize("learner", CLASSIFIERS, ids=name_of)
def test_classifiers_move_and_flip_no_further(classes, learner):
    population, sample, labels, _ = classes
    model = fitted(classes, learner)
    bound = certificate(model, X=sample, y=labels, population=population)
    other = refit(classes, model, learner)
    change = other.decision_function(sample) - model.decision_function(sample)
    assert np.sqrt(np.average(change**2, weights=model.weights_)) <= bound
    flipped = other.predict(population) != model.predict(population)
    share = bound.terms["share of the population whose prediction could flip"]
    assert flipped.mean() <= share <= 1
    assert "decision function" in bound.statement
    assert "% of the population's" in str(bound)


@pytest.mark.parametrize(
    ("learner", "most"),
    [(Ridge(), 1.01), (LogisticRegression(tol=1e-8), 2), (LinearSVC(**TIGHT), 5)],
    ids=lambda value: name_of(value) if hasattr(value, "fit") else "",
)
def test_known_weights_give_a_certain_and_tight_bound(cells, classes, learner, most):
    data = cells if isinstance(learner, Ridge) else classes
    _, sample, labels, probability = data
    model = fitted(data, learner)
    other = refit(data, model, learner)
    bound = certificate(
        model, X=sample, y=labels, other_weights=model.weighter_.scale_ / probability
    )
    change = sample @ np.ravel(other.coef_ - model.estimator_.coef_)
    change += other.intercept_ - model.estimator_.intercept_
    moved = np.sqrt(np.average(change**2, weights=model.weights_))
    assert moved * (1 - 1e-6) <= bound <= most * moved
    assert bound.statement.startswith("These weights would have moved")


def test_logistic_regression_is_certified_as_useful(classes):
    population, sample, labels, _ = classes
    model = fitted(classes, LogisticRegression())
    bound = certificate(model, X=sample, y=labels, population=population)
    assert not bound.vacuous
    assert bound.terms["share of the population whose prediction could flip"] < 0.25
    assert not any("intercept" in line for line in bound.assumptions)
    loss = np.log1p(np.exp(-np.where(labels == 1, 1, -1) * model.decision_function(sample)))
    assert bound.terms["change of the weighted mean loss"] < loss.mean()


def test_what_the_optimiser_leaves_is_counted(cells):
    _, sample, labels, _ = cells
    poor = fitted(cells, SGDRegressor(alpha=0.01, max_iter=2, random_state=0, tol=None))
    bound = certificate(poor, X=sample, y=labels)
    exact = fitted(cells, Ridge(alpha=0.01 * len(sample)))
    change = exact.predict(sample) - poor.predict(sample)
    moved = np.sqrt(np.average(change**2, weights=poor.weights_))
    assert 0.3 * moved <= bound.terms["part left by the optimiser"]
    assert moved <= bound


def test_small_leaves_get_coarser_cells_too():
    random = np.random.default_rng(0)
    population = random.normal(size=(2500, 3))
    sample = population[random.uniform(size=2500) < 0.5]
    labels = sample[:, 1] + 0.2 * random.normal(size=len(sample))
    model = Reweighted(Ridge(), TreeWeights()).fit(sample, labels, population=population)
    bound = certificate(model, X=sample, y=labels)
    assert bound.terms["on coarser cells"] < 0.5 * bound


def huber(z):
    return np.where(np.abs(z) <= 0.7, z**2 / 2, 0.7 * np.abs(z) - 0.7**2 / 2)


@pytest.mark.parametrize(
    ("loss", "value"),
    [
        (LOSSES["squared"](0.0), np.square),
        (LOSSES["squared_error"](0.0), lambda z: z**2 / 2),
        (LOSSES["log_loss"](0.0), lambda z: np.log1p(np.exp(-z))),
        (LOSSES["hinge"](0.0), lambda z: np.maximum(0, 1 - z)),
        (LOSSES["squared_hinge"](0.0), lambda z: np.maximum(0, 1 - z) ** 2),
        (
            LOSSES["modified_huber"](0.0),
            lambda z: np.where(z >= -1, np.maximum(0, 1 - z) ** 2, -4 * z),
        ),
        (LOSSES["epsilon_insensitive"](0.3), lambda z: np.maximum(0, np.abs(z) - 0.3)),
        (
            LOSSES["squared_epsilon_insensitive"](0.3),
            lambda z: np.maximum(0, np.abs(z) - 0.3) ** 2,
        ),
        (LOSSES["huber"](0.7), huber),
    ],
)
def test_losses_have_the_slopes_and_curvature_they_state(loss, value):
    z = np.linspace(-3, 3, 1201) + 1e-3
    step = 1e-4
    assert np.allclose((value(z + step) - value(z - step)) / (2 * step), loss.slope(z), atol=1e-3)
    second = (loss.slope(z + step) - loss.slope(z - step)) / (2 * step)
    radius = 0.85
    least = loss.curvature(z, np.full(len(z), radius))
    exact = np.full(len(z), np.inf)
    for way in np.linspace(-radius, radius, 80):
        exact = np.minimum(exact, (loss.slope(z + way) - loss.slope(z)) / way)
    assert (least <= exact + 1e-6).all()
    if loss.bend is None:
        return
    assert np.allclose(least, exact, atol=0.05)
    assert second.max() <= loss.bend + 1e-3
    here = loss.curvature(z, np.zeros(len(z)))
    change = loss.bending(z, np.full(len(z), radius))
    largest = np.zeros(len(z))
    for way in np.linspace(-radius, radius, 80):
        largest = np.maximum(largest, np.abs((loss.slope(z + way) - loss.slope(z)) / way - here))
    assert (largest <= change + 1e-9).all()
    assert np.allclose(largest, change, atol=0.06)


@pytest.mark.parametrize("learner", [*REGRESSORS, *CLASSIFIERS[:-1]], ids=name_of)
def test_objectives_are_what_learners_minimise(cells, classes, learner):
    data = cells if learner in REGRESSORS else classes
    _, sample, labels, _ = data
    model = fitted(data, learner)
    bound = certificate(model, X=sample, y=labels, other_weights=model.weights_)
    stochastic = name_of(learner).startswith("SGD")
    assert bound < (0.2 if stochastic else 0.02) * bound.terms["spread of the predictions"]


class TestNotCovered:
    @pytest.mark.parametrize(
        ("learner", "why"),
        [
            (LogisticRegression(C=np.inf), "without a penalty"),
            (LinearSVC(penalty="l1"), "l1 penalty"),
            (SGDClassifier(penalty="elasticnet"), "penalty='elasticnet'"),
            (Ridge(positive=True), "positive=True"),
            (LogisticRegression(class_weight={0: 1, 1: 2}), "class_weight"),
            (SVC(class_weight={0: 1, 1: 2}), "class_weight"),
            (SGDClassifier(loss="perceptron"), 'loss="perceptron"'),
        ],
        ids=lambda value: name_of(value) if hasattr(value, "fit") else "",
    )
    @pytest.mark.filterwarnings("ignore")
    def test_learners(self, classes, learner, why):
        _, sample, labels, _ = classes
        with pytest.raises(LearnerError, match=f"not covered: .*{why}"):
            certificate(fitted(classes, learner), X=sample, y=labels)

    @pytest.mark.parametrize("learner", [LogisticRegression(), SVC()], ids=name_of)
    def test_three_classes(self, cells, learner):
        population, sample, labels, _ = cells
        three = np.digitize(labels, [-0.5, 0.5])
        model = Reweighted(learner, BUCKETS).fit(sample, three, population=population)
        with pytest.raises(LearnerError, match="not covered: there are more than two classes"):
            certificate(model, X=sample, y=three)

    def test_powers_of_weights(self, cells):
        population, sample, labels, _ = cells
        model = Reweighted(Ridge(), BUCKETS, power=0.5).fit(sample, labels, population=population)
        with pytest.raises(LearnerError, match="not covered: .*the power 0.5"):
            certificate(model, X=sample, y=labels)


class TestBadInput:
    def test_the_sample_is_needed(self, cells, classes):
        with pytest.raises(ParameterError, match="pass X and y"):
            certificate(fitted(cells, Ridge()))
        with pytest.raises(ParameterError, match="pass X"):
            certificate(fitted(classes, SVC()))

    def test_another_sample(self, cells):
        _, sample, labels, _ = cells
        with pytest.raises(InputError, match="pass the X and y of fit"):
            certificate(fitted(cells, Ridge()), X=sample[:50], y=labels[:50])
