"""One table of defaults, in code and docs, and every entry point takes what it says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from unskew import AutoWeights, CalibrationWeights, Margins, Reweighted
from unskew.cli.methods import make_weighter
from unskew.weighters.auto import DEFAULTS, default_weighter

PAGE = Path(__file__).parents[2] / "docs/which-method.md"


@pytest.mark.skipif(not PAGE.exists(), reason="runs in the repository only")
@pytest.mark.parametrize("use", DEFAULTS)
def test_the_docs_print_the_table(use):
    text = " ".join(PAGE.read_text(encoding="utf-8").split())
    *weighters, why = DEFAULTS[use]
    rows, margins = (repr(each).replace("'", '"') for each in weighters)
    known = "the same" if margins == rows else f"`{margins}`"
    assert f"| `{rows}` | {known} | {why} |" in text
    for parameter in ('candidates="auto"', "max_weight=20", 'distance="raking"', 'features="auto"'):
        assert f"`{parameter}`" in text


def test_the_parameters_that_the_docs_print_are_those_of_the_classes():
    assert AutoWeights().get_params()["candidates"] == "auto"
    assert AutoWeights().get_params()["max_weight"] == 20
    assert CalibrationWeights().get_params()["distance"] == "raking"
    assert CalibrationWeights().get_params()["features"] == "auto"


def test_the_shells_defaults_are_the_tables():
    for method, use in zip(("auto", "rake"), DEFAULTS["weigh"], strict=False):
        assert repr(make_weighter(method, [])) == repr(use)
    for use in DEFAULTS["estimate"][:2]:
        assert repr(make_weighter("rake", [], columns="shared")) == repr(use)


def test_a_learner_takes_the_tables():
    X = np.random.default_rng(0).normal(size=(200, 1))
    model = Reweighted(LinearRegression()).fit(X[:50], X[:50, 0], population=X)
    assert repr(model.weighter_) == repr(default_weighter("train"))
    margins = Margins(means={"a": 0.0})
    assert repr(default_weighter("train", margins)) == "CalibrationWeights()"
    assert default_weighter("train") is not default_weighter("train")
