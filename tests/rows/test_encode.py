from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from tests.population.frequencies import frequencies

from unskew.errors import InputError, InputTypeError
from unskew.rows.design import MAX_CATEGORIES, point_design
from unskew.rows.encode import ColumnCodes
from unskew.rows.kinds import Kind, can_reconcile


def batch(**columns) -> pa.RecordBatch:
    return pa.record_batch(columns)


def codes_of(sample, population, **options):
    return ColumnCodes(**options).fit(sample).transform(population, side="population")


def test_numbers_pass_unchanged_whatever_their_type():
    sample = batch(a=[1, 2], b=[1.5, None], c=[True, False])
    values, novel = codes_of(sample, sample)
    assert novel is None
    assert np.array_equal(values, [[1, 1.5, 1], [2, np.nan, 0]], equal_nan=True)


def test_categories_are_ranked_and_unknown_ones_are_novel():
    sample = batch(town=["Ulm", None, "Bonn"])
    values, novel = codes_of(sample, batch(town=["Bonn", "Ulm", "Kiel", None]))
    assert np.array_equal(values[:, 0], [0, 1, -1, np.nan], equal_nan=True)
    assert novel.tolist() == [False, False, True, False]


def test_a_dictionarys_unused_values_are_no_categories():
    frame = pd.DataFrame({"town": pd.Categorical(["Ulm"], categories=["Ulm", "Kiel"])})
    sample = pa.RecordBatch.from_pandas(frame)
    assert codes_of(sample, batch(town=["Kiel"])).unseen.tolist() == [True]


def test_missing_where_the_sample_has_none_is_novel():
    sample = batch(age=[1.0, 2.0], town=["Ulm", None])
    _, novel = codes_of(sample, batch(age=[None, 1.0, np.nan], town=["Ulm", None, "Ulm"]))
    assert novel.tolist() == [True, False, True]


def test_a_value_where_the_sample_has_only_gaps_is_novel():
    for column in ([None, None], pa.array([np.nan, np.nan]), pa.array([None, None], pa.string())):
        sample = batch(age=column, other=[1, 2])
        same = codes_of(sample, sample)
        assert same.unseen is None
        assert np.isnan(same.values[:, 0]).all()
    sample = batch(age=pa.array([np.nan, np.nan]), other=[1, 2])
    assert codes_of(sample, batch(age=[3.0], other=[1])).unseen.tolist() == [True]


def test_times_are_days_since_the_samples_first():
    day = dt.datetime(2024, 2, 28, 12)
    sample = batch(t=pa.array([day, day + dt.timedelta(days=2)], pa.timestamp("ns")))
    later = batch(t=pa.array([day + dt.timedelta(hours=6), None], pa.timestamp("s")))
    assert np.array_equal(codes_of(sample, sample).values[:, 0], [0, 2])
    values, novel = codes_of(sample, later)
    assert values[0, 0] == 0.25
    assert novel.tolist() == [False, True]


def test_times_keep_their_minutes_in_float32():
    moments = pd.date_range("2001-01-01", periods=2, freq="min").append(
        pd.date_range("2009-01-01", periods=2, freq="min")
    )
    sample = pa.RecordBatch.from_pandas(pd.DataFrame({"t": moments}))
    values = codes_of(sample, sample, dtype=np.float32).values[:, 0]
    assert len(np.unique(values)) == 4


def test_dates_times_of_day_and_durations():
    sample = batch(
        date=pa.array([dt.date(2024, 1, 1), dt.date(2024, 1, 3)]),
        clock=pa.array([dt.time(6), dt.time(18)]),
        wait=pa.array([dt.timedelta(hours=12), dt.timedelta(0)]),
    )
    assert np.array_equal(codes_of(sample, sample).values, [[0, 0, 0.5], [2, 0.5, 0]])


@pytest.mark.parametrize(
    ("sample", "population", "fits"),
    [
        (pa.int32(), pa.decimal128(5, 2), True),
        (pa.bool_(), pa.int8(), True),
        (pa.string(), pa.dictionary(pa.int8(), pa.large_string()), True),
        (pa.dictionary(pa.int8(), pa.int64()), pa.int64(), True),
        (pa.dictionary(pa.int8(), pa.string()), pa.int64(), False),
        (pa.int64(), pa.string(), False),
        (pa.timestamp("us"), pa.date32(), True),
        (pa.timestamp("us", "UTC"), pa.timestamp("ns", "Europe/Berlin"), True),
        (pa.timestamp("us", "UTC"), pa.timestamp("us"), False),
        (pa.timestamp("us"), pa.float64(), False),
        (pa.null(), pa.string(), True),
        (pa.list_(pa.int8()), pa.list_(pa.int8()), False),
    ],
)
def test_which_types_can_be_compared(sample, population, fits):
    assert can_reconcile(sample, population) is fits


