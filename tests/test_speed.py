"""The page on speed shows the stored figures, misses too."""

from __future__ import annotations

import numpy as np
import pytest

benchmark = pytest.importorskip("benchmarks.speed.__main__", reason="in the repository only")
answers = pytest.importorskip("benchmarks.answers.__main__", reason="in the repository only")


def test_the_page_shows_the_stored_table():
    table = benchmark.stored()
    assert table in benchmark.PAGE.read_text(encoding="utf-8")
    assert {"fits", "overlap", "commands", "kmm", "passes"} <= set(benchmark.TOPICS)
    assert len(table.splitlines()) >= 25
    assert "**" in table  # what misses its limit is shown


@pytest.mark.parametrize(
    ("before", "now", "largest"),
    [
        ([1.0, 3.0], [1.0, 3.5], 0.25),  # over their mean
        (0.02, 0.03, 0.01),
        ([np.nan, 1.0], [np.nan, 1.0], 0.0),
        ([np.nan, 1.0], [2.0, 1.0], np.inf),
        ([1.0, 1.0], [1.0], np.inf),
        ("OverlapError", "OverlapError", 0.0),
        ("OverlapError", [1.0], np.inf),
    ],
)
def test_answers_of_two_revisions_are_compared(before, now, largest):
    assert answers.difference(before, now) == pytest.approx(largest)
