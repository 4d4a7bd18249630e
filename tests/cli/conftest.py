"""Commands run in this process, and files of a small survey to run them on."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest

from unskew.cli import main, progress


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def unskew(monkeypatch, capfd) -> Callable[..., Outcome]:
    """A function that runs a command as the shell would, but in this process."""

    # On a busy machine anything takes long: what is named then is for tests of its own.
    monkeypatch.setattr(progress, "NAMED_AFTER", 600.0)

    def run(*arguments, stdin: bytes | None = None) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["unskew", *map(str, arguments)])
        if stdin is not None:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capfd.readouterr()
        code = 0
        try:
            main()
        except SystemExit as stopped:
            code = stopped.code or 0
        return Outcome(code, *capfd.readouterr())

    return run


def _survey(n_rows: int = 4000) -> tuple[pd.DataFrame, pd.DataFrame]:
    random = np.random.default_rng(0)
    people = pd.DataFrame(
        {
            "age": random.integers(18, 90, n_rows),
            "income": random.lognormal(10, 0.5, n_rows).round(2),
            "town": random.choice(["Ulm", "Bonn", "Kiel"], n_rows),
        }
    )
    answers = random.uniform(size=n_rows) < 0.15 / (1 + np.exp((50 - people["age"]) / 15))
    sample = people[answers].reset_index(drop=True)
    spend = 2 * sample["age"] + sample["income"] / 1000 + random.normal(size=len(sample))
    sample.insert(0, "customer", [f"{1000 + row:05d}" for row in range(len(sample))])
    return sample.assign(spend=spend.round(3)), people


SAMPLE, PEOPLE = _survey()


@pytest.fixture
def survey(tmp_path, monkeypatch) -> Path:
    """A folder with answers.csv and people.parquet, which is the working directory."""
    SAMPLE.to_csv(tmp_path / "answers.csv", index=False)
    PEOPLE.to_parquet(tmp_path / "people.parquet", row_group_size=1000)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def answers() -> pd.DataFrame:
    return SAMPLE.copy()


@pytest.fixture
def people() -> pd.DataFrame:
    return PEOPLE.copy()
