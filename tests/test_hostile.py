"""Ugly data that users bring, each once seen to go wrong."""

from __future__ import annotations

import pickle
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from sklearn.base import BaseEstimator
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingRegressor, StackingRegressor, VotingRegressor
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.multioutput import MultiOutputRegressor
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

from unskew import (
    ClusterWeights,
    FrequencyWeights,
    HistogramWeights,
    InputError,
    InputTypeError,
    KnownProbability,
    LearnerError,
    OverlapWarning,
    ParameterError,
    Population,
    Reweighted,
    TreeWeights,
    UnskewError,
    Unweighted,
    weighted_risk,
)
from unskew.experiments.sampling import logistic_selection
from unskew.population import Reservoir


def frequencies(sample, population, **options):
    return (
        FrequencyWeights(total="population", **options).fit(sample, population=population).weights_
    )


class TestFolders:
    def test_a_file_without_a_column_is_named(self, tmp_path):
        sample = pd.DataFrame({"a": ["x", "y"], "b": [1.0, 2.0]})
        pq.write_table(pa.table({"a": ["x"], "b": [1.0]}), tmp_path / "1.parquet")
        pq.write_table(pa.table({"a": ["x"]}), tmp_path / "2.parquet")
        with pytest.raises(InputError, match="2.parquet' lacks column 'b'"):
            frequencies(sample, tmp_path)
        with pytest.raises(InputError, match="2.parquet' lacks column 'b'"):
            frequencies(sample, ds.dataset(tmp_path))

    def test_other_files_and_other_number_types_beside(self, tmp_path):
        pq.write_table(pa.table({"a": [1, 2]}), tmp_path / "1.parquet")
        pq.write_table(pa.table({"a": [2.0]}), tmp_path / "2.parquet")
        (tmp_path / "README.txt").write_text("hello")
        assert frequencies([[1.0], [2.0]], tmp_path).tolist() == [1, 2]
        (tmp_path / "notes.csv").write_text("x\n1\n")
        with pytest.raises(InputError, match="mixes Parquet and CSV files"):
            frequencies([[1.0], [2.0]], tmp_path)

    def test_a_dataset_with_a_filter_and_a_dataset_of_csv(self, tmp_path):
        pq.write_table(pa.table({"a": [1.0, 2.0, 2.0, 3.0]}), tmp_path / "1.parquet")
        filtered = ds.dataset(tmp_path / "1.parquet").filter(ds.field("a") < 3)
        assert frequencies([[1.0], [2.0]], filtered).tolist() == [1, 2]
        (tmp_path / "u.csv").write_text("a\n1\n2\n2\n")
        assert frequencies(
            [[1.0], [2.0]], ds.dataset(tmp_path / "u.csv", format="csv")
        ).tolist() == [
            1,
            2,
        ]


class TestCSV:
    def write(self, tmp_path, text):
        (tmp_path / "u.csv").write_text(text)
        return tmp_path / "u.csv"

    def test_a_path_twice_is_read_twice(self, tmp_path):
        path = self.write(tmp_path, "a\n1\n2\n2\n")
        assert frequencies([[1.0], [2.0]], [path, path]).tolist() == [2, 4]

    def test_no_header(self, tmp_path):
        path = self.write(tmp_path, "1,5\n2,6\n2,6\n")
        with pytest.raises(InputError, match="seems to have no header line"):
            frequencies(np.array([[1.0, 5.0], [2.0, 6.0]]), path)

    def test_an_empty_line_in_one_column_is_a_gap(self, tmp_path):
        path = self.write(tmp_path, "a\nx\n\n\n")
        assert frequencies(pd.DataFrame({"a": ["x", None]}), path).tolist() == [1, 2]

    def test_gaps_that_pandas_quotes(self, tmp_path):
        frame = pd.DataFrame({"a": [1.0, np.nan], "b": ["x", None]})
        frame.to_csv(tmp_path / "u.csv", index=False, quoting=1)
        assert frequencies(frame, tmp_path / "u.csv").tolist() == [1, 1]


