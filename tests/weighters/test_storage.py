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
import pandas as pd
import pytest
import skops.io
from sklearn.base import BaseEstimator
from sklearn.cluster import KMeans
from sklearn.tree import DecisionTreeRegressor
from sklearn.tree._tree import Tree

import unskew
from unskew import (
    AutoWeights,
    CalibrationWeights,
    ClassifierWeights,
    ClusterWeights,
    DensityRatioWeights,
    FrequencyWeights,
    HistogramWeights,
    InputError,
    InputFileError,
    KernelMeanMatching,
    KnownProbability,
    ParameterError,
    Tempered,
    TreeWeights,
    Unweighted,
    load_weighter,
    save_weighter,
)
from unskew.weighters import storage

pytestmark = pytest.mark.filterwarnings("ignore::unskew.OverlapWarning")

WEIGHTERS = {
    "tree": TreeWeights(min_samples_leaf=20),
    "classes": TreeWeights(task="classification", random_state=np.random.RandomState(3)),
    "honest": TreeWeights(min_samples_leaf="bound", honest=True),
    "cluster": ClusterWeights(),
    "own clusterer": ClusterWeights(KMeans(5, n_init=1, random_state=0), scaling="range"),
    "histogram": HistogramWeights(buckets={"income": [-1, 1], "rooms": 3}),
    "width": HistogramWeights(strategy="width", empty="drop"),
    "frequency": FrequencyWeights(),
    "ratio": DensityRatioWeights(),
    "kliep": DensityRatioWeights("kl", tilt=True, kernel="laplace"),
    "summed": DensityRatioWeights(centres="sample"),
    "inductive": DensityRatioWeights(bandwidth="paper", constrained=True, total="population"),
    "cv": DensityRatioWeights(kernel="laplace", constrained=True),
    "calibration": CalibrationWeights(on_infeasible="relax"),
    "bounded": CalibrationWeights(distance="logit", bounds=(0.01, 50), ridge=0.1, max_weight=20),
    "boosted": ClassifierWeights(),
    "logistic": ClassifierWeights("logistic", max_weight=5.0),
    "auto": AutoWeights(calibrate_to="means"),
    "pool of others": AutoWeights(candidates=[TreeWeights(min_samples_leaf=20), ClusterWeights()]),
    "tempered": Tempered(TreeWeights(min_samples_leaf=20), power=0.5),
    "unweighted": Unweighted(),
    "probability": KnownProbability("probability"),
}


@pytest.fixture(scope="module")
def population(mixed):
    return mixed.iloc[:3000].assign(unknown=None)


@pytest.fixture(scope="module")
def fitted(population):
    sample = population[population["income"].fillna(0) > -0.5].iloc[:400]
    labels = sample["rooms"].to_numpy() % 3
    weighter = TreeWeights(min_samples_leaf=20)
    return weighter.fit(sample, labels, population=population)


@pytest.mark.parametrize("name", WEIGHTERS)
def test_a_loaded_weighter_weighs_the_same_to_the_last_bit(name, population, tmp_path):
    sample = population[population["income"].fillna(0) > -0.5].iloc[: 60 if name == "cv" else 400]
    new = population
    if name == "probability":
        sample, new = (rows.assign(probability=0.25) for rows in (sample, new))
    labels = sample["rooms"].to_numpy() % 3
    weighter = WEIGHTERS[name].fit(sample, labels, population=population)
    save_weighter(weighter, tmp_path / "weighter.skops")
    loaded = load_weighter(tmp_path / "weighter.skops")
    assert type(loaded) is type(weighter)
    np.testing.assert_array_equal(loaded.weigh(new), weighter.weigh(new))
    np.testing.assert_array_equal(loaded.weights_, weighter.weights_)
    assert repr(loaded).partition(" at 0x")[0] == repr(weighter).partition(" at 0x")[0]
    again = pickle.loads(pickle.dumps(weighter))  # the plain state serves pickle as well
    np.testing.assert_array_equal(again.weigh(new), weighter.weigh(new))


