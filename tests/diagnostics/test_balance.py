import datetime as dt

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import stats

from unskew import Population, diagnose
from unskew.diagnostics.balance import kolmogorov_smirnov
from unskew.diagnostics.columns import ColumnTotals
from unskew.population import RowBlock
from unskew.population.encode import ColumnCodes


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
        assert found.before.mean == pytest.approx((x.mean() - u.mean()) / u.std(ddof=0))
        assert found.before.variance_ratio == pytest.approx(x.var(ddof=0) / u.var(ddof=0))
        assert found.before.distance == pytest.approx(stats.ks_2samp(x, u).statistic)
        mean = np.average(x, weights=weights)
        assert found.after.mean == pytest.approx((mean - u.mean()) / u.std(ddof=0))
        variance = np.average((x - mean) ** 2, weights=weights)
        assert found.after.variance_ratio == pytest.approx(variance / u.var(ddof=0))

    def test_categories_by_hand(self):
        sample, population, weights = make_tables()
        found = features(diagnose(sample, population, weights))["town"]
        share = sample["town"].value_counts(normalize=True)
        theirs = population["town"].value_counts(normalize=True)
        both = pd.DataFrame({"s": share, "u": theirs}).fillna(0.0)
        each = (both["s"] - both["u"]) / np.sqrt(both["u"] * (1 - both["u"]))
        assert abs(found.before.mean) == pytest.approx(each.abs().max())
        assert found.before.category == each.abs().idxmax()
        assert found.before.distance == pytest.approx((both["s"] - both["u"]).abs().sum() / 2)
        weighted = pd.Series(weights).groupby(sample["town"]).sum() / weights.sum()
        after = pd.DataFrame({"s": weighted, "u": theirs}).fillna(0.0)
        assert found.after.distance == pytest.approx((after["s"] - after["u"]).abs().sum() / 2)

    def test_missing_values_and_times(self):
        sample, population, weights = make_tables()
        found = features(diagnose(sample, population, weights))
        gap = sample["gap"].isna().mean() - population["gap"].isna().mean()
        assert found["gap"].before.missing == pytest.approx(gap)
        assert found["day"].kind == "time"
        days = [pd.to_datetime(t["day"]).astype("int64") for t in (sample, population)]
        expected = (days[0].mean() - days[1].mean()) / days[1].std(ddof=0)
        assert found["day"].before.mean == pytest.approx(expected, rel=1e-6)

    def test_a_constant_column_does_not_differ(self):
        sample, population, _ = make_tables()
        assert features(diagnose(sample, population))["constant"].before.mean == 0.0

    def test_two_constants_differ_without_measure(self):
        found = diagnose(pd.DataFrame({"a": [1.0] * 30}), pd.DataFrame({"a": [2.0] * 60}))
        assert features(found)["a"].before.mean == -np.inf
        assert '"mean": "-inf"' in found.to_json()

    def test_design_weights_of_both_sides_count(self):
        sample, population, weights = make_tables()
        design = np.random.default_rng(1).integers(0, 3, len(population)).astype(float)
        found = features(
            diagnose(sample, Population(population, weight=design), sample_weight=weights)
        )["height"]
        u = np.average(population["height"], weights=design)
        sd = np.sqrt(np.average((population["height"] - u) ** 2, weights=design))
        x = np.average(sample["height"], weights=weights)
        assert found.before.mean == pytest.approx((x - u) / sd)

    def test_the_most_biased_come_first(self):
        sample, population, _ = make_tables()
        sizes = [abs(f.before.mean) for f in diagnose(sample, population).bias.features]
        assert sizes == sorted(sizes, reverse=True)


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

    @pytest.mark.filterwarnings("ignore::unskew.ColumnWarning")
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
        for name, value in vars(theirs).items():
            assert np.allclose(getattr(mine, name), value, rtol=1e-12)
