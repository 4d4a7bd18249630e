"""Calibration weights against R, published results and identities."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from tests.references import reference

from unskew import (
    CalibrationWeights,
    Margins,
    Population,
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
