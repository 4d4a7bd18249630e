"""
Drift between years
===================

Each year's customers differ a little more from those on which a model was trained. The held-out
AUC of a classifier that separates the two says how much, and the effective sample size what it
will cost to correct it.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from unskew import ClassifierWeights

random = np.random.default_rng(0)


def customers(year, n_rows=1500):
    """Draw customers, who become older and more of whom live in town, from year to year."""
    age = random.normal(40 + 2.5 * (year - 2020), 10, n_rows)
    town = random.uniform(size=n_rows) < 0.4 + 0.06 * (year - 2020)
    return pd.DataFrame({"age": age, "town": np.where(town, "town", "country")})


trained_on = customers(2020)
years = list(range(2020, 2026))

# %%
# In 2020 there is no drift, and the AUC is that of guessing.
weighters = [
    ClassifierWeights("logistic", overlap="ignore").fit(trained_on, population=customers(year))
    for year in years
]

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(7, 3), layout="constrained")
left.plot(years, [w.auc_before_ for w in weighters], "o-", color="#c1440e", label="as it is")
left.plot(years, [w.auc_after_ for w in weighters], "o-", color="#1b6ca8", label="weighted")
left.axhline(0.5, color="#cccccc", zorder=0)
left.set(ylabel="AUC of year against 2020", ylim=(0.4, 1))
left.legend(frameon=False)
right.plot(years, [w.effective_sample_size_ for w in weighters], "o-", color="#1b6ca8")
right.set(ylabel="effective sample size of 1,500", ylim=(0, 1550))
plt.show()
