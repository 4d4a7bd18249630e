"""Answers that a population keeps, and what a summary sees of its rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from unskew import DensityRatioWeights, HistogramWeights, Population
from unskew.errors import ParameterError
from unskew.population.reservoir import Reservoir
from unskew.population.summaries import Summaries, TotalWeight
from unskew.results import Summary

FRAME = pd.DataFrame({"age": [1.0, 2.0, 3.0], "town": ["a", "b", "a"]})


def counting_chunks():
    reads = []

    class Chunks:
        def __iter__(self):
            reads.append(1)
            return iter([FRAME, FRAME])

    return Chunks(), reads


def test_answers_that_do_not_depend_on_the_sample_are_kept():
    chunks, reads = counting_chunks()
    population = Population(chunks)
    large, small = Reservoir(5, seed=3), Reservoir(2, seed=3)
    population.reduce(Summaries([small, large, TotalWeight()]))
    before = len(reads)
    again = population.reduce(Reservoir(2, seed=3))
    assert again.numbers.tolist() == small.numbers.tolist()
    assert again.rows.equals(small.rows)
    assert set(small.numbers) < set(large.numbers)
    assert population.reduce(TotalWeight()).rows == 6 == population.size
    assert len(reads) == before  # nothing was read again
    assert len(population.reduce(Reservoir(5, seed=4)).weight) == 5
    assert len(population.reduce(Reservoir(6, seed=3)).weight) == 6
    assert len(reads) == before + 2
    # All rows are kept by now, so that they answer a larger question too.
    assert len(population.reduce(Reservoir(100, seed=3)).weight) == 6
    assert len(reads) == before + 2


def test_reservoirs_of_one_seed_agree_with_those_asked_alone():
    array = np.arange(50_000.0).reshape(-1, 1)
    asked = [Reservoir(size, seed=1) for size in (10, 300, 40)]
    Population(array).reduce(Summaries(asked))
    for together in asked:
        alone = Population(array).reduce(Reservoir(together.size, seed=1))
        assert together.numbers.tolist() == alone.numbers.tolist()
        assert together.rows.equals(alone.rows)


def test_a_filled_summary_is_refused_as_a_question():
    total = Population(FRAME).reduce(TotalWeight())
    with pytest.raises(ParameterError, match="This TotalWeight has been answered already"):
        Population(FRAME).reduce(total)


def test_summaries_see_weights_marks_and_numbers():
    class Seeing(Summary):
        def __init__(self):
            self.found = np.zeros(3)

        def update(self, rows):
            self.found += [rows.weight.sum(), rows.selected.sum(), rows.numbers.sum()]

        def merge(self, other):
            self.found += other.found

    frame = FRAME.assign(w=[1.0, 2.0, 3.0], s=[True, False, True])
    for weight, selected in (("w", "s"), (frame["w"], frame["s"].to_numpy())):
        columns = ["age", "town"]
        population = Population(frame, columns=columns, weight=weight, selected=selected)
        assert population.reduce(Seeing()).found.tolist() == [6.0, 2.0, 3.0]


def test_what_is_known_without_reading():
    about = Population(FRAME, weight=[1, 1, 1]).about
    assert (about.columns, about.n_rows) == (("age", "town"), 3)
    assert (about.weighted, about.selected, about.margins) == (True, False, None)
    assert Population(iter([FRAME])).about.n_rows is None


def test_rows_without_weight_are_not_drawn():
    weight = np.zeros(5000)
    weight[-3:] = [1.0, 2.0, 3.0]
    array = np.arange(5000.0).reshape(-1, 1)
    drawn = Population(array, weight=weight).reduce(Reservoir(100))
    assert drawn.numbers.tolist() == [4997, 4998, 4999]
    assert drawn.weight.tolist() == [1.0, 2.0, 3.0]
    for weighter in (HistogramWeights(buckets=2), DensityRatioWeights(population_rows=50)):
        weighter.set_params(overlap="ignore").fit(
            array[-50:], population=Population(array, weight=weight)
        )
        assert weighter.weights_.sum() == pytest.approx(50)