class TestHistogram:
    def test_a_dominant_value_does_not_swallow_the_others(self):
        sample = pd.DataFrame({"v": [True] * 10 + [False] * 90})
        population = pd.DataFrame({"v": [True] * 500 + [False] * 500})
        weights = HistogramWeights(total="population").fit(sample, population=population).weights_
        assert weights[:10].tolist() == [50] * 10
        assert weights[10:] == pytest.approx(500 / 90)

    def test_zeros_and_a_tail(self):
        sample = np.append(np.zeros(90), np.arange(1.0, 11.0)).reshape(-1, 1)
        population = np.append(np.zeros(100), np.full(100, 5.0)).reshape(-1, 1)
        weights = HistogramWeights(total="population").fit(sample, population=population).weights_
        assert weights[:90].sum() == pytest.approx(100)

    def test_borders_of_dates(self):
        days = pd.DataFrame({"day": pd.to_datetime(["2024-01-01", "2024-06-01", "2024-07-01"])})
        weighter = HistogramWeights(
            buckets={"day": [pd.Timestamp("2024-03-01")]}, total="population"
        )
        assert weighter.fit(days, population=days.iloc[[0, 0, 1]]).weights_.tolist() == [
            2,
            0.5,
            0.5,
        ]

    @pytest.mark.parametrize("borders", [["abc"], "abc", [[1.0]], 2.5, [None]])
    def test_bad_borders(self, borders):
        with pytest.raises(ParameterError, match="buckets of column 'x0'"):
            HistogramWeights(buckets={0: borders}).fit([[1.0], [2.0]], population=[[1.0]])

    def test_borders_of_a_category(self):
        with pytest.raises(ParameterError, match="whose categories are its buckets"):
            HistogramWeights(buckets={"t": 3}).fit(
                pd.DataFrame({"t": ["a"]}), population=pd.DataFrame({"t": ["a"]})
            )


class TestMerging:
    def test_a_novel_category_is_shared_by_all_that_are_equally_far(self):
        sample = pd.DataFrame({"t": ["Bonn"] * 50 + ["Aachen"] * 50 + ["Kiel"] * 50})
        population = pd.DataFrame(
            {"t": ["Bonn"] * 100 + ["Aachen"] * 100 + ["Kiel"] * 100 + ["Ulm"] * 300}
        )
        with pytest.warns(OverlapWarning):
            assert frequencies(sample, population) == pytest.approx(np.full(150, 4.0))

    def test_the_warning_points_at_the_callers_line(self):
        with pytest.warns(OverlapWarning) as caught:
            Reweighted(LinearRegression(), FrequencyWeights()).fit(
                [[1.0], [2.0]], [1.0, 2.0], population=[[1.0], [5.0]]
            )
        assert caught[0].filename == __file__

    def test_it_stays_quick_when_nearly_all_is_novel(self):
        random = np.random.default_rng(0)
        names = np.array([f"name {number}" for number in range(50_000)])
        sample = pd.DataFrame({"t": names[random.integers(0, 2500, 3000)]})
        population = pd.DataFrame({"t": names[random.integers(0, 50_000, 200_000)]})
        with pytest.warns(OverlapWarning):
            weights = frequencies(sample, population)
        assert weights.sum() == pytest.approx(200_000)

    def test_values_too_large_for_distances(self):
        with (
            pytest.raises(InputError, match="too large to take distances"),
            np.errstate(all="ignore"),
        ):
            frequencies([[1e300], [-1e300]], [[5.0]])

    def test_rows_that_a_clusterer_calls_noise(self):
        class Core(BaseEstimator):
            """One cluster around zero; the rest is noise."""

            def fit(self, X):
                return self

            def predict(self, X):
                return np.where(np.abs(X[:, 0]) < 1, 0, -1)

        sample = np.array([[0.0], [0.1], [0.2], [50.0]])
        weighter = ClusterWeights(Core(), scaling=None, total="population")
        weighter.fit(sample, population=sample[:3])
        assert weighter.cells_[3] == -1
        assert np.isfinite(weighter.weights_).all()


