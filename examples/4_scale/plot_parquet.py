"""
A population in Parquet files
=============================

A path, a glob or a folder is a population. It is read once, in parallel and in bounded memory,
and the weights are those of the same rows in memory, to the last bit.
"""

# %%
import tempfile
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from unskew import Population, TreeWeights

random = np.random.default_rng(0)
folder = Path(tempfile.mkdtemp())
for number in range(8):
    rows = {name: random.normal(size=100_000) for name in ("a", "b", "c")}
    pq.write_table(pa.table(rows), folder / f"part-{number}.parquet")

sample = {name: random.normal(0.5, 1, 5000) for name in ("a", "b", "c")}
sample = pa.table(sample).to_pandas()
labels = sample["a"] + sample["b"]

# %%
# ``progress=`` is called about ten times a second.
seen = []
population = Population(folder, progress=lambda p: p.doing or seen.append((p.seconds, p.rows)))
start = time.perf_counter()
weighter = TreeWeights(min_samples_leaf=50).fit(sample, labels, population=population)
print(f"{seen[-1][1]:,} rows in {time.perf_counter() - start:.1f} s")

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(7, 2.8), layout="constrained")
left.plot([0, *(s for s, _ in seen)], [0, *(r / 1e6 for _, r in seen)], "o-", color="#1b6ca8")
left.set(xlabel="seconds of the pass", ylabel="million rows read")
right.hist(weighter.weights_, 40, color="#1b6ca8")
right.set(xlabel="weight", ylabel="sample rows")
plt.show()
