"""Calibration weights against R, published results and identities."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog
from tests.references import reference

from unskew import (
    CalibrationWeights,
    FrequencyWeights,
    LearnerError,
    Margins,
    OverlapError,
    OverlapWarning,
    ParameterError,
    Population,
    Reweighted,
    effective_sample_size,
)

QUIET = {"overlap": "ignore"}

# Kalton and Flores-Cervantes, "Weighting methods", Journal of Official Statistics 19 (2003): twelve
# cells of two factors, a (fastest) and b.
A, B = np.tile([1, 2, 3, 4], 3), np.repeat([1, 2, 3], 4)
SAMPLE = np.array([20, 50, 100, 30, 40, 140, 50, 100, 40, 310, 50, 70])
POPULATION = np.array([80, 60, 170, 55, 40, 150, 60, 165, 55, 340, 200, 125])
KALTON = {
    "raking": [
        [1.810805, 1.452822, 2.016776],
        [1.083564, 0.869352, 1.206815],
        [2.196089, 1.761938, 2.445884],
        [1.833226, 1.470810, 2.041746],
    ],
    "linear": [
        [1.815311, 1.502182, 1.965163],
        [1.094768, 0.781639, 1.244620],
        [2.190819, 1.877690, 2.340671],
        [1.829116, 1.515987, 1.978968],
    ],
    "numbers": [
        [1.210805, 1.173959, 1.137112],
        [1.434798, 1.397952, 1.361106],
        [1.658791, 1.621945, 1.585099],
        [1.882784, 1.845938, 1.809092],
    ],
    "cells": (POPULATION / SAMPLE).reshape(3, 4).T,  # post-stratification
}


def kalton(kind):
    """The twelve cells as rows with design weights, as text, and the margins of the population."""
    frame = pd.DataFrame({"a": A, "b": B})
    frame = frame if kind == "numbers" else frame.astype(str)
    counts = {
        "cells": {
            ("a", "b"): {(a, b): n for (a, b), n in zip(frame.to_numpy(), POPULATION, strict=True)}
        },
        "numbers": {},
    }.get(kind, {name: pd.Series(POPULATION).groupby(frame[name]).sum() for name in "ab"})
    totals = {"a": A @ POPULATION, "b": B @ POPULATION} if kind == "numbers" else None
    return frame, Margins(counts, totals=totals, size=float(POPULATION.sum()))


@pytest.mark.parametrize(
    ("kind", "distance"),
    [
        ("raking", "raking"),
        ("linear", "linear"),
        ("numbers", "linear"),
        ("cells", "raking"),
        ("cells", "linear"),
    ],
)
def test_the_twelve_cells_of_kalton_and_flores_cervantes(kind, distance):
    frame, margins = kalton(kind)
    weighter = CalibrationWeights(distance=distance, total="population")
    weights = weighter.fit(frame, population=margins, sample_weight=SAMPLE).weights_
    factors = (weights / SAMPLE).reshape(3, 4).T
    assert np.allclose(factors, KALTON[kind], atol=6e-7)


APISRS = {  # of R's survey package: mean of api00, total of enroll, ratios, effective size, weights
    "linear": ({"distance": "linear"}, 663.5244335, 3594743.384, (0.8799973, 1.1310244),
               199.4296522, (28.46502457, 33.57641652, 31.99159244)),
    "raking": ({}, 663.5196875, 3594732.207, (0.8860768, 1.1377583), 199.4291851,
               (28.53245775, 33.62891085, 31.96029174)),
    "logit": ({"distance": "logit", "bounds": (0.5, 2.5)}, 663.5180489, 3594708.028,
              (0.8883972, 1.1394020), 199.4288477, (28.55499410, 33.64605698, 31.95165635)),
    "bounded": ({"distance": "linear", "bounds": (0.9, 1.2)}, 663.5217894, 3594261.586,
                (0.9, 1.1314838), 199.4292306, (28.43242582, 33.58534016, 31.97187737)),
    "strata": ({"features": ["stype"]}, 656.7815810, 3605259.383, (0.9751372, 1.0052891),
               199.9800677, (30.2, 31.13380282, 30.2)),
    "two margins": ({"features": ["stype", "sch.wide"]}, 657.7915463, 3601227.323,
                    (0.9335088, 1.0180576), 199.8108595, (29.00310268, 31.39636595, 29.00310268)),
}  # fmt: skip


def check_apisrs(weights, sample, expected):
    _, mean, total, ratios, effective, first = expected
    assert np.average(sample["api00"], weights=weights) == pytest.approx(mean, rel=1e-9)
    assert weights @ sample["enroll"] == pytest.approx(total, rel=1e-9)
    ratio = weights / sample["pw"]
    assert (ratio.min(), ratio.max()) == pytest.approx(ratios, abs=6e-8)
    assert effective_sample_size(weights) == pytest.approx(effective, rel=1e-9)
    assert weights[:3] == pytest.approx(first, abs=6e-9)


@pytest.mark.parametrize("case", APISRS)
def test_schools_of_california_from_rows_as_in_r(case):
    sample, population = reference("apisrs"), reference("apipop")
    features = APISRS[case][0].get("features", ["stype", "api99"])
    options = {**APISRS[case][0], "features": features, "columns": features}
    weighter = CalibrationWeights(**options, total="population", **QUIET)
    weighter.fit(sample, population=population, sample_weight=sample["pw"])
    check_apisrs(weighter.weights_, sample, APISRS[case])


@pytest.mark.parametrize("case", APISRS)
def test_schools_of_california_from_totals_as_in_r(case):
    sample = reference("apisrs")
    totals = {"(Intercept)": 6194, "stypeH": 755, "stypeM": 1018}
    totals |= {"two margins": {"sch.wideYes": 5122}, "strata": {}}.get(case, {"api99": 3914069})
    options = {name: value for name, value in APISRS[case][0].items() if name != "features"}
    weighter = CalibrationWeights(**options, total="population")
    weighter.fit(sample, population=Margins.from_totals(totals), sample_weight=sample["pw"])
    check_apisrs(weighter.weights_, sample, APISRS[case])


LALONDE = ["age", "educ", "race", "married", "nodegree", "re74", "re75"]


def test_entropy_balancing_of_lalonde():
    rows = reference("lalonde")
    controls, treated = rows[rows.treat == 0], rows[rows.treat == 1]
    options = {"features": "means", "total": "population", **QUIET}
    tilt = CalibrationWeights(distance="entropy", **options)
    tilt.fit(controls[LALONDE], population=treated[LALONDE])
    assert np.average(controls.re78, weights=tilt.weights_) == pytest.approx(5075.881716, rel=1e-9)
    assert effective_sample_size(tilt.weights_) == pytest.approx(98.457834, rel=1e-8)
    first = (0.02690308161, 0.01476646745, 0.02514894897, 0.04826258786)
    assert tilt.weights_[:4] == pytest.approx(first, rel=1e-8)
    # For a sample within the population, a propensity weight is one more than the tilt to the rest.
    propensity = CalibrationWeights(distance="propensity", **options)
    propensity.fit(controls[LALONDE], population=rows[LALONDE])
    assert np.allclose(propensity.weights_, 1 + tilt.weights_, rtol=1e-9)
    mean = np.average(controls.re78, weights=propensity.weights_)
    assert mean == pytest.approx(6409.196966, rel=1e-9)


def test_direct_standardisation_of_cvxr():
    sample, population = reference("dssamp"), reference("dspop")
    for distance, mean in (("raking", 5.82181658118), ("linear", 5.79849606371)):
        weighter = CalibrationWeights(
            distance=distance, features="means", negative="allow", **QUIET
        )
        weighter.fit(sample[["sex", "age"]], population=population[["sex", "age"]])
        assert np.average(sample.y, weights=weighter.weights_) == pytest.approx(mean, rel=1e-10)


def test_a_register_and_a_survey_of_nonprobsvy():
    columns = ["private", "size", "nace", "region"]
    survey = Population(reference("jvs"), columns=columns, weight="weight")
    register = reference("admin")
    weighter = CalibrationWeights(
        distance="propensity", features="means", total="population", **QUIET
    ).fit(register[columns], population=survey)
    mean = np.average(register.single_shift, weights=weighter.weights_)
    assert mean == pytest.approx(0.704179604031582, rel=1e-12)
    assert weighter.weights_.min() > 1
    assert weighter.weights_.sum() == pytest.approx(51870)


@pytest.mark.parametrize("distance", ["linear", "raking"])
def test_totals_far_from_the_design_weights(distance):
    # R's survey, tests/badcal: weights of 10 that must become a hundred times as large.
    sample = pd.DataFrame({"x": [1] * 4 + [2] * 6})
    margins = Margins({"x": {1: 10_000, 2: 5_000}})
    weighter = CalibrationWeights(distance=distance, total="population")
    weights = weighter.fit(sample, population=margins, sample_weight=[10] * 10).weights_
    assert weights == pytest.approx([2500] * 4 + [5000 / 6] * 6, rel=1e-8)


# Identities.


@pytest.fixture(scope="module")
def shifted():
    random = np.random.default_rng(0)
    population = pd.DataFrame(
        {
            "age": random.integers(18, 90, 4000),
            "income": random.lognormal(0, 0.5, 4000),
            "town": random.choice(["Bonn", "Kiel", "Ulm"], 4000, p=[0.5, 0.3, 0.2]),
        }
    )
    chance = 1 / (1 + np.exp(2 - population.age / 40 - (population.town == "Ulm")))
    return population[random.uniform(size=4000) < chance / 3].reset_index(drop=True), population


FEATURES = ["age", "income", "town", ("age", "town"), ("age", "income")]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"distance": "linear", "bounds": (0, None)},
        {"distance": "logit", "bounds": (0.1, 6)},
        {"distance": "propensity"},
        {"bounds": (0.2, 4)},
        {"max_weight": 4.0},
    ],
    ids=str,
)
def test_the_weighted_sample_has_the_populations_means(shifted, options):
    sample, population = shifted
    design = np.random.default_rng(1).uniform(0.5, 1.5, len(sample))
    weight = np.random.default_rng(2).uniform(0.5, 1.5, len(population))
    weighter = CalibrationWeights(features=FEATURES, **options, **QUIET)
    given = Population(population.assign(w=weight), weight="w")
    w = weighter.fit(sample, population=given, sample_weight=design).weights_
    for name in ("age", "income"):
        assert np.average(sample[name], weights=w) == pytest.approx(
            np.average(population[name], weights=weight), rel=1e-9
        )
    for town in ("Bonn", "Kiel", "Ulm"):
        here, there = sample.town == town, population.town == town
        assert np.average(here, weights=w) == pytest.approx(np.average(there, weights=weight))
        assert np.average(here * sample.age, weights=w) == pytest.approx(
            np.average(there * population.age, weights=weight)
        )
    ratio = w / design * design.mean()
    low, high = options.get("bounds", (0, None))
    assert ratio.min() >= low - 1e-9
    assert high is None or ratio.max() <= high + 1e-9
    assert w.max() / w.mean() <= options.get("max_weight", np.inf) + 1e-9
    assert weighter.certificate_.converged
    assert weighter.certificate_.steps <= 12


def test_linear_calibration_is_the_regression_estimator(shifted):
    sample, population = shifted
    y = np.sqrt(sample.age) + sample.income
    weighter = CalibrationWeights(
        distance="linear",
        features=["age", "income"],
        columns=["age", "income"],
        negative="allow",
        **QUIET,
    ).fit(sample, population=population)
    design = np.column_stack([np.ones(len(sample)), sample[["age", "income"]]])
    slopes = np.linalg.lstsq(design, y, rcond=None)[0]
    means = np.concatenate([[1.0], population[["age", "income"]].mean()])
    assert np.average(y, weights=weighter.weights_) == pytest.approx(means @ slopes, rel=1e-10)


def test_raking_to_a_joint_table_is_post_stratification(shifted):
    sample, population = shifted
    cells = ["town"]
    raked = CalibrationWeights(features="margins", columns=cells, **QUIET)
    counted = FrequencyWeights(columns=cells, **QUIET)
    expected = counted.fit(sample, population=population).weights_
    assert np.allclose(raked.fit(sample, population=population).weights_, expected, rtol=1e-9)


def test_margins_of_rows_give_the_weights_of_the_rows(shifted):
    sample, population = shifted
    keys = ["age", "town"]
    margins = Margins.from_population(population, keys)
    options = {"columns": keys, "features": keys, "total": "population", **QUIET}
    by_rows = CalibrationWeights(**options).fit(sample, population=population).weights_
    by_margins = CalibrationWeights(**options).fit(sample, population=margins).weights_
    assert np.array_equal(by_rows, by_margins)  # whole sums are exact


def test_features_may_be_functions(shifted):
    sample, population = shifted

    def log_income(rows):
        return np.log(rows["income"])

    weighter = CalibrationWeights(features=["age", log_income], **QUIET)
    w = weighter.fit(sample, population=population).weights_
    assert weighter.features_ == ["age", "log_income"]
    mean = np.log(population.income).mean()
    assert np.average(np.log(sample.income), weights=w) == pytest.approx(mean, rel=1e-9)


def test_sums_of_products_are_those_of_the_rows(shifted):
    sample, population = shifted
    features = ["age", ("age", "income"), "town", ("income", "income"), ("town", "age")]
    weighter = CalibrationWeights(features=features, **QUIET).fit(sample, population=population)
    expected = [
        population.age.mean(),
        (population.age * population.income).mean(),
        *((population.town == town).mean() for town in ("Bonn", "Kiel", "Ulm")),
        (population.income**2).mean(),
        *((population.age * (population.town == town)).mean() for town in ("Bonn", "Kiel", "Ulm")),
    ]
    assert weighter.targets_ == pytest.approx(expected, rel=1e-13)


def test_only_the_columns_that_features_name_are_needed(shifted):
    sample, population = shifted
    features = ["age", ("age", "town")]
    given = population[["town", "age"]].assign(other=0)
    weighter = CalibrationWeights(features=features, **QUIET).fit(sample, population=given)
    expected = CalibrationWeights(features=features, columns=["age", "town"], **QUIET)
    assert weighter.columns_ == ["age", "town"]
    expected.fit(sample, population=population)
    assert np.array_equal(weighter.weights_, expected.weights_)
    new = sample[["town", "age"]]
    assert np.allclose(weighter.weigh(new), weighter.weights_, rtol=1e-10)
    numbers = ["age", "income"]
    by_position = CalibrationWeights(features=[1], **QUIET)
    by_position.fit(sample[numbers].to_numpy(), population=population[numbers].to_numpy())
    assert by_position.columns_ == ["x1"]


def test_new_rows_and_saved_weighters(shifted, tmp_path):
    from unskew import load_weighter, save_weighter

    sample, population = shifted
    weighter = CalibrationWeights(max_weight=5.0, **QUIET).fit(sample, population=population)
    assert np.allclose(weighter.weigh(sample), weighter.weights_, rtol=1e-10)
    save_weighter(weighter, tmp_path / "weighter.skops")
    loaded = load_weighter(tmp_path / "weighter.skops")
    assert np.array_equal(loaded.weigh(sample), weighter.weigh(sample))


def test_auto_features_are_the_same_in_any_order(shifted):
    sample, population = shifted
    order = np.random.default_rng(0).permutation(len(sample))
    one = CalibrationWeights(**QUIET).fit(sample, population=population)
    other = CalibrationWeights(**QUIET).fit(sample.iloc[order], population=population)
    assert one.features_ == other.features_
    assert np.allclose(one.weights_[order], other.weights_, rtol=1e-9)


def test_auto_finds_what_the_means_leave():
    # The population has the sample's means; only the spread of the first column differs.
    random = np.random.default_rng(0)
    sample, population = random.normal(size=(600, 4)), random.normal(size=(6000, 4))
    population[:, 0] *= 1.4
    weighter = CalibrationWeights(**QUIET).fit(sample, population=population)
    extra = [name for name in weighter.features_ if name not in ("x0", "x1", "x2", "x3")]
    assert extra
    assert any(name.startswith("x0") for name in extra)
    spread = np.average(sample[:, 0] ** 2, weights=weighter.weights_)
    assert spread == pytest.approx((population[:, 0] ** 2).mean(), rel=0.05)
    # A tenth as many features as rows, at most.
    few = CalibrationWeights(**QUIET).fit(sample[:30], population=population)
    assert len(few.features_) <= 3


def test_bands_of_a_column_that_is_mostly_zero():
    sample = pd.DataFrame({"gains": [0.0] * 95 + [1.0, 2.0, 3.0, 4.0, 5.0]})
    population = pd.DataFrame({"gains": [0.0] * 80 + [1.0, 9.0] * 10})
    weighter = CalibrationWeights(features="margins", **QUIET)
    w = weighter.fit(sample, population=population).weights_
    assert weighter.features_ == ["gains=below 1", "gains=from 1"]
    assert w[-5:].sum() == pytest.approx(20)


# Soft balance, limits.


def test_slack_and_ridge_leave_what_they_allow(shifted):
    sample, population = shifted
    options = {"features": ["age", "income", "town"], **QUIET}
    exact = CalibrationWeights(**options).fit(sample, population=population)
    soft = CalibrationWeights(slack=0.1, **options).fit(sample, population=population)
    assert np.abs(soft.imbalance_).max() == pytest.approx(0.1, abs=1e-9)
    assert effective_sample_size(soft.weights_) > effective_sample_size(exact.weights_)
    by_name = CalibrationWeights(slack={"age": 0.2}, **options).fit(sample, population=population)
    others = [place for place, name in enumerate(by_name.features_) if name != "age"]
    assert np.abs(by_name.imbalance_[others]).max() < 1e-8
    ridge = CalibrationWeights(ridge=0.5, **options).fit(sample, population=population)
    # The imbalance that a ridge leaves is its multiplier times the ridge.
    assert np.allclose(ridge.imbalance_, -0.5 * ridge.multipliers_, atol=1e-9)


def test_design_effect_is_kept_to(shifted):
    sample, population = shifted
    weighter = CalibrationWeights(features="means", design_effect=1.05, **QUIET)
    w = weighter.fit(sample, population=population).weights_
    assert len(w) / effective_sample_size(w) == pytest.approx(1.05, abs=1e-4)
    assert weighter.ridge_ > 0
    assert np.abs(weighter.imbalance_).max() > 0.01  # and what it costs is said
    design = np.where(np.arange(len(sample)) % 2, 1.0, 9.0)
    with pytest.raises(ParameterError, match="cannot be reached: the design weights alone"):
        weighter.fit(sample, population=population, sample_weight=design)


def test_negative_weights_only_by_name(shifted):
    sample, population = shifted
    far = population[population.age < 45]
    options = {"distance": "linear", "features": "means", "columns": ["age", "income"], **QUIET}
    with pytest.raises(ParameterError, match=r"negative.*bounds=\(0, None\)"):
        CalibrationWeights(**options).fit(sample, population=far)
    weighter = CalibrationWeights(**options, negative="allow").fit(sample, population=far)
    assert weighter.weights_.min() < 0
    assert np.average(sample.age, weights=weighter.weights_) == pytest.approx(far.age.mean())
    from sklearn.linear_model import LinearRegression

    learner = Reweighted(LinearRegression(), CalibrationWeights(**options, negative="allow"))
    with pytest.raises(LearnerError, match="negative"):
        learner.fit(sample[["age", "income"]], sample.age, population=far[["age", "income"]])


# No weights at all.


def test_infeasible_says_how_near_any_weights_come():
    random = np.random.default_rng(0)
    sample = pd.DataFrame({"age": random.integers(18, 45, 200), "size": random.normal(size=200)})
    population = pd.DataFrame({"age": [47.0, 48.0], "size": [0.0, 0.1]})
    with pytest.raises(OverlapError) as caught:
        CalibrationWeights(**QUIET).fit(sample, population=population)
    message = str(caught.value)
    assert "on 'age'" in message
    assert "No weights, with the other features matched, bring the mean of 'age' above" in message
    assert "the population has 47.5. 0 of 200 sample rows are above 47.5" in message
    assert 'on_infeasible="relax"' in message
    with pytest.warns(OverlapWarning, match="each feature was allowed"):
        relaxed = CalibrationWeights(on_infeasible="relax", **QUIET).fit(
            sample, population=population
        )
    spread = sample.std(ddof=0)
    scaled = (sample - population.mean()) / spread
    ones, rows = np.ones((2, 1)), scaled.to_numpy().T
    program = linprog(  # an independent statement of the same question
        np.r_[np.zeros(200), 1.0],
        A_ub=np.block([[rows, -ones], [-rows, -ones]]),
        b_ub=np.zeros(4),
        A_eq=np.r_[np.ones(200), 0.0][None],
        b_eq=[1.0],
    )
    assert relaxed.slack_ == pytest.approx(1.01 * program.fun, rel=1e-6)
    assert np.abs(relaxed.imbalance_).max() == pytest.approx(relaxed.slack_, rel=1e-6)


def test_collinear_features_are_named_and_contradictions_found():
    random = np.random.default_rng(0)
    sample, population = random.normal(size=(300, 2)), random.normal(0.2, 1, size=(3000, 2))
    both = [np.column_stack([rows, 2 * rows[:, 0] - rows[:, 1]]) for rows in (sample, population)]
    weighter = CalibrationWeights(features="means", **QUIET).fit(both[0], population=both[1])
    assert weighter.collinear_ == ["x2"]
    assert np.abs(weighter.imbalance_).max() < 1e-9
    for distance in ("raking", "linear"):
        with pytest.raises(OverlapError, match="No weights match the population"):
            CalibrationWeights(distance=distance, features="means", **QUIET).fit(
                both[0], population=both[1] + [0, 0, 0.5]
            )


def test_levels_that_the_population_lacks_get_weight_zero():
    sample = pd.DataFrame({"a": list("xxyyz")})
    population = pd.DataFrame({"a": list("xy")})
    weighter = CalibrationWeights(features="means", **QUIET).fit(sample, population=population)
    assert weighter.weights_ == pytest.approx([1.25, 1.25, 1.25, 1.25, 0])
    assert weighter.weigh(pd.DataFrame({"a": ["z", "x"]})) == pytest.approx([0, 1.25])


def test_a_target_on_the_border_of_what_weights_reach():
    weighter = CalibrationWeights(features="means", **QUIET)
    weights = weighter.fit([[0.0], [1.0], [2.0], [2.0]], population=[[2.0]]).weights_
    assert weights == pytest.approx([0, 0, 2, 2], abs=1e-8)
    assert weighter.certificate_.converged


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"distance": "logit"}, "needs bounds"),
        ({"bounds": (1.5, 2)}, "low < 1 < high"),
        ({"bounds": 3}, "bounds"),
        ({"slack": {"agee": 1.0}}, "slack names 'agee'"),
        ({"slack": [0.1]}, "1 entries for"),
        ({"features": ["agee"]}, "features names 'agee'"),
        ({"features": []}, "empty list"),
        ({"max_weight": 0.5}, "max_weight"),
    ],
)
def test_parameters_are_checked(shifted, options, message):
    sample, population = shifted
    with pytest.raises(ParameterError, match=message):
        CalibrationWeights(**options, **QUIET).fit(sample, population=population)


def test_propensity_needs_a_larger_population(shifted):
    sample, population = shifted
    with pytest.raises(
        ValueError, match="part of the population, but the population's size is 100"
    ):
        CalibrationWeights(distance="propensity", **QUIET).fit(sample, population=population[:100])


@pytest.mark.parametrize("slack", [1e-6, 1e-2])
def test_slack_converges_with_all_levels_of_a_column(slack):
    # The levels and the intercept are collinear, and only the slack tells their multipliers apart.
    random = np.random.default_rng(0)
    population = pd.DataFrame(
        {"x": random.normal(size=2000), "g": random.choice(list("uvw"), 2000)}
    )
    chance = 1 / (1 + np.exp(-population["x"] + 0.5 * (population["g"] == "v")))
    sample = population[random.uniform(size=2000) < chance]
    weighter = CalibrationWeights(features="means", slack=slack, overlap="ignore")
    weighter.fit(sample, population=population)
    assert weighter.certificate_.converged
    assert np.abs(weighter.imbalance_).max() == pytest.approx(slack, rel=1e-3)
