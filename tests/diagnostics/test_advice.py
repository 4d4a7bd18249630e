"""The next step, in Python's words and in options."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from unskew import HistogramWeights, TreeWeights, diagnose
from unskew.cli.methods import step_in_options
from unskew.errors import OverlapError
from unskew.weighters.next_step import NextStep


@pytest.fixture(scope="module")
def two_causes():
    """A sample that was selected by two columns, of which its label depends on one."""
    random = np.random.default_rng(1)
    people = pd.DataFrame({f"x{k}": random.normal(size=4000) for k in range(3)})
    takes_part = random.uniform(size=4000) < 0.3 / (1 + np.exp(-people["x0"] - 1.2 * people["x1"]))
    return people[takes_part], people


def test_bias_that_is_left(two_causes):
    sample, people = two_causes
    found = diagnose(sample, people, TreeWeights().fit(sample, sample["x0"], population=people))
    assert found.bias_left
    step = found.verdict.next_step
    assert step.weighters == ("AutoWeights", "CalibrationWeights")
    assert step.settings == ("a smaller min_samples_leaf",)
    assert "x1 by 0." in step.reason
    assert str(found).endswith(f"Next step: {step}")
    assert json.loads(found.to_json())["verdict"]["next_step"]["weighters"] == [*step.weighters]
    assert "Next step: try a smaller min" in found.to_markdown().replace("\\", "")


def test_a_good_verdict_needs_no_step(two_causes):
    _, people = two_causes
    found = diagnose(people, people)
    assert found.verdict.next_step is None
    assert not found.bias_left


def test_an_identifier_comes_first(two_causes):
    sample, people = two_causes
    sample, people = (
        rows.assign(key=[f"{side}{row}" for row in range(len(rows))])
        for side, rows in (("s", sample), ("p", people))
    )
    found = diagnose(sample, people, columns=["x0", "key"])
    assert found.verdict.next_step.leave_out == ("key",)


def test_regions_without_sample_rows(two_causes):
    sample, people = two_causes
    found = diagnose(sample[sample["x0"] > 0.5], people)
    assert found.verdict.status == "not correctable"
    assert found.bias_left
    assert "collect data where the sample has no rows" in str(found)
    assert "no method makes up for rows that the sample lacks" in str(found)


def test_too_many_buckets(two_causes):
    sample, people = two_causes
    arguments = {"overlap": 0.05, "buckets": 9}
    with pytest.raises(
        OverlapError, match=r"Try buckets=(\d) or TreeWeights, or weigh by"
    ) as error:
        HistogramWeights(**arguments).fit(sample, population=people)
    fewer = int(str(error.value).partition("buckets=")[2][0])
    weighter = HistogramWeights(overlap=0.05, buckets=fewer).fit(sample, population=people)
    assert weighter.uncovered_ <= 0.05
    assert weighter.coverage_advice() is None


@pytest.mark.parametrize(
    ("step", "python", "options"),
    [
        (NextStep(leave_out=("a b", "c")), "leave out 'a b', 'c' (columns=[...]).",
         "leave out 'a b', 'c' (--exclude 'a b,c')."),
        (NextStep(leave_out=("a,b", "c")), "leave out 'a,b', 'c' (columns=[...]).",
         "leave out 'a,b', 'c' (--exclude a,b --exclude c)."),
        (NextStep("why", settings=("a larger ridge",), weighters=("TreeWeights",)),
         "try a larger ridge or TreeWeights: why.",
         "try a larger ridge (--set ridge=…) or --method tree: why."),
    ],
)  # fmt: skip
def test_words(step, python, options):
    assert str(step) == python
    assert step_in_options(step) == options
    assert step.sentence().startswith(python[0].upper() + python[1:4])
