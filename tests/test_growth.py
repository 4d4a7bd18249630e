"""The table of growth in the docs is the stored one."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.growth.__main__ import RESULTS, line

PAGE = Path(__file__).parents[1] / "docs" / "large-populations.md"


def test_the_page_shows_every_stored_line():
    page = PAGE.read_text().splitlines()
    stored = [line(one) for one in json.loads(RESULTS.read_text())]
    shown = [text for text in page if text in stored]
    assert len(stored) >= 3
    assert shown == stored
