"""A pass that was killed goes on, counts no row twice, and has the bits of one that was not."""

from __future__ import annotations

import functools
import json
import os
import signal
import subprocess
import sys
import zipfile
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from unskew import (
    ClusterWeights,
    FrequencyWeights,
    HistogramWeights,
    InputError,
    KernelMeanMatching,
    ParameterError,
    Population,
    SkippedFilesWarning,
    Summary,
    TreeWeights,
)
from unskew.population import EncodedRows, Moments, Reservoir, Total, checkpoint, progress
from unskew.population.encode import ColumnCodes
from unskew.population.fingerprint import fingerprint
from unskew.population.saved_state import load_state, save_state


class Killed(BaseException):
    """Ends a pass as a signal would."""


@pytest.fixture(autouse=True)
def every_part(monkeypatch):
    """Every row group is a part, each is saved and told of."""
    monkeypatch.setattr("unskew.population.sources.parquet.BLOCK_ROWS", 100)
    monkeypatch.setattr(checkpoint, "SECONDS_BETWEEN", 0.0)
    monkeypatch.setattr(progress, "SECONDS_BETWEEN", 0.0)

    # Saving costs more than reading these parts; otherwise most would not be saved.
    monkeypatch.setattr(checkpoint.Checkpoint, "save_if_due", checkpoint.Checkpoint.save)


def rows(seed: int, n_rows: int = 1000) -> pa.Table:
    random = np.random.default_rng(seed)
    return pa.table(
        {
            "a": random.normal(size=n_rows),
            "b": pa.array(random.normal(size=n_rows), mask=random.uniform(size=n_rows) < 0.1),
            "town": pa.array(random.choice(["x", "y", "z"], n_rows)),
            "w": random.uniform(size=n_rows),
        }
    )


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "u"
    folder.mkdir()
    for number in range(4):
        pq.write_table(rows(number), folder / f"{number}.parquet", row_group_size=100)
    return folder


def killed_after(parts: int):
    calls = 0

    def callback(_: object) -> None:
        nonlocal calls
        calls += 1
        if calls == parts:
            raise Killed

    return callback


CODES = ColumnCodes().fit(rows(9).select(["a", "b", "town"]).combine_chunks().to_batches()[0])


class Towns(Summary):
    """One that a user might write."""

    def __init__(self):
        self.counts = Counter()
        self.sums = {}
        self.firsts = []

    def update(self, batch, weight):
        towns = batch.column("town").cast(pa.string()).to_pylist()
        self.counts.update(towns)
        for town, one in zip(towns, weight, strict=True):
            self.sums[town] = self.sums.get(town, 0.0) + one
        self.firsts.append((self.position, float(batch.column("a")[0].as_py())))

    def merge(self, other):
        self.counts += other.counts
        for town, one in other.sums.items():
            self.sums[town] = self.sums.get(town, 0.0) + one
        self.firsts += other.firsts


QUESTIONS = {
    "total": Total,
    "moments": lambda: EncodedRows(CODES, Moments(3)),
    "rows": lambda: Reservoir(150, seed=3),
    "codes": lambda: EncodedRows(CODES, Reservoir(150, seed=3)),
    "a user's": Towns,
}


def same(one: Summary, other: Summary) -> bool:
    return fingerprint(one) == fingerprint(other)


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_a_resumed_pass_has_the_bits_of_one_that_was_not(folder, tmp_path, question, on_error):
    def ask(callback=None, path=tmp_path / "c", threads=1):
        population = Population(
            folder, columns=["a", "b", "town"], weight="w", on_error=on_error,
            checkpoint=path, progress=callback,
        )  # fmt: skip
        return population.reduce(QUESTIONS[question](), threads=threads), population.mass

    expected, mass = ask(path=None)
    for parts in (1, 7, 13, 13, 5):  # killed five times, each time further on
        with pytest.raises(Killed):
            ask(killed_after(parts), threads=parts % 2 + 1)
    told = []
    answer, resumed_mass = ask(told.append, threads=2)
    assert same(answer, expected)
    assert resumed_mass == mass
    assert told[0].resumed_rows >= 2000
    assert told[-1].rows == 4000
    assert not (tmp_path / "c").exists()
    assert list(tmp_path.iterdir()) == [folder]