def test_every_weighter_that_weighs_new_rows_is_tested_above():
    from unskew.weighters.inductive import InductiveWeighter

    classes = [getattr(unskew, name) for name in unskew.__all__]
    classes = [c for c in classes if isinstance(c, type) and issubclass(c, InductiveWeighter)]
    assert {type(weighter) for weighter in WEIGHTERS.values()} == set(classes)


def test_an_array_without_names(shift, tmp_path):
    weighter = TreeWeights().fit(shift.sample, shift.labels, population=shift.population)
    save_weighter(weighter, str(tmp_path / "w.skops"))
    loaded = load_weighter(str(tmp_path / "w.skops"))
    np.testing.assert_array_equal(loaded.weigh(shift.population), weighter.weigh(shift.population))


def test_the_file_holds_no_labels(population, tmp_path):
    sample = population.iloc[:50]
    labels = [f"secret {row}" for row in range(50)]
    weighter = HistogramWeights(buckets=2).fit(sample, labels, population=population)
    save_weighter(weighter, tmp_path / "w.skops")
    with zipfile.ZipFile(tmp_path / "w.skops") as archive:
        assert not any(b"secret" in archive.read(name) for name in archive.namelist())


def test_what_cannot_be_saved_is_said_at_once(shift, tmp_path):
    path = tmp_path / "w.skops"
    with pytest.raises(ParameterError, match="not fitted"):
        save_weighter(TreeWeights(), path)
    exact = KernelMeanMatching().fit(shift.sample[:50], population=shift.population)
    with pytest.raises(ParameterError, match="KernelMeanMatching cannot weigh new rows"):
        save_weighter(exact, path)
    own = KnownProbability(lambda rows: np.full(len(rows), 0.5))
    with pytest.raises(ParameterError, match="lambda"):
        save_weighter(own.fit(shift.sample, population=shift.population), path)
    with pytest.raises(ParameterError, match="dict cannot weigh"):
        save_weighter({}, path)
    assert list(tmp_path.iterdir()) == []


class HalfPlanes(BaseEstimator):
    """A clusterer that unskew does not know."""

    def fit(self, X, y=None):
        self.border_ = float(np.median(X[:, 0]))
        return self

    def predict(self, X):
        return (X[:, 0] > self.border_).astype(int)


def test_a_custom_clusterer_is_loaded_if_it_is_trusted(shift, tmp_path):
    path = tmp_path / "w.skops"
    weighter = ClusterWeights(HalfPlanes()).fit(shift.sample, population=shift.population)
    save_weighter(weighter, path)
    with pytest.raises(InputError, match=r"holds .*HalfPlanes.*trusted=\["):
        load_weighter(path)
    for trusted in (HalfPlanes, f"{HalfPlanes.__module__}.HalfPlanes"):
        loaded = load_weighter(path, trusted=[trusted])
        np.testing.assert_array_equal(loaded.weigh(shift.sample), weighter.weigh(shift.sample))


class Leaves(BaseEstimator):
    """A clusterer made of a decision tree, on encoded rows."""

    def fit(self, X, y=None):
        self.inner_ = DecisionTreeRegressor(max_depth=2).fit(X, X[:, 0])
        return self

    def predict(self, X):
        return self.inner_.apply(X)


def by_rooms(rows):
    return np.where(np.asarray(rows["rooms"]) > 3, 0.25, 0.5)


