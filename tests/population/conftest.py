from __future__ import annotations

import pytest
from tests.population.small_files import CountingStore


@pytest.fixture
def small_parts(monkeypatch):
    """Keep the small row groups of these tests apart."""
    monkeypatch.setattr("unskew.population.sources.parquet.BLOCK_ROWS", 20)


@pytest.fixture
def store():
    CountingStore.store.clear()
    CountingStore.opened.clear()
    return CountingStore(skip_instance_cache=True)
