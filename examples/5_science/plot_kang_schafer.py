"""
Kang and Schafer: the right columns, and slightly wrong ones
============================================================

Kang and Schafer (2007) made data whose true mean is 210, and of which only the transformed columns
may be known. With the right columns, calibration is nearly exact. With the transformed ones every
method keeps a bias of a point or two, and nothing in the data shows it.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

from unskew import CalibrationWeights, ClassifierWeights, estimate

random = np.random.default_rng(0)


def draw(n_rows=600):
    """Return the right columns, the transformed ones, who is seen, and the outcome."""
    z = random.normal(size=(n_rows, 4))
    y = 210 + z @ [27.4, 13.7, 13.7, 13.7] + random.normal(size=n_rows)
    seen = random.uniform(size=n_rows) < 1 / (1 + np.exp(-z @ [-1, 0.5, -0.25, -0.1]))
    x = [
        np.exp(z[:, 0] / 2),
        z[:, 1] / (1 + np.exp(z[:, 0])) + 10,
        (z[:, 0] * z[:, 2] / 25 + 0.6) ** 3,
        (z[:, 1] + z[:, 3] + 20) ** 2,
    ]
    return z, np.column_stack(x), seen, y


# %%
quiet = {"overlap": "ignore"}
odds = {"penalty": 1e-4, "rate": "odds", "hinges": False, "calibration": None, "cv": None}
found = {}
for _ in range(30):
    z, x, seen, y = draw()
    for columns, kind in ((z, "right"), (x, "wrong")):
        plain = found.setdefault(("unweighted", kind), [])
        plain.append(y[seen].mean())
        logistic = ClassifierWeights("logistic", **odds, **quiet)
        weights = logistic.fit(columns[seen], population=columns).weights_
        found.setdefault(("inverse odds", kind), []).append(np.average(y[seen], weights=weights))
        means = CalibrationWeights(features="means", on_infeasible="relax", **quiet)
        answer = estimate(columns[seen], y[seen], population=columns, weighter=means)
        found.setdefault(("calibration", kind), []).append(answer.value)

# %%
figure, pair = plt.subplots(1, 2, figsize=(7, 3), layout="constrained", sharey=True)
for axes, kind in zip(pair, ("right", "wrong"), strict=True):
    names = [name for name, k in found if k == kind]
    axes.boxplot([found[name, kind] for name in names], widths=0.5)
    axes.axhline(210, color="black", linestyle="--", linewidth=0.8)
    axes.set(title=f"{kind} columns", xticks=range(1, 4), xticklabels=names)
    axes.tick_params(axis="x", labelsize="small")
pair[0].set(ylabel="estimated mean, 30 draws")
plt.show()