def test_trees_within_a_clusterer_and_functions_come_back(population, tmp_path):
    sample, path = population.iloc[:80], tmp_path / "w.skops"
    weighter = ClusterWeights(Leaves()).fit(sample, population=population)
    save_weighter(weighter, path)
    loaded = load_weighter(path, trusted=[Leaves])
    np.testing.assert_array_equal(loaded.weigh(sample), weighter.weigh(sample))
    known = KnownProbability(by_rooms).fit(sample, population=population)
    save_weighter(known, path)
    loaded = load_weighter(path, trusted=[f"{__name__}.by_rooms"])
    np.testing.assert_array_equal(loaded.weigh(sample), known.weigh(sample))
    with pytest.raises(ParameterError, match="trusted must be a list of types; got 'Leaves'"):
        load_weighter(path, trusted="Leaves")


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
def test_bad_files_are_refused_in_one_sentence_and_never_run(fitted, tmp_path):
    good, marker = tmp_path / "good.skops", tmp_path / "marker"
    save_weighter(fitted, good)
    data = good.read_bytes()
    bare = skops.io.dumps(fitted)
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
        "pickled weighter": (pickle.dumps(fitted), "Pickles"),
        "text": (b"not a weighter", "Pickles"),
        "empty": (b"", "Pickles"),
        "cut short": (data[: len(data) // 2], "Pickles"),
        "a bit flipped": (bytes(flipped), "damaged"),
        "another zip": (_zip({"a": b""}), "unskew.json"),
        "skops of something else": (bare, "unskew.json"),
        "a call": (_with_about(skops.io.dumps(call)), "mkdir"),
        "a call inside": (
            _with_about(skops.io.dumps({"weighter": fitted, "call": call})),
            "Nothing in it was run",
        ),
        "another class": (_rewritten(good, spoiled), "os.TreeWeights"),
        "another loader": (_rewritten(good, lied), "damaged"),
        "no weighter": (_with_about(skops.io.dumps(KMeans())), "no fitted weighter"),
        "an unfitted one": (_with_about(skops.io.dumps(TreeWeights())), "no fitted weighter"),
        "no schema": (_with_about(_zip({"a": b""})), "damaged"),
        "newer": (_with_about(bare, unskew="99.1"), "saved by unskew 99.1, which is newer"),
        "newer format": (_with_about(bare, format=99), "newer"),
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
        ("inductive", "function_.bound", lambda _: -2.0, "function_.bound holds -2.0"),
        ("inductive", "function_.even", lambda _: -2.0, "function_.even holds -2.0"),
        ("inductive", "function_.coefficients", _first(np.nan), "function_.coefficients holds nan"),
        ("inductive", "function_.centres", lambda rows: rows[:, 1:], "function_.centres has the"),
        ("inductive", "centre_", lambda centre: centre[1:], "centre_ has the shape"),
        ("kliep", "function_.kernel.tilt", _first(np.nan), "function_.kernel.tilt holds nan"),
        ("kliep", "function_.kernel.low", lambda low: low[1:], "function_.kernel.low has the"),
        ("unweighted", "scale_", lambda _: -1.0, "scale_ holds -1.0"),
        ("probability", "scale_", lambda _: -1.0, "scale_ holds -1.0"),
    ],
)
def test_numbers_that_no_fit_ends_with_are_refused_by_name(
    name, attribute, change, words, population, tmp_path
):
    sample = population[population["income"].fillna(0) > -0.5].iloc[:100].assign(probability=0.25)
    if name != "probability":
        sample = sample.drop(columns="probability")
    labels = sample["rooms"].to_numpy() % 3
    weighter = copy.deepcopy(WEIGHTERS[name]).fit(sample, labels, population=population)
    _put(attribute, change)(weighter)
    save_weighter(weighter, tmp_path / "bad.skops")
    with pytest.raises(InputError, match=rf"bad.skops' is refused.*tampered.*{words}"):
        load_weighter(tmp_path / "bad.skops")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["honest", "cluster", "kliep", "inductive"])
def test_whatever_array_of_a_file_is_changed_no_weight_is_negative(name, population, tmp_path):
    sample = population[population["income"].fillna(0) > -0.5].iloc[:60]
    labels = sample["rooms"].to_numpy() % 3
    weighter = copy.deepcopy(WEIGHTERS[name]).fit(sample, labels, population=population)
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
                weights = load_weighter(path).weigh(population.iloc[:50])
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
    n_bytes, stated, words, fitted, tmp_path
):
    save_weighter(fitted, tmp_path / "w.skops")
    _bomb(tmp_path / "w.skops", n_bytes, stated)
    assert (tmp_path / "w.skops").stat().st_size < 2**20
    options = {} if stated == 2**30 else {"max_bytes": 2**24}
    tracemalloc.start()
    with pytest.raises(InputError, match=words):
        load_weighter(tmp_path / "w.skops", **options)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**24


