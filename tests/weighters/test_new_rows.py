"""New rows with values that no sample row has."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest

from unskew import (
    ClusterWeights,
    DensityRatioWeights,
    FrequencyWeights,
    HistogramWeights,
    KnownProbability,
    TreeWeights,
    Unweighted,
    load_weighter,
    save_weighter,
)
from unskew.errors import UnseenValueWarning

DEPENDING = [
    TreeWeights(),
    TreeWeights(empty="drop"),
    HistogramWeights(),
    FrequencyWeights(),
    ClusterWeights(),
    DensityRatioWeights(),
    DensityRatioWeights("kl"),
]


def people(n_rows, seed, towns=("Bonn", "Ulm")):
    random = np.random.default_rng(seed)
    return pd.DataFrame(
        {"town": random.choice(towns, n_rows), "age": random.integers(20, 25, n_rows)}
    )


SAMPLE, POPULATION = people(200, 0), people(900, 1)
NEW = people(50, 2).assign(town=["Kiel"] * 4 + ["Jena"] * 3 + ["Ulm"] * 43)


def fitted(weighter):
    labels = SAMPLE["age"].astype(float)
    return weighter.fit(SAMPLE, labels, population=POPULATION)


@pytest.mark.parametrize("weighter", DEPENDING, ids=str)
def test_the_warning_names_column_category_rows_and_weight(weighter):
    fitted(weighter)
    with pytest.warns(UnseenValueWarning) as caught:
        weights = weighter.weigh(NEW)
    (warning,) = caught
    assert warning.message.values == {"town": {"Kiel": 4, "Jena": 3}}
    text = str(warning.message)
    assert "7 of 50 new rows" in text
    assert "column 'town': Kiel (4 rows), Jena (3 rows)" in text
    low, high = weights[:7].min(), weights[:7].max()
    assert f"weight {low:.4g}," in text or f"weights from {low:.4g} to {high:.4g}," in text
    assert ('empty="drop"' in text) == (getattr(weighter, "empty", "") == "drop")
    assert warning.filename == __file__
    again = pickle.loads(pickle.dumps(warning.message))
    assert (str(again), again.values) == (text, warning.message.values)


@pytest.mark.parametrize(
    "weighter", [Unweighted(), KnownProbability(lambda X: np.full(len(X), 0.5))]
)
def test_weights_that_depend_on_no_column_come_without_it(weighter):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted(weighter).weigh(NEW)
        fitted(TreeWeights()).weigh(NEW[7:])


def test_missing_values_and_many_categories():
    weighter = fitted(HistogramWeights())
    new = pd.DataFrame({"town": [f"t{i}" for i in range(9)] + [None], "age": 20})
    with pytest.warns(
        UnseenValueWarning, match=r"missing \(1 rows\), t0 \(1 rows\).* 5 more"
    ) as caught:
        weighter.weigh(new)
    assert len(caught[0].message.values["town"]) == 10


def test_a_saved_weighter_warns_too(tmp_path):
    save_weighter(fitted(TreeWeights()), tmp_path / "w.skops")
    with pytest.warns(UnseenValueWarning, match="Kiel"):
        load_weighter(tmp_path / "w.skops").weigh(NEW)