WEIGHTERS = [
    TreeWeights(),
    TreeWeights(min_samples_leaf="bound", honest=True),
    HistogramWeights(),
    FrequencyWeights(),
    ClusterWeights(),
    KernelMeanMatching(),
]


@pytest.mark.filterwarnings("ignore::unskew.OverlapWarning")
@pytest.mark.parametrize("weighter", WEIGHTERS, ids=lambda one: type(one).__name__)
def test_every_weighter(folder, tmp_path, weighter):
    sample = rows(9, 120).select(["a", "b", "town"]).to_pandas()
    labels = np.arange(120.0) % 7

    def fit(path, callback=None):
        population = Population(folder, weight="w", checkpoint=path, progress=callback)
        return weighter.fit(sample, labels, population=population).weights_

    expected = fit(None)
    with pytest.raises(Killed):
        fit(tmp_path / "c", killed_after(15))
    assert (tmp_path / "c").exists()
    assert np.array_equal(fit(tmp_path / "c"), expected)


CODE = """
import os, signal, sys
from unskew import Population
from unskew.population import EncodedRows, Reservoir, checkpoint, progress
from unskew.population.sources import parquet
parquet.BLOCK_ROWS = 100
checkpoint.SECONDS_BETWEEN = progress.SECONDS_BETWEEN = 0.0
checkpoint.Checkpoint.save_if_due = checkpoint.Checkpoint.save

def callback(told):
    if told.rows - told.resumed_rows >= int(sys.argv[3]):
        os.kill(os.getpid(), signal.SIGKILL)

Population(sys.argv[1], columns=["a", "b", "town"], weight="w", checkpoint=sys.argv[2],
           progress=callback).reduce(Reservoir(150, seed=3))
"""


def test_processes_that_are_killed(folder, tmp_path):
    for kill_after in (300, 1900):
        command = [sys.executable, "-c", CODE, str(folder), str(tmp_path / "c"), str(kill_after)]
        assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    told = []
    ask = functools.partial(Population, folder, columns=["a", "b", "town"], weight="w")
    answer = ask(checkpoint=tmp_path / "c", progress=told.append).reduce(Reservoir(150, seed=3))
    assert told[0].resumed_rows >= 2100
    assert same(answer, ask().reduce(Reservoir(150, seed=3)))


def test_csv_goes_on_within_a_file(tmp_path, monkeypatch):
    monkeypatch.setattr("unskew.population.sources.csv._BLOCK_BYTES", 2000)
    monkeypatch.setattr("unskew.population.sources.base.BLOCK_ROWS", 100)
    paths = [tmp_path / f"{number}.csv" for number in range(3)]
    for number, path in enumerate(paths):
        rows(number).to_pandas().to_csv(path, index=False)
    ask = functools.partial(Population, paths, columns=["a", "b", "town"])
    expected = ask().reduce(Reservoir(50))
    with pytest.raises(Killed):
        ask(checkpoint=tmp_path / "c", progress=killed_after(14)).reduce(Reservoir(50))
    told = []
    answer = ask(checkpoint=tmp_path / "c", progress=told.append).reduce(Reservoir(50))
    assert same(answer, expected)
    assert 1000 < told[0].resumed_rows < 3000


def test_skipped_files_are_remembered(folder, tmp_path):
    path = folder / "1.parquet"
    content = bytearray(path.read_bytes())
    start = pq.ParquetFile(path).metadata.row_group(6).column(0).data_page_offset
    content[start : start + 400] = b"\xff" * 400
    path.write_bytes(bytes(content))
    ask = functools.partial(Population, folder, checkpoint=tmp_path / "c", on_error="skip")
    with pytest.raises(Killed):
        ask(progress=killed_after(33)).reduce(Total(), threads=1)
    population = ask()
    with pytest.warns(SkippedFilesWarning, match="1.parquet"):
        assert population.reduce(Total()).rows == 3000
    assert list(population.skipped_files) == [str(path)]


