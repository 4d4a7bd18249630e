from __future__ import annotations

import pandas as pd
from tests.population.frequencies import frequencies

from unskew import Population
from unskew.population.reservoir import Reservoir


def test_chunks_may_have_different_dictionaries():
    chunks = [
        pd.DataFrame({"c": pd.Categorical([f"{start + k}" for k in range(100)])})
        for start in (0, 100, 200)
    ]
    sample = pd.DataFrame({"c": [str(number) for number in range(300)]})
    assert (frequencies(sample, iter(chunks)) == 1).all()
    assert Population(chunks).reduce(Reservoir(300, seed=-1)).rows.num_rows == 300
