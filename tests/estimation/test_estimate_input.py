"""Bad input of ``estimate``."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.neighbors import KNeighborsRegressor
from tests.estimation.helpers import MEANS, QUIET

from unskew import CalibrationWeights, Margins, SparkSample, Unweighted, diagnose, estimate
from unskew.errors import EstimateWarning, InputError, LearnerError, OverlapWarning, ParameterError


def test_constant_labels_say_that_the_error_says_nothing(data):
    X, _, population, _ = data
    found = estimate(X, np.full(len(X), 3.0), population=population, weighter=MEANS)
    assert found.value == pytest.approx(3.0)
    assert found.standard_error == pytest.approx(0.0, abs=1e-9)
    assert "y is 3.0 in every sample row" in str(found)
    one = estimate(X, ["a"] * len(X), population=population, statistic="proportion")
    assert one["a"].value == pytest.approx(1.0)
    with pytest.raises(InputError, match="one class only"):
        estimate(X, np.ones(len(X)), population=population, outcome="boosted")


def test_a_share_of_all_rows_has_an_interval(data):
    X, _, population, _ = data
    found = estimate(X, np.ones(len(X)), population=population, weighter=Unweighted())
    assert (found.value, found.standard_error) == (1.0, 0.0)
    # Wilson's interval of n of n rows ends at n / (n + t²).
    n, times = found.effective_sample_size, 1.959963984540054
    assert found.interval == (pytest.approx(n / (n + times**2)), 1.0)
    assert "y is 1.0 in every sample row" in str(found)


def test_missing_labels_are_an_error_or_left_out(data):
    X, y, population, _ = data
    gaps = y.copy()
    gaps[::5] = np.nan
    with pytest.raises(InputError, match="y contains NaN"):
        estimate(X, gaps, population=population)
    present = ~np.isnan(gaps)
    ours = estimate(
        X, gaps, population=population, missing="drop", by="g", clusters=np.arange(len(X))
    )
    theirs = estimate(X[present], y[present], population=population, by="g")
    assert ours["x"].value == pytest.approx(theirs["x"].value)
    assert f"{(~present).sum()} rows without y were left out" in str(ours)
    text = np.where(present, "a", None)
    text[0] = "b" if present[0] else None
    found = estimate(X, text, population=population, missing="drop", statistic="proportion")
    assert found["a"].n_rows == present.sum()
    with pytest.raises(InputError, match="missing in every row"):
        estimate(X, np.full(len(X), np.nan), population=population, missing="drop")


@pytest.mark.parametrize("missing", ["raise", "drop"])
def test_a_sample_without_rows_is_an_error(data, missing):
    X, y, population, _ = data
    with pytest.raises(InputError, match="no rows"):
        estimate(X[:0], y[:0], population=population, missing=missing)


def test_strata_and_clusters_without_variance_are_errors(data):
    X, y, population, _ = data
    strata = np.zeros(len(X))
    strata[0] = 1
    with pytest.raises(InputError, match="1 of 2 strata have one row"):
        estimate(X, y, population=population, strata=strata)
    with pytest.raises(InputError, match="one cluster"):
        estimate(X, y, population=population, clusters=np.zeros(len(X)))
    # Clusters of one row each are rows.
    ours = estimate(X, y, population=population, clusters=np.arange(len(X)))
    assert ours.standard_error == pytest.approx(
        estimate(X, y, population=population).standard_error
    )
    with pytest.raises(InputError, match="clusters must have one entry"):
        estimate(X, y, population=population, clusters=[1, 2])


def test_few_effective_rows_warn(data):
    X, y, population, _ = data
    with pytest.warns(EstimateWarning, match="effective sample size is"):
        estimate(X.iloc[:25], y[:25], population=population, weighter=MEANS)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"statistic": "variance"}, "statistic must be one of"),
        ({"q": 0.5}, "q is for"),
        ({"statistic": "quantile"}, "q is for"),
        ({"statistic": "quantile", "q": 1.5}, "q must lie between"),
        ({"statistic": "quantile", "q": 0.5, "outcome": "linear"}, "predict means"),
        ({"variance": "best"}, "variance must be one of"),
        ({"variance": "orthogonal"}, "needs an outcome model"),
        ({"level": 95}, "level must lie between"),
        ({"missing": "impute"}, "missing must be"),
        ({"outcome": "forest"}, "outcome must be a learner"),
        ({"replicates": 1}, "replicates must be"),
        ({"outcome": "linear", "cv": 1}, "cv must be"),
    ],
)
def test_parameters_out_of_range_are_errors(data, options, words):
    X, y, population, _ = data
    with pytest.raises(ParameterError, match=words):
        estimate(X, y, population=population, **options)


def test_what_cannot_be_answered_is_an_error(data):
    X, y, population, _ = data
    margins = Margins({"g": {"x": 1, "y": 1, "z": 1}})
    with pytest.raises(InputError, match="Margins have none"):
        estimate(X, y, population=margins, outcome="linear")
    with pytest.raises(InputError, match="by='h' is not a column"):
        estimate(X, y, population=population, by="h")
    with pytest.raises(InputError, match="few values"):
        estimate(X, y, population=population, by="a")
    with pytest.raises(InputError, match="y is None"):
        estimate(X, None, population=population)
    with pytest.raises(LearnerError, match="takes no sample_weight"):
        estimate(
            X[["a"]],
            y,
            population=population[["a"]],
            outcome=KNeighborsRegressor(),
            sample_weight=np.arange(1, len(X) + 1),
        )
    shares = Margins(shares={"g": {"x": 0.3, "y": 0.3, "z": 0.4}})
    with pytest.raises(InputError, match="size of the population is not known"):
        estimate(X, y, population=shares, statistic="total")


def test_columns_by_name_are_no_features(data):
    X, y, population, _ = data
    design = np.linspace(1, 2, len(X))
    frame = X.assign(answer=y, w=design)
    named = estimate(frame, "answer", population=population, sample_weight="w")
    given = estimate(X, y, population=population, sample_weight=design)
    assert named.value == given.value
    assert named.interval == given.interval
    weights = CalibrationWeights(**QUIET).fit(frame, "answer", population=population,
                                              sample_weight="w").weights_  # fmt: skip
    assert_array_equal(
        weights, CalibrationWeights(**QUIET).fit(X, y, population=population,
                                                 sample_weight=design).weights_
    )  # fmt: skip
    gaps = frame.assign(answer=np.where(np.arange(len(X)) % 5, y, np.nan))
    dropped = estimate(gaps, "answer", population=population, missing="drop")
    assert dropped.n_rows == (np.arange(len(X)) % 5 > 0).sum()
    assert diagnose(frame, population, y="answer", sample_weight="w").sample_rows == len(X)
    with pytest.raises(InputError, match=r"y='anser' is not a column of X. Did you mean 'answer'"):
        estimate(frame, "anser", population=population)
    with pytest.raises(InputError, match=r"y='answer' names a column of X, and X has no names"):
        estimate(X.to_numpy(), "answer", population=population)


def test_a_sample_on_spark_gets_one_message():
    frame = type("DataFrame", (), {"__module__": "pyspark.sql.dataframe", "columns": ["y", "x"]})()
    for sample in (frame, SparkSample(frame)):
        with pytest.raises(InputError, match="an estimate needs a sample in memory"):
            estimate(sample, "y", population=np.zeros((5, 1)))
        with pytest.raises(InputError, match="a diagnosis needs a sample in memory"):
            diagnose(sample, np.zeros((5, 1)), y="y")


def test_a_region_without_sample_rows_is_noted():
    random = np.random.default_rng(0)
    population = random.normal(size=(4000, 2))
    sample = random.normal(size=(800, 2))
    sample = sample[sample[:, 0] < 1.3]
    y = np.exp(sample[:, 0]) + random.normal(size=len(sample))  # no column determines it
    with pytest.warns(OverlapWarning, match="x0 > 1"):
        found = estimate(sample, y, population=population)
    (note,) = found.notes
    assert "% of the population is not covered by the sample: x0 > 1" in note
    assert note.endswith("The interval does not count it.")
    towns = np.arange(len(y)) % 50  # fifty that differ: so long an interval needs no such note
    with pytest.warns(OverlapWarning):
        found = estimate(sample, towns.astype(float), population=population, clusters=towns)
    assert not any("not count it" in note for note in found.notes)
