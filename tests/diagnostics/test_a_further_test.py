"""A test of shift is one value in a list: verdict, page, JSON and command line show it."""

import numpy as np
import pandas as pd
import pytest

from unskew import diagnose
from unskew.cli import outputs
from unskew.diagnostics import shift_tests
from unskew.diagnostics.diagnosis import Comparison, TwoSampleTest


def range_test(rows):
    """Compare the largest row norm of the two sides: crude, and enough for an example."""
    drawn = rows.draw(rows.design, 10_000)
    norms = np.linalg.norm(rows.points(drawn.rows), axis=1)
    ratio = norms[: drawn.n_sample].max() / norms[drawn.n_sample :].max()
    found = Comparison(float(ratio), None, None, p_value=1e-6 if ratio > 3 else 1.0)
    method = rows.method("ratio of the largest norms", drawn, "p by hand", weighted=False)
    return TwoSampleTest("range", method, found, found if rows.tested is not None else None)


RANGE = shift_tests.ShiftTest(
    "range",
    range_test,
    lambda found, weighted: (
        f"the range is {found.before.statistic:.1f} times the population's"
        + (" still" if weighted else "")
    ),
    ("Range", "1 is no difference"),
)


@pytest.fixture
def data():
    shift_tests.SHIFT_TESTS.append(RANGE)
    random = np.random.default_rng(0)
    sample, population = random.normal(size=(200, 2)), random.normal(size=(1000, 2))
    sample[0] = 30.0  # which no other test minds
    columns = ["a", "b"]
    yield pd.DataFrame(sample, columns=columns), pd.DataFrame(population, columns=columns)
    shift_tests.SHIFT_TESTS.remove(RANGE)


def test_verdict_page_and_command_line_go_through_the_list(data):
    found = diagnose(*data)
    assert found.bias.tests[-1].name == "range"
    assert found.bias_left
    sentence = "the range is "
    assert sentence in str(found.verdict)
    assert sentence in "\n".join(outputs.format_diagnosis(found))
    page = found.to_markdown()
    assert "| Range |" in page  # a figure
    assert "ratio of the largest norms" in page  # its method
    assert found.to_dict()["bias"]["range"]["before"]["p_value"] == 1e-6
    assert "still." in str(diagnose(*data, np.ones(200)).verdict)
