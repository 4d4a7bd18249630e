"""What to weigh by: all columns, some of them, or those that sample and population share."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

from unskew import (
    ClusterWeights,
    HistogramWeights,
    KernelMeanMatching,
    KnownProbability,
    Reweighted,
    TreeWeights,
    diagnose,
)
from unskew.errors import InputError, ParameterError

pytestmark = pytest.mark.filterwarnings("ignore::unskew.errors.OverlapWarning")

RANDOM = np.random.default_rng(1)
CENSUS = pd.DataFrame({"age": RANDOM.normal(40, 10, 500), "town": RANDOM.choice(list("ab"), 500)})
SURVEY = pd.DataFrame(
    {
        "question": RANDOM.normal(size=120),
        "town": RANDOM.choice(list("ab"), 120, p=[0.8, 0.2]),
        "age": RANDOM.normal(45, 10, 120),
    }
)
Y = SURVEY["question"].to_numpy() + RANDOM.normal(size=120)


@pytest.mark.parametrize(
    "weighter", [HistogramWeights(), TreeWeights(), ClusterWeights(), KernelMeanMatching()], ids=str
)
@pytest.mark.parametrize("columns", ["shared", ["town", "age"], ("town", "age"), [1, 2]], ids=str)
def test_other_columns_do_not_matter(weighter, columns):
    fitted = weighter.set_params(columns=columns).fit(SURVEY, Y, population=CENSUS)
    assert fitted.columns_ == ["town", "age"]
    weights = fitted.weights_
    plain = weighter.set_params(columns=None).fit(SURVEY[["town", "age"]], Y, population=CENSUS)
    assert np.array_equal(weights, plain.weights_)
    wider = CENSUS.assign(other=1)
    again = weighter.set_params(columns=columns).fit(SURVEY, Y, population=wider)
    assert np.array_equal(again.weights_, weights)


def test_without_columns_both_sides_must_agree():
    with pytest.raises(InputError, match="lacks column 'question'.*columns=\"shared\""):
        HistogramWeights().fit(SURVEY, population=CENSUS)
    with pytest.raises(InputError, match="has column 'other', which the sample lacks"):
        HistogramWeights().fit(SURVEY, population=SURVEY.assign(other=1))


def test_new_rows_need_only_the_columns_to_weigh_by():
    weighter = HistogramWeights(columns="shared").fit(SURVEY, population=CENSUS)
    assert weighter.weigh(SURVEY) == pytest.approx(weighter.weights_)
    assert weighter.weigh(SURVEY[["age", "town"]]) == pytest.approx(weighter.weights_)
    assert weighter.weigh(SURVEY.assign(more=0)) == pytest.approx(weighter.weights_)
    with pytest.raises(InputError, match="X lacks column 'town'"):
        weighter.weigh(SURVEY[["age", "question"]])
    assert weighter.n_features_in_ == 3
    assert weighter.feature_names_in_.tolist() == ["question", "town", "age"]


def test_the_learner_gets_all_columns():
    numbers = SURVEY[["question", "age"]]
    model = Reweighted(LinearRegression(), HistogramWeights(columns="shared"))
    model.fit(numbers, Y, population=CENSUS[["age"]])
    assert model.estimator_.n_features_in_ == 2
    assert model.weighter_.columns_ == ["age"]
    assert len(model.predict(numbers)) == len(Y)


def test_columns_without_names_go_by_position():
    sample, population = SURVEY[["question", "age"]].to_numpy(), CENSUS[["age"]].to_numpy()
    weighter = HistogramWeights(columns=[1]).fit(sample, population=population)
    assert weighter.columns_ == ["x1"]
    as_wide = np.column_stack([np.zeros(500), population])
    again = HistogramWeights(columns=[1]).fit(sample, population=as_wide)
    assert np.array_equal(again.weights_, weighter.weights_)
    assert weighter.weigh(sample) == pytest.approx(weighter.weights_)
    with pytest.raises(InputError, match="1 columns and the population 3"):
        HistogramWeights(columns=[1]).fit(sample, population=np.zeros((5, 3)))


def test_a_diagnosis_compares_the_columns_that_were_weighed_by():
    weighter = HistogramWeights(columns="shared").fit(SURVEY, population=CENSUS)
    assert {f.name for f in diagnose(SURVEY, CENSUS, weighter).bias.features} == {"age", "town"}
    found = diagnose(SURVEY, CENSUS, columns=["age"])
    assert [feature.name for feature in found.bias.features] == ["age"]
    with pytest.raises(InputError, match="lacks column 'question'"):
        diagnose(SURVEY, CENSUS)


@pytest.mark.parametrize(
    ("columns", "error", "message"),
    [
        (["no"], InputError, "The sample lacks column 'no'"),
        ([], ParameterError, "columns must name columns, each once"),
        (["age", "age"], ParameterError, "each once"),
        ([7], ParameterError, "positions below 3"),
        ([True, False, False], ParameterError, "positions below 3; got True"),
        ("all", ParameterError, "'columns' parameter"),
        (["question"], InputError, "no column in common"),
    ],
)
def test_columns_that_cannot_be_used(columns, error, message):
    with pytest.raises(error, match=message):
        HistogramWeights(columns=columns).fit(SURVEY, population=CENSUS)


def test_nothing_shared():
    with pytest.raises(InputError, match="no column in common: 'question' against 'age', 'town'"):
        HistogramWeights(columns="shared").fit(SURVEY[["question"]], population=CENSUS)


def test_a_probability_is_not_weighed_by():
    sample = SURVEY[["age", "town"]].assign(p=0.5)
    weighter = KnownProbability("p").fit(sample, population=CENSUS)
    assert weighter.columns_ == ["age", "town"]
    assert diagnose(sample, CENSUS, weighter).sample_rows == 120


@pytest.mark.parametrize("columns", [["age", "p"], [0, 2], ["p"]], ids=str)
@pytest.mark.parametrize("census", [CENSUS, CENSUS.assign(p=0.5)], ids=["lacks it", "has it"])
def test_a_probability_that_is_to_be_weighed_by_is_a_contradiction(columns, census):
    sample = SURVEY[["age", "town"]].assign(p=0.5)
    with pytest.raises(ParameterError, match="columns names 'p', which another parameter"):
        KnownProbability("p", columns=columns).fit(sample, population=census)


@pytest.mark.parametrize("name", ["question", "nowhere", 1])
def test_buckets_of_a_column_that_is_not_weighed_by(name):
    weighter = HistogramWeights(buckets={name: 3}, columns=["age", "town"])
    words = f"buckets names '{name}', which is not among the columns to weigh by.*'age', 'town'"
    with pytest.raises(ParameterError, match=words):
        weighter.fit(SURVEY, population=CENSUS)


@pytest.mark.parametrize("n_columns", [1, 2, 3])
def test_nothing_is_shared_with_columns_that_have_no_names(n_columns):
    population = np.zeros((50, n_columns))
    sample = SURVEY[["question", "age"]]
    with pytest.raises(InputError, match="compares names, and the population's columns have none"):
        HistogramWeights(columns="shared").fit(sample, population=population)
    by_position = HistogramWeights(columns=["age"]).fit(sample, population=np.zeros((50, 1)))
    assert by_position.columns_ == ["age"]
