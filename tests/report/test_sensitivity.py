"""The sensitivity of an estimate in the report: content, and a curve that draws."""

import re

import numpy as np
import pytest

from unskew import CalibrationWeights, estimate
from unskew.report import sensitivity_blocks, sensitivity_html, sensitivity_svg
from unskew.report.blocks import Charts, Paragraph, Table


@pytest.fixture(scope="module")
def found():
    random = np.random.default_rng(0)
    population, sample = random.normal(size=(900, 2)), random.normal(0.3, 1, (200, 2))
    y = sample[:, 0] + random.normal(size=200)
    weighter = CalibrationWeights(features="means", overlap="ignore")
    return estimate(sample, y, population=population, weighter=weighter).sensitivity(odds=[1.5, 3])


def test_blocks_say_what_the_result_says(found):
    sentence, curve, columns = sensitivity_blocks(found)
    assert isinstance(sentence, Paragraph)
    assert sentence.text == found.sentence
    assert isinstance(curve, Charts)
    (chart,) = curve.charts
    assert [row["odds"] for row in chart.spec["data"]["values"]] == [1, 1.5, 3]
    assert chart.spec["data"]["values"][1]["best_low"] == pytest.approx(
        found.bounds[0].sharp[0], rel=1e-5
    )
    assert chart.table.columns[0].cells == ["1.00", "1.50", "3.00"]
    assert isinstance(columns, Table)
    assert columns.columns[0].cells[0] == found.strongest.column


def test_the_curve_is_drawn_with_colours_of_its_own(found):
    drawn = sensitivity_svg(found)
    assert "var(--" not in drawn
    assert drawn.count("<path") > 5
    page = sensitivity_html(found)
    assert drawn in page
    assert len(re.findall("<tr>", page)) == 4


def test_names_from_the_data_stay_text(found):
    from dataclasses import replace

    bad = replace(found.columns[0], column="<script>x", largest=99.0)
    named = replace(found, columns=(bad,), weighed_by=("<script>x",))
    assert "<script" not in named._repr_html_()