class TestNumbers:
    def test_whole_numbers_beyond_floating_point(self):
        with pytest.raises(InputError, match=r"Column 'i' of the sample.*2\*\*53.*text"):
            frequencies(pd.DataFrame({"i": [2**53, 2**53 + 1]}), pd.DataFrame({"i": [2**53]}))
        for sample, population in (
            (pd.DataFrame({"i": [2**64]}), pd.DataFrame({"i": [2**64]})),
            (pd.DataFrame({"i": ["\ud800"]}, dtype=object), pd.DataFrame({"i": ["a"]})),
        ):
            with pytest.raises(InputTypeError, match="Column 'i' of X"):
                frequencies(sample, population)

    def test_masked_values_are_missing(self):
        masked = np.ma.array([[1.0], [2.0]], mask=[[False], [True]])
        assert frequencies(masked, masked).tolist() == [1, 1]

    def test_numbers_beside_text_in_a_list(self):
        assert frequencies(
            [[1, "a"], [2, "b"]], pl.DataFrame({"x": [1, 2], "y": ["a", "b"]})
        ).tolist() == [1, 1]

    def test_weights_beyond_floating_point(self):
        with pytest.raises(InputError, match="too large for floating point"):
            KnownProbability([1e-310, 0.5]).fit([[1.0], [2.0]], population=[[1.0], [2.0]])
        population = Population([[1.0], [2.0]], weight=[1e300, 1.5e300])
        assert frequencies([[1.0], [2.0]], population) == pytest.approx([1e300, 1.5e300])

    @pytest.mark.parametrize("weighter", [Unweighted(), KnownProbability([0.5])])
    def test_no_population_at_all(self, weighter):
        with pytest.raises(InputError, match="no rows"):
            weighter.fit([[1.0]], population=np.empty((0, 1)))


class TestCategories:
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
    def test_are_compared_by_value(self, coded, plain):
        weights = frequencies(pd.DataFrame({"c": coded}), pd.DataFrame({"c": plain}))
        assert weights.tolist() == [1, 1]

    def test_of_numbers_are_not_of_text(self):
        with pytest.raises(InputTypeError, match="Column 'c'"):
            frequencies(
                pd.DataFrame({"c": pd.Categorical([1, 2])}), pd.DataFrame({"c": ["1", "2"]})
            )

    def test_what_pandas_cut_makes(self):
        frame = pd.DataFrame({"c": pd.cut([1, 2, 3, 4], [0, 2, 4])})
        assert frequencies(frame, frame).tolist() == [1, 1, 1, 1]

    def test_chunks_with_dictionaries_of_their_own(self):
        chunks = [
            pd.DataFrame({"c": pd.Categorical([f"{start + k}" for k in range(100)])})
            for start in (0, 100, 200)
        ]
        sample = pd.DataFrame({"c": [str(number) for number in range(300)]})
        assert (frequencies(sample, iter(chunks)) == 1).all()
        assert Population(chunks).reduce(Reservoir(300, seed=-1)).rows.num_rows == 300


class TestLabels:
    X = np.arange(4.0).reshape(-1, 1)

    @pytest.mark.parametrize(
        "labels",
        [
            pd.array([True, None, False, True], dtype="boolean"),
            pd.Series(["a", pd.NA, "b", "a"], dtype="string"),
            pd.to_datetime(["2024-01-01", None, "2024-01-02", "2024-01-03"]),
        ],
        ids=["booleans", "text", "dates"],
    )
    def test_missing_ones(self, labels):
        with pytest.raises(InputError, match="y contains"):
            TreeWeights(min_samples_leaf=1).fit(self.X, labels, population=self.X)

    @pytest.mark.parametrize(
        "labels",
        [
            [Decimal("0.5"), Decimal("1.5"), Decimal("2.5"), Decimal("3.5")],
            np.array([0.5, 1.5, 2.5, 3.5], dtype=object),
            pd.to_datetime(["2024-01-01", "2024-01-02", "2024-01-03", "2024-01-04"]),
        ],
        ids=["decimals", "objects", "dates"],
    )
    def test_quantities_in_disguise(self, labels):
        weighter = TreeWeights(min_samples_leaf=1).fit(self.X, labels, population=self.X)
        assert type(weighter.tree_).__name__ == "DecisionTreeRegressor"


