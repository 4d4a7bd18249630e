"""
A number of the population, with an interval
============================================

The young answer a survey more often, and buy more often. The share of buyers among the answers is
too high; ``estimate`` corrects it and says how certain the result is.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from unskew import estimate

random = np.random.default_rng(0)
people = pd.DataFrame(
    {"age": random.normal(45, 15, 20_000), "region": random.choice(["north", "south"], 20_000)}
)
buys = random.uniform(size=20_000) < 1 / (1 + np.exp((people["age"] - 40) / 10))
answers = random.uniform(size=20_000) < 0.05 / (1 + np.exp((people["age"] - 40) / 12))
survey = people[answers]

# %%
# ``population`` may be rows, as here, a file, a query, or a census table.
found = estimate(survey, buys[answers], population=people)
print(found)

# %%
# A model of the outcome makes the estimate doubly robust.
robust = estimate(survey, buys[answers], population=people, outcome="linear")
print(robust)

# %%
figure, axes = plt.subplots(figsize=(7, 2.4), layout="constrained")
naive = buys[answers].mean()
spread = 1.96 * np.sqrt(naive * (1 - naive) / len(survey))
rows = [
    ("answers as they are", naive, (naive - spread, naive + spread), "#c1440e"),
    ("weighted", found.value, found.interval, "#1b6ca8"),
    ("weighted, with a model", robust.value, robust.interval, "#1b6ca8"),
]
for place, (_, value, interval, colour) in enumerate(rows):
    axes.plot(interval, [place, place], color=colour, linewidth=3)
    axes.plot(value, place, "o", color=colour, markersize=9)
axes.axvline(buys.mean(), color="black", linestyle="--", label="truth")
axes.set(yticks=range(3), yticklabels=[row[0] for row in rows], xlabel="share of buyers")
axes.set_ylim(2.5, -0.5)
axes.legend(frameon=False)
plt.show()
