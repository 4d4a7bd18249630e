"""Reports of what ``diagnose`` finds in ugly data."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from tests.report.examples import HOSTILE

from unskew import diagnose
from unskew.cli.outputs import format_diagnosis
from unskew.report.sections import build_report
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


def test_every_form_shows_the_same_category_before_and_after():
    # Of two categories the differences are opposite, up to rounding: men +0.19, women −0.19.
    random = np.random.default_rng(0)
    town = random.choice(["Ulm", "Bonn", "Kiel"], 400)
    population = pd.DataFrame({"sex": ["Male"] * 268 + ["Female"] * 132, "town": town})
    sample = pd.DataFrame({"sex": ["Male"] * 304 + ["Female"] * 96, "town": town})
    weights = np.where(sample["sex"] == "Male", 294 / 304, 106 / 96)
    deviation = np.sqrt(0.67 * 0.33)
    before, after = f"+{0.09 / deviation:.2f}", f"+{0.065 / deviation:.2f}"
    diagnosis = diagnose(sample, population, weights)
    assert f"  sex = Male: {before}, with the weights {after}" in format_diagnosis(diagnosis)
    assert f"| `sex` | `Male` | {before} | {after} |" in diagnosis.to_markdown()
    love, *_ = build_report(diagnosis).charts()
    (row,) = [row for row in love.spec["data"]["values"] if row["feature"].startswith("sex")]
    shown = [row[key] for key in ("feature", "before_text", "after_text")]
    assert shown == ["sex = Male", before, after]
    assert f"Mean difference {before} → {after} for Male" in diagnosis.to_html(static=True)


def test_categories_that_are_not_listed_are_counted():
    names = [f"z{place:04d}" for place in range(5000)]
    population = pd.DataFrame({"z": names, "x": np.arange(5000.0)})
    diagnosis = diagnose(population.sample(60, random_state=0), population)
    lines = format_diagnosis(diagnosis)
    assert len(lines) < 20
    assert "  … and 60 more columns or categories outside ± 0.1" in lines
    text = diagnosis.to_markdown()
    assert "More than these are not listed: z (41)." in text
    assert text.count("| `z` |") == 20
    assert len(diagnosis.to_json()) < 50_000
