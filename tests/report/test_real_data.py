"""Reports of what ``diagnose`` finds in ugly data."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from tests.report.examples import HOSTILE

from unskew import diagnose
from unskew.report.untrusted import visible


def ugly(n_rows: int, seed: int) -> pd.DataFrame:
    """Every kind of column, under names and with categories that try to be more than text."""
    random = np.random.default_rng(seed)
    names = [name for name in HOSTILE if len(name) < 100]
    gaps = random.uniform(size=n_rows) < 0.2
    days = pd.to_timedelta(random.integers(0, 900, n_rows), "D")
    columns = [
        random.normal(1e9, 1e8, n_rows),
        np.where(gaps, np.nan, random.normal(size=n_rows)),
        random.integers(0, 4, n_rows),
        random.choice(np.array(names, dtype=object), n_rows),
        random.uniform(size=n_rows) < 0.5,
        pd.Timestamp("2020-02-29") + days,
        np.full(n_rows, 7.0),
        np.full(n_rows, np.nan),
    ]
    return pd.DataFrame(dict(zip(names, columns, strict=False)))


@pytest.fixture(scope="module", params=[150, 3], ids=["some rows", "three rows"])
def diagnosis(request):
    sample, population = ugly(request.param, 1), ugly(600, 2)
    weights = np.linspace(0.1, 2, len(sample))
    labels = np.array(HOSTILE, dtype=object)[np.arange(len(sample)) % 4]
    return diagnose(sample, population, weights, y=labels)


@pytest.mark.parametrize("static", [False, True])
def test_the_page_of_ugly_data_is_drawn_quietly(diagnosis, static, opened):
    with opened(diagnosis.to_html(static=static), width=360) as page:
        assert page.evaluate("window.hit") is None
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        headings = page.locator("#distributions, article h3").all_inner_texts()
        for feature in diagnosis.bias.features:
            assert visible(feature.name, 80) in headings
        assert page.locator(".chart svg").count() >= len(diagnosis.bias.features)


def test_numbers_and_text_of_ugly_data_are_readable(diagnosis):
    text = diagnosis.to_markdown()
    assert "nan" not in text.split("## How it was computed")[0]
    assert diagnosis.to_json()
