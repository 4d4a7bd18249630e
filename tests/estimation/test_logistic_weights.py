"""Standard errors of logistic weights: other programs' numbers, and derivatives."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import LinearRegression
from tests.estimation.helpers import dummies
from tests.references import reference

from unskew import ClassifierWeights, Population, Unweighted, estimate
from unskew.errors import ParameterError

LALONDE = ["age", "educ", "race", "married", "nodegree", "re74", "re75"]
VACANCIES = ["private", "size", "nace", "region"]


def plain(rate, **options):
    """Logistic weights by maximum likelihood."""
    options = {"penalty": 0.0, "hinges": False, "cv": None, "calibration": None} | options
    return ClassifierWeights("logistic", rate=rate, overlap="ignore", **options)


def test_the_odds_of_lalonde_as_in_weightit():
    rows = reference("lalonde")
    controls, treated = rows[rows.treat == 0], rows[rows.treat == 1]
    found = estimate(
        controls[LALONDE],
        controls.re78,
        population=treated[LALONDE],
        weighter=plain("odds"),
        variance="m_estimator",
    )
    assert found.value == pytest.approx(5135.072307, rel=1e-9)
    assert found.standard_error == pytest.approx(583.762890, rel=1e-8)


class Known(RegressorMixin, BaseEstimator):
    """Knows y: a column of X."""

    def fit(self, X, y):
        return self

    def predict(self, X):
        return X["re78"].to_numpy()


def test_the_effect_on_the_treated_as_in_weightit():
    # The mean of the treated less that of the weighted controls: an outcome model that knows y of
    # both sides, and labels of zero.
    rows = reference("lalonde")
    controls, treated = rows[rows.treat == 0], rows[rows.treat == 1]
    found = estimate(
        controls[[*LALONDE, "re78"]],
        0.0 * controls.re78,
        population=treated[[*LALONDE, "re78"]],
        weighter=plain("odds", columns=LALONDE),
        outcome=Known(),
        cv=None,
        variance="m_estimator",
    )
    assert found.value == pytest.approx(1214.071223, rel=1e-9)
    assert found.standard_error == pytest.approx(798.154628, rel=1e-8)


def test_the_doubly_robust_estimate_of_nonprobsvy():
    # Theirs divides the sum of weighted residuals by N, 51,870; ours by the sum of the weights.
    register, survey = reference("admin"), reference("jvs")
    total = survey.weight.sum()
    rate = len(register) / total
    common = {
        "population": Population(survey, columns=VACANCIES, weight="weight"),
        "outcome": dummies(LinearRegression()),
        "cv": None,
    }
    y = register.single_shift.astype(float)
    imputed = estimate(register[VACANCIES], y, weighter=Unweighted(), **common)
    assert imputed.value == pytest.approx(0.703858701257595, rel=1e-9)
    robust = estimate(register[VACANCIES], y, weighter=plain(rate), **common)
    assert robust.value == pytest.approx(0.7033479232, rel=1e-9)
    weighter = plain(rate, total="population").fit(
        register[VACANCIES], population=common["population"]
    )
    chances = rate / (weighter.weights_ / weighter.scale_)
    share = (1 / chances).sum() / total
    theirs = imputed.value + share * (robust.value - imputed.value)
    assert theirs == pytest.approx(0.703337799, rel=1e-8)


@pytest.mark.filterwarnings("ignore:The effective sample size")
@pytest.mark.parametrize("cv", [None, 2])
def test_influence_is_the_derivative_by_a_rows_weight(cv):
    # Each row's influence by differences: estimates with a little more or less weight of the row.
    random = np.random.default_rng(0)
    X, population = random.normal(0.8, 1, (30, 1)), random.normal(0, 1, (25, 1))
    y = X[:, 0] ** 2 + random.normal(size=30)
    weighter, step = plain(0.1, cv=cv), 0.05

    def derivatives(n_rows, value):
        tilted = np.ones(n_rows) + step * np.vstack([np.eye(n_rows), -np.eye(n_rows)])
        values = np.array([value(weights) for weights in tilted])
        return (values[:n_rows] - values[n_rows:]) / (2 * step)

    def mean(own, theirs=None):
        known = Population(population, weight=theirs)
        weights = weighter.fit(X, population=known, sample_weight=own).weights_
        return weights @ y / weights.sum()

    of_sample = derivatives(30, mean)
    of_population = derivatives(25, lambda weights: mean(None, weights))
    found = estimate(X, y, population=population, weighter=weighter, variance="m_estimator")
    rel = 2e-3 if cv is None else 0.02
    assert found.parts["sample"] == pytest.approx(30 * of_sample.var(ddof=1), rel=rel)
    assert found.parts["population"] == pytest.approx(25 * of_population.var(ddof=1), rel=rel)


def test_a_reservoir_adds_the_noise_of_its_rows():
    # Weights from 400 of 4,000 rows: the population's part is that of 400.
    random = np.random.default_rng(1)
    X, population = random.normal(0.4, 1, (300, 1)), random.normal(0, 1, (4000, 1))
    parts = []
    for rows in (400, "auto"):
        weighter = plain("odds", population_rows=rows)
        parts.append(estimate(X, X[:, 0], population=population, weighter=weighter).parts)
    ratio = parts[0]["population"] / parts[1]["population"]
    assert ratio == pytest.approx(10, rel=0.5)


def test_the_regression_of_calibration_is_refused():
    random = np.random.default_rng(2)
    X, population = random.normal(0.4, 1, (50, 1)), random.normal(0, 1, (50, 1))
    with pytest.raises(ParameterError, match="m_estimator"):
        estimate(X, X[:, 0], population=population, weighter=plain(0.2), variance="linear")


def test_a_penalty_is_said_not_to_count():
    random = np.random.default_rng(3)
    X, population = random.normal(0.4, 1, (50, 1)), random.normal(0, 1, (50, 1))
    found = estimate(X, X[:, 0], population=population, weighter=plain(0.2, penalty=0.1))
    assert found.variance == "hc3"
    assert any("penalty 0.1 counts as given" in note for note in found.notes)
