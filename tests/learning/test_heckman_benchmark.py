"""The committed result of ``python -m benchmarks.heckman`` keeps what it promises."""

import json

import pytest
from benchmarks.heckman.__main__ import DESIGNS, DRAWS, RESULT


@pytest.fixture(scope="module")
def result():
    return json.loads(RESULT.read_text())


def test_maximum_likelihood_converges_from_the_two_step_start(result):
    assert result["convergence"]["designs"] == DESIGNS == 200
    assert result["convergence"]["clean"] >= 198


@pytest.mark.parametrize("method", ["two-step", "ml"])
def test_intervals_cover_the_truth_as_often_as_they_say(result, method):
    assert result["coverage"]["draws"] == DRAWS == 1000
    for covered in result["coverage"][method]["covered"]:
        assert 0.93 <= covered <= 0.97


def test_without_an_exclusion_it_fails_as_documented(result):
    without, with_one = result["exclusion"], result["coverage"]
    assert without["two-step"]["mean_width"][0] > 5 * with_one["two-step"]["mean_width"][0]
    assert max(without["ml"]["covered"]) < 0.9


def test_classes(result):
    assert result["classes_coverage"]["draws"] == DRAWS
    for covered in result["classes_coverage"]["covered"]:
        assert 0.93 <= covered <= 0.97
    designs = result["classes_convergence"]
    assert designs["clean"] >= 0.95 * designs["designs"]
    for message in designs["warned"]:  # the others have no maximum
        assert "it still rises as ρ goes to" in message


@pytest.mark.parametrize("part", ["cost", "classes_cost"])
def test_cost(result, part):
    assert (result[part]["rows"], result[part]["columns"]) == (100_000, 20)
    assert result[part]["seconds"] < 10