def test_categories_of_whole_numbers_meet_plain_ones():
    sample = pa.RecordBatch.from_pandas(pd.DataFrame({"code": pd.Categorical([7, 3, 7])}))
    for plain in ([3, 7, 9], [3.0, 7.0, 9.0]):
        values, novel = codes_of(sample, batch(code=plain))
        assert values[:, 0].tolist() == [0, 1, -1]
        assert novel.tolist() == [False, False, True]


def test_decimals_are_the_nearest_doubles():
    text = [f"{number / 100:.2f}" for number in range(100_000)]
    decimals = pa.array(text).cast(pa.decimal128(12, 2))
    doubles = [float(one) for one in text]
    assert codes_of(batch(price=doubles), batch(price=decimals)).values[:, 0].tolist() == doubles
    as_categories = pa.array(doubles[:300]).dictionary_encode()
    assert codes_of(batch(price=as_categories), batch(price=decimals.slice(0, 300))).unseen is None


def test_whole_numbers_that_come_as_floating_point():
    # A CSV column is read so, whatever the sample's type.
    for kind in (pa.int64(), pa.uint64()):
        sample = batch(id=pa.array([1, 2**53 - 1], kind))
        assert codes_of(sample, batch(id=[1.0, None, 2.0**53 - 1])).values[2, 0] == 2**53 - 1
        with pytest.raises(InputError, match=r"'id' of the population .*beyond 2\*\*53"):
            codes_of(sample, batch(id=[1.0, None, 2.0**53]))
        with pytest.raises(InputError, match="'id' of the population holds inf"):
            codes_of(sample, batch(id=[1.0, np.inf]))
    assert codes_of(batch(x=[1.5]), batch(x=[1e300])).values[0, 0] == 1e300


def test_moments_beyond_all_reckoning_are_refused():
    sample = batch(t=pa.array([10**15, 2 * 10**15], pa.timestamp("us")))
    with pytest.raises(InputError, match="'t' of the population .*a moment too far from the samp"):
        codes_of(sample, batch(t=pa.array([-(2**63) + 5, 0], pa.timestamp("us"))))


def test_infinity_and_overflow_name_the_column_and_the_side():
    sample = batch(age=[1.0, 2.0], income=[1.0, 2.0])
    with pytest.raises(InputError, match="Column 'income' of the population holds -inf"):
        codes_of(sample, batch(age=[np.nan], income=[-np.inf]))
    with pytest.raises(InputError, match=r"'age' of the population holds 1e\+39.*float32"):
        codes_of(sample, batch(age=[1e39], income=[1.0]), dtype=np.float32)
    with pytest.raises(InputError, match="'age' of the sample"):
        ColumnCodes().fit(batch(age=[np.inf]))


def test_nested_columns_are_refused_by_name():
    with pytest.raises(InputTypeError, match="Column 'tags'.*list"):
        ColumnCodes().fit(batch(tags=[[1], [2]]))


def space_of(sample, scaling="standard"):
    codes = ColumnCodes()
    return point_design(codes, codes.fit_transform(sample), scaling)


def test_the_feature_space_scales_imputes_and_marks():
    sample = batch(age=[10.0, 20.0, None], town=["a", "b", "a"])
    space = space_of(sample, scaling="standard")
    values = space.transform(sample, side="sample").values
    assert len(space) == values.shape[1] == 4
    present = np.array([10.0, 20.0, 15.0])
    expected = (present - 15) / present.std()
    assert np.allclose(values[:, 0], expected)
    assert values[:, 1].tolist() == [0, 0, 1]  # the gap
    assert values[:, 2:].tolist() == [[1, 0], [0, 1], [1, 0]]
    unknown = space.transform(batch(age=[15.0], town=["c"]), side="population")
    assert unknown.values[0, 2:].tolist() == [0, 0]
    assert unknown.unseen.tolist() == [True]


@pytest.mark.parametrize(("scaling", "expected"), [("range", [0, 1, 0.5]), (None, [2, 6, 4])])
def test_other_scalings(scaling, expected):
    sample = batch(age=[2.0, 6.0, 4.0])
    space = space_of(sample, scaling=scaling)
    assert space.transform(sample, side="sample").values[:, 0].tolist() == expected


def test_a_constant_column_stays_finite():
    sample = batch(a=[3.0, 3.0], b=[None, None])
    for scaling in ("standard", "range", None):
        space = space_of(sample, scaling=scaling)
        assert np.isfinite(space.transform(sample, side="sample").values).all()


