"""The numbers that the charts are given."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
from tests.report.examples import HOSTILE, example

from unskew.diagnostics.diagnosis import (
    BalanceLine,
    Difference,
    Distribution,
    FeatureBalance,
    Histogram,
)
from unskew.report import charts, vega

OUR_FIELDS = {
    *("feature", "name", "before", "after", "before_shape", "after_shape", "zero"),
    *("low", "high", "rows", "population", "sample", "weighted", "category"),
    *("before_text", "after_text", "range_text", "rows_text"),
    *("label_text", "sample_text", "weighted_text", "population_text"),
}


def values(spec: dict) -> list[dict]:
    return spec["data"]["values"]


def fields(spec) -> set[str]:
    if isinstance(spec, dict):
        own = {spec["field"]} if isinstance(spec.get("field"), str) else set()
        return own.union(*(fields(part) for part in spec.values()))
    return set().union(*(fields(part) for part in spec)) if isinstance(spec, list) else set()


def feature(shown: Distribution, kind="number") -> FeatureBalance:
    lines = (BalanceLine(None, 0.1, None),)
    return FeatureBalance("x", kind, lines, 0, Difference(None, 0.1, 0.0), None, shown)


def lines(features) -> list:
    return [(feature, line) for feature in features for line in feature.lines]


def test_the_love_plot_holds_the_differences():
    shown = lines(example("survey").bias.features)
    rows = values(charts.love_plot(shown, 0.1))
    assert len(rows) == len(shown)
    for row, (feature, line) in zip(rows, shown, strict=True):
        assert row["before"] == pytest.approx(line.before, rel=1e-5)
        assert row["after"] == pytest.approx(line.after, rel=1e-5)
        assert row["before_shape"] == "circle"
        name = feature.name if line.category is None else f"{feature.name} = {line.category}"
        assert row["feature"] == name


def test_what_lies_beyond_the_axis_is_marked_at_its_end():
    shown = lines(example("hopeless").bias.features)
    assert shown[0][1].before == math.inf
    end = max(line.size for _, line in shown[1:])
    rows = values(charts.love_plot(shown, 0.1))
    assert rows[0]["before"] == pytest.approx(end, rel=1e-5)
    assert rows[0]["before_shape"] == "triangle-right"
    assert rows[0]["before_text"] == "+∞"
    far = (shown[1][0], replace(shown[1][1], before=-7.5))
    row = values(charts.love_plot([far, *shown[2:]], 0.1))[0]
    assert (row["before"], row["before_shape"]) == (-charts.MAX_AXIS, "triangle-left")
    assert row["before_text"] == "−7.50"


def test_bars_have_the_share_as_height():
    shown = Distribution(("a", "b"), (0.0, 1.0, 2.0), (0.25, 0.75), None, (0.5, 0.5))
    rows = values(charts.distribution(feature(shown)))[:-1]
    assert [(row["low"], row["high"], row["sample"]) for row in rows] == [
        (0, 1, 0.25),
        (1, 2, 0.75),
    ]


def test_bins_without_edges_and_rare_categories_are_not_drawn():
    shown = Distribution(("0 to 1", "(missing)"), (0.0, 1.0), (0.9, 0.1), None, (1.0, 0.0), 1)
    assert (
        len(values(charts.distribution(feature(shown)))) == 2
    )  # one bar, and the end of the last step
    shares = (*(share / 210 for share in range(1, 20)), 0.001, 0.0)
    labels = (*(str(place) for place in range(19)), "(other)", "(missing)")
    many = Distribution(labels, None, shares, None, shares, 2)
    drawn = [row["category"] for row in values(charts.distribution(feature(many, "category")))]
    assert drawn == [*(str(place) for place in range(9, 19)), "(other)", "(missing)"]
    each = values(charts.distribution(feature(many, "number")))
    assert [row["category"] for row in each] == list(labels)  # numbers stay in line
    assert charts.distribution(feature(Distribution((), None, (), None, ()))) is None


@pytest.mark.parametrize("edges", [(1.0, 1.0), (0.5, 2.0), (1e-7, 1e6), (1e-300, 1e-299)])
def test_a_histogram_of_any_width_has_ticks_within_it(edges):
    spec = charts.weights(Histogram(edges, (5,)))
    axis = spec["layer"][0]["encoding"]["x"]
    low, high = axis["scale"]["domain"]
    assert low <= 1 <= high
    assert all(low <= tick <= high for tick in axis["axis"]["values"])
    assert 1 <= len(axis["axis"]["values"]) <= 9
    assert vega.svg(spec, 300, 100).startswith("<svg")


def test_no_text_of_the_data_becomes_a_field_or_an_expression():
    for hostile in example("hostile").bias.features:
        spec = charts.distribution(hostile)
        assert fields(spec) <= OUR_FIELDS
        rest = {key: part for key, part in spec.items() if key != "data"}
        tried = [json.dumps(bad)[1:-1] for bad in HOSTILE if bad.strip()]
        assert not [bad for bad in tried if bad in json.dumps(rest)]
    spec = charts.love_plot(lines(example("hostile").bias.features), 0.1)
    assert fields(spec) <= OUR_FIELDS


def test_equal_labels_stay_two_rows():
    long = "x" * 100
    features = tuple(
        replace(feature, name=f"{long}{place}")
        for place, feature in enumerate(example("survey").bias.features[:2])
    )
    assert len({row["feature"] for row in values(charts.love_plot(lines(features), 0.1))}) == 2
