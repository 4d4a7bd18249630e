"""Statistics as objects; another one is a single class."""

import numpy as np
import pandas as pd
import pytest

from unskew import (
    CalibrationWeights,
    Margins,
    Mean,
    Proportion,
    Quantile,
    Total,
    Unweighted,
    estimate,
)
from unskew.errors import InputError, ParameterError
from unskew.estimation.statistics import Statistic


def drawn(m=300, n=2000):
    random = np.random.default_rng(0)
    sample = pd.DataFrame({"x": random.normal(0.5, 1, m), "arm": random.choice(["a", "b"], m)})
    people = pd.DataFrame({"x": random.normal(0, 1, n), "arm": random.choice(["a", "b"], n)})
    return sample, np.exp(0.5 * sample["x"]) + random.normal(size=m) ** 2, people


@pytest.mark.parametrize(
    ("name", "given", "q"),
    [
        ("mean", Mean(), None),
        ("total", Total(), None),
        ("proportion", Proportion(), None),
        ("quantile", Quantile(0.3), 0.3),
    ],
)
@pytest.mark.parametrize("by", [None, "arm"])
def test_an_object_says_what_its_name_does(name, given, q, by):
    sample, y, people = drawn()
    y = (y > 1).astype(int) if name == "proportion" else y
    by_name = estimate(sample, y, population=people, statistic=name, q=q, by=by)
    by_object = estimate(sample, y, population=people, statistic=given, by=by)
    assert str(by_object) == str(by_name)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"statistic": Quantile(0.5), "q": 0.5}, "an object has its own"),
        ({"statistic": "median"}, "must be one of mean, total, proportion, quantile"),
        ({"statistic": Mean}, "must be one of"),
        ({"statistic": Quantile(0.5), "outcome": "linear"}, "outcome models predict means"),
        ({"statistic": "quantile"}, "q=0.5 is the median"),
    ],
)
def test_what_does_not_fit_is_refused(given, message):
    sample, y, people = drawn()
    with pytest.raises(ParameterError, match=message):
        estimate(sample, y, population=people, **given)


@pytest.mark.parametrize("q", [0.0, 1.5, "half"])
def test_a_quantile_lies_inside(q):
    with pytest.raises(ParameterError, match="q must lie between 0 and 1"):
        Quantile(q)


class RootMeanSquare(Statistic):
    """The root of the mean square θ: by the delta method its influence is that of the mean / 2θ."""

    name = "root mean square"

    def point(self, values, weights):
        return np.sqrt(weights @ values**2 / weights.sum())

    def influence(self, values, weights):
        root = self.point(values, weights)
        return (values**2 - root**2) / (2 * root * weights.sum())


MARGINS = Margins(means={"x": 0.0}, standard_errors={"x": 0.02}, size=2000)


@pytest.mark.parametrize("population", [drawn()[2], MARGINS], ids=["rows", "margins"])
@pytest.mark.parametrize("variance", ["linear", "hc3", "bootstrap"])
@pytest.mark.parametrize("by", [None, "arm"])
def test_another_statistic_is_one_class(variance, by, population):
    """With every variance, domain and population that a mean has, by the delta method."""
    sample, y, _ = drawn()
    common = {"population": population, "variance": variance, "by": by, "replicates": 100}
    common["weighter"] = CalibrationWeights(columns=["x"], features="means")
    means = estimate(sample, y**2, **common)
    roots = estimate(sample, y, statistic=RootMeanSquare(), **common)
    pairs = [(means, roots)] if by is None else [(means[arm], roots[arm]) for arm in "ab"]
    for mean, root in pairs:
        assert root.statistic == "root mean square"
        assert root.value == pytest.approx(np.sqrt(mean.value))
        # Replicates, and margins that move, are not linear.
        rough = 0.05 if variance == "bootstrap" or population is MARGINS else 1e-9
        assert root.standard_error == pytest.approx(mean.standard_error / 2 / root.value, rel=rough)
        assert root.degrees_of_freedom == pytest.approx(mean.degrees_of_freedom, rel=rough)


@pytest.mark.parametrize("by", [None, "arm"])
def test_its_influence_gives_its_sensitivity(by):
    sample, y, people = drawn()
    common = {"population": people, "by": by, "weighter": CalibrationWeights(features="means")}
    mean = estimate(sample, y**2, **common)
    root = estimate(sample, y, statistic=RootMeanSquare(), **common)
    mean, root = (mean, root) if by is None else (mean["a"], root["a"])
    squares, roots = (one.sensitivity([1.5], benchmark=False).bounds[0] for one in (mean, root))
    for of_mean, of_root in zip(squares.best_interval, roots.best_interval, strict=True):
        first_order = (of_mean - mean.value) / (2 * root.value)
        assert of_root - root.value == pytest.approx(first_order)


def test_its_variance_is_a_jackknife():
    y = np.random.default_rng(1).gamma(3, 2, 60)
    rows, people = np.zeros((60, 1)), np.zeros((1000, 1))
    options = {"weighter": Unweighted(), "statistic": RootMeanSquare()}
    without = np.array([np.sqrt(np.mean(np.delete(y, row) ** 2)) for row in range(60)])
    jackknife = np.sqrt(59 / 60 * np.sum((without - without.mean()) ** 2))
    found = estimate(rows, y, population=people, **options)
    assert found.standard_error == pytest.approx(jackknife, rel=0.02)


@pytest.mark.parametrize("statistic", [Mean(), Total(), RootMeanSquare()])
def test_influence_is_the_derivative_by_each_weight(statistic):
    random = np.random.default_rng(0)
    values, weights = random.gamma(2, 1, (12, 1)), random.uniform(1, 2, 12)
    found = statistic.influence(values, weights)
    for row in range(12):
        ends = [weights + step * np.eye(12)[row] for step in (-1e-6, 1e-6)]
        low, high = (statistic.point(values, one) for one in ends)
        assert found[row] == pytest.approx((high - low) / 2e-6, rel=1e-6)


def test_one_without_influence_is_bootstrapped():
    class Largest(Statistic):
        name = "largest"
        has_influence = False

        def point(self, values, weights):
            return values[weights > 0].max(axis=0, initial=-np.inf)

    sample, y, people = drawn()
    found = estimate(sample, y, population=people, statistic=Largest(), replicates=20)
    assert (found.value, found.variance) == (y.max(), "bootstrap")
    with pytest.raises(InputError, match="sensitivity of a largest is not implemented"):
        found.sensitivity()
    with pytest.raises(ParameterError, match='no variance but variance="bootstrap"'):
        estimate(sample, y, population=people, statistic=Largest(), variance="hc3")


def test_an_equal_sample_gives_the_textbooks_numbers():
    y = np.random.default_rng(1).normal(5, 2, 400)
    rows, people = np.zeros((400, 1)), np.zeros((1000, 1))
    options = {"weighter": Unweighted(), "variance": "linear"}
    found = estimate(rows, y, population=people, statistic=Total(), **options)
    assert found.value == pytest.approx(1000 * y.mean())
    assert found.standard_error == pytest.approx(1000 * y.std(ddof=1) / 20)
