"""
Train a model for the population
================================

A straight line is fitted to a curve. Which part of the curve it follows depends on where the rows
are: those of the sample, or those of the population.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LinearRegression

from unskew import DensityRatioWeights, Reweighted

random = np.random.default_rng(0)
x, new = random.normal(0.3, 0.45, (200, 1)), random.normal(1.1, 0.3, (500, 1))
y = -x[:, 0] + x[:, 0] ** 3 + random.normal(0, 0.2, 200)

# %%
# ``Reweighted`` fits the weights and passes them to the learner. Everything else is the learner's.
plain = LinearRegression().fit(x, y)
model = Reweighted(LinearRegression(), DensityRatioWeights(overlap="ignore"))
model.fit(x, y, population=new)

# %%
# With the weights, the line is right where it will be used.
truth = -new[:, 0] + new[:, 0] ** 3
figure, axes = plt.subplots(figsize=(7, 3.6), layout="constrained")
grid = np.linspace(-0.8, 1.9, 50)[:, None]
axes.scatter(
    x, y, s=8 + 25 * model.weights_, color="#999999", alpha=0.6, label="sample (size: weight)"
)
axes.plot(grid, -grid + grid**3, color="black", label="truth")
for learner, colour, name in ((plain, "#c1440e", "no weights"), (model, "#1b6ca8", "weighted")):
    error = np.mean((learner.predict(new) - truth) ** 2)
    axes.plot(
        grid, learner.predict(grid), color=colour, label=f"{name}: error {error:.2f} on new rows"
    )
axes.plot(new, np.full(500, -1.35), "|", color="#1b6ca8", alpha=0.3)
axes.set(ylim=(-1.5, 3), xlabel="x (ticks: the population)", ylabel="y")
axes.legend(frameon=False)
plt.show()
