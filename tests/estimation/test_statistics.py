"""Statistics as objects; another one is a single class."""

import numpy as np
import pandas as pd
import pytest

from unskew import Mean, Proportion, Quantile, Total, Unweighted, estimate
from unskew.errors import ParameterError
from unskew.estimation.inputs import LabelColumns


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


class LogMean(Mean):
    """The logarithm of the mean: its deviations are those of the mean over the mean."""

    name = "log mean"

    def _columns(self, labels):
        return LabelColumns(labels.astype(float)[:, None], None, False, labels)

    def point(self, target, weights, sums):
        return np.log(super().point(target, weights, sums))

    def deviations(self, target, weights, point, numbers):
        return super().deviations(target, weights, point, numbers) / np.exp(point[numbers])


@pytest.mark.parametrize("variance", ["hc3", "bootstrap"])
@pytest.mark.parametrize("by", [None, "arm"])
def test_another_statistic_is_one_class(variance, by):
    """With every variance and domain that a mean has, by the delta method's identity."""
    sample, y, people = drawn()
    common = {"population": people, "variance": variance, "by": by, "replicates": 100}
    means = estimate(sample, y, **common)
    logs = estimate(sample, y, statistic=LogMean(), **common)
    pairs = [(means, logs)] if by is None else [(means[arm], logs[arm]) for arm in "ab"]
    for mean, log in pairs:
        assert log.statistic == "log mean"
        assert log.value == pytest.approx(np.log(mean.value))
        rough = 1e-9 if variance == "hc3" else 0.05  # replicates are not linear
        assert log.standard_error == pytest.approx(mean.standard_error / mean.value, rel=rough)


def test_an_equal_sample_gives_the_textbooks_numbers():
    y = np.random.default_rng(1).normal(5, 2, 400)
    rows, people = np.zeros((400, 1)), np.zeros((1000, 1))
    options = {"weighter": Unweighted(), "variance": "linear"}
    found = estimate(rows, y, population=people, statistic=Total(), **options)
    assert found.value == pytest.approx(1000 * y.mean())
    assert found.standard_error == pytest.approx(1000 * y.std(ddof=1) / 20)
