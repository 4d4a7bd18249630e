"""
One row of the paper's Table 1
==============================

Cortes, Mohri, Riley and Rostamizadeh (2008) select biased samples from public tables and train a
learner with four kinds of weights. Here are some draws of that experiment on a table that comes
with scikit-learn; ``unskew reproduce`` repeats all of it.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression

from unskew import KernelMeanMatching, KnownProbability, TreeWeights, Unweighted

X, y = load_diabetes(return_X_y=True)
X, y = (X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std()
random = np.random.default_rng(0)

# %%
# In each draw the probability of selection rises along a random direction of the columns.
errors = {"unweighted": [], "true weights": [], "tree": [], "kernel mean matching": []}
for _ in range(25):
    order = random.permutation(len(X))
    train, test = order[:300], order[300:]
    chance = 1 / (1 + np.exp(-2 * (X[train] @ random.normal(size=10) / np.sqrt(10) - 0.3)))
    kept = random.uniform(size=300) < chance
    sample, labels = X[train][kept], y[train][kept]
    for name, weighter in zip(
        errors,
        (
            Unweighted(),
            KnownProbability(chance[kept]),
            TreeWeights(min_samples_leaf=10, overlap="ignore"),
            KernelMeanMatching(overlap="ignore"),
        ),
        strict=True,
    ):
        weights = weighter.fit(sample, labels, population=X[train]).weights_
        model = LinearRegression().fit(sample, labels, sample_weight=weights)
        errors[name].append(np.mean((model.predict(X[test]) - y[test]) ** 2))

# %%
# A linear model fits these rows well wherever they are, so weights have little to correct and cost
# variance: the page on the full experiment discusses when they help.
figure, axes = plt.subplots(figsize=(7, 3), layout="constrained")
axes.boxplot(errors.values(), widths=0.5)
axes.set(xticks=range(1, 5), xticklabels=errors, ylabel="error on test rows, 25 draws")
plt.show()
