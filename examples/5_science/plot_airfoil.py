"""
Airfoil: conformal prediction under covariate shift
===================================================

Tibshirani, Foygel Barber, Candès and Ramdas (2019) tilt NASA's airfoil data, so that test rows
differ from training rows. Plain 90 % intervals then cover too few of them. Weighted ones cover
enough; for a few rows that are rare in the sample they are infinite, which is the honest answer.
The data are UCI's Airfoil Self-Noise (CC BY 4.0), saved as Parquet.
"""

# %%
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.linear_model import LinearRegression

from unskew import ClassifierWeights, ConformalRegressor, Unweighted
from unskew.errors import InfiniteIntervalWarning

warnings.simplefilter("ignore", InfiniteIntervalWarning)
rows = pd.read_parquet("../../../shared/references/airfoil.parquet")
X, y = rows.iloc[:, :5].to_numpy(float).copy(), rows.iloc[:, 5].to_numpy(float)
X[:, [0, 4]] = np.log(X[:, [0, 4]])  # as the authors do
X = (X - X.mean(axis=0)) / X.std(axis=0)
random = np.random.default_rng(0)

# %%
# Half of the rows are the sample; test rows are drawn from the others in proportion to exp(x'b).
covered = {"plain, no shift": [], "plain, shifted": [], "weighted, shifted": []}
for _ in range(15):
    order = random.permutation(len(X))
    sample, rest = order[:751], order[751:]
    tilt = np.exp(X[rest] @ np.array([-1.0, 0, 0, 0, 1.0]))
    tilted = random.choice(rest, 376, p=tilt / tilt.sum())
    for name, weighter, test in (
        ("plain, no shift", Unweighted(), rest),
        ("plain, shifted", Unweighted(), tilted),
        ("weighted, shifted", ClassifierWeights("logistic", overlap="ignore"), tilted),
    ):
        model = ConformalRegressor(LinearRegression(), weighter)
        model.fit(X[sample], y[sample], population=X[test])
        low, high = model.predict_interval(X[test], coverage=0.9).T
        covered[name].append(np.mean((low <= y[test]) & (y[test] <= high)))

# %%
figure, axes = plt.subplots(figsize=(6, 3), layout="constrained")
axes.boxplot(covered.values(), widths=0.5)
axes.axhline(0.9, color="black", linestyle="--", linewidth=0.8)
axes.set(xticks=[1, 2, 3], xticklabels=covered, ylabel="coverage, 15 draws")
plt.show()
