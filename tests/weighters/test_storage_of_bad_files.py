from __future__ import annotations

import copy
import io
import json
import os
import pickle
import tracemalloc
import zipfile
from functools import partial

import numpy as np
import pytest
import skops.io
from sklearn.cluster import KMeans
from sklearn.tree._tree import Tree
from tests.weighters.stored_weighters import WEIGHTERS

from unskew import TreeWeights, load_weighter, save_weighter
from unskew.errors import InputError, InputFileError
from unskew.weighters import storage

pytestmark = pytest.mark.filterwarnings("ignore::unskew.errors.OverlapWarning")


class _Marker:
    """Makes a file when it is unpickled."""

    def __init__(self, path) -> None:
        self.path = str(path)

    def __reduce__(self):
        return os.mkdir, (self.path,)


def _with_about(data: bytes, **about) -> bytes:
    buffer = io.BytesIO(data)
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.writestr("unskew.json", json.dumps({**storage._about(), **about}))
    return buffer.getvalue()


def _rewritten(path, change) -> bytes:
    """Return a skops file with its schema changed, its checksums right."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(buffer, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == "schema.json":
                content = json.dumps(change(json.loads(content))).encode()
            new.writestr(name, content)
    return buffer.getvalue()


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_bad_files_are_refused_in_one_sentence_and_never_run(saved_tree, tmp_path):
    good, marker = tmp_path / "good.skops", tmp_path / "marker"
    save_weighter(saved_tree, good)
    data = good.read_bytes()
    bare = skops.io.dumps(saved_tree)
    call = partial(os.mkdir, str(marker))

    def spoiled(schema):
        text = json.dumps(schema)
        return json.loads(text.replace("unskew.weighters.tree", "os"))

    def lied(schema):  # a loader that would call a trusted type's constructor
        return {**schema, "__loader__": "ConstructorFromReduceNode", "__class__": "TreeWeights"}

    flipped = bytearray(data)
    flipped[len(data) // 2] ^= 255
    bad = {
        "pickle": (pickle.dumps(_Marker(marker)), "Pickles"),
        "pickled weighter": (pickle.dumps(saved_tree), "Pickles"),
        "text": (b"not a weighter", "Pickles"),
        "empty": (b"", "Pickles"),
        "cut short": (data[: len(data) // 2], "Pickles"),
        "a bit flipped": (bytes(flipped), "damaged"),
        "another zip": (_zip({"a": b""}), "unskew.json"),
        "skops of something else": (bare, "unskew.json"),
        "a call": (_with_about(skops.io.dumps(call)), "mkdir"),
        "a call inside": (
            _with_about(skops.io.dumps({"weighter": saved_tree, "call": call})),
            "Nothing in it was run",
        ),
        "another class": (_rewritten(good, spoiled), "os.TreeWeights"),
        "another loader": (_rewritten(good, lied), "damaged"),
        "no weighter": (_with_about(skops.io.dumps(KMeans())), "no fitted weighter"),
        "an unfitted one": (_with_about(skops.io.dumps(TreeWeights())), "no fitted weighter"),
        "no schema": (_with_about(_zip({"a": b""})), "damaged"),
        "newer": (_with_about(bare, unskew="99.1"), "saved by unskew 99.1, which is newer"),
        "newer format": (_with_about(bare, format=99), "newer"),
        "older format": (_with_about(bare, format=1), "earlier unskew"),
        "no version": (_with_about(bare, unskew="?"), "damaged"),
        "no format": (_with_about(bare, format="one"), "damaged"),
        "a huge header": (_with_about(bare, format=1, text="x" * 20_000), "too large"),
    }
    for name, (content, words) in bad.items():
        path = tmp_path / "bad.skops"
        path.write_bytes(content)
        with pytest.raises(InputError) as caught:
            load_weighter(path)
        message = str(caught.value)
        assert words in message, (name, message)
        assert "bad.skops" in message
        assert "\n" not in message, (name, message)
        assert not marker.exists(), name
    with pytest.raises(InputFileError, match="nowhere"):
        load_weighter(tmp_path / "nowhere")
    with pytest.raises(InputError, match="could not be read"):
        load_weighter(tmp_path)
    pickle.loads(pickle.dumps(_Marker(marker)))
    assert marker.exists()  # so the trap works


def _put(attribute, change):
    """Return a function that changes an attribute, which may be one of an attribute."""

    def spoil(weighter):
        *path, name = attribute.split(".")
        for step in path:
            weighter = getattr(weighter, step)
        object.__setattr__(weighter, name, change(getattr(weighter, name)))

    return spoil


def _first(value):
    def change(array):
        array = np.array(array, dtype=float)
        array[0] = value
        return array

    return change


@pytest.mark.parametrize(
    ("name", "attribute", "change", "words"),
    [
        ("tree", "scale_", lambda scale: -scale, "scale_ holds -"),
        ("tree", "scale_", lambda _: np.nan, "scale_ holds nan"),
        ("tree", "scale_", lambda _: "1", "scale_ must hold numbers"),
        ("tree", "weights_", lambda weights: -weights, "weights_ holds -"),
        ("tree", "weights_", lambda weights: weights[:, None], "weights_ has the shape"),
        ("tree", "cell_weights_", _first(-1.5), "cell_weights_ holds -1.5"),
        ("tree", "cell_weights_", _first(np.inf), "cell_weights_ holds inf"),
        ("tree", "cell_weights_", lambda table: table[:-1], "cell_weights_ has the shape"),
        ("tree", "sample_counts_", _first(-3.0), "sample_counts_ holds -3.0"),
        ("tree", "population_counts_", lambda table: table[:-1], "population_counts_ has the"),
        ("tree", "min_samples_leaf", lambda _: -4, "min_samples_leaf"),
        ("tree", "uncovered_", lambda _: 7.0, "uncovered_ holds 7.0"),
        ("tree", "columns_", lambda _: [1, 2], "columns_ must be names"),
        ("cluster", "cell_weights_", _first(-1.5), "cell_weights_ holds -1.5"),
        ("frequency", "cell_weights_", _first(-1.5), "cell_weights_ holds -1.5"),
        ("laplace", "function_.bound", lambda _: -2.0, "function_.bound holds -2.0"),
        ("laplace", "function_.coefficients", _first(np.nan), "function_.coefficients holds nan"),
        ("laplace", "function_.centres", lambda rows: rows[:, 1:], "function_.centres has the"),
        ("laplace", "centre_", lambda centre: centre[1:], "centre_ has the shape"),
        ("kliep", "function_.kernel.tilt", _first(np.nan), "function_.kernel.tilt holds nan"),
        ("kliep", "function_.kernel.low", lambda low: low[1:], "function_.kernel.low has the"),
        ("unweighted", "scale_", lambda _: -1.0, "scale_ holds -1.0"),
        ("probability", "scale_", lambda _: -1.0, "scale_ holds -1.0"),
    ],
)
def test_numbers_that_no_fit_ends_with_are_refused_by_name(
    name, attribute, change, words, saved_population, tmp_path
):
    sample = (
        saved_population[saved_population["income"].fillna(0) > -0.5]
        .iloc[:100]
        .assign(probability=0.25)
    )
    if name != "probability":
        sample = sample.drop(columns="probability")
    labels = sample["rooms"].to_numpy() % 3
    weighter = copy.deepcopy(WEIGHTERS[name]).fit(sample, labels, population=saved_population)
    _put(attribute, change)(weighter)
    save_weighter(weighter, tmp_path / "bad.skops")
    with pytest.raises(InputError, match=rf"bad.skops' is refused.*tampered.*{words}"):
        load_weighter(tmp_path / "bad.skops")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["honest", "cluster", "kliep", "laplace"])
def test_whatever_array_of_a_file_is_changed_no_weight_is_negative(
    name, saved_population, tmp_path
):
    sample = saved_population[saved_population["income"].fillna(0) > -0.5].iloc[:60]
    labels = sample["rooms"].to_numpy() % 3
    weighter = copy.deepcopy(WEIGHTERS[name]).fit(sample, labels, population=saved_population)
    save_weighter(weighter, tmp_path / "good.skops")
    with zipfile.ZipFile(tmp_path / "good.skops") as archive:
        members = {member: archive.read(member) for member in archive.namelist()}
    weighed = refused = 0
    for member in members:
        array = np.load(io.BytesIO(members[member])) if member.endswith(".npy") else None
        if array is None or array.dtype.kind not in "if":
            continue
        for changed in (-array, array.ravel()[:-1], array * 0 + 99):
            content = io.BytesIO()
            np.save(content, changed.astype(array.dtype))
            path = tmp_path / "bad.skops"
            path.write_bytes(_zip({**members, member: content.getvalue()}))
            try:
                weights = load_weighter(path).weigh(saved_population.iloc[:50])
            except Exception:  # parts that do not fit together fail in their own ways
                refused += 1
                continue
            weighed += 1
            assert np.isfinite(weights).all()
            assert (weights >= 0).all()
    assert weighed
    assert refused


def test_a_weigher_gives_no_negative_weights(shift):
    weighter = TreeWeights().fit(shift.sample, shift.labels, population=shift.population)
    weighter.cell_weights_ = -weighter.cell_weights_
    with pytest.raises(InputError, match="The weights of TreeWeights must not be negative; got -"):
        weighter.weigh(shift.sample)


def _bomb(path, n_bytes: int, stated: int) -> None:
    """Add zeros to a zip file, and state another size for them."""
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros.npy", bytes(n_bytes))
        archive.filelist[-1].file_size = stated


@pytest.mark.parametrize(
    ("n_bytes", "stated", "words"),
    [
        (2**10, 2**30, r"unpack to 1,073,\d.* bytes, more than the 1,073,741,824 .*max_bytes=107"),
        (2**25, 2**25, r"unpack to 33,\d.* bytes, more than the 16,777,216 that"),
        (2**25, 2**10, r"damaged.*zeros.npy does not match its checksum"),
    ],
    ids=["a gibibyte", "as stated", "more than stated"],
)
def test_a_file_that_unpacks_to_too_much_is_refused_before_it_does(
    n_bytes, stated, words, saved_tree, tmp_path
):
    save_weighter(saved_tree, tmp_path / "w.skops")
    _bomb(tmp_path / "w.skops", n_bytes, stated)
    assert (tmp_path / "w.skops").stat().st_size < 2**20
    options = {} if stated == 2**30 else {"max_bytes": 2**24}
    tracemalloc.start()
    with pytest.raises(InputError, match=words):
        load_weighter(tmp_path / "w.skops", **options)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**24


def test_the_limit_is_that_of_the_unpacked_contents(saved_tree, tmp_path):
    save_weighter(saved_tree, tmp_path / "w.skops")
    with zipfile.ZipFile(tmp_path / "w.skops") as archive:
        size = sum(member.file_size for member in archive.infolist())
    loaded = load_weighter(tmp_path / "w.skops", max_bytes=size)
    assert loaded.weights_.tolist() == saved_tree.weights_.tolist()
    with pytest.raises(InputError, match=f"max_bytes={size}"):
        load_weighter(tmp_path / "w.skops", max_bytes=size - 1)


def test_a_file_without_end_is_refused_before_it_is_read(tmp_path):
    os.mkfifo(tmp_path / "pipe.skops")
    with (tmp_path / "large.skops").open("wb") as file:
        file.truncate(2**40)  # a hole: no byte of it is on the disk
    tracemalloc.start()
    for path, words in {
        "/dev/zero": "not a regular file",
        tmp_path / "pipe.skops": "not a regular file",
        tmp_path / "large.skops": "more than the 1,024 that are allowed",
    }.items():
        with pytest.raises(InputError, match=words):
            load_weighter(path, max_bytes=1024)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**23


def _zip(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


@pytest.mark.parametrize(
    "spoil",
    [
        {"left_child": 10**6},
        {"right_child": 0},
        {"feature": 77},
        {"feature": -5},
        {"left_child": -7},
    ],
    ids=str,
)
def test_a_tree_whose_nodes_lead_astray_is_refused(spoil, shift, tmp_path):
    weighter = TreeWeights(min_samples_leaf=50)
    weighter.fit(shift.sample, shift.labels, population=shift.population)
    state = weighter.tree_.tree_.__getstate__()
    for field, value in spoil.items():
        state["nodes"][field][0] = value
    save_weighter(weighter, tmp_path / "good.skops")
    nodes = io.BytesIO()
    np.save(nodes, state["nodes"])
    buffer = io.BytesIO()
    with zipfile.ZipFile(tmp_path / "good.skops") as old, zipfile.ZipFile(buffer, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            is_nodes = name.endswith(".npy") and b"left_child" in content
            new.writestr(name, nodes.getvalue() if is_nodes else content)
    (tmp_path / "bad.skops").write_bytes(buffer.getvalue())
    with pytest.raises(InputError, match="contains an invalid decision tree"):
        load_weighter(tmp_path / "bad.skops")


def test_a_tree_for_more_columns_than_a_row_has_is_refused(shift, tmp_path):
    weighter = TreeWeights(min_samples_leaf=50)
    weighter.fit(shift.sample, shift.labels, population=shift.population)
    state = copy.deepcopy(weighter.tree_.tree_.__getstate__())
    state["nodes"]["feature"][state["nodes"]["left_child"] != -1] = 1_900_000_000
    weighter.tree_.tree_ = Tree(2_000_000_000, np.array([1], dtype=np.intp), 1)
    weighter.tree_.tree_.__setstate__(state)
    save_weighter(weighter, tmp_path / "bad.skops")
    with pytest.raises(InputError, match="contains a decision tree for 2000000000 columns, not"):
        load_weighter(tmp_path / "bad.skops")
