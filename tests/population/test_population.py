"""What a population refuses, and how it says so."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from unskew import FrequencyWeights, HistogramWeights, Population, TreeWeights, Unweighted
from unskew.errors import InputError, InputFileError, InputTypeError, ParameterError, UnskewError
from unskew.population.reservoir import Reservoir
from unskew.population.summaries import TotalWeight
from unskew.results import Summary
from unskew.rows.encode import ColumnCodes
from unskew.rows.tables import as_rows

DECIMALS = pa.array(["19.99", "2.50"]).cast(pa.decimal128(5, 2))
FRAME = pd.DataFrame({"age": [1.0, 2.0, 3.0], "town": ["a", "b", "a"]})


def matched(population, sample=FRAME, **options):
    return Population(population, **options).matched(as_rows(sample, name="X"))


def test_columns_are_matched_by_name_in_any_order():
    assert matched(FRAME[["town", "age"]]).columns == ["age", "town"]


@pytest.mark.parametrize(
    ("population", "message"),
    [
        (FRAME.drop(columns="town"), "lacks column 'town'"),
        (FRAME.assign(id=1), r"has column 'id', which the sample lacks.*columns="),
        (FRAME.rename(columns=str.upper), "no column in common"),
        (FRAME.assign(age="old"), "Column 'age' holds numbers in the sample.*text"),
        (FRAME.assign(town=1.0), "Column 'town' holds text.*numbers"),
        (FRAME.assign(age=[[1], [2], [3]]), "Column 'age' of the population is of type list"),
        (np.zeros((3, 5)), "2 columns and the population 5"),
    ],
)
def test_columns_that_do_not_fit_are_named(population, message):
    with pytest.raises(InputError, match=message):
        matched(population)


def test_columns_can_be_chosen():
    assert matched(FRAME.assign(id=1), columns=["age", "town"]).size == 3
    assert Population(np.zeros((3, 5)), columns=[0, 4]).columns == ["x0", "x4"]
    with pytest.raises(InputError, match="lacks column 'height', which columns names"):
        Population(FRAME, columns=["height"])
    with pytest.raises(ParameterError, match="list of names"):
        Population(FRAME, columns="age")


def test_a_column_twice_is_refused():
    twice = pd.DataFrame(np.zeros((2, 2)), columns=["a", "a"])
    with pytest.raises(InputError, match="population has a column name more than once.*\n- 'a'"):
        Population(twice)
    table = pa.table([[1.0], [2.0]], names=["a", "a"])
    with pytest.raises(InputError, match="population has .* more than once"):
        Population(table)


@pytest.mark.parametrize("weight", [[1.0, 0.5, 2.0], np.array([1.0, 0.5, 2.0])])
def test_weights_as_array_and_as_column_agree(weight):
    by_array = Population(FRAME, weight=weight)
    by_column = Population(FRAME.assign(w=weight), weight="w")
    assert by_array.mass == by_column.mass == 3.5
    assert by_array.size == by_column.size == 3
    assert by_column.columns == ["age", "town"]


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1.0, -1.0, 1.0], "must not be negative; got -1.0 at position 1"),
        ([1.0, np.nan, 1.0], "must be finite"),
        ([0.0, 0.0, 0.0], "zero on every row"),
        ([1.0, 1.0], "2 entries for 3 rows"),
    ],
)
def test_bad_design_weights_are_named(weight, message):
    with pytest.raises(InputError, match=message):
        Population(FRAME, weight=weight)
    if len(weight) == 3:
        with pytest.raises(InputError, match=message.split(";")[0]):
            Population(FRAME.assign(w=weight), weight="w").reduce(TotalWeight())


def test_a_weight_column_must_exist_and_hold_numbers():
    with pytest.raises(InputError, match="weight='w' is not a column"):
        Population(FRAME, weight="w")
    with pytest.raises(InputTypeError, match="'town' holds text"):
        Population(FRAME, weight="town").reduce(TotalWeight())


def test_decimal_weights_are_the_nearest_doubles():
    weight = pa.array(["0.3", "0.7", "19.99"]).cast(pa.decimal128(6, 2))
    table = pa.Table.from_pandas(FRAME).append_column("w", weight)
    assert Population(table, weight="w").mass == np.sum([0.3, 0.7, 19.99])


def test_a_weight_array_for_a_stream_must_have_its_length():
    for n_weights, n_rows in ((2, 3), (4, 3)):
        chunks = (FRAME for _ in range(1))
        with pytest.raises(InputError, match=f"weight has {n_weights} entries"):
            Population(chunks, weight=np.ones(n_weights)).reduce(TotalWeight())
        assert len(FRAME) == n_rows


def test_selected_rows_are_counted_and_compared_with_the_sample():
    marks = [True, True, False]
    assert Population(FRAME, selected=marks).n_selected == 2
    by_column = Population(FRAME.assign(s=marks), selected="s")
    assert by_column.n_selected == 2
    assert by_column.columns == ["age", "town"]
    assert Population(FRAME).n_selected is None
    with pytest.raises(InputError, match=r"marks 2 rows .* sample, which has 3"):
        Unweighted().fit(FRAME, population=Population(FRAME, selected=marks))
    with pytest.raises(InputError, match="true or false"):
        Population(FRAME, selected=[0, 1, 2])
    with pytest.raises(InputError, match="2 entries for 3 rows"):
        Population(FRAME, selected=[True, False])


def test_an_iterator_can_be_read_once():
    population = Population(iter([FRAME]))
    population.reduce(TotalWeight())
    with pytest.raises(InputError, match="has been read already"):
        population.reduce(Reservoir(2))
    assert population.size == 3


def test_the_size_of_an_unread_iterator_is_found_by_reading_it():
    assert Population(iter([FRAME, FRAME])).size == 6


def test_a_summary_needs_only_update_and_merge():
    class Oldest(Summary):
        age = -np.inf

        def update(self, rows):
            assert len(rows.batch) == len(rows.weight) == len(rows.numbers)
            self.age = max(self.age, max(rows.batch.column("age").to_pylist()))

        def merge(self, other):
            self.age = max(self.age, other.age)

    assert Population(FRAME).reduce(Oldest()).age == 3


def test_parts_are_merged_in_the_order_of_the_rows():
    class Firsts(Summary):
        def __init__(self):
            self.starts = []

        def update(self, rows):
            self.starts.append(rows.batch.column(0)[0].as_py())
            assert rows.numbers[0] == self.starts[-1]

        def merge(self, other):
            self.starts += other.starts

    array = np.arange(500_000.0).reshape(-1, 1)
    starts = Population(array).reduce(Firsts(), threads=4).starts
    assert starts == sorted(starts)
    assert len(starts) > 4


@pytest.mark.parametrize("threads", [1, 2])
def test_an_error_in_a_thread_reaches_the_caller(threads):
    class Broken(Summary):
        def update(self, rows):
            raise RuntimeError("broken")

        def merge(self, other): ...

    with pytest.raises(RuntimeError, match="broken"):
        Population(np.zeros((200_000, 1))).reduce(Broken(), threads=threads)


def test_threads_must_be_sensible(monkeypatch):
    with pytest.raises(ParameterError, match="threads must be at least 1; got 0"):
        Population(FRAME).reduce(TotalWeight(), threads=0)
    monkeypatch.setenv("UNSKEW_THREADS", "many")
    with pytest.raises(ParameterError, match="UNSKEW_THREADS must be a whole number; got 'many'"):
        Population(FRAME).reduce(TotalWeight())


def test_an_empty_population_is_refused(tmp_path):
    pq.write_table(pa.table({"age": pa.array([], pa.float64())}), tmp_path / "e.parquet")
    (tmp_path / "e.csv").write_text("age\n")
    for empty in (np.empty((0, 1)), FRAME[:0], tmp_path / "e.parquet", tmp_path / "e.csv"):
        with pytest.raises(InputError, match="no rows"):
            Population(empty).reduce(TotalWeight())
    with pytest.raises(InputError, match="no columns"):
        Population(np.empty((3, 0)))
    for nothing in ([], iter([])):
        with pytest.raises(UnskewError):
            Population(nothing)


class TestFiles:
    def test_files_that_are_not_there(self, tmp_path):
        with pytest.raises(InputFileError, match="nowhere.parquet' does not exist"):
            Population(tmp_path / "nowhere.parquet")
        with pytest.raises(FileNotFoundError):
            Population(str(tmp_path / "nowhere.parquet"))
        with pytest.raises(InputFileError, match="No file matches the pattern"):
            Population(str(tmp_path / "*.parquet"))
        with pytest.raises(InputFileError, match="contains no Parquet or CSV"):
            Population(tmp_path)

    def test_a_truncated_parquet_file(self, tmp_path):
        whole = tmp_path / "whole.parquet"
        FRAME.to_parquet(whole)
        for length in (0, 10, len(whole.read_bytes()) - 10):
            cut = tmp_path / "cut.parquet"
            cut.write_bytes(whole.read_bytes()[:length])
            with pytest.raises(InputError, match=r"cut.parquet' could not be read as Parquet"):
                Population(cut)

    def test_a_parquet_file_with_a_damaged_page(self, tmp_path):
        path = tmp_path / "bad.parquet"
        table = pa.table({"age": np.random.default_rng(0).normal(size=5000)})
        pq.write_table(table, path, write_page_checksum=True)
        content = bytearray(path.read_bytes())
        content[200:5000] = b"\xff" * 4800
        path.write_bytes(bytes(content))
        with pytest.raises(InputError, match="bad.parquet"):
            Population(path).reduce(TotalWeight())

    def test_a_file_of_another_kind(self, tmp_path):
        (tmp_path / "notes.docx").write_text("hello")
        with pytest.raises(InputError, match="neither Parquet .* nor text with delim"):
            Population(tmp_path / "notes.docx")

    def test_ragged_csv(self, tmp_path):
        path = tmp_path / "ragged.csv"
        path.write_text("age,town\n1,a\n2\n")
        with pytest.raises(InputError, match=r"ragged.csv' could not be read as CSV.*Expected 2"):
            Population(path).reduce(TotalWeight())

    def test_ragged_csv_far_down(self, tmp_path):
        path = tmp_path / "ragged.csv"
        path.write_text("age,town\n" + "1,aaaaaaaaaaaaaaaaaaaaaa\n" * 300_000 + "2\n")
        with pytest.raises(InputError, match=r"ragged.csv' could not be read as CSV"):
            Population(path).reduce(TotalWeight())

    def test_text_in_a_csv_column_of_numbers_names_the_column(self, tmp_path):
        path = tmp_path / "u.csv"
        path.write_text("town,age\na,1\nb,old\n")
        with pytest.raises(InputError, match=r"u.csv'.*in column 'age':.*'old'"):
            matched(path).reduce(TotalWeight())

    def test_csv_numbers_follow_the_samples_type(self, tmp_path):
        path = tmp_path / "u.csv"
        path.write_text("zip\n01\n1\n")
        sample = pd.DataFrame({"zip": ["01", "1", "01"]})
        weighter = TreeWeights(min_samples_leaf=1).fit(sample, [0.0, 1.0, 0.0], population=path)
        assert weighter.weights_.tolist() == [0.75, 1.5, 0.75]

    def test_whole_numbers_before_fractions_in_csv(self, tmp_path):
        path = tmp_path / "u.csv"
        path.write_text("age\n" + "1\n" * 3_000_000 + "2.5\n")
        assert Population(path).reduce(TotalWeight()).rows == 3_000_001

    def test_files_that_disagree(self, tmp_path):
        FRAME.to_parquet(tmp_path / "0.parquet")
        FRAME.drop(columns="age").to_parquet(tmp_path / "1.parquet")
        with pytest.raises(InputError, match="1.parquet' lacks column 'age'"):
            Population(str(tmp_path / "*.parquet"))
        FRAME.assign(age="x").to_parquet(tmp_path / "1.parquet")
        with pytest.raises(InputTypeError, match=r"Column 'age'.*0.parquet.*1.parquet"):
            Population(str(tmp_path / "*.parquet"))
        FRAME.to_csv(tmp_path / "2.csv", index=False)
        with pytest.raises(InputError, match="mixes Parquet and CSV"):
            Population([tmp_path / "0.parquet", tmp_path / "2.csv"])
        FRAME.drop(columns="age").to_csv(tmp_path / "3.csv", index=False)
        with pytest.raises(InputError, match="Column 'age' is not in both"):
            Population([tmp_path / "2.csv", tmp_path / "3.csv"])

    @pytest.mark.filterwarnings("ignore::unskew.errors.OverlapWarning")
    @pytest.mark.parametrize(
        ("first", "second"),
        [
            (pa.array([True, False]), pa.array([1, 0])),
            (pa.array([1, 2]), DECIMALS),
            (pa.array([1.5, 19.99]), DECIMALS),
            (pa.array([1, 2], pa.date32()), pa.array([1, 2], pa.timestamp("us"))),
            (pa.array([1, 2], pa.timestamp("ns")), pa.array([0, 86_400_000], pa.date64())),
            (
                pa.array([1, 2], pa.timestamp("us", "UTC")),
                pa.array([1, 2], pa.timestamp("ns", "Europe/Berlin")),
            ),
            (pa.array([1, 2], pa.time32("s")), pa.array([1, 2], pa.time64("us"))),
            (pa.array(["a", "b"]), pa.array(["a", "b"]).dictionary_encode()),
            (pa.array(["a", "b"]), pa.nulls(2)),
        ],
        ids=lambda column: str(column.type),
    )
    def test_rows_are_kept_of_files_whose_types_agree_in_kind(self, tmp_path, first, second):
        for number, column in enumerate((first, second, first)):
            pq.write_table(pa.table({"x": column}), tmp_path / f"{number}.parquet")
        kept = Population(tmp_path).reduce(Reservoir(10)).rows
        code = ColumnCodes().fit(pa.record_batch({"x": first}))
        values = [
            code.transform(pa.record_batch({"x": column}), side="population").values
            for column in (first, second, first)
        ]
        found = code.transform(kept, side="population").values
        assert np.array_equal(found, np.concatenate(values), equal_nan=True)
        HistogramWeights().fit(pa.table({"x": first}), population=tmp_path)

    def test_files_of_number_types_that_agree_in_kind(self, tmp_path):
        FRAME.to_parquet(tmp_path / "0.parquet")
        FRAME.assign(age=[4, 5, 6]).to_parquet(tmp_path / "1.parquet")
        assert matched(str(tmp_path / "*.parquet")).reduce(TotalWeight()).rows == 6


def test_views_of_text_are_text():
    views = pa.table({"town": pa.array(["a", "b", "b", "c", None], pa.string_view())})
    plain = pa.table({"town": views.column("town").cast(pa.string())})
    weighter = FrequencyWeights(overlap="ignore")
    expected = weighter.fit(plain.slice(0, 3), population=plain).weights_
    for sample in (views, plain):
        for population in (views, plain, [views], views.to_reader()):
            found = weighter.fit(sample.slice(0, 3), population=population).weights_
            assert np.array_equal(found, expected)


def test_chunks_that_disagree():
    with pytest.raises(InputError, match="Chunk 1 of the population lacks column 'town'"):
        Population([FRAME, FRAME[["age"]]]).reduce(TotalWeight())
    with pytest.raises(InputError, match="Chunk 1 .* additional column 'id'"):
        Population([FRAME, FRAME.assign(id=1)]).reduce(TotalWeight())
    with pytest.raises(InputTypeError, match="Column 'age'"):
        Population([FRAME, FRAME.assign(age="x")]).reduce(TotalWeight())


@pytest.mark.parametrize("data", [3, object(), {"age": [1]}, b"bytes"])
def test_things_that_are_no_population(data):
    with pytest.raises(InputTypeError, match=type(data).__name__):
        Population(data)


def test_no_population_is_an_error():
    for given in ({}, {"population": None}):
        with pytest.raises(ParameterError, match="population is None"):
            FrequencyWeights().fit(FRAME, **given)


def test_a_population_is_not_array_like():
    population = Population(FRAME)
    assert not hasattr(population, "__len__")
    assert not hasattr(population, "shape")
    assert not hasattr(population, "__getitem__")
    assert not hasattr(population, "__array__")
    assert "Table" in repr(population)


def test_design_weights_are_copied():
    weight = np.array([1.0, 1.0])
    population = Population([[1.0], [2.0]], weight=weight)
    weight[0] = 100.0
    assert population.mass == 2


def test_columns_by_position():
    frame = pd.DataFrame({"a": [1.0], "b": [2.0]})
    assert Population(frame, columns=[1]).columns == ["b"]
    for bad in ([None], [1.7], [5]):
        with pytest.raises(ParameterError, match="columns must be names, or positions"):
            Population(frame, columns=bad)
