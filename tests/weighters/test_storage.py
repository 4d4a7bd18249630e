from __future__ import annotations

import copy
import pickle
import zipfile

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.tree import DecisionTreeRegressor
from tests.weighters.stored_weighters import WEIGHTERS

import unskew
from unskew import (
    ClusterWeights,
    HistogramWeights,
    KernelMeanMatching,
    KnownProbability,
    TreeWeights,
    load_weighter,
    save_weighter,
)
from unskew.errors import InputError, ParameterError

pytestmark = pytest.mark.filterwarnings("ignore::unskew.errors.OverlapWarning")


@pytest.mark.parametrize("name", WEIGHTERS)
def test_a_loaded_weighter_weighs_the_same_to_the_last_bit(name, saved_population, tmp_path):
    sample = saved_population[saved_population["income"].fillna(0) > -0.5].iloc[:400]
    new = saved_population
    if name == "probability":
        sample, new = (rows.assign(probability=0.25) for rows in (sample, new))
    labels = sample["rooms"].to_numpy() % 3
    weighter = WEIGHTERS[name].fit(sample, labels, population=saved_population)
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


def test_the_file_holds_no_labels(saved_population, tmp_path):
    sample = saved_population.iloc[:50]
    labels = [f"secret {row}" for row in range(50)]
    weighter = HistogramWeights(buckets=2).fit(sample, labels, population=saved_population)
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


def test_trees_within_a_clusterer_and_functions_come_back(saved_population, tmp_path):
    sample, path = saved_population.iloc[:80], tmp_path / "w.skops"
    weighter = ClusterWeights(Leaves()).fit(sample, population=saved_population)
    save_weighter(weighter, path)
    loaded = load_weighter(path, trusted=[Leaves])
    np.testing.assert_array_equal(loaded.weigh(sample), weighter.weigh(sample))
    known = KnownProbability(by_rooms).fit(sample, population=saved_population)
    save_weighter(known, path)
    loaded = load_weighter(path, trusted=[f"{__name__}.by_rooms"])
    np.testing.assert_array_equal(loaded.weigh(sample), known.weigh(sample))
    with pytest.raises(ParameterError, match="trusted must be a list of types; got 'Leaves'"):
        load_weighter(path, trusted="Leaves")


@pytest.mark.parametrize("travel", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_a_copy_can_be_saved(travel, saved_tree, saved_population, tmp_path):
    save_weighter(travel(saved_tree), tmp_path / "w.skops")
    loaded = load_weighter(tmp_path / "w.skops")
    np.testing.assert_array_equal(
        loaded.weigh(saved_population), saved_tree.weigh(saved_population)
    )


def test_a_weighter_of_a_sample_on_spark_can_be_saved(saved_tree, saved_population, tmp_path):
    weighter = copy.deepcopy(saved_tree)
    del weighter.weights_  # as fit leaves it there
    weighter.subsample_size_ = 400
    save_weighter(weighter, tmp_path / "w.skops")
    loaded = load_weighter(tmp_path / "w.skops")
    np.testing.assert_array_equal(
        loaded.weigh(saved_population), saved_tree.weigh(saved_population)
    )


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
def test_the_copy_of_a_tree_whose_nodes_lead_astray_is_refused(spoil, saved_tree, tmp_path):
    weighter = copy.deepcopy(saved_tree)
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
    from unskew.rows.tables import as_rows, bytes_of_table, table_of_bytes

    frame = pd.DataFrame({"a": pd.Categorical(["x", None]), "b": [1, 2]})
    table = as_rows(frame, name="X").table
    data = bytes_of_table(table)
    assert table_of_bytes(data).equals(table)
    with pytest.raises(InputError, match="cannot be read"):
        table_of_bytes(data[: len(data) // 2])
