"""
How good is the model where it will be used?
============================================

A classifier was trained in one place. Its accuracy on its own test rows is not its accuracy
elsewhere. ``estimate_score`` estimates that, without labels from there.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

from unskew import CalibrationWeights, estimate_score

random = np.random.default_rng(0)


def place(n_rows, shift):
    """Draw people: labels are easy to predict far from zero, and hard near it."""
    X = random.normal(shift, 1, (n_rows, 2))
    y = random.uniform(size=n_rows) < 1 / (1 + np.exp(-2 * X[:, 0]))
    return X, y.astype(int)


model = LogisticRegression().fit(*place(1000, 1.5))
X, y = place(1500, 1.5)  # test rows from the same place

# %%
shifts = [1.5, 1.0, 0.5, 0.0]
found, true = [], []
for shift in shifts:
    elsewhere, hidden = place(5000, shift)
    weighter = CalibrationWeights(features="means", overlap="ignore")
    score = estimate_score(
        model, X, y, population=elsewhere, scoring="accuracy", weighter=weighter, method="weighted"
    )
    found.append(score)
    true.append(model.score(elsewhere, hidden))
print(found[-1])

# %%
figure, axes = plt.subplots(figsize=(7, 3.2), layout="constrained")
axes.axhline(model.score(X, y), color="#c1440e", label="accuracy on the test rows")
for shift, score in zip(shifts, found, strict=True):
    axes.plot([shift, shift], score.interval, color="#1b6ca8", linewidth=3)
axes.plot(shifts, [score.value for score in found], "o", color="#1b6ca8", label="estimate_score")
axes.plot(shifts, true, "kx", markersize=9, label="true accuracy there")
axes.set(xlabel="mean of the population's columns (1.5: no shift)", ylabel="accuracy")
axes.invert_xaxis()
axes.legend(frameon=False)
plt.show()