class TestLearners:
    X, y = np.arange(40.0).reshape(20, 2), np.arange(20.0)

    def fit(self, learner, **options):
        return Reweighted(learner, TreeWeights(), **options).fit(self.X, self.y, population=self.X)

    @pytest.mark.parametrize(
        "learner",
        [
            VotingRegressor([("a", Ridge()), ("b", LinearRegression())]),
            StackingRegressor([("a", Ridge()), ("b", LinearRegression())]),
            BaggingRegressor(KNeighborsRegressor(1), n_estimators=2),
            MultiOutputRegressor(Ridge()),
        ],
        ids=lambda learner: type(learner).__name__,
    )
    def test_that_combine_others(self, learner):
        if isinstance(learner, MultiOutputRegressor):
            labels = np.column_stack([self.y, self.y])
            model = Reweighted(learner, Unweighted()).fit(self.X, labels, population=self.X)
        else:
            model = self.fit(learner)
        assert len(model.predict(self.X)) == 20

    @pytest.mark.parametrize(
        "learner",
        [
            VotingRegressor([("a", Ridge()), ("b", KNeighborsRegressor())]),
            MultiOutputRegressor(KNeighborsRegressor()),
            CalibratedClassifierCV(KNeighborsClassifier()),
        ],
        ids=lambda learner: type(learner).__name__,
    )
    def test_that_combine_others_without_weights(self, learner):
        with pytest.raises(LearnerError, match="takes no sample_weight"):
            self.fit(learner)

    def test_that_resampling_leaves_too_little_for(self):
        from sklearn.linear_model import LogisticRegression

        probability = np.append(1e-6, np.ones(19))
        model = Reweighted(
            LogisticRegression(),
            KnownProbability(probability),
            resample="rejection",
            random_state=0,
        )
        with pytest.raises(LearnerError, match="distinct rows that resampling left of 20"):
            model.fit(self.X, (self.y > 0).astype(int), population=self.X)

    def test_fitting_again_leaves_nothing_behind(self):
        frame = pd.DataFrame(self.X, columns=["a", "b"])
        model = Reweighted(Ridge(), TreeWeights(), resample="multiplicity")
        model.fit(frame, self.y, population=frame)
        model.set_params(resample=None).fit(self.X, self.y, population=self.X)
        assert not hasattr(model, "feature_names_in_")
        assert not hasattr(model, "multiplicities_")


def test_a_probability_column_that_the_population_has_too():
    frame = pd.DataFrame({"a": [1.0, 2.0], "p": [0.5, 1.0]})
    weights = KnownProbability("p").fit(frame, population=frame).weights_
    assert weights == pytest.approx([4 / 3, 2 / 3])


def test_matching_leaves_the_population_as_it_was(tmp_path):
    (tmp_path / "u.csv").write_text("zip\n1\n2\n")
    population = Population(tmp_path / "u.csv")
    frequencies(pd.DataFrame({"zip": ["1", "2"]}), population)
    assert pa.types.is_float64(population.reduce(Reservoir(5)).rows.schema.types[0])


def test_design_weights_are_copied():
    weight = np.array([1.0, 1.0])
    population = Population([[1.0], [2.0]], weight=weight)
    weight[0] = 100.0
    assert population.mass == 2


def test_design_weights_act_on_the_partition_as_copies_would():
    random = np.random.default_rng(0)
    sample, population = random.normal(size=(60, 1)), random.normal(size=(500, 1))
    times = random.integers(1, 4, 60)
    weighter = HistogramWeights(total="population")
    weighted = weighter.fit(sample, population=population, sample_weight=times)
    counts = weighted.population_counts_.copy()
    repeated = weighter.fit(np.repeat(sample, times, axis=0), population=population)
    assert np.array_equal(counts, repeated.population_counts_)


