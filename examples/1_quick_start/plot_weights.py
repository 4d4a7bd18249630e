"""
Weigh a biased sample in five lines
===================================

Half of the people answer a survey, and the older they are, the more often. A weight for each
answer makes the answers represent everyone.
"""

# %%
# Everyone's age and rooms are known; only some people answered.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from unskew import AutoWeights

random = np.random.default_rng(0)
everyone = pd.DataFrame({"age": random.gamma(9, 5, 5000), "rooms": random.poisson(3, 5000)})
answered = random.uniform(size=5000) < 1 / (1 + np.exp(-(everyone["age"] - 45) / 8))
sample = everyone[answered]

# %%
# One call. The weights sum to the number of answers, and ``choice_`` says what was done and why.
weighter = AutoWeights().fit(sample, population=everyone)
print(weighter.choice_)

# %%
# With the weights, the answers have the ages of everyone.
bins = np.arange(0, 110, 5)
figure, axes = plt.subplots(figsize=(7, 3.5), layout="constrained")
axes.hist(everyone["age"], bins, density=True, color="#d9d9d9", label="everyone")
for weights, colour, label in (
    (np.ones(len(sample)), "#c1440e", "answers"),
    (weighter.weights_, "#1b6ca8", "answers, weighted"),
):
    axes.hist(
        sample["age"],
        bins,
        weights=weights,
        density=True,
        histtype="step",
        linewidth=2,
        color=colour,
        label=label,
    )
axes.set(xlabel="age", yticks=[], title="Who answered, and whom they now represent")
axes.legend(frameon=False)
plt.show()
