"""The sample is encoded once a fit, and its parts share the code book."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from typer.testing import CliRunner

from unskew import (
    AutoWeights,
    CalibrationWeights,
    ClassifierWeights,
    ClusterWeights,
    DensityRatioWeights,
    FrequencyWeights,
    HistogramWeights,
    KernelMeanMatching,
    Population,
    Reweighted,
    TreeWeights,
    estimate,
)
from unskew.cli import app
from unskew.overlap import measure
from unskew.rows.encode import ColumnCodes
from unskew.rows.sample import Sample

WEIGHTERS = [
    AutoWeights(),
    CalibrationWeights(),
    ClassifierWeights("logistic"),
    ClusterWeights(),
    DensityRatioWeights(),
    FrequencyWeights(columns=["town"]),
    HistogramWeights(),
    KernelMeanMatching(),
    TreeWeights(honest=True),
]


@pytest.fixture
def count(monkeypatch):
    """Return a function that counts the calls of a method, or of a function of a module."""

    def of(owner, name):
        calls, plain = [], getattr(owner, name)

        def counting(*args, **options):
            calls.append(name)
            return plain(*args, **options)

        monkeypatch.setattr(owner, name, counting)
        return calls

    return of


@pytest.fixture(scope="module")
def data():
    random = np.random.default_rng(0)

    def rows(n, shift):
        towns = random.choice(["Bonn", "Kiel", "Ulm"], n)
        return pd.DataFrame({"age": random.normal(shift, 1.0, n), "town": towns})

    sample, population = rows(300, 0.5), rows(2000, 0.0)
    return sample, sample["age"].to_numpy() ** 2 + random.normal(size=300), population


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("weighter", WEIGHTERS, ids=lambda one: type(one).__name__)
def test_a_fit_encodes_the_sample_once(weighter, data, count):
    sample, y, population = data
    encodings = count(ColumnCodes, "fit_transform")
    weighter.fit(sample, y, population=population)
    assert len(encodings) == 1


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_reweighted_encodes_the_sample_once_and_grows_each_tree_once(data, count):
    sample, y, population = data
    encodings, trees = count(ColumnCodes, "fit_transform"), count(TreeWeights, "_grow")
    learner = make_pipeline(make_column_transformer((OneHotEncoder(), ["town"])), Ridge())
    model = Reweighted(learner).fit(sample, y, population=population)
    assert "TreeWeights(20)" in model.choice_scores_
    assert len(encodings) == 1
    n_candidates, n_folds = 2, 5
    assert len(trees) == n_candidates * (n_folds + 1)


def test_an_estimate_encodes_the_sample_once(data, count):
    sample, y, population = data
    encodings = count(ColumnCodes, "fit_transform")
    estimate(sample, y, population=population)
    assert len(encodings) == 1


@pytest.mark.parametrize("options", [[], ["--replicates", "3"], ["--method", "tree"]])
def test_a_report_takes_one_encoding_one_search_and_no_second_pass(options, data, count, tmp_path):
    sample, y, population = data
    sample.assign(y=y).to_csv(tmp_path / "sample.csv", index=False)
    population.to_parquet(tmp_path / "population.parquet")
    encodings = count(ColumnCodes, "fit_transform")
    searches = count(measure, "measure_overlap")
    others = count(import_module("unskew.diagnostics.diagnose"), "measure_overlap")
    passes = count(Population, "_pass")
    command = ["weigh", "sample.csv", "population.parquet", "--target", "y", "-o", "w.csv"]
    places = [str(tmp_path / one) if "." in one else one for one in command]
    report = ["--report", str(tmp_path / "report.html")]
    result = CliRunner().invoke(app, [*places, *report, *options])
    assert result.exit_code == 0, result.output
    assert (len(encodings), len(searches), len(others)) == (1, 1, 0)
    # Weights of a tree are judged on rows held out: five fits to rows that are drawn already.
    assert len(passes) == (6 if "tree" in options else 1)


def test_parts_of_a_sample_share_its_code_book():
    whole = Sample.from_data(
        pd.DataFrame({"age": [1.0, 2.0, np.nan], "town": ["Bonn", "Kiel", "Ulm"]})
    )
    assert whole.values[:, 1].tolist() == [0.0, 1.0, 2.0]
    part = whole.take(np.array([2, 0]))
    assert part.values[:, 1].tolist() == [2.0, 0.0]
    assert part.codes.category_codes(1).tolist() == [0.0, 2.0]
    # What none of its rows has is unseen all the same.
    others = pa.record_batch({"age": [None, 4.0, 5.0], "town": ["Ulm", "Kiel", "Rom"]})
    found = part.codes.transform(others, side="population")
    assert found.values[:, 1].tolist() == [2.0, -1.0, -1.0]
    assert found.unseen.tolist() == [False, True, True]
    assert whole.take(np.array([0, 1])).codes.has_missing.tolist() == [False, False]
    assert whole.take(np.array([2])).codes.is_unseen(np.array([1.0, np.nan]), 0).tolist() == [
        True,
        False,
    ]
    town = part.select(["town"])
    assert town.values.tolist() == [[2.0], [0.0]]
    assert town.codes.names == ["town"]
    assert town is part.select(["town"])
    twin = part.with_design(np.array([1.0, 2.0]))
    assert twin.values is part.values
    assert twin.select(["town"]).design.tolist() == [1.0, 2.0]


def test_a_selection_of_an_encoded_sample_is_not_encoded_again(count):
    whole = Sample.from_data(
        pd.DataFrame({"age": [1.0, 2.0], "town": ["Kiel", "Bonn"], "sex": [0, 1]})
    )
    encodings = count(ColumnCodes, "fit_transform")
    assert whole.values.shape == (2, 3)
    part = whole.select(["sex", "town"])
    assert part.values.tolist() == [[0.0, 1.0], [1.0, 0.0]]
    assert part.codes.transform(part.batch, side="sample").values.tolist() == part.values.tolist()
    assert len(encodings) == 1