def test_positions_in_messages_are_those_of_the_whole_population():
    weight = np.ones(70_001)
    weight[70_000] = -1
    frame = pd.DataFrame({"a": np.zeros(70_001), "w": weight})
    with pytest.raises(InputError, match="position 70000"):
        frequencies([[0.0]], Population(frame, weight="w"))


def test_odd_column_names():
    names = ["^a$", "b.c", 'say "hi"', "größe", "x0", "weight"]
    frame = pl.DataFrame({name: [1.0, 2.0] for name in names})
    assert frequencies(frame, frame.lazy()).tolist() == [1, 1]


def test_things_that_are_no_sample():
    for thing in ("a.csv", {"a": [1]}, pl.LazyFrame({"a": [1.0]})):
        with pytest.raises(InputTypeError, match=f"X is a {type(thing).__name__}"):
            Unweighted().fit(thing, population=[[1.0]])
    mixed = pd.DataFrame([[1.0, 2.0]], columns=["a", 1])
    with pytest.raises(InputTypeError, match="column labels"):
        Unweighted().fit(mixed, population=mixed)
    with pytest.raises(UnskewError):
        Population(pd.Series([1.0]))
    with pytest.raises(UnskewError):
        Population("")
    with pytest.raises(UnskewError):
        Population("~nobody-at-all/x.csv")


def test_columns_by_position():
    frame = pd.DataFrame({"a": [1.0], "b": [2.0]})
    assert Population(frame, columns=[1]).columns == ["b"]
    for bad in ([None], [1.7], [5]):
        with pytest.raises(ParameterError, match="columns must be names, or positions"):
            Population(frame, columns=bad)


def test_marks_of_the_wrong_kind():
    frame = pd.DataFrame({"a": [1.0], "s": ["yes"]})
    with pytest.raises(InputTypeError, match="'s' given as selected holds text"):
        Unweighted().fit(
            [[1.0]], population=Population(frame, selected="s", columns=["a"], weight=[1])
        )
    with pytest.raises(InputError, match="one mark per row"):
        Population(frame, selected=[[True]])


def test_the_risk_of_small_integers_and_huge_weights():
    small = np.array([0], np.uint8), np.array([1], np.uint8)
    assert weighted_risk(*small, [1.0], loss="absolute") == 1
    assert weighted_risk(np.array([200], np.uint8), np.array([0], np.uint8), [1.0]) == 40_000
    assert weighted_risk([1.0, 2.0], [1.0, 3.0], [1e308, 1.5e308]) == pytest.approx(0.6)
    with pytest.raises(InputError, match="loss of row 1 is nan"):
        weighted_risk([1.0, 2.0], [1.0, np.nan], [1.0, 1.0])
    with pytest.raises(InputError, match="loss could not be computed"):
        weighted_risk(["a"], ["b"], [1.0])
    with pytest.raises(ParameterError, match="got None"):
        weighted_risk([1.0], [1.0], [1.0], loss=None)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"direction": [np.nan]}, InputError),
        ({"direction": ["up"]}, InputError),
        ({"slope": np.nan}, ParameterError),
    ],
)
def test_selection_along_nonsense(options, error):
    with pytest.raises(error):
        logistic_selection([[1.0], [2.0]], **options)
    with pytest.raises(InputError), np.errstate(all="ignore"):
        logistic_selection([[1e300], [-1e300]])
    with pytest.raises(InputError):
        logistic_selection([["a"]])


def test_an_outlier_selects_without_a_warning():
    X = np.append(np.zeros(1_000_000), 1.0).reshape(-1, 1)
    assert logistic_selection(X, direction=[-1.0]).probabilities[-1] >= 0


def test_warnings_can_be_pickled():
    warning = pickle.loads(pickle.dumps(OverlapWarning("message", 0.3)))
    assert (str(warning), warning.share) == ("message", 0.3)
