"""
Let a database count
====================

Where columns have few distinct combinations, a database counts them and only the counts travel.
The weights are the same as from the rows.
"""

# %%
import duckdb
import matplotlib.pyplot as plt
import numpy as np

from unskew import FrequencyWeights, Population

database = duckdb.connect()
database.execute("SET threads=2")
database.execute(
    "CREATE TABLE u AS SELECT range AS id, 20 + 10 * (range % 6) AS age, "
    "if(hash(range) % 3 = 0, 'Ulm', 'Bonn') AS town FROM range(1000000)"
)
sample = database.sql("SELECT age, town FROM u WHERE hash(id, 1) % 1000 < age / 10").df()

# %%
# A million rows become twelve counts.
counts = database.sql("SELECT age, town, count(*) AS n FROM u GROUP BY age, town")
weighter = FrequencyWeights().fit(sample, population=Population(counts, weight="n"))
rows = database.sql("SELECT age, town FROM u")
same = FrequencyWeights().fit(sample, population=rows).weights_
print("the same weights as from the rows:", np.array_equal(weighter.weights_, same))

# %%
ages = sorted(sample["age"].unique())
before = [np.mean(sample["age"] == age) for age in ages]
after = [weighter.weights_[sample["age"] == age].sum() / len(sample) for age in ages]
figure, axes = plt.subplots(figsize=(7, 2.8), layout="constrained")
place = np.arange(len(ages))
axes.bar(place - 0.2, before, 0.38, color="#c1440e", label="sample")
axes.bar(place + 0.2, after, 0.38, color="#1b6ca8", label="sample, weighted")
axes.axhline(1 / 6, color="black", linestyle="--", label="population")
axes.set(xticks=place, xticklabels=ages, xlabel="age", ylabel="share")
axes.legend(frameon=False, ncols=3)
plt.show()
