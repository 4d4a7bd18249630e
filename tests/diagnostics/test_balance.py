import datetime as dt

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import stats

from unskew import Population, diagnose
from unskew.diagnostics.balance import ColumnTotals, kolmogorov_smirnov
from unskew.rows.encode import ColumnCodes
from unskew.rows.tables import RowBlock


def features(found):
    return {feature.name: feature for feature in found.bias.features}


def make_tables(seed=0, m=300, n=900):
    random = np.random.default_rng(seed)
    sample = pd.DataFrame(
        {
            "height": random.normal(2, 3, m),
            "town": random.choice(["Bonn", "Ulm", "Kiel"], m, p=[0.6, 0.3, 0.1]),
            "day": [dt.date(2024, 1, 1) + dt.timedelta(int(k)) for k in random.integers(0, 90, m)],
            "gap": np.where(random.uniform(size=m) < 0.3, np.nan, random.normal(size=m)),
            "constant": 1.0,
        }
    )
    population = pd.DataFrame(
        {
            "height": random.normal(0, 2, n),
            "town": random.choice(["Bonn", "Ulm", "Kiel", "Hof"], n, p=[0.3, 0.3, 0.3, 0.1]),
            "day": [dt.date(2024, 1, 1) + dt.timedelta(int(k)) for k in random.integers(0, 60, n)],
            "gap": np.where(random.uniform(size=n) < 0.1, np.nan, random.normal(size=n)),
            "constant": 1.0,
        }
    )
    return sample, population, random.uniform(0.5, 2, m)


class TestDifferences:
    def test_numbers_by_hand(self):
        sample, population, weights = make_tables()
        found = features(diagnose(sample, population, weights))["height"]
        x, u = sample["height"], population["height"]
        assert found.lines[0].before == pytest.approx((x.mean() - u.mean()) / u.std(ddof=0))
        assert found.before.variance_ratio == pytest.approx(x.var(ddof=0) / u.var(ddof=0))
        assert found.before.distance == pytest.approx(stats.ks_2samp(x, u).statistic)
        mean = np.average(x, weights=weights)
        assert found.lines[0].after == pytest.approx((mean - u.mean()) / u.std(ddof=0))
        variance = np.average((x - mean) ** 2, weights=weights)
        assert found.after.variance_ratio == pytest.approx(variance / u.var(ddof=0))

    def test_categories_by_hand(self):
        sample, population, weights = make_tables()
        found = features(diagnose(sample, population, weights))["town"]
        share = sample["town"].value_counts(normalize=True)
        theirs = population["town"].value_counts(normalize=True)
        both = pd.DataFrame({"s": share, "u": theirs}).fillna(0.0)
        weighted = pd.Series(weights).groupby(sample["town"]).sum() / weights.sum()
        both = pd.DataFrame({"s": share, "w": weighted, "u": theirs}).fillna(0.0)
        deviation = np.sqrt(both["u"] * (1 - both["u"]))
        before, after = (both["s"] - both["u"]) / deviation, (both["w"] - both["u"]) / deviation
        lines = {line.category: line for line in found.lines}
        for town, line in lines.items():
            named = "Hof" if town == "(not in the sample)" else town
            assert line.before == pytest.approx(before[named])
            assert line.after == pytest.approx(after[named])
        notable = before.abs().combine(after.abs(), max) > 0.1
        assert len(lines) == notable.sum() >= 3
        sizes = [abs(line.before) for line in found.lines]
        assert sizes == sorted(sizes, reverse=True)
        assert found.before.distance == pytest.approx((both["s"] - both["u"]).abs().sum() / 2)
        assert found.after.distance == pytest.approx((both["w"] - both["u"]).abs().sum() / 2)

    def test_missing_values_and_times(self):
        sample, population, weights = make_tables()
        found = features(diagnose(sample, population, weights))
        gap = sample["gap"].isna().mean() - population["gap"].isna().mean()
        assert found["gap"].before.missing == pytest.approx(gap)
        assert found["day"].kind == "time"
        days = [pd.to_datetime(t["day"]).astype("int64") for t in (sample, population)]
        expected = (days[0].mean() - days[1].mean()) / days[1].std(ddof=0)
        assert found["day"].lines[0].before == pytest.approx(expected, rel=1e-6)

    def test_a_constant_column_does_not_differ(self):
        sample, population, _ = make_tables()
        assert features(diagnose(sample, population))["constant"].lines[0].before == 0.0

    def test_two_constants_differ_without_measure(self):
        found = diagnose(pd.DataFrame({"a": [1.0] * 30}), pd.DataFrame({"a": [2.0] * 60}))
        assert features(found)["a"].lines[0].before == -np.inf
        assert '"before": "-inf"' in found.to_json()

    def test_design_weights_of_both_sides_count(self):
        sample, population, weights = make_tables()
        design = np.random.default_rng(1).integers(0, 3, len(population)).astype(float)
        found = features(
            diagnose(sample, Population(population, weight=design), sample_weight=weights)
        )["height"]
        u = np.average(population["height"], weights=design)
        sd = np.sqrt(np.average((population["height"] - u) ** 2, weights=design))
        x = np.average(sample["height"], weights=weights)
        assert found.lines[0].before == pytest.approx((x - u) / sd)

    def test_the_most_biased_come_first(self):
        sample, population, _ = make_tables()
        sizes = [abs(f.lines[0].before) for f in diagnose(sample, population).bias.features]
        assert sizes == sorted(sizes, reverse=True)