def test_one_hot_columns_are_bounded():
    names = [f"c{number % 500}" for number in range(2000)]
    space = space_of(batch(code=names))
    assert len(space) == MAX_CATEGORIES
    values = space.transform(batch(code=names), side="sample").values
    assert (values.sum(axis=1) == 1).all()


def scikit_learns_transformer(codes, scaling):
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import MissingIndicator, SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import (
        FunctionTransformer,
        MinMaxScaler,
        OneHotEncoder,
        StandardScaler,
    )

    is_category = np.array([kind == Kind.CATEGORY for kind in codes.kinds])
    scaler = {
        "standard": StandardScaler(),
        "range": MinMaxScaler(),
        None: FunctionTransformer(feature_names_out="one-to-one"),
    }[scaling]
    numbers = make_pipeline(SimpleImputer(keep_empty_features=True), scaler)
    one_hot = OneHotEncoder(
        handle_unknown="ignore", max_categories=MAX_CATEGORIES, sparse_output=False
    )
    return ColumnTransformer(
        [
            ("number", numbers, np.flatnonzero(~is_category)),
            (
                "missing",
                MissingIndicator(features="all"),
                np.flatnonzero(~is_category & codes.has_missing),
            ),
            ("category", one_hot, np.flatnonzero(is_category)),
        ],
        sparse_threshold=0,
    )


@pytest.mark.parametrize("scaling", ["standard", "range", None])
def test_the_feature_space_is_what_scikit_learns_transformers_make(mixed, scaling):
    frame = mixed.iloc[:3000].copy()
    random = np.random.default_rng(3)
    frame["many"] = pd.Categorical(random.zipf(1.3, len(frame)).clip(0, 200).astype(str))
    frame["rare gaps"] = frame["many"].astype(object).where(random.uniform(size=len(frame)) > 0.001)
    frame["nothing"] = np.nan
    frame["no text"] = pa.nulls(len(frame), pa.string()).to_pandas()
    sample = pa.RecordBatch.from_pandas(frame.iloc[:1000], preserve_index=False)
    everyone = pa.RecordBatch.from_pandas(frame, preserve_index=False)
    space = space_of(sample, scaling=scaling)
    codes = ColumnCodes().fit(sample)
    reference = scikit_learns_transformer(codes, scaling)
    reference.fit(codes.transform(sample, side="sample").values)
    expected = reference.transform(codes.transform(everyone, side="population").values)
    rounding = 1e-15 if scaling == "range" else 0  # scikit-learn multiplies by the reciprocal
    found = space.transform(everyone, side="population").values
    assert np.allclose(found, expected, rtol=rounding, atol=rounding)
    assert len(space) == expected.shape[1] > 2 * MAX_CATEGORIES
    assert space.transform(everyone.slice(0, 0), side="population").values.shape == (
        0,
        expected.shape[1],
    )


def test_the_feature_space_of_one_kind_of_column_alone():
    for sample in (batch(age=[1.0, 3.0]), batch(town=["Ulm", "Bonn"])):
        assert space_of(sample).transform(sample, side="sample").values.shape[0] == 2


def test_whole_numbers_beyond_floating_point():
    with pytest.raises(InputError, match=r"Column 'i' of the sample.*2\*\*53.*text"):
        frequencies(pd.DataFrame({"i": [2**53, 2**53 + 1]}), pd.DataFrame({"i": [2**53]}))
    for sample, population in (
        (pd.DataFrame({"i": [2**64]}), pd.DataFrame({"i": [2**64]})),
        (pd.DataFrame({"i": ["\ud800"]}, dtype=object), pd.DataFrame({"i": ["a"]})),
    ):
        with pytest.raises(InputTypeError, match="Column 'i' of X"):
            frequencies(sample, population)


@pytest.mark.parametrize(
    ("coded", "plain"),
    [
        (pd.Categorical([1, 2]), [Decimal("1.00"), Decimal("2.00")]),
        (pd.Categorical([True, False]), [1, 0]),
        (
            pd.Categorical(pd.to_datetime(["2024-01-01", "2024-01-02"])),
            pd.to_datetime(["2024-01-01", "2024-01-02"]).as_unit("s"),
        ),
    ],
    ids=["decimals", "booleans", "dates"],
)
def test_categories_are_compared_by_value(coded, plain):
    weights = frequencies(pd.DataFrame({"c": coded}), pd.DataFrame({"c": plain}))
    assert weights.tolist() == [1, 1]


def test_categories_of_numbers_are_not_of_text():
    with pytest.raises(InputTypeError, match="Column 'c'"):
        frequencies(pd.DataFrame({"c": pd.Categorical([1, 2])}), pd.DataFrame({"c": ["1", "2"]}))
