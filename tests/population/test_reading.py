from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from tests.population.frequencies import frequencies

from unskew import InputError, InputTypeError, Population, Unweighted


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