class TestLines:
    """A line is about one category, before and after."""

    def test_two_categories_have_one_line_about_the_same_one_before_and_after(self):
        # Men are 67 % of the population, 76 % of the sample, 73 % of its weight.
        population = pd.DataFrame({"sex": ["Male"] * 67 + ["Female"] * 33})
        sample = pd.DataFrame({"sex": ["Male"] * 76 + ["Female"] * 24})
        weights = np.where(sample["sex"] == "Male", 73 / 76, 27 / 24)
        deviation = np.sqrt(0.67 * 0.33)
        (line,) = features(diagnose(sample, population, weights))["sex"].lines
        assert line.category == "Male"
        assert line.before == pytest.approx(0.09 / deviation)
        assert line.after == pytest.approx(0.06 / deviation)
        swapped = {"Male": "A", "Female": "Z"}  # always the last in alphabetical order
        (line,) = features(diagnose(sample.replace(swapped), population.replace(swapped), weights))[
            "sex"
        ].lines
        assert (line.category, line.before) == ("Z", pytest.approx(-0.09 / deviation))

    def test_weights_that_move_the_bias_to_another_category_show_both(self):
        population = pd.DataFrame({"z": list("abc") * 100})
        sample = pd.DataFrame({"z": ["a"] * 160 + ["b"] * 90 + ["c"] * 50})
        weights = sample["z"].map({"a": 100 / 160, "b": 160 / 90, "c": 40 / 50}).to_numpy()
        deviation = np.sqrt(2) / 3
        lines = features(diagnose(sample, population, weights))["z"].lines
        expected = {"a": (60, 0), "c": (-50, -60), "b": (-10, 60)}  # of 300 rows
        assert [line.category for line in lines] == list(expected)
        for line in lines:
            before, after = expected[line.category]
            assert line.before == pytest.approx(before / 300 / deviation)
            assert line.after == pytest.approx(after / 300 / deviation, abs=1e-9)

    def test_balanced_categories_have_one_line(self):
        names = pd.DataFrame({"z": list("abcd") * 50})
        feature = features(diagnose(names, names))["z"]
        assert [line.before for line in feature.lines] == [0.0]
        assert feature.unlisted == 0

    def test_thousands_of_categories_are_counted_not_listed(self):
        names = [f"z{k:04d}" for k in range(2000)]
        feature = features(diagnose(pd.DataFrame({"z": names[:50]}), pd.DataFrame({"z": names})))[
            "z"
        ]
        assert len(feature.lines) == 20
        assert feature.unlisted == 51 - 20  # fifty categories, and the unseen ones
        unseen, listed = feature.lines[0], feature.lines[1]
        assert unseen.category == "(not in the sample)"
        assert unseen.before == pytest.approx(-0.975 / np.sqrt(0.975 * 0.025))
        assert listed.before == pytest.approx((1 / 50 - 1 / 2000) / np.sqrt(0.0005 * 0.9995))

    def test_missing_values_have_a_line_if_they_are_not_balanced(self):
        random = np.random.default_rng(0)
        numbers, text = random.normal(size=1000), np.array(list("abcde") * 200, dtype=object)
        population = pd.DataFrame({"x": numbers, "z": text, "whole": numbers})
        sample = population.copy()
        population.loc[:99, "x"], sample.loc[:199, "x"] = np.nan, np.nan
        population.loc[:499, "z"], sample.loc[:299, "z"] = None, None
        found = features(diagnose(sample, population))
        missing = {
            name: [line.before for line in feature.lines if line.category == "(missing)"]
            for name, feature in found.items()
        }
        assert missing == {
            "x": [pytest.approx(0.1 / np.sqrt(0.1 * 0.9))],
            "z": [pytest.approx(-0.2 / 0.5)],
            "whole": [],
        }

    def test_the_largest_are_chosen_from_every_column_first(self):
        random = np.random.default_rng(0)
        names = [f"z{k}" for k in range(12)]
        population = pd.DataFrame({"z": names * 100, "x": random.normal(size=1200)})
        sample = pd.DataFrame({"z": names[:6] * 50, "x": random.normal(0.05, 1, 300)})
        found = diagnose(sample, population)
        (first, second), more = found.largest_lines(2)
        assert [first[0].name, second[0].name] == ["z", "x"]
        lines, fewer = found.largest_lines(5, 3)
        assert [feature.name for feature, _ in lines] == ["z", "z", "z", "x"]
        assert more - fewer == 2


