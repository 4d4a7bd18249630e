"""The committed result of ``python -m benchmarks.diagnosis two_sample`` keeps what it promises."""

import json

import pytest
from benchmarks.diagnosis.two_sample import RESULT, SCENARIOS, WEIGHTS, interval

LEVEL = 0.05


@pytest.fixture(scope="module")
def result():
    return json.loads(RESULT.read_text())


def test_it_is_the_result_of_these_scenarios(result):
    counted = {name: (kind, one["draws"]) for kind in result for name, one in result[kind].items()}
    planned = {name: (kind, draws) for name, (kind, draws, _) in SCENARIOS.items()}
    assert counted == planned | {name: ("weights", draws) for name, (draws, _) in WEIGHTS.items()}


def test_without_bias_each_test_rejects_at_its_nominal_rate(result):
    for name, one in result["even"].items():
        for test in ("mmd", "classifier"):
            low, high = interval(one[test], one["draws"])
            assert low <= LEVEL <= high, (name, test)
        assert interval(one["verdict"], one["draws"])[0] <= LEVEL, name


def test_a_part_of_the_population_is_tested_with_the_power_of_other_rows(result):
    rates = {name: one["mmd"] / one["draws"] for name, one in result["biased"].items()}
    for slope in ("slope 0.3", "slope 0.5"):
        assert rates[f"{slope}, S in U"] >= rates[f"{slope}, disjoint"] - 0.1
    assert rates["slope 0.3, S in U, marked"] == rates["slope 0.3, S in U"]


def test_overfitted_weights_are_told_from_right_ones(result):
    share = {name: one["overfitted"] / one["draws"] for name, one in result["weights"].items()}
    assert share["inverses of the true probabilities"] <= 0.1
    assert share["kernel mean matching, ridge 0, even sample"] >= 0.8
    assert share["kernel mean matching, ridge 3, even sample"] <= 0.05