class TestOfSomethingElse:
    @pytest.fixture
    def begun(self, folder, tmp_path):
        with pytest.raises(Killed):
            Population(
                folder, checkpoint=tmp_path / "c", progress=killed_after(9)
            ).reduce(Reservoir(150))  # fmt: skip
        return tmp_path / "c"

    @pytest.mark.parametrize(
        ("options", "question", "message"),
        [
            ({}, Reservoir(149), "the question changed"),
            ({}, Total(), "the question changed"),
            ({"columns": ["a"]}, Reservoir(150), "the columns changed"),
            (
                {"columns": ["a", "b", "town"], "weight": "w"},
                Reservoir(150),
                "columns and the w",
            ),
            ({"weight": np.ones(4000)}, Reservoir(150), "the weights changed"),
            ({"on_error": "skip"}, Reservoir(150), "on_error changed"),
        ],
    )
    def test_is_told(self, folder, begun, options, question, message):
        with pytest.raises(InputError, match=f"is the checkpoint of something else: .*{message}"):
            Population(folder, checkpoint=begun, **options).reduce(question)
        assert begun.exists()

    def test_changed_files(self, folder, begun, tmp_path):
        def ask(data):
            Population(data, checkpoint=begun).reduce(Reservoir(150))

        paths = sorted(map(str, folder.glob("*.parquet")))
        with pytest.raises(InputError, match="the files are in another order"):
            ask(paths[::-1])
        with pytest.raises(InputError, match="3.parquet' is no longer part"):
            ask(paths[:3])
        os.utime(folder / "2.parquet", (1, 1))
        with pytest.raises(InputError, match="2.parquet' has changed"):
            ask(folder)
        pq.write_table(rows(5), folder / "1a.parquet")
        with pytest.raises(InputError, match="1a.parquet' was not part of"):
            ask(folder)

    def test_a_dataset_of_the_same_files(self, folder, begun):
        with pytest.raises(InputError, match="how files are cut into parts changed"):
            Population(ds.dataset(folder), checkpoint=begun).reduce(Reservoir(150))
        assert begun.exists()

    def test_is_no_checkpoint_at_all(self, folder, tmp_path):
        for name, content in (("text", b"precious"), ("none", b""), ("zip", None)):
            path = tmp_path / name
            if content is None:
                with zipfile.ZipFile(path, "w") as archive:
                    archive.writestr("checkpoint.json", json.dumps({"format": "other"}))
            else:
                path.write_bytes(content)
            before = path.read_bytes()
            with pytest.raises(InputError, match=f"{name}' is no checkpoint of this version"):
                Population(folder, checkpoint=path).reduce(Total())
            assert path.read_bytes() == before

    def test_the_size_is_asked_without_it(self, tmp_path):
        rows(0).to_pandas().to_csv(tmp_path / "u.csv", index=False)
        (tmp_path / "c").write_bytes(b"of another question")
        assert Population(tmp_path / "u.csv", checkpoint=tmp_path / "c").size == 1000


def test_places_where_no_checkpoint_can_be(folder, tmp_path):
    with pytest.raises(ParameterError, match="populations in files"):
        Population(np.zeros((2, 2)), checkpoint=tmp_path / "c")
    with pytest.raises(ParameterError, match="a file in a folder that exists"):
        Population(folder, checkpoint=tmp_path / "nowhere" / "c")
    with pytest.raises(ParameterError, match="a file in a folder that exists"):
        Population(folder, checkpoint=tmp_path)
    with pytest.raises(ParameterError, match="checkpoint must be a path; got a bool"):
        Population(folder, checkpoint=True)


class Holding(Total):
    def __init__(self, **held):
        super().__init__()
        vars(self).update(held)


SHARED = np.zeros(3)


@pytest.mark.parametrize(
    ("summary", "message"),
    [
        (Holding(made=lambda: 1), "Holding cannot be kept in a checkpoint: .*lambda"),
        (Holding(made=object()), "Holding.made is a object"),
        (Holding(made=[1, {"k": open}, object()]), r"Holding.made\[2\] is a object"),
        (Holding(made=np.array([None, 1])), "Holding.made is a ndarray"),
        (Holding(one=SHARED, two=SHARED[1:]), "Holding.two is held by another attribute too"),
        (Holding(one=[Total()] * 2), r"Holding.one\[1\] is held by another"),
        (Holding(file=sys.stdin), "cannot be kept in a checkpoint"),
    ],
)
def test_summaries_that_cannot_be_kept_are_refused_at_once(folder, tmp_path, summary, message):
    population = Population(folder, checkpoint=tmp_path / "c")
    with pytest.raises(ParameterError, match=message):
        population.reduce(summary)
    assert not (tmp_path / "c").exists()


