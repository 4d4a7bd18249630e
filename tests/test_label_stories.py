"""The page on selection by the label quotes what its commands print."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "selection-on-the-label.md"

pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="runs in the repository only")


def test_its_tables_are_those_of_the_stories():
    from docs.label_stories import lines

    text = PAGE.read_text(encoding="utf-8")
    for line in lines():
        assert line in text
