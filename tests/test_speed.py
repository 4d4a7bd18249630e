"""The page on speed shows the stored figures, misses too."""

from __future__ import annotations

import pytest

benchmark = pytest.importorskip("benchmarks.speed.__main__", reason="in the repository only")


def test_the_page_shows_the_stored_table():
    table = benchmark.stored()
    assert table in benchmark.PAGE.read_text(encoding="utf-8")
    assert {"fits", "overlap", "commands", "kmm", "passes"} <= set(benchmark.TOPICS)
    assert len(table.splitlines()) >= 25
    assert "**" in table  # what misses its limit is shown
