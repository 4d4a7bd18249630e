"""Kernel matching does not depend on the form or the layout of the population."""

from __future__ import annotations

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest

from unskew import KernelMeanMatching


@pytest.fixture(scope="module")
def problem(tmp_path_factory):
    random = np.random.default_rng(0)
    population = pd.DataFrame(random.normal(size=(20_000, 3)), columns=["a", "b", "c"])
    chance = 1 / (1 + np.exp(-2 * population["a"]))
    sample = population[random.uniform(size=20_000) < chance].iloc[:400]
    folder = tmp_path_factory.mktemp("layouts")
    population.to_parquet(folder / "one.parquet")
    for number, part in enumerate(np.array_split(np.arange(20_000), 10)):
        population.iloc[part].to_parquet(folder / f"part-{number}.parquet")
    weighter = KernelMeanMatching(overlap="ignore")
    return sample, population, folder, weighter.fit(sample, population=population).weights_


FORMS = {
    "one file": lambda rows, folder: str(folder / "one.parquet"),
    "ten files": lambda rows, folder: str(folder / "part-*.parquet"),
    "row groups": lambda rows, folder: (
        rows.to_parquet(folder / "small.parquet", row_group_size=777)
        or str(folder / "small.parquet")
    ),
    "permuted": lambda rows, folder: rows.sample(frac=1, random_state=1),
    "Polars": lambda rows, folder: pl.scan_parquet(folder / "one.parquet"),
    "DuckDB": lambda rows, folder: duckdb.sql(f"from '{folder}/one.parquet'"),
    "chunks": lambda rows, folder: [rows.iloc[:7], rows.iloc[7:9000], rows.iloc[9000:]],
}


@pytest.mark.parametrize("form", FORMS)
def test_the_weights_are_the_same_for_every_form(problem, form):
    sample, population, folder, expected = problem
    given = FORMS[form](population, folder)
    weights = KernelMeanMatching(overlap="ignore").fit(sample, population=given).weights_
    assert np.abs(weights - expected).sum() <= 1e-3 * expected.sum()
