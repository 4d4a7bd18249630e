"""
A class that becomes rarer
==========================

In a clinic half of the patients are ill, in a screening one in twenty. The ill look alike in both
places. The share of the ill among the screened follows from what a classifier says of them.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

from unskew import LabelShiftWeights

random = np.random.default_rng(0)
ill, hidden = random.uniform(size=2000) < 0.5, random.uniform(size=20_000) < 0.05
patients, screened = (random.normal(size=(len(one), 3)) + one[:, None] for one in (ill, hidden))

# %%
weighter = LabelShiftWeights().fit(patients, ill, population=screened)
print(f"estimated share {weighter.population_shares_[1]:.1%}, truth {hidden.mean():.1%}")
print(weighter.shift_test_)

# %%
# The trained model is corrected without training again; its predictions are then calibrated.
says = LogisticRegression().fit(patients, ill).predict_proba(screened)
corrected = weighter.adjust_probabilities(says)
figure, axes = plt.subplots(figsize=(5, 3.6), layout="constrained")
axes.plot([0, 1], [0, 1], color="#cccccc")
for p, colour, name in (
    (says, "#c1440e", "the clinic's model"),
    (corrected, "#1b6ca8", "corrected"),
):
    bins = np.digitize(p[:, 1], np.linspace(0, 1, 11)[1:-1])
    points = [(p[bins == b, 1].mean(), hidden[bins == b].mean()) for b in np.unique(bins)]
    axes.plot(*zip(*points, strict=True), "o-", color=colour, label=name)
axes.set(xlabel="predicted probability", ylabel="share of the ill")
axes.legend(frameon=False)
plt.show()
