"""Errors about columns say which one may be meant."""

from __future__ import annotations

import pandas as pd
import pytest

from unskew import HistogramWeights, KnownProbability, Population, TreeWeights
from unskew.errors import InputError, ParameterError, most_alike

SAMPLE = pd.DataFrame({"age": [1.0, 2.0, 3.0, 9.0], "Home Town": ["a", "b", "a", "b"]})
MEANT = "Did you mean 'Home Town'?"


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("Age", "age"), ("AGE ", "age"), ("home_town", "home town"), ("homeTown", "home town"),
        ("hometwon", "home town"), ("size", None), ("Ａge", "age"), ("", None), ("__", None),
    ],
)  # fmt: skip
def test_case_spaces_and_typing_errors(name, meant):
    assert most_alike(name, ["age", "home town", "spend"]) == meant


def test_the_first_of_equals():
    assert most_alike("AGE", ["Age", "age"]) == "Age"
    assert most_alike("🙂", ["🙃", "🙂 "]) == "🙂 "


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: TreeWeights(columns=["home_town"]).fit(SAMPLE, [1, 2, 3, 4], population=SAMPLE),
        lambda: Population(SAMPLE, columns=["home town"]),
        lambda: Population(SAMPLE, weight="home-town"),
        lambda: HistogramWeights(buckets={"Hometown": 3}).fit(SAMPLE, population=SAMPLE),
        lambda: KnownProbability("home town").fit(SAMPLE, population=SAMPLE),
        lambda: HistogramWeights(overlap="ignore").fit(
            SAMPLE.rename(columns=str.lower), population=SAMPLE.rename(columns=str.lower)
        ).weigh(SAMPLE),
    ],
)  # fmt: skip
def test_every_parameter_that_names_columns(wrong):
    with pytest.raises((InputError, ParameterError), match=MEANT.replace("?", r"\?")):
        wrong()


def test_the_population_has_it_under_a_similar_name():
    with pytest.raises(InputError, match="It has 'home_town' for 'Home Town': rename one of them"):
        TreeWeights().fit(
            SAMPLE, [1, 2, 3, 4], population=SAMPLE.rename(columns={"Home Town": "home_town"})
        )
    with pytest.raises(InputError, match="It has 'AGE' for 'age', 'HOME TOWN' for 'Home Town'"):
        TreeWeights().fit(SAMPLE, [1, 2, 3, 4], population=SAMPLE.rename(columns=str.upper))