def test_the_limit_is_that_of_the_unpacked_contents(fitted, tmp_path):
    save_weighter(fitted, tmp_path / "w.skops")
    with zipfile.ZipFile(tmp_path / "w.skops") as archive:
        size = sum(member.file_size for member in archive.infolist())
    loaded = load_weighter(tmp_path / "w.skops", max_bytes=size)
    assert loaded.weights_.tolist() == fitted.weights_.tolist()
    with pytest.raises(InputError, match=f"max_bytes={size}"):
        load_weighter(tmp_path / "w.skops", max_bytes=size - 1)


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
    partition = weighter.locator_._partition
    state = copy.deepcopy(partition._tree.__getstate__())
    state["nodes"]["feature"][state["nodes"]["left_child"] != -1] = 1_900_000_000
    partition._tree = Tree(2_000_000_000, np.array([1], dtype=np.intp), 1)
    partition._tree.__setstate__(state)
    save_weighter(weighter, tmp_path / "bad.skops")
    with pytest.raises(InputError, match="contains a decision tree for 2000000000 columns, not"):
        load_weighter(tmp_path / "bad.skops")
    with pytest.raises(InputError, match="The tree is for 2000000000 columns"):
        weighter.weigh(shift.sample)


@pytest.mark.parametrize("travel", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_a_copy_can_be_saved(travel, fitted, population, tmp_path):
    save_weighter(travel(fitted), tmp_path / "w.skops")
    loaded = load_weighter(tmp_path / "w.skops")
    np.testing.assert_array_equal(loaded.weigh(population), fitted.weigh(population))


def test_a_weighter_of_a_sample_on_spark_can_be_saved(fitted, population, tmp_path):
    weighter = copy.deepcopy(fitted)
    del weighter.weights_  # as fit leaves it there
    weighter.subsample_size_ = 400
    save_weighter(weighter, tmp_path / "w.skops")
    loaded = load_weighter(tmp_path / "w.skops")
    np.testing.assert_array_equal(loaded.weigh(population), fitted.weigh(population))


@pytest.mark.parametrize(
    "spoil",
    [
        {"children": 10**6},
        {"children": 0},
        {"children": -1},
        {"feature": 77},
        {"feature": -5},
        {"is_leaf": True},
        {"border": None},
    ],
    ids=str,
)
def test_the_copy_of_a_tree_whose_nodes_lead_astray_is_refused(spoil, fitted, tmp_path):
    weighter = copy.deepcopy(fitted)
    ((field, value),) = spoil.items()
    held = getattr(weighter.locator_._partition, field)
    if value is None:
        object.__setattr__(weighter.locator_._partition, field, held[:-1])
    else:
        held[0] = value
    save_weighter(weighter, tmp_path / "bad.skops")
    with pytest.raises(InputError, match="contains an invalid decision tree"):
        load_weighter(tmp_path / "bad.skops")


@pytest.mark.parametrize(
    "put",
    [
        lambda tree: {"a": [tree]},
        lambda tree: (tree,),
        lambda tree: {"a": [(np.array([tree, None], dtype=object),)]},
    ],
    ids=["a list", "a tuple", "an array"],
)
def test_trees_are_found_wherever_they_are(put, tmp_path):
    rows = [[0.0], [1.0]]
    weighter = TreeWeights(min_samples_leaf=1).fit(rows, [0.0, 1.0], population=rows)
    tree = copy.deepcopy(weighter.tree_)
    weighter.others_ = put(tree)
    save_weighter(weighter, tmp_path / "w.skops")
    assert load_weighter(tmp_path / "w.skops").weights_.tolist() == [1, 1]
    tree.tree_.children_left[0] = 99
    save_weighter(weighter, tmp_path / "w.skops")
    with pytest.raises(InputError, match="contains an invalid decision tree"):
        load_weighter(tmp_path / "w.skops")


def test_a_table_survives_as_bytes_and_a_bad_one_does_not():
    from unskew.population.arrow_bytes import bytes_of_table, table_of_bytes
    from unskew.population.rows import as_rows

    frame = pd.DataFrame({"a": pd.Categorical(["x", None]), "b": [1, 2]})
    table = as_rows(frame, name="X").table
    data = bytes_of_table(table)
    assert table_of_bytes(data).equals(table)
    with pytest.raises(InputError, match="cannot be read"):
        table_of_bytes(data[: len(data) // 2])
