from __future__ import annotations

import numpy as np
import pytest

from unskew import compare_selection
from unskew.errors import InputError


def rows(labels, seed):
    return np.random.default_rng(seed).normal(size=(len(labels), 3)) + labels[:, None]


def drawn(share, n, seed):
    return (np.random.default_rng(seed).uniform(size=n) < share).astype(int)


def test_label_shift_is_possible_where_it_happened():
    y, hidden = drawn(0.5, 1500, 0), drawn(0.1, 5000, 1)
    found = compare_selection(rows(y, 2), y, rows(hidden, 3))
    assert found.kind == "columns or label"
    assert found.population_shares[1] == pytest.approx(0.1, abs=0.03)
    assert "LabelShiftWeights" in str(found)
    assert "cannot be tested" in str(found)


def test_selection_by_a_column_is_not_label_shift():
    y = drawn(0.5, 8000, 0)
    population = rows(y, 1)
    chosen = np.random.default_rng(2).uniform(size=8000) < 1 / (1 + np.exp(-2 * population[:, 0]))
    # The column decides by itself, also within a class.
    found = compare_selection(population[chosen], y[chosen], population)
    assert found.kind == "not the label alone"
    assert found.label_shift.p_value < 0.01
    assert "x0" in str(found)


def test_nothing_is_found_where_there_is_nothing():
    y, hidden = drawn(0.5, 1500, 0), drawn(0.5, 5000, 1)
    found = compare_selection(rows(y, 2), y, rows(hidden, 3))
    assert found.kind == "no difference"


def test_a_numeric_label_is_refused_with_advice():
    y = np.linspace(0, 1, 200)
    with pytest.raises(InputError, match="HeckmanRegressor"):
        compare_selection(rows(y, 0), y, rows(y, 1))


def test_it_is_short_in_a_notebook():
    random = np.random.default_rng(0)
    y, hidden = random.uniform(size=400) < 0.5, random.uniform(size=800) < 0.2
    found = compare_selection(rows(y, 2), y, rows(hidden, 3))
    assert repr(found) == str(found)
    assert len(repr(found)) < 1500
    page = found._repr_html_()
    assert page.count("<p>") == len(str(found).splitlines())
    assert found.diagnosis.bias.features
