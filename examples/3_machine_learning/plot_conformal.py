"""
Intervals that hold on the population
=====================================

The young answer more often, and the spending of the old is harder to predict. Plain conformal
intervals hold for people like those who answered; with weights they hold for everyone.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.linear_model import LinearRegression

from unskew import ClassifierWeights, ConformalRegressor, Unweighted

random = np.random.default_rng(0)
n = 6000
people = pd.DataFrame({"age": random.uniform(18, 90, n), "income": random.gamma(4, 10, n)})
spending = people["income"] * (0.5 + random.normal(size=n) * people["age"] / 300)
answers = random.uniform(size=n) < 1 / (1 + np.exp((people["age"] - 40) / 12))
survey, known = people[answers], spending[answers]

# %%
# Half of the sample trains the learner and the weighter, the other half calibrates.
levels = [0.5, 0.6, 0.7, 0.8, 0.9, 0.95]
covered = {}
for name, weighter in (("plain", Unweighted()), ("weighted", ClassifierWeights("logistic"))):
    model = ConformalRegressor(LinearRegression(), weighter)
    model.fit(survey, known, population=people)
    covered[name] = []
    for level in levels:
        low, high = model.predict_interval(people, coverage=level).T
        covered[name].append(np.mean((low <= spending) & (spending <= high)))
    print(f"{name}: 90 % intervals hold for {covered[name][4]:.1%} of everyone")

# %%
figure, axes = plt.subplots(figsize=(5, 3.6), layout="constrained")
axes.plot([0.4, 1], [0.4, 1], color="#cccccc", zorder=0)
for (name, shares), colour in zip(covered.items(), ("#c1440e", "#1b6ca8"), strict=True):
    axes.plot(levels, shares, "o-", color=colour, label=name)
axes.set(xlabel="coverage asked for", ylabel="share of everyone that is covered")
axes.legend(frameon=False)
plt.show()