def test_what_is_only_read_may_be_anything(folder, tmp_path):
    class Reading(Total):
        shared = frozenset({"tool"})

        def __init__(self):
            super().__init__()
            self.tool = functools.partial(np.add, 1)

    with pytest.raises(Killed):
        Population(folder, checkpoint=tmp_path / "c", progress=killed_after(9)).reduce(Reading())
    assert Population(folder, checkpoint=tmp_path / "c").reduce(Reading()).rows == 4000


def test_state_comes_back_to_the_last_bit():
    held = {
        "nothing": None,
        "numbers": [1, 2.0**-1074, float("inf"), 0.1, True, 1j / 3, np.float32(0.1), -(2**70)],
        "text": ("a\ud800", b"\x00\xff", {"k": {1, 2}}, frozenset("x"), Counter("aab")),
        "keys": {(1, "a"): [np.nan], None: 2},
        "arrays": [np.array(3), np.arange(6.0).reshape(2, 3)[:, ::2], np.array(["ä"]), np.empty(0)],
        "record": np.array([(1, 2.0)], dtype=[("a", "i1"), ("b", "f8")]),
        "rows": pa.record_batch({"s": ["a", None], "t": pa.array([1, None], pa.timestamp("ns"))}),
        "codes": pa.record_batch({"d": pa.array(["u", "v", "u"]).dictionary_encode()}),
        "none": pa.record_batch({"d": pa.array([], pa.float64())}),
        "table": pa.table({"x": [1.5]}),
        "column": pa.array([[1, 2], None]),
        "kind": np.float32,
        "inner": Moments(2),
    }
    summary = Holding(**held)
    summary.inner.update(np.random.default_rng(0).normal(size=(9, 2)), np.ones(9))
    empty = Holding(kind=np.float32, inner=Moments(2))
    twin = Holding(kind=np.float32, inner=Moments(2))
    state, files = save_state(summary, empty)
    load_state(twin, json.loads(json.dumps(state)), files)
    assert fingerprint(twin) == fingerprint(summary)
    assert type(twin.numbers[6]) is np.float32
    assert twin.arrays[0].shape == ()


def test_a_fingerprint_is_that_of_the_meaning():
    table = pa.table({"a": [1.0, None], "t": ["x", None]})
    sliced = pa.table({"a": [9.0, 1.0, None], "t": ["q", "x", None]}).slice(1)
    assert fingerprint(table) == fingerprint(sliced)
    different = [
        1, 1.0, True, "1", b"1", None, [1], (1,), {1}, {1: 1}, np.array(1), np.array([1]),
        np.array([1.0]), table, table.slice(1), Total(), Total, np.add, Moments(1), Moments(2),
        TreeWeights(), TreeWeights(honest=True), [[1], 2], [[1, 2]], np.zeros((2, 3)),
        np.zeros((3, 2)), pa.int8(), pa.array([1]), pa.array([1], pa.int8()),
    ]  # fmt: skip
    assert len({fingerprint(value) for value in different}) == len(different)
    ring: list = []
    ring.append(ring)
    assert fingerprint(ring)


def fitted_question() -> str:
    x = np.random.default_rng(0).normal(size=(300, 3))
    return fingerprint(TreeWeights().fit(x, x[:, 0] * x[:, 1], population=x).locator_)


def test_fingerprints_of_fitted_questions_agree_between_processes():
    code = "from test_checkpoint import fitted_question; print(fitted_question())"
    found = subprocess.run(
        [sys.executable, "-c", code],
        check=True, capture_output=True, text=True, cwd=os.path.dirname(__file__),
        env={**os.environ, "PYTHONHASHSEED": "1"},
    )  # fmt: skip
    assert found.stdout.strip() == fitted_question()
