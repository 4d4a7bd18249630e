"""
Four kinds of weights on one shift
==================================

The same sample and population, weighted by four methods. A good weight follows the true density
ratio, which is known here because the data are simulated.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

from unskew import (
    CalibrationWeights,
    ClassifierWeights,
    DensityRatioWeights,
    HistogramWeights,
)

random = np.random.default_rng(0)
sample, population = random.normal(0, 1, (600, 1)), random.normal(1, 1, (2000, 1))
true = np.exp(sample[:, 0] - 0.5)  # N(1, 1) over N(0, 1)

# %%
methods = {
    "HistogramWeights": HistogramWeights(buckets=10),
    "CalibrationWeights": CalibrationWeights(),
    "DensityRatioWeights": DensityRatioWeights(),
    "ClassifierWeights": ClassifierWeights("logistic"),
}
figure, grid = plt.subplots(2, 2, figsize=(7, 5), layout="constrained", sharex=True, sharey=True)
for axes, (name, weighter) in zip(grid.flat, methods.items(), strict=True):
    weights = weighter.set_params(overlap="ignore").fit(sample, population=population).weights_
    error = np.abs(weights - true / true.mean()).mean()
    axes.plot(sample, weights, ".", color="#1b6ca8", markersize=4)
    axes.plot(np.sort(sample[:, 0]), np.sort(true / true.mean()), color="black", linewidth=1)
    axes.set(title=f"{name}: mean error {error:.2f}", ylim=(0, 12))
    axes.title.set_fontsize("medium")
plt.show()
