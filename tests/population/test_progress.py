"""How a pass tells how far it has come."""

from __future__ import annotations

import itertools
import threading

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

from unskew import AutoWeights, CalibrationWeights, Population, Reweighted, TreeWeights, diagnose
from unskew.errors import ParameterError
from unskew.population import progress
from unskew.population.summaries import TotalWeight
from unskew.results import Progress


@pytest.fixture
def told(monkeypatch) -> list[Progress]:
    monkeypatch.setattr(progress, "SECONDS_BETWEEN", 0.0)
    return []


def write_files(folder, n_files: int = 4, rows: int = 1000) -> None:
    for number in range(n_files):
        frame = pd.DataFrame({"a": np.arange(rows) + 0.5, "b": number})
        frame.to_parquet(folder / f"{number}.parquet")
        frame.to_csv(folder / f"{number}.csv", index=False)


def check_that_it_only_grows(told: list[Progress]) -> None:
    for earlier, later in itertools.pairwise(told):
        assert earlier.rows <= later.rows
        assert earlier.files <= later.files
        assert earlier.seconds <= later.seconds


def test_rows_and_files_of_parquet(tmp_path, told):
    write_files(tmp_path)
    Population(str(tmp_path / "*.parquet"), progress=told.append).reduce(TotalWeight())
    check_that_it_only_grows(told)
    assert [one.rows for one in told[:3]] == [1000, 2000, 3000]
    assert {(one.total_rows, one.total_files) for one in told} == {(4000, 4)}
    assert (told[-1].rows, told[-1].files, told[-1].share) == (4000, 4, 1.0)
    assert told[-1].seconds_left == 0
    assert (told[0].files, told[0].share) == (0, 0.25)


def test_where_only_reading_tells_the_share_is_of_files(tmp_path, told):
    write_files(tmp_path)
    Population(str(tmp_path / "*.csv"), progress=told.append).reduce(TotalWeight())
    check_that_it_only_grows(told)
    assert [(one.rows, one.files, one.share) for one in told] == [
        (1000, 0, 0.0),
        (2000, 1, 0.25),
        (3000, 2, 0.5),
        (4000, 3, 0.75),
        (4000, 4, 1.0),
    ]
    assert told[0].total_rows is None
    assert told[0].seconds_left is None


def test_without_files_and_without_a_known_number_of_rows(told):
    Population((np.zeros((9, 2)) for _ in range(3)), progress=told.append).reduce(TotalWeight())
    assert (told[0].files, told[0].total_files, told[0].share) == (0, None, None)
    assert (told[-1].rows, told[-1].total_rows, told[-1].share) == (27, 27, 1.0)
    Population(np.zeros((9, 2)), progress=told.append).reduce(TotalWeight())
    assert (told[-1].files, told[-1].total_files, told[-1].share) == (0, None, 1.0)


def test_it_is_called_by_the_thread_that_asked_and_also_through_a_weighter(told):
    callers = set()

    def callback(progress: Progress) -> None:
        callers.add(threading.get_ident())
        told.append(progress)

    rows = np.random.default_rng(0).normal(size=(50_000, 2))
    population = Population(rows, progress=callback)
    TreeWeights().fit(rows[:100], rows[:100, 0], population=population)
    assert callers == {threading.get_ident()}
    reading = [one for one in told if not one.doing]
    assert reading[-1].rows == 50_000
    # What takes long beside reading is named, too.
    assert "growing a tree on 100 rows" in [one.doing for one in told]
    assert told[-1].doing == "searching for what the sample does not cover"
    assert told[-1].share is None


def test_what_is_done_is_told_to_the_population_that_is_weighed_against(told):
    random = np.random.default_rng(0)
    sample, rows = random.normal(0.5, 1, (300, 2)), random.normal(size=(1000, 2))
    AutoWeights().fit(sample, population=Population(rows, progress=told.append))
    doing = [one.doing for one in told if one.doing]
    assert "fitting a logistic model of selection" in doing
    assert [text for text in doing if "boosting" in text] == [
        f"boosting trees, {number} of 5" for number in range(1, 6)
    ]
    before = len(told)
    weighter = CalibrationWeights().fit(sample, population=rows)
    assert len(told) == before
    diagnose(sample, Population(rows, progress=told.append), weighter)
    assert "judging the weights on rows held out, 5 of 5" in [one.doing for one in told]


def test_choosing_a_strength_and_training_are_told(told):
    random = np.random.default_rng(0)
    sample, rows = random.normal(0.5, 1, (300, 2)), random.normal(size=(1000, 2))
    population = Population(rows, progress=told.append)
    Reweighted(LinearRegression(), power=1.0).fit(sample, sample[:, 0], population=population)
    assert told[-1].doing == "training the learner"


def test_an_exception_of_the_callback_ends_the_pass(told):
    def stop(progress: Progress) -> None:
        raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        Population(np.zeros((100_000, 2)), progress=stop).reduce(TotalWeight(), threads=2)


def test_it_is_told_at_most_ten_times_a_second():
    told = []
    Population(np.zeros((2_000_000, 1)), progress=told.append).reduce(TotalWeight())
    assert 1 <= len(told) <= 2 + told[-1].seconds * 10
    assert told[-1].rows == 2_000_000


def test_the_time_left_goes_by_the_latest_pace_of_the_pass():
    progress = Progress(600, 1000, 0, None, seconds=22.0, since=(0.4, 20.0))
    assert progress.seconds_left == pytest.approx(4.0)  # 200 rows in 2 s, 400 to go
    # No forecast by a pace that has hardly begun.
    assert Progress(1, 100_000, 0, None, seconds=1.9).seconds_left is None
    assert Progress(600, 1000, 0, None, seconds=21.0, since=(0.4, 20.0)).seconds_left is None


def test_a_slow_start_is_not_forecast_from(monkeypatch, told):
    clock = [0.0]
    monkeypatch.setattr(progress.time, "perf_counter", lambda: clock[0])
    reporter = progress.Reporter(told.append, 30_000, None)
    for second in range(1, 40):  # ten seconds for the first ten rows, then 1,000 rows a second
        clock[0] = float(second)
        reporter.advance(second if second <= 10 else 1000 * (second - 10), 0)
    forecasts = {one.seconds: one.seconds_left for one in told}
    assert [forecasts[second] for second in (20.0, 30.0, 39.0)] == pytest.approx(
        [20.0, 10.0, 1.0], abs=0.1
    )


def test_something_that_cannot_be_called_is_refused():
    with pytest.raises(ParameterError, match="progress must be a function"):
        Population(np.zeros((2, 2)), progress="bar")


def test_a_frame_with_a_column_of_that_name_is_no_listener():
    rows = pd.DataFrame({"progress": np.linspace(0, 1, 40)})
    weighter = TreeWeights(min_samples_leaf=5).fit(rows, rows["progress"], population=rows)
    assert weighter.weights_ == pytest.approx(1)
