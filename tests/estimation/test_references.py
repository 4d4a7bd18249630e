"""Standard errors that other programs have printed."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from tests.estimation.helpers import QUIET, dummies
from tests.references import reference

from unskew import (
    CalibrationWeights,
    FrequencyWeights,
    KnownProbability,
    Margins,
    Population,
    Unweighted,
    estimate,
)
from unskew.errors import EstimateWarning

# R survey 4.1 on apisrs: mean of api00, its standard error, total of enroll, its standard error.
APISRS = {
    "linear": ({"distance": "linear"}, 663.5244335, 1.885596182, 3594743.384, 122814.4907),
    "raking": ({}, 663.5196875, 1.884910349, 3594732.207, 122813.1387),
    "logit": (
        {"distance": "logit", "bounds": (0.5, 2.5)},
        *(663.5180489, 1.884683416, 3594708.028, 122812.5396),
    ),
    "bounded": (
        {"distance": "linear", "bounds": (0.9, 1.2)},
        *(663.5217894, 1.885566567, 3594261.586, 122835.5101),
    ),
    "strata": ({}, 656.7815810, 9.308046430, 3605259.383, 124287.3387),
    "two margins": ({}, 657.7915463, 8.971712258, 3601227.323, 123715.4242),
}
TOTALS = {"(Intercept)": 6194, "stypeH": 755, "stypeM": 1018}
FURTHER = {"strata": {}, "two margins": {"sch.wideYes": 5122}}


@pytest.mark.parametrize("case", APISRS)
def test_schools_of_california_as_in_r(case):
    sample = reference("apisrs")
    options, mean, mean_error, total, total_error = APISRS[case]
    margins = Margins.from_totals(TOTALS | FURTHER.get(case, {"api99": 3914069}))
    common = {
        "population": margins,
        "weighter": CalibrationWeights(**options),
        "sample_weight": sample.pw,
        "variance": "linear",
    }
    found = estimate(sample, sample.api00, **common)
    assert found.value == pytest.approx(mean, rel=1e-9)
    assert found.standard_error == pytest.approx(mean_error, rel=1e-9)
    assert found.unweighted == pytest.approx(656.585, rel=1e-12)
    found = estimate(sample, sample.enroll, statistic="total", **common)
    assert found.value == pytest.approx(total, rel=1e-9)
    assert found.standard_error == pytest.approx(total_error, rel=1e-8)


def test_cells_and_no_weights_as_in_r():
    sample, population = reference("apisrs"), reference("apipop")
    common = {"sample_weight": sample.pw, "variance": "linear"}
    strata = FrequencyWeights(columns=["stype"], **QUIET)
    found = estimate(sample, sample.api00, population=population, weighter=strata, **common)
    assert found.value == pytest.approx(656.7815810, rel=1e-9)
    assert found.parts["sample"] ** 0.5 == pytest.approx(9.308046430, rel=1e-9)
    plain = Unweighted(columns="shared")
    found = estimate(sample, sample.api00, population=population, weighter=plain, **common)
    assert found.standard_error == pytest.approx(9.402772171, rel=1e-9)
    # The finite population correction of a simple random sample.
    found = estimate(
        sample,
        sample.api00,
        population=population,
        weighter=plain,
        finite_population=True,
        **common,
    )
    assert found.standard_error == pytest.approx(9.402772171 * (1 - 200 / 6194) ** 0.5, rel=1e-9)


def test_the_m_estimator_of_raking():
    sample = reference("apisrs")
    margins = Margins.from_totals(TOTALS | {"api99": 3914069})
    found = estimate(
        sample, sample.api00, population=margins, sample_weight=sample.pw, variance="m_estimator"
    )
    assert found.standard_error == pytest.approx(1.884678, abs=5e-7)


def test_direct_standardisation_of_cvxr():
    sample, population = reference("dssamp"), reference("dspop")
    margins = Margins.from_population(population, ["sex", "age"])
    for distance, mean, error in (
        ("raking", 5.82181658118, 0.122133565742),
        ("linear", 5.79849606371, 0.136407485287),
    ):
        weighter = CalibrationWeights(distance=distance, negative="allow")
        found = estimate(
            sample[["sex", "age"]],
            sample.y,
            population=margins,
            weighter=weighter,
            variance="linear",
        )
        assert found.value == pytest.approx(mean, rel=1e-10)
        assert found.standard_error == pytest.approx(error, rel=1e-9)
        assert found.unweighted == pytest.approx(3.75544245121, rel=1e-10)


LALONDE = ["age", "educ", "race", "married", "nodegree", "re74", "re75"]


def test_the_parts_of_the_variance_of_lalonde():
    rows = reference("lalonde")
    controls, treated = rows[rows.treat == 0], rows[rows.treat == 1]
    found = estimate(
        controls[LALONDE],
        controls.re78,
        population=treated[LALONDE],
        weighter=CalibrationWeights(features="means", **QUIET),
        variance="m_estimator",
    )
    assert found.value == pytest.approx(5075.881716, rel=1e-9)
    # The reference divides by n, this by n - 1.
    parts = {name: part**0.5 for name, part in found.parts.items()}
    assert parts["sample"] == pytest.approx(526.317 * (429 / 428) ** 0.5, abs=2e-3)
    assert parts["population"] == pytest.approx(191.169 * (185 / 184) ** 0.5, abs=2e-3)


VACANCIES = ["private", "size", "nace", "region"]


def test_job_vacancies_of_nonprobsvy():
    register = reference("admin")
    survey = Population(reference("jvs"), columns=VACANCIES, weight="weight")
    common = {"population": survey, "statistic": "mean"}
    propensity = CalibrationWeights(distance="propensity", features="means", **QUIET)
    found = estimate(register[VACANCIES], register.single_shift, weighter=propensity, **common)
    assert found.value == pytest.approx(0.704179604031582, rel=1e-12)
    # A linear model in the matched features changes nothing: their doubly robust estimate.
    found = estimate(
        register[VACANCIES],
        register.single_shift.astype(float),
        weighter=propensity,
        outcome=dummies(LinearRegression()),
        cv=None,
        **common,
    )
    assert found.value == pytest.approx(0.704179604031582, rel=1e-9)
    # Their standard error from totals alone takes the selection for Poisson sampling.
    found = estimate(
        register[VACANCIES],
        register.single_shift,
        weighter=propensity,
        finite_population=True,
        variance="linear",
        **common,
    )
    assert found.standard_error == pytest.approx(0.00464362593778821, rel=1e-3)


def test_mass_imputation_of_nonprobsvy():
    # Their estimate without weights: residuals of a linear model with an intercept sum to zero.
    register = reference("admin")
    survey = Population(reference("jvs"), columns=VACANCIES, weight="weight")
    found = estimate(
        register[VACANCIES],
        register.single_shift.astype(float),
        population=survey,
        weighter=Unweighted(),
        outcome=dummies(LinearRegression()),
        cv=None,
    )
    assert found.value == pytest.approx(0.703858701257595, rel=1e-9)


def test_known_probabilities_and_known_weights():
    # A Horvitz-Thompson mean with fixed weights, by hand.
    y, chance = np.array([1.0, 2.0, 5.0, 9.0]), np.array([0.1, 0.2, 0.4, 0.4])
    X = np.arange(4.0)[:, None]
    with pytest.warns(EstimateWarning, match="effective sample size is 2.9"):
        found = estimate(X, y, population=X, weighter=KnownProbability(chance), variance="linear")
    shares = (1 / chance) / (1 / chance).sum()
    mean = shares @ y
    deviations = shares * (y - mean)
    assert found.value == pytest.approx(mean)
    assert found.standard_error == pytest.approx(np.sqrt(4 / 3 * (deviations @ deviations)))


def test_doubly_robust_estimates_of_balance():
    # sim_data_aipw.csv of balance 0.23: weights of both sides are given, the model is linear.
    rows = reference("balance_aipw")
    sample, target = rows[rows.is_target == 0], rows[rows.is_target == 1]
    population = Population(target, columns=["x1", "x2"], weight="w")
    chance = sample.w.min() / sample.w.to_numpy()
    for weighter, outcome, expected in (
        (KnownProbability(chance), None, 78.5184283351344),
        (Unweighted(), LinearRegression(), 87.1831840212725),
        (KnownProbability(chance), LinearRegression(), 87.1962264584678),
    ):
        found = estimate(
            sample[["x1", "x2"]],
            sample.y,
            population=population,
            weighter=weighter,
            outcome=outcome,
            cv=None,
        )
        assert found.value == pytest.approx(expected, rel=1e-12)
