from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from tests.population.frequencies import frequencies

from unskew import Population, Unweighted
from unskew.errors import InputError, InputTypeError
from unskew.population.reading import BLOCK_ROWS, Reading, in_blocks
from unskew.population.summaries import Question, Summaries, TotalWeight
from unskew.results import Summary


def test_positions_in_messages_are_those_of_the_whole_population():
    weight = np.ones(70_001)
    weight[70_000] = -1
    frame = pd.DataFrame({"a": np.zeros(70_001), "w": weight})
    with pytest.raises(InputError, match="position 70000"):
        frequencies([[0.0]], Population(frame, weight="w"))


def test_marks_of_the_wrong_kind():
    frame = pd.DataFrame({"a": [1.0], "s": ["yes"]})
    with pytest.raises(InputTypeError, match="'s' given as selected holds text"):
        Unweighted().fit(
            [[1.0]], population=Population(frame, selected="s", columns=["a"], weight=[1])
        )
    with pytest.raises(InputError, match="one mark per row"):
        Population(frame, selected=[[True]])


def test_small_batches_become_blocks_of_the_same_rows():
    numbers = np.arange(150_000)
    batches = [
        pa.record_batch({"a": numbers[start : start + 10_000]})
        for start in range(0, 150_000, 10_000)
    ]
    batches.insert(3, batches[0].slice(0, 0))
    blocks = list(in_blocks(batches))
    assert [len(block) for block in blocks] == [60_000, 60_000, 30_000]
    assert np.array_equal(pa.Table.from_batches(blocks)["a"].to_numpy(), numbers)
    large = pa.record_batch({"a": numbers})
    assert [len(block) for block in in_blocks([batches[0], large])] == [10_000, 150_000]
    assert list(in_blocks([])) == []


def test_batches_of_different_types_are_not_combined():
    whole, fractions = pa.record_batch({"a": [1, 2]}), pa.record_batch({"a": [0.5]})
    codes = pa.record_batch({"a": pa.array(["x", "y"]).dictionary_encode()})
    blocks = list(in_blocks([whole, whole, fractions, codes, codes]))
    assert [len(block) for block in blocks] == [4, 1, 2, 2]


class Sizes(Summary):
    """How many rows the blocks have."""

    def __init__(self):
        self.sizes = []

    def update(self, rows):
        assert rows.unweighted
        assert rows.mass == rows.weight.sum() == len(rows)
        self.sizes.append(len(rows))


def test_a_summary_gets_blocks_of_one_size():
    batch = pa.record_batch([np.zeros(2 * BLOCK_ROWS + 10, dtype=bool)], names=["x"])
    asked = Sizes()
    seen = Reading(["x"], ["x"], None, None).read(
        Question(Summaries([asked, TotalWeight()]), None), [batch], 0
    )
    assert asked.sizes == [BLOCK_ROWS] * 2 + [10]
    assert seen.rows == seen.mass == batch.num_rows


def test_weights_that_all_blocks_share_cannot_be_written_to():
    class Writes(Summary):
        def update(self, rows):
            rows.weight[0] = 2.0

    with pytest.raises(ValueError, match="read-only"):
        Population(np.zeros((3, 1))).reduce(Writes())
