"""Margins: forms of tables, levels and bands, contradictions, and what they answer."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from unskew import (
    CalibrationWeights,
    FrequencyWeights,
    HistogramWeights,
    KernelMeanMatching,
    Margins,
    Unweighted,
)
from unskew.errors import CollapsedLevelsWarning, InputError, OverlapWarning, ParameterError
from unskew.population.margin_levels import parse_bands

SEX = {"f": 60, "m": 40}
SAMPLE = pd.DataFrame({"sex": list("ffmmm"), "age": [20, 30, 40, 50, 60]})


def weights(margins, sample=SAMPLE, **options):
    options = {"total": "population", **options}
    return CalibrationWeights(**options).fit(sample, population=margins).weights_


EXPECTED = [30, 30, 40 / 3, 40 / 3, 40 / 3]


@pytest.mark.parametrize(
    "table",
    [
        SEX,
        pd.Series(SEX),
        pd.DataFrame({"sex": ["f", "m"], "Freq": [60, 40]}),
        pl.DataFrame({"sex": ["f", "m"], "n": [60, 40]}),
        pa.table({"n": [60, 40], "sex": ["f", "m"]}),
        {("f",): 60, ("m",): 40},
        {"f": np.int64(60), "m": np.float32(40)},
    ],
    ids=lambda table: type(table).__module__.split(".")[0],
)
def test_a_table_may_have_many_forms(table):
    assert weights(Margins({"sex": table})) == pytest.approx(EXPECTED)


ROWS = pd.DataFrame({"a": list("xxyyy"), "b": list("uvuvv")})
CROSS = pd.DataFrame(
    [[10, 20], [30, 40]], pd.Index(["x", "y"], name="a"), pd.Index(["u", "v"], name="b")
)
JOINT = {("x", "u"): 10, ("x", "v"): 20, ("y", "u"): 30, ("y", "v"): 40}


@pytest.mark.parametrize(
    "table",
    [
        JOINT,
        {"x": {"u": 10, "v": 20}, "y": {"u": 30, "v": 40}},
        pd.Series(JOINT),
        CROSS,
        CROSS.T,
        pd.DataFrame({"b": list("uvuv"), "a": list("xxyy"), "n": [10, 20, 30, 40]}),
    ],
    ids=["tuples", "nested", "series", "cross table", "turned", "long"],
)  # fmt: skip
def test_a_joint_table_may_have_many_forms(table):
    expected = [10, 20, 30, 20, 20]
    margins = Margins({("a", "b"): table})
    assert weights(margins, ROWS) == pytest.approx(expected)
    for weighter in (FrequencyWeights(total="population"), HistogramWeights(total="population")):
        assert weighter.fit(ROWS, population=margins).weights_ == pytest.approx(expected)
    # What is asked of one column is answered by the table of both.
    one = weights(margins, ROWS, features=["a"])
    assert one == pytest.approx([15, 15, 70 / 3, 70 / 3, 70 / 3])


def test_long_tables_and_shares_and_percent():
    table = pd.DataFrame({"variable": ["sex", "sex"], "category": ["f", "m"], "count": [60, 40]})
    assert weights(Margins.from_table(table)) == pytest.approx(EXPECTED)
    renamed = table.rename(columns={"variable": "v", "category": "c", "count": "p"})
    percent = Margins.from_table(
        renamed, variable="v", category="c", count="p", unit="percent", size=100
    )
    assert weights(percent) == pytest.approx(EXPECTED)
    shares = Margins(shares={"sex": {"f": 0.6, "m": 0.4}})
    assert weights(shares, total="sample") == pytest.approx(np.array(EXPECTED) / 20)
    with pytest.raises(InputError, match="size of the population is not known"):
        weights(shares)
    with pytest.raises(InputError, match="lacks column 'variable'"):
        Margins.from_table(renamed)


def test_means_and_totals():
    by_mean = weights(Margins({"sex": SEX}, means={"age": 38.0}))
    by_total = weights(Margins({"sex": SEX}, totals={"age": 3800.0}))
    assert np.average(SAMPLE.age, weights=by_mean) == pytest.approx(38)
    assert by_mean == pytest.approx(by_total)


def test_totals_under_names_of_r():
    margins = Margins.from_totals({"(Intercept)": 100, "sexm": 40, "age": 3800})
    assert weights(margins) == pytest.approx(weights(Margins({"sex": SEX}, means={"age": 38.0})))
    with pytest.raises(InputError, match="'townU' of the totals is neither a column"):
        weights(Margins.from_totals({"(Intercept)": 100, "townU": 40, "sexm": 40}))
    with pytest.raises(InputError, match="exactly one level without a total"):
        weights(Margins.from_totals({"(Intercept)": 100, "sexm": 40, "sexf": 60}))
    with pytest.raises(ParameterError, match=r"lacks '\(Intercept\)'"):
        Margins.from_totals({"sexm": 40})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "all are empty"),
        ({"counts": {"sex": {}}}, "counts of 'sex' is empty"),
        ({"counts": {"sex": {"f": -1, "m": 2}}}, "level 'f' has -1"),
        ({"counts": {"sex": {"f": np.nan, "m": 2}}}, "level 'f' has nan"),
        ({"counts": {"sex": {"f": "many", "m": 2}}}, "level 'f' has 'many'"),
        ({"counts": {"sex": 3}}, "must be a mapping"),
        ({"counts": {3: SEX}}, "name of a column"),
        ({"counts": {("a", "b"): SEX}}, "must have 2 parts"),
        ({"counts": {"sex": {"f": {"x": 1}}}}, "nested deeper"),
        ({"counts": {"a": pd.DataFrame({"a": [1], "b": [1], "c": [1]})}}, "one of counts"),
        ({"shares": {"sex": {"f": 0.6, "m": 0.5}}}, "add up to 1.1, not 1"),
        ({"shares": {"sex": {"f": 60, "m": 40}}}, 'unit="percent"'),
        ({"counts": {"sex": SEX}, "shares": {"sex": {"f": 0.6, "m": 0.4}}}, "both counts and sh"),
        ({"means": {"age": "old"}}, r"means\['age'\] must be a number"),
        ({"means": {"age": 1}, "totals": {"age": 1}, "size": 5}, "both a mean and a total"),
        ({"totals": {"age": 1}}, "needs the population's size"),
        ({"counts": {"sex": SEX}, "size": 0}, "size must be a positive number"),
        ({"counts": {"sex": SEX}, "size": 120}, "adds up to 100 and size is 120"),
        ({"counts": {"sex": SEX, "a": {"x": 90}}}, "a adds up to 90 and the margin of sex to 100"),
        ({"counts": {"sex": SEX}, "unit": "permille"}, "unit"),
        ({"counts": {"sex": SEX}, "collapse": 0}, "collapse"),
        ({"counts": {"sex": SEX}, "reconcile": "guess"}, "reconcile"),
        ({"counts": {"sex": SEX}, "standard_errors": {"age": 1.0}}, "standard_errors names 'age'"),
    ],
)  # fmt: skip
def test_contradictions_are_refused(options, message):
    with pytest.raises((InputError, ParameterError), match=message):
        Margins(**options)


@pytest.mark.parametrize(
    ("shares", "unit", "rounded"),
    [
        ({"f": 33.3, "m": 33.3, "x": 33.3}, "percent", True),
        ({"f": 51.2, "m": 48.7}, "percent", True),
        ({"f": 33, "m": 66}, "percent", True),
        ({"f": 0.333, "m": 0.333, "x": 0.333}, "share", True),
        ({"f": 0.3334, "m": 0.6667}, "share", True),
        ({"f": 60.0, "m": 38.0}, "percent", False),
        ({"f": 33.33, "m": 66.57}, "percent", False),
        ({"f": 0.3, "m": 0.3, "x": 0.3}, "share", False),
        ({"f": 33.3, "m": 33.3, "x": 33.3}, "share", False),
        ({"f": 0.6, "m": 0.4}, "percent", False),
    ],
)
def test_shares_may_add_up_within_their_rounding(shares, unit, rounded):
    sample = pd.DataFrame({"sex": [*shares, *shares]})
    if rounded:
        with pytest.warns(UserWarning, match="The shares of sex add up to .* as rounded numbers"):
            margins = Margins(shares={"sex": shares}, unit=unit)
    else:
        with pytest.raises(InputError, match="Correct them|Use unit="):
            Margins(shares={"sex": shares}, unit=unit)
        with pytest.warns(UserWarning, match="they are scaled"):
            margins = Margins(shares={"sex": shares}, unit=unit, reconcile="scale")
    found = weights(margins, sample, total="sample")
    expected = np.array(list(shares.values())) / sum(shares.values())
    assert found[: len(shares)] / found[: len(shares)].sum() == pytest.approx(expected)


def test_a_level_that_the_margin_lacks_is_counted_alone():
    sample = pd.DataFrame({"sex": ["F"] * 3 + ["M"] * 4, "code": [1.5] * 2 + [2.5] * 5})
    with pytest.raises(InputError, match=r"'F' in column 'sex' \(3 rows\)"):
        weights(Margins({"sex": SEX}), sample)
    with pytest.raises(InputError, match=r"1.5 in column 'code' \(2 rows\)"):
        weights(Margins({"code": {3: 1, 4: 2}}), sample)


def test_margins_of_different_totals_are_scaled_if_asked():
    counts = {"sex": SEX, "a": {"x": 45, "y": 45}}
    sample = SAMPLE.assign(a=list("xyxyx"))
    scaled = weights(Margins(counts, reconcile="scale"), sample)
    assert scaled.sum() == pytest.approx(100)
    assert scaled[sample.a == "x"].sum() == pytest.approx(50)
    assert weights(Margins(counts, reconcile="scale", size=200), sample).sum() == pytest.approx(200)


def test_a_level_that_the_margin_lacks_is_an_error_with_the_nearest_spelling():
    with pytest.raises(InputError, match=r"'m' in column 'sex' \(3 rows\).*Did you mean 'M'"):
        weights(Margins({"sex": {"f": 60, "M": 40}}))
    spaces = SAMPLE.assign(sex=["f ", "f", "m", "m", "m"])
    with pytest.raises(InputError, match="'f ' in column 'sex'.*Did you mean 'f'"):
        weights(Margins({"sex": SEX}), spaces)
    gaps = SAMPLE.assign(sex=["f", None, "m", "m", "m"])
    with pytest.raises(InputError, match="1 sample rows have no value in column 'sex'"):
        weights(Margins({"sex": SEX}), gaps)
    known = weights(Margins({"sex": {"f": 50, "m": 40, None: 10}}), gaps)
    assert known == pytest.approx([50, 10, 40 / 3, 40 / 3, 40 / 3])
    with pytest.raises(InputError, match="1 sample rows have no value in column 'age'"):
        weights(Margins({"sex": SEX}, means={"age": 40}), SAMPLE.assign(age=[1, 2, None, 4, 5]))
    with pytest.raises(InputError, match="'sex', which holds text"):
        weights(Margins(means={"sex": 0.5}))
    with pytest.raises(InputError, match="1 rows with a=x, b=u, which the joint margin"):
        weights(Margins({("a", "b"): {k: n for k, n in JOINT.items() if k != ("x", "u")}}), ROWS)


def test_a_level_without_sample_rows_is_uncovered():
    margins = Margins({"sex": {"f": 50, "m": 40, "x": 10}})
    with pytest.warns(OverlapWarning, match="10.0%"):
        weighter = CalibrationWeights().fit(SAMPLE, population=margins)
    assert weighter.uncovered_ == pytest.approx(0.1)
    assert weighter.targets_ == pytest.approx([5 / 9, 4 / 9])
    with pytest.warns(CollapsedLevelsWarning, match=r"'x' \(0 sample rows\) with 'f'"):
        merged = CalibrationWeights().fit(
            SAMPLE, population=Margins({"sex": {"f": 50, "m": 40, "x": 10}}, collapse=1)
        )
    assert merged.features_ == ["sex=f + x", "sex=m"]
    assert merged.targets_ == pytest.approx([0.6, 0.4])


def test_bands_collapse_with_their_neighbours():
    ages = pd.DataFrame({"age": [20, 21, 22, 30, 50, 51, 52, 53]})
    margins = Margins({"age": {"50+": 40, "18-24": 40, "25-34": 15, "35-49": 5}}, collapse=2)
    with pytest.warns(CollapsedLevelsWarning) as caught:
        weighter = CalibrationWeights().fit(ages, population=margins)
    assert "'35-49' (0 sample rows) with '25-34'" in str(caught[0].message)
    # One row is still too few, and of its neighbours '18-24' has fewer rows.
    assert "with '18-24'" in str(caught[0].message)
    assert sorted(weighter.targets_) == pytest.approx([0.4, 0.6])


@pytest.mark.parametrize(
    ("labels", "numbers", "bands"),
    [
        (["18-24", "25-34", "35+"], [18, 24.9, 25, 34, 35, 99], [0, 0, 1, 1, 2, 2]),
        (["under 18", "18 to 64", "65 and over"], [-1, 17.9, 18, 64.5, 65], [0, 0, 1, 1, 2]),
        (["≤18", ">18"], [18, 18.001], [0, 1]),
        (["[0, 10)", "[10, 20]", "(20, 30]"], [0, 10, 20, 20.1, 30], [0, 1, 1, 2, 2]),
        (["$0-19,999", "20,000-49,999", "50,000 or more"], [0, 19999, 20000, 5e4], [0, 0, 1, 2]),
        (["0-5", "5-10"], [5, 10], [1, 1]),
        (["0", "1", "2 or more"], [0, 1, 2, 7], [0, 1, 2, 2]),
        (["18–24 years", "25+ years"], [20, 30], [0, 1]),
    ],
)
def test_labels_of_bands(labels, numbers, bands):
    assert parse_bands(labels, "age").of(np.array(numbers, dtype=float)).tolist() == bands


def test_bands_that_cannot_be():
    with pytest.raises(InputError, match="'young' of the margin of column 'age'"):
        weights(Margins({"age": {"young": 1, "old": 2}}))
    with pytest.raises(InputError, match="'18-40' and '30-70' of column 'age' overlap"):
        weights(Margins({"age": {"18-40": 1, "30-70": 2}}))
    with pytest.raises(InputError, match="ends before it begins"):
        weights(Margins({"age": {"40-18": 1}}))
    with pytest.raises(InputError, match="20 in column 'age'"):
        weights(Margins({"age": {"30-70": 2}}))
    named = Margins({"age": {"young": 30, "old": 70}}, bands={"age": [0, 45, 100]})
    assert weights(named) == pytest.approx([10, 10, 10, 35, 35])
    opened = Margins({"age": {"young": 30, "old": 70}}, bands={"age": [45]})
    assert weights(opened) == pytest.approx([10, 10, 10, 35, 35])
    with pytest.raises(InputError, match="borders for the 2 levels"):
        weights(Margins({"age": {"young": 1, "old": 2}}, bands={"age": [1, 2, 3, 4, 5]}))


def test_numbers_as_levels():
    sample = pd.DataFrame({"region": [1, 1, 2, 2], "member": [True, False, True, False]})
    margins = Margins({"region": {1: 30, 2.0: 70}, "member": {"yes": 50, "no": 50}})
    assert weights(margins, sample) == pytest.approx([15, 15, 35, 35])


def test_histograms_need_bands_within_their_borders():
    margins = Margins({"age": {"under 35": 40, "35+": 60}})
    histogram = HistogramWeights(buckets={"age": [35]}, total="population")
    assert histogram.fit(SAMPLE, population=margins).weights_ == pytest.approx([20, 20, 20, 20, 20])
    with pytest.raises(InputError, match="under 35.*lies in several cells"):
        HistogramWeights(buckets={"age": [25]}).fit(SAMPLE, population=margins)


def test_weighters_that_need_rows_say_so():
    with pytest.raises(InputError, match="KernelMeanMatching asks what these Margins do not know"):
        KernelMeanMatching().fit(SAMPLE, population=Margins({"sex": SEX}))
    with pytest.raises(InputError, match="asks what these Margins do not know"):
        CalibrationWeights(features=[("sex", "age")]).fit(
            SAMPLE, population=Margins({"sex": SEX}, means={"age": 40})
        )
    with pytest.raises(InputError, match="No margin of column 'age' is known"):
        CalibrationWeights(columns=["sex", "age"]).fit(SAMPLE, population=Margins({"sex": SEX}))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Unweighted().fit(SAMPLE, population=Margins({"sex": SEX})).weights_.sum() == 5


def test_margins_from_rows():
    rows = pd.DataFrame({"sex": list("ffm"), "age": [21, 32, 55], "w": [1.0, 2.0, 3.0]})
    from unskew import Population

    margins = Margins.from_population(Population(rows, weight="w"), ["sex", "age"])
    assert margins.mass == 6
    again = Margins({"sex": {"f": 3, "m": 3}}, totals={"age": 250.0})
    features = ["sex", "age"]
    assert np.array_equal(weights(margins, features=features), weights(again, features=features))
    with pytest.raises(InputError, match="lacks column 'town'"):
        Margins.from_population(rows, ["town"])
    with pytest.raises(InputError, match="1 missing numbers"):
        Margins.from_population(rows.assign(age=[1, None, 2]), ["age"])


NUMBERS = [1, 2, 3, 3]


@pytest.mark.parametrize(
    "labels",
    [[1, 2, 3], [1.0, 2.0, 3.0], ["1", "2", "3"], list(np.array([1, 2, 3], np.float32))],
    ids=["int", "float", "text", "float32"],
)
@pytest.mark.parametrize(
    "column",
    [
        pd.Categorical(NUMBERS),
        pd.Categorical(np.array(NUMBERS, np.float32)),
        pd.Categorical(["1", "2", "3", "3"]),
        np.array(NUMBERS, np.float32),
        NUMBERS,
        ["1", "2", "3", "3"],
    ],
    ids=["categories", "float32 categories", "text categories", "float32", "int", "text"],
)
def test_numbers_match_levels_in_any_type(column, labels):
    known = Margins({"a": dict(zip(labels, [50, 30, 20], strict=True))})
    weighter = CalibrationWeights().fit(pd.DataFrame({"a": column}), population=known)
    assert weighter.weights_ == pytest.approx([2.0, 1.2, 0.4, 0.4])


def test_single_precision_on_either_side():
    tenths = np.array([0.1, 0.2, 0.3, 0.3])
    for column in (tenths, np.float32(tenths), pd.Categorical(np.float32(tenths))):
        for labels in (tenths[:3], np.float32(tenths[:3])):
            known = Margins({"a": dict(zip(labels, [50, 30, 20], strict=True))})
            weighter = CalibrationWeights().fit(pd.DataFrame({"a": column}), population=known)
            assert weighter.weights_ == pytest.approx([2.0, 1.2, 0.4, 0.4])


def test_categories_of_booleans():
    frame = pd.DataFrame({"a": pd.Categorical([True, False, True])})
    weighter = CalibrationWeights().fit(frame, population=Margins({"a": {True: 3, False: 7}}))
    assert weighter.weights_ == pytest.approx([0.45, 2.1, 0.45])


def test_the_message_counts_the_rows_of_each_value():
    frame = pd.DataFrame({"a": pd.Categorical([1, 4, 4, 5])})
    expected = r"has 4 in column 'a' \(2 rows\).*it has 1, 2\. It lacks the values of 1 further"
    with pytest.raises(InputError, match=expected):
        CalibrationWeights().fit(frame, population=Margins({"a": {1: 3, 2: 7}}))


def test_numbers_and_text_as_categories_are_told_apart():
    codes, text = pd.Categorical([1, 2]), pd.Categorical(["1", "2"])
    with pytest.raises(InputError, match="holds categories that are numbers in the sample"):
        CalibrationWeights().fit(pd.DataFrame({"a": codes}), population=pd.DataFrame({"a": text}))
