"""Columns that nearly determine the label."""

import numpy as np
import pandas as pd
import pytest

from unskew import estimate
from unskew.rows.doubtful_columns import determined_by
from unskew.rows.sample import Sample

RANDOM = np.random.default_rng(0)
ROWS = pd.DataFrame(
    {
        "wt71": RANDOM.normal(70, 15, 600),
        "sex": RANDOM.choice(["f", "m"], 600),
        "other": RANDOM.normal(size=600),
    }
)
ROWS["wt82"] = ROWS["wt71"] + RANDOM.normal(3, 8, 600)


@pytest.mark.parametrize(
    ("outcome", "names"),
    [
        (ROWS["wt82"] - ROWS["wt71"], ["wt71", "wt82"]),
        (ROWS["other"] + RANDOM.normal(0, 0.05, 600), ["other"]),
        (ROWS["sex"] == "m", ["sex"]),
        (ROWS["wt71"] + RANDOM.normal(0, 8, 600), []),
        (ROWS["wt71"] * 0 + 1, []),
        (ROWS["wt71"] + 20 * ROWS["other"] + 9 * (ROWS["sex"] == "m") - ROWS["wt82"], []),
    ],
)
def test_they_are_named_if_few_do(outcome, names):
    hint = determined_by(Sample.from_data(ROWS), outcome.to_numpy(dtype=float))
    assert ("follows almost exactly" in hint) == bool(names)
    assert all(f"'{name}'" in hint for name in names)
    assert hint.count("'") == 2 * len(names)


def test_columns_without_values_or_of_many_categories_are_passed_over():
    rows = ROWS.assign(empty=np.nan, key=[f"k{k}" for k in range(600)])
    hint = determined_by(Sample.from_data(rows), rows["other"].to_numpy())
    assert "'other'" in hint


def test_an_estimate_notes_it():
    found = estimate(ROWS[:300], (ROWS["wt82"] - ROWS["wt71"])[:300], population=ROWS)
    assert any("'wt71', 'wt82'" in note for note in found.notes)