class TestDistributions:
    def test_shares_sum_to_one(self):
        sample, population, weights = make_tables()
        for feature in diagnose(sample, population, weights).bias.features:
            drawn = feature.distribution
            for shares in (drawn.sample, drawn.weighted, drawn.population):
                assert sum(shares) == pytest.approx(1.0)
                assert len(shares) == len(drawn.labels)

    def test_an_unseen_category_has_a_bar(self):
        sample, population, _ = make_tables()
        drawn = features(diagnose(sample, population))["town"].distribution
        unseen = dict(zip(drawn.labels, drawn.population, strict=True))["(not in the sample)"]
        assert drawn.n_special == 1
        assert unseen == pytest.approx((population["town"] == "Hof").mean())

    def test_many_categories_are_grouped(self):
        names = [f"z{k}" for k in range(100)]
        drawn = diagnose(pd.DataFrame({"z": names}), pd.DataFrame({"z": names * 2}))
        labels = features(drawn)["z"].distribution.labels
        assert labels[-1] == "(other)"
        assert len(labels) == 21


def test_kolmogorov_smirnov_is_scipys():
    random = np.random.default_rng(0)
    first, second = random.normal(size=50).round(1), random.normal(1, size=70).round(1)
    expected = stats.ks_2samp(first, second).statistic
    assert kolmogorov_smirnov(first, np.ones(50), second, np.ones(70)) == pytest.approx(expected)


def test_totals_of_parts_are_totals_of_the_whole():
    _, population, _ = make_tables()
    batch = pa.RecordBatch.from_pandas(population, preserve_index=False)
    codes = ColumnCodes().fit(batch)
    sample = codes.transform(batch, side="sample").values[:100]
    weight = np.random.default_rng(0).uniform(size=len(population))
    whole, first, second = (ColumnTotals(codes, sample) for _ in range(3))
    whole.update(RowBlock(batch, weight))
    first.update(RowBlock(batch.slice(0, 350), weight[:350]))
    second.update(RowBlock(batch.slice(350), weight[350:]))
    first.merge(second)
    for mine, theirs in zip(first.columns, whole.columns, strict=True):
        for one, other in zip(mine, theirs, strict=True):
            if other is not None:
                assert np.allclose(one, other, rtol=1e-12, equal_nan=True)
