"""
Reject inference: loans that were not granted
=============================================

Only granted loans can default. A scorecard that is trained on them is used on all applications.
``split_labelled`` makes the granted loans the sample, and all applications the population.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

from unskew import CalibrationWeights, Reweighted, split_labelled

random = np.random.default_rng(0)
n = 8000
income, debt = random.normal(size=(2, n))
chance = 1 / (1 + np.exp(1.5 + income - debt - 0.8 * income * debt))
default = random.uniform(size=n) < chance
granted = income - debt + random.logistic(size=n) > 0
applications = pd.DataFrame({"income": income, "debt": debt})
outcome = pd.Series(default.astype(float)).where(granted)  # missing where not granted

# %%
X, y, population = split_labelled(applications, outcome)
plain = LogisticRegression().fit(X, y)
model = Reweighted(LogisticRegression(), CalibrationWeights(overlap="ignore"))
model.fit(X, y, population=population)

# %%
# The weighted scorecard predicts the rate of default of all applications, not only of the granted.
rates = {
    "granted loans": y.mean(),
    "predicted for all,\nwithout weights": plain.predict_proba(applications)[:, 1].mean(),
    "predicted for all,\nweighted": model.predict_proba(applications)[:, 1].mean(),
    "truth for all": default.mean(),
}
figure, axes = plt.subplots(figsize=(7, 3), layout="constrained")
axes.bar(rates.keys(), rates.values(), color=["#bbbbbb", "#c1440e", "#1b6ca8", "#333333"])
for place, rate in enumerate(rates.values()):
    axes.text(place, rate, f"{rate:.1%}", ha="center", va="bottom")
axes.set(ylabel="rate of default")
axes.spines[["top", "right"]].set_visible(False)
plt.show()
