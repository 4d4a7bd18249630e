"""Which columns hardly describe a row, and which only look as if."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from unskew import FrequencyWeights, KernelMeanMatching, Unweighted, diagnose
from unskew.errors import ColumnWarning
from unskew.rows.doubtful_columns import doubtful_columns, numbers_read_as_text

RANDOM = np.random.default_rng(0)
N = 400


def found(**columns) -> list[str]:
    return [doubt.looks_like for doubt in doubtful_columns(pa.table(columns))]


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("number", np.arange(N) * 17),
        ("number", np.arange(N)[::-1]),
        ("account", RANDOM.permutation(10 * N)[:N]),  # drawn without replacement
        ("customer_id", RANDOM.integers(0, 10**12, N)),
        ("CUSTOMER ID", RANDOM.integers(0, 10**12, N)),
        ("customerId", RANDOM.integers(0, 10**12, N)),
        ("name", [f"u-{row:x}" for row in RANDOM.permutation(N)]),
        ("name", pa.array([f"u-{row:x}" for row in range(N)]).dictionary_encode()),
    ],
)
def test_identifiers(name, values):
    assert found(**{name: values}) == ["an identifier"]


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("income", RANDOM.lognormal(10, 1, N)),
        ("id", RANDOM.normal(size=N)),  # identifiers are whole numbers or text
        ("price", RANDOM.choice(10**9, N)),
        ("age", np.sort(RANDOM.integers(18, 90, N))),
        ("rank", np.arange(20)),  # too few rows to tell
        ("sorted", pa.array([None] * N, pa.int64())),
        ("when", pa.array(np.arange(N), pa.timestamp("s"))),
        ("flag", [True, False] * (N // 2)),
        ("town", RANDOM.choice([f"town {k}" for k in range(60)], N)),
    ],
)
def test_what_is_no_reason_for_doubt(name, values):
    assert found(**{name: values}) == []


@pytest.mark.parametrize("form", ["%Y-%m-%d", "%d.%m.%Y", "%m/%d/%y", "%Y-%m-%dT%H:%M:%S"])
def test_dates_that_were_read_as_text(form):
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(RANDOM.integers(0, 2000, N), "D")
    assert found(since=days.strftime(form).tolist()) == ["dates that were read as text"]
    (doubt,) = doubtful_columns(pa.table({"since": days.strftime(form).tolist()}))
    assert str(doubt).endswith("rows; convert them to dates.")
    few = RANDOM.choice(["2020-01-01", "2021-01-01"], N)  # two waves of a survey are categories
    assert found(wave=few.tolist()) == []


def test_free_text_and_very_many_categories():
    text = [f"the answer of number {row} was long" for row in RANDOM.integers(0, N, N)]
    assert found(text=text) == ["free text"]
    assert found(street=[f"s{k}" for k in RANDOM.integers(0, 100, N)]) == ["very many categories"]


def test_columns_of_integers_drawn_at_random_are_rarely_doubted():
    """At most one in a hundred: they are doubted if none repeats where five should."""
    random = np.random.default_rng(1)
    wrong = sum(bool(found(x=random.integers(0, 8000, 300))) for _ in range(200))
    assert wrong <= 6  # the 99.9 % quantile of a binomial distribution with 200 draws


class TestWarning:
    sample = pd.DataFrame({"key": np.arange(0, 80, 2), "age": [30, 40] * 20})
    population = pd.DataFrame({"key": np.arange(80), "age": [30, 40] * 40})

    def test_fit_and_diagnose_name_the_column_and_the_parameter(self):
        with pytest.warns(ColumnWarning, match=r"'key' looks like an identifier.*columns=") as seen:
            KernelMeanMatching().fit(self.sample, population=self.population)
        assert seen[0].message.columns == ["key"]
        assert seen[0].filename == __file__
        with pytest.warns(ColumnWarning, match="'key'"):
            diagnose(self.sample, self.population)

    @pytest.mark.filterwarnings("error")
    def test_a_column_that_was_asked_for_is_no_surprise(self):
        weighter = KernelMeanMatching(columns=["key", "age"])
        weighter.fit(self.sample, population=self.population)
        diagnose(self.sample, self.population, weighter)
        diagnose(self.sample, self.population, columns=["age"])
        Unweighted().fit(self.sample, population=self.population)
        FrequencyWeights(columns=["age"]).fit(self.sample, population=self.population)

    def test_it_can_be_pickled(self):
        warning = pickle.loads(pickle.dumps(ColumnWarning("message", ["key"])))
        assert (str(warning), warning.columns) == ("message", ["key"])


@pytest.mark.parametrize("odd", ["?", "1,200.50", "12 %", "$5", "unknown"])
def test_numbers_with_text_among_them(odd):
    rows = pa.table({"age": [*map(str, range(40)), odd]})
    assert numbers_read_as_text(rows) == {"age": odd}


@pytest.mark.parametrize(
    "values",
    [
        ["1", "02", "3.5", "-4e5"] * 9,  # all of them numbers, so meant as text
        ["01.02.2020", "3.4.2021"] * 9,
        ["a1", "b2"] * 9,
        [None],
        ["1", "?"],
    ],
)
def test_text_that_is_meant(values):
    assert numbers_read_as_text(pa.table({"x": pa.array(values, pa.string())})) == {}
