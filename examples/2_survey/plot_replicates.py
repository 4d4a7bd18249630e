"""
Replicate weights for any statistic
===================================

Offices publish survey files with columns of replicate weights, so that anybody can compute
standard errors without knowing how the weights were made. Here they give the uncertainty of a
ratio and of a correlation.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from unskew import CalibrationWeights, replicate_weights

random = np.random.default_rng(0)
people = pd.DataFrame({"age": random.normal(45, 15, 10_000)})
answers = random.uniform(size=10_000) < 0.1 / (1 + np.exp((people["age"] - 40) / 12))
survey = people[answers]
income = 20 + 0.5 * survey["age"] + random.normal(0, 8, len(survey))
rent = 5 + 0.2 * income + random.normal(0, 2, len(survey))

# %%
weighter = CalibrationWeights(features="means")
columns = replicate_weights(survey, population=people, weighter=weighter, replicates=100)
ratios = (columns.T @ rent) / (columns.T @ income)
correlations = [np.cov(income, rent, aweights=w) for w in columns.T]
correlations = [c[0, 1] / np.sqrt(c[0, 0] * c[1, 1]) for c in correlations]

# %%
figure, pair = plt.subplots(1, 2, figsize=(7, 2.8), layout="constrained")
for axes, values, name in zip(
    pair, (ratios, correlations), ("rent / income", "correlation"), strict=True
):
    axes.hist(values, 20, color="#1b6ca8")
    axes.set(xlabel=f"{name}: standard error {np.std(values, ddof=1):.4f}", yticks=[])
plt.show()
