"""
Estimates for groups
====================

``by=`` gives one estimate for each group, all with the weights of the whole sample, as in R's
``svyby``.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from unskew import CalibrationWeights, estimate

random = np.random.default_rng(0)
regions = ["north", "east", "south", "west"]
people = pd.DataFrame(
    {
        "age": random.gamma(9, 5, 20_000),
        "region": random.choice(regions, 20_000, p=[0.4, 0.3, 0.2, 0.1]),
    }
)
spends = 200 + 4 * people["age"] + 60 * (people["region"] == "west") + random.normal(0, 50, 20_000)
answers = random.uniform(size=20_000) < 0.2 / (1 + np.exp(-(people["age"] - 50) / 8))
survey = people[answers]

# %%
found = estimate(
    survey, spends[answers], population=people, weighter=CalibrationWeights(), by="region"
)
print(found)

# %%
figure, axes = plt.subplots(figsize=(7, 3), layout="constrained")
for place, region in enumerate(regions):
    here = found[region]
    axes.plot(place, here.unweighted, "o", fillstyle="none", color="#c1440e", markersize=9)
    axes.plot([place, place], here.interval, color="#1b6ca8", linewidth=3)
    axes.plot(place, here.value, "o", color="#1b6ca8", markersize=9)
    axes.plot(place, spends[people["region"] == region].mean(), "k_", markersize=26)
axes.set(xticks=range(4), xticklabels=regions, ylabel="mean spending", xlim=(-0.5, 3.5))
axes.set(title="ring: answers; disc: estimate with interval; dash: truth")
plt.show()
