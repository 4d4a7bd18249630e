"""A killed pass resumes, counts no row twice, and returns the bits of an uninterrupted one."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import io
import os
import pickle
import signal
import subprocess
import sys
import zipfile
from pathlib import Path
from threading import Lock

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from sklearn.metrics.pairwise import laplacian_kernel

import unskew
from unskew import InputError, KernelMeanMatching, ParameterError, Population, TreeWeights
from unskew.population import EncodedRows, Moments, Reservoir, Total, checkpoint, progress
from unskew.population.encode import ColumnCodes
from unskew.population.feature_space import FeatureSpace
from unskew.population.sources import parquet
from unskew.population.summaries import Summaries


class Killed(BaseException):
    """Ends a pass as a signal would."""


def save_every_part(patch=setattr):
    """Make every row group a part, and save and report each, due or not."""
    patch(parquet, "BLOCK_ROWS", 100)
    patch(progress, "SECONDS_BETWEEN", 0.0)
    patch(checkpoint.Checkpoint, "save_if_due", checkpoint.Checkpoint.save)


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
def folder(tmp_path, monkeypatch):
    save_every_part(monkeypatch.setattr)
    folder = tmp_path / "u"
    folder.mkdir()
    for number in range(4):
        pq.write_table(rows(number), folder / f"{number}.parquet", row_group_size=100)
    return folder


def killed_after(parts: int):
    left = iter(range(parts - 1))

    def callback(_):
        if next(left, None) is None:
            raise Killed

    return callback


SAMPLE = rows(9, 120).select(["a", "b", "town"])
BATCH = SAMPLE.combine_chunks().to_batches()[0]
CODES, SPACE = ColumnCodes().fit(BATCH), FeatureSpace().fit(BATCH)


class Parts(Total):
    """Gathers a list, and so defines what a checkpoint is to store of it."""

    def __init__(self):
        super().__init__()
        self.masses = []

    def merge(self, other):
        self.masses.append(other.mass)
        super().merge(other)

    def state(self):
        return dict(vars(self))


def drawn(reservoir):
    rows = reservoir.rows
    kept = rows.to_pydict() if isinstance(rows, pa.RecordBatch) else rows.tobytes()
    return repr(kept), reservoir.numbers.tolist(), reservoir.weight.tolist()


QUESTIONS = {  # how to ask, and what is answered
    "total": (Total, lambda total: (total.rows, total.mass)),
    "moments": (
        lambda: EncodedRows(SPACE, Moments(SPACE.n_features)),
        lambda answer: (answer.summary.mean.tobytes(), answer.summary.variance.tobytes()),
    ),
    "rows": (lambda: Reservoir(150, seed=3), drawn),
    "several": (
        lambda: Summaries([EncodedRows(CODES, Reservoir(150)), Total()]),
        lambda answer: (drawn(answer.parts[0].summary), answer.parts[1].mass),
    ),
    "custom": (Parts, lambda parts: parts.masses),
}


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_a_resumed_pass_returns_the_same_bits(folder, tmp_path, question, on_error):
    make, result = QUESTIONS[question]

    def ask(callback=None, path=tmp_path / "c", threads=1):
        options = {"weight": "w", "on_error": on_error, "checkpoint": path, "progress": callback}
        population = Population(folder, columns=["a", "b", "town"], **options)
        return result(population.reduce(make(), threads=threads)), population.mass

    expected = ask(path=None)
    for parts in (1, 7, 13, 13, 5):  # killed five times, each time further on
        with pytest.raises(Killed):
            ask(killed_after(parts), threads=parts % 2 + 1)
    reports = []
    assert ask(reports.append, threads=2) == expected
    assert reports[0].resumed_rows >= 2000
    assert reports[-1].rows == 4000
    assert list(tmp_path.iterdir()) == [folder]  # the checkpoint is deleted, and nothing is left


WEIGHTERS = [
    TreeWeights(),
    TreeWeights(min_samples_leaf="bound", honest=True),
    unskew.HistogramWeights(),
    unskew.FrequencyWeights(),
    unskew.ClusterWeights(),
    KernelMeanMatching(),
    KernelMeanMatching(kernel=laplacian_kernel),
    KernelMeanMatching(method="low-rank", overlap="ignore"),
]


def fitted(number, folder, path, callback=None):
    population = Population(folder, weight="w", checkpoint=path, progress=callback)
    weighter = WEIGHTERS[number]
    return weighter.fit(SAMPLE.to_pandas(), np.arange(120.0) % 7, population=population).weights_


def begin_every_weighter(folder, place):
    save_every_part()
    for number in range(len(WEIGHTERS)):
        with contextlib.suppress(Killed):
            fitted(number, folder, Path(place) / str(number), killed_after(15))


def draw_and_die(folder, path, kill_after):
    def die(report):
        if report.rows - report.resumed_rows >= int(kill_after):
            os.kill(os.getpid(), signal.SIGKILL)

    save_every_part()
    Population(folder, weight="w", checkpoint=path, progress=die).reduce(Reservoir(150))


def in_a_new_process(function, *arguments):
    code = f"import sys, test_checkpoint as t; t.{function.__name__}(*sys.argv[1:])"
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, *map(str, arguments)],
        check=False, cwd=Path(__file__).parent, env={**os.environ, "PYTHONHASHSEED": "1"},
    ).returncode  # fmt: skip


@pytest.mark.filterwarnings("ignore::unskew.OverlapWarning")
def test_every_weighter_resumes_in_another_process(folder, tmp_path):
    assert in_a_new_process(begin_every_weighter, folder, tmp_path) == 0
    for number in range(len(WEIGHTERS)):
        reports = []
        weights = fitted(number, folder, tmp_path / str(number), reports.append)
        assert reports[0].resumed_rows >= 1400, WEIGHTERS[number]
        assert np.array_equal(weights, fitted(number, folder, None)), WEIGHTERS[number]


def test_processes_that_are_killed(folder, tmp_path):
    path, reports = tmp_path / "c", []
    for kill_after in (300, 1900):
        assert in_a_new_process(draw_and_die, folder, path, kill_after) == -signal.SIGKILL
    ask = functools.partial(Population, folder, weight="w")
    answer = ask(checkpoint=path, progress=reports.append).reduce(Reservoir(150))
    assert reports[0].resumed_rows >= 2100
    assert drawn(answer) == drawn(ask().reduce(Reservoir(150)))


def test_csv_resumes_within_a_file(tmp_path, monkeypatch):
    save_every_part(monkeypatch.setattr)
    monkeypatch.setattr("unskew.population.sources.csv._BLOCK_BYTES", 2000)
    monkeypatch.setattr("unskew.population.sources.base.BLOCK_ROWS", 100)
    paths = [tmp_path / f"{number}.csv" for number in range(3)]
    for number, path in enumerate(paths):
        rows(number).to_pandas().to_csv(path, index=False)
    ask = functools.partial(Population, paths, columns=["a", "b", "town"])
    with pytest.raises(Killed):
        ask(checkpoint=tmp_path / "c", progress=killed_after(14)).reduce(Reservoir(50))
    reports = []
    answer = ask(checkpoint=tmp_path / "c", progress=reports.append).reduce(Reservoir(50))
    assert drawn(answer) == drawn(ask().reduce(Reservoir(50)))
    assert 1000 < reports[0].resumed_rows < 3000


def test_skipped_files_are_remembered(folder, tmp_path):
    path = folder / "1.parquet"
    start = pq.ParquetFile(path).metadata.row_group(6).column(0).data_page_offset
    content = path.read_bytes()
    path.write_bytes(content[:start] + b"\xff" * 400 + content[start + 400 :])
    ask = functools.partial(Population, folder, checkpoint=tmp_path / "c", on_error="skip")
    with pytest.raises(Killed):
        ask(progress=killed_after(33)).reduce(Total(), threads=1)
    population = ask()
    with pytest.warns(unskew.SkippedFilesWarning, match="1.parquet"):
        assert population.reduce(Total()).rows == 3000
    assert list(population.skipped_files) == [str(path)]


@pytest.fixture
def begun(folder, tmp_path):
    population = Population(folder, checkpoint=tmp_path / "c", progress=killed_after(9))
    with pytest.raises(Killed):
        population.reduce(Reservoir(150))
    return tmp_path / "c"


class TestOfADifferentRun:
    @pytest.mark.parametrize(
        ("options", "question", "message"),
        [
            ({}, Reservoir(149), "the sample, the weighter or its parameters changed"),
            ({}, Total(), "the weighter or its parameters changed"),
            ({"columns": ["a"]}, Reservoir(150), "the columns changed"),
            ({"columns": ["b", "a", "town", "w"]}, Reservoir(150), "the columns changed"),
            ({"weight": "w"}, Reservoir(150), "the columns and weight changed"),
            ({"weight": np.ones(4000)}, Reservoir(150), "weight changed"),
            ({"selected": np.ones(4000, bool)}, Reservoir(150), "selected changed"),
            ({"on_error": "skip"}, Reservoir(150), "on_error changed"),
        ],
    )
    def test_is_refused_by_name(self, folder, begun, options, question, message):
        pattern = f"c' was written by a different run: .*{message}. Rerun with the original sett"
        with pytest.raises(InputError, match=pattern):
            Population(folder, checkpoint=begun, **options).reduce(question)
        assert begun.exists()

    def test_changed_files(self, folder, begun):
        def check_refused(data, message):
            with pytest.raises(InputError, match=f"different run: {message}"):
                Population(data, checkpoint=begun).reduce(Reservoir(150))

        paths = sorted(map(str, folder.glob("*.parquet")))
        check_refused(paths[::-1], "the order of the files changed")
        check_refused(paths[:3], "file '.*3.parquet' was removed")
        check_refused(ds.dataset(folder), "the reader or its block size changed")
        os.utime(folder / "2.parquet", (1, 1))
        check_refused(folder, "file '.*2.parquet' changed")
        pq.write_table(rows(5), folder / "1a.parquet")
        check_refused(folder, "file '.*1a.parquet' was added")
        assert begun.exists()


def refused(folder, path, reason=""):
    before = path.read_bytes()
    with pytest.raises(InputError, match=rf"is not a checkpoint of this .*damaged \(.*{reason}"):
        Population(folder, checkpoint=path).reduce(Reservoir(150))
    assert path.read_bytes() == before  # it may be somebody's only copy of something else


class TestDamagedFiles:
    def test_foreign_files(self, folder, tmp_path):
        for content in (b"precious", b"", b"unskew checkpoint 1\n", b"PK\x03\x04"):
            (tmp_path / "c").write_bytes(content)
            refused(folder, tmp_path / "c", "its first line differs")

    def test_damage_anywhere(self, folder, begun):
        content = begun.read_bytes()
        for place in np.linspace(0, len(content) - 1, 50).astype(int):
            flipped = content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]
            for damaged in (flipped, content[:place]):
                begun.write_bytes(damaged)
                refused(folder, begun)

    def test_a_forged_digest_runs_no_code(self, folder, begun, tmp_path):
        class Attack:
            def __reduce__(self):
                return Path.touch, (tmp_path / "ran",)

        member = io.BytesIO()
        np.save(member, np.array([Attack()], dtype=object), allow_pickle=True)
        forge(begun, "weight.npy", member.getvalue())
        refused(folder, begun, "allow_pickle=False")
        for name, content in (("rows.arrow", b"\xff" * 100), ("header.json", b"[]")):
            forge(begun, name, content)
            refused(folder, begun)
        assert not (tmp_path / "ran").exists()

    def test_what_expands_is_refused_before_it_does(self, folder, begun):
        forge(begun, "weight.npy", bytes(2**22), zipfile.ZIP_DEFLATED)
        refused(folder, begun, "it is compressed")

    def test_the_size_is_counted_without_it(self, tmp_path):
        rows(0).to_pandas().to_csv(tmp_path / "u.csv", index=False)
        (tmp_path / "c").write_bytes(b"of another pass")
        assert Population(tmp_path / "u.csv", checkpoint=tmp_path / "c").size == 1000


def forge(path, name, data, compression=zipfile.ZIP_STORED):
    """Replace a member of a checkpoint, and make its digest right again."""
    line, content = path.read_bytes().split(b"\n", 1)
    old, new = zipfile.ZipFile(io.BytesIO(content[32:])), io.BytesIO()
    with zipfile.ZipFile(new, "w", compression) as archive:
        for member in old.namelist():
            archive.writestr(member, data if member == name else old.read(member))
    path.write_bytes(line + b"\n" + hashlib.sha256(new.getvalue()).digest() + new.getvalue())


def test_places_where_no_checkpoint_can_be(folder, tmp_path):
    with pytest.raises(ParameterError, match="checkpoint requires a population in files"):
        Population(np.zeros((2, 2)), checkpoint=tmp_path / "c")
    missing = "a file in a folder that exists"
    for place, message in ((tmp_path / "no" / "c", missing), (tmp_path, missing), (1, "a path")):
        with pytest.raises(ParameterError, match=f"checkpoint.* must be {message}"):
            Population(folder, checkpoint=place)


class Holding(Total):
    shared = frozenset({"tool"})

    def __init__(self, **held):
        super().__init__()
        vars(self).update(held)


@pytest.mark.parametrize(
    ("summary", "message"),
    [
        (Holding(made=lambda: 1), "Holding.made is a function"),
        (Holding(made=object()), "Holding.made is a object, which a checkpoint cannot store"),
        (Holding(made=[]), "Holding.made is a list"),
        (Holding(made={}), "Holding.made is a dict"),
        (Holding(made=[Total(), object()]), r"Holding.made.1 is a object"),
        (Holding(made=Holding(inner=object())), "Holding.inner is a object"),
        (Holding(made=np.array([None, 1])), "Holding.made is a ndarray"),
        (Holding(made=np.ma.array([1.0])), "Holding.made is a MaskedArray"),
        (Holding(tool=lambda: 1), "Holding cannot be used with a checkpoint: .*lambda"),
        (Holding(tool=Lock()), "Holding cannot be used with a checkpoint: cannot pickle"),
    ],
)
def test_summaries_that_cannot_be_stored_are_refused_at_once(folder, tmp_path, summary, message):
    population = Population(folder, checkpoint=tmp_path / "c", progress=killed_after(1))
    with pytest.raises(ParameterError, match=message):
        population.reduce(summary)
    assert not (tmp_path / "c").exists()


HELD = {
    "nothing": None, "flag": True, "large": -(2**70), "text": "ä\ud800", "zero": -0.0,
    "small": 2.0**-1074, "infinite": float("inf"), "single": np.float32(0.1),
    "columns": np.asfortranarray(np.arange(6.0).reshape(2, 3)), "none": np.empty((0, 2)),
    "waves": np.array([1j / 3]), "times": np.array(["2020-01-01"], "M8[ns]"),
    "record": np.array([(1, 2.0)], dtype=[("a", "i1"), ("b", "f8")]),
    "batch": pa.record_batch({"s": ["a", None], "t": pa.array([1, None], pa.timestamp("ns"))}),
    "codes": pa.record_batch({"d": pa.array(["u", "v", "u"]).dictionary_encode()}),
    "empty": pa.record_batch({"d": pa.array([], pa.float64())}),
}  # fmt: skip


class Gathering(Holding):
    def merge(self, other):
        if not self.rows:  # the first part sets them; from then on they are carried along
            held = vars(other) if "flag" in vars(other) else HELD
            vars(self).update({name: held[name] for name in HELD})
        super().merge(other)


def test_values_come_back_to_the_last_bit(folder, tmp_path):
    ask = functools.partial(Population, folder, checkpoint=tmp_path / "c")
    with pytest.raises(Killed):
        ask(progress=killed_after(9)).reduce(Gathering(nothing=1, tool=functools.partial(max, 1)))
    answer = ask().reduce(Gathering(nothing=1, tool=functools.partial(max, 1)))
    assert answer.rows == 4000
    for name, value in HELD.items():
        found = getattr(answer, name)
        assert type(found) is type(value)
        is_batch = isinstance(value, pa.RecordBatch)
        assert not is_batch or found is not value  # it came out of the file
        assert found.equals(value) if is_batch else pickle.dumps(found) == pickle.dumps(value)
