"""
How strong would hidden selection have to be?
=============================================

Those who like a product answer more often, and no column shows who does. No weights correct that.
What can be said is how strong it would have to be to change the conclusion.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from unskew import estimate

random = np.random.default_rng(0)
n = 20_000
people = pd.DataFrame({"age": random.normal(45, 15, n)})
likes = random.uniform(size=n) < 0.5  # no column shows it
odds = np.exp((people["age"] - 55) / 12 - 2 + 0.8 * likes)
buys = random.uniform(size=n) < 1 / (1 + np.exp(1.2 - (people["age"] - 45) / 20 - 1.5 * likes))
answers = random.uniform(size=n) < odds / (1 + odds)

# %%
found = estimate(people[answers], buys[answers], population=people)
factors = [1.0, 1.1, 1.2, 1.3, 1.4, 1.5]
hidden = found.sensitivity(threshold=0.4, odds=factors)
print(hidden)

# %%
figure, axes = plt.subplots(figsize=(6, 3.2), layout="constrained")
for name, colour in (("plain", "#c1440e"), ("sharp", "#1b6ca8")):
    low, high = zip(*(getattr(bound, name) for bound in hidden.bounds), strict=True)
    axes.fill_between(factors, low, high, alpha=0.25, color=colour, label=f"{name} bounds")
axes.axhline(buys.mean(), color="black", linestyle="--", label="truth")
axes.axhline(0.4, color="#999999", label="threshold")
axes.set(xlabel="factor by which odds of selection differ", ylabel="share of buyers")
axes.legend(frameon=False)
plt.show()
