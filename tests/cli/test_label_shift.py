"""``unskew weigh --method label-shift``: weights by class."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from unskew import LabelShiftWeights


@pytest.fixture
def clinic(tmp_path, monkeypatch):
    """A file of patients of whom half are ill, and one of screened people, of whom few are."""
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    frames = []
    for n, share in ((500, 0.5), (3000, 0.1)):
        ill = random.uniform(size=n) < share
        values = random.normal(size=(n, 2)) + 2 * ill[:, None]
        frames.append(pd.DataFrame(values, columns=["fever", "pain"]).assign(ill=ill))
    patients, screened = frames[0], frames[1].drop(columns="ill")
    patients["ill"] = np.where(patients["ill"], "yes", "no")
    patients.to_csv("patients.csv", index=False)
    screened.to_parquet("screened.parquet")
    return patients, screened


WEIGH = ("weigh", "patients.csv", "screened.parquet", "--method", "label-shift", "-o", "w.csv")


def test_weights_are_those_of_the_weighter(unskew, clinic):
    patients, screened = clinic
    done = unskew(*WEIGH, "--target", "ill", "--set", "method=bbse", "--set", "cv=3")
    assert done.code == 0, done.err
    X, y = patients[["fever", "pain"]], patients["ill"]
    expected = LabelShiftWeights(method="bbse", cv=3).fit(X, y, population=screened)
    np.testing.assert_allclose(pd.read_csv("w.csv")["weight"], expected.weights_, rtol=1e-6)
    share = expected.population_shares_[1]
    assert share == pytest.approx(0.1, abs=0.03)
    assert f"of the sample, {share:.1%} of the population" in done.out
    assert "Nothing contradicts label shift" in done.out
    assert "Not covered" not in done.out


def test_what_it_refuses(unskew, clinic):
    without = unskew(*WEIGH)
    assert without.code == 2
    assert "--method label-shift needs labels as its weights go by class" in without.err
    saved = unskew(*WEIGH, "--target", "ill", "--save", "w.skops")
    assert saved.code == 2
    assert "cannot weigh new rows" in saved.err
    numeric = unskew(*WEIGH, "--target", "pain", "--exclude", "ill")
    assert numeric.code == 2
    assert "HeckmanRegressor" in numeric.err
