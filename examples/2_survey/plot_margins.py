"""
Rake a survey to a census table
===============================

No rows of the population are known, only how many people there are of each sex and in each band
of age. That is enough.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from unskew import CalibrationWeights, Margins, effective_sample_size

random = np.random.default_rng(0)
survey = pd.DataFrame(
    {
        "sex": random.choice(["f", "m"], 600, p=[0.62, 0.38]),
        "age": np.clip(random.normal(52, 15, 600), 18, 90).round(),
    }
)
census = Margins(
    {
        "sex": {"f": 3159, "m": 3035},
        "age": {"18-34": 1800, "35-49": 1500, "50-64": 1600, "65+": 1294},
    }
)

# %%
# Bands such as ``65+`` are matched with the numbers of the survey.
weighter = CalibrationWeights().fit(survey, population=census)
print(f"effective sample size {effective_sample_size(weighter.weights_):.0f} of {len(survey)}")

# %%
bands = pd.cut(survey["age"], [17, 34, 49, 64, 120], labels=["18-34", "35-49", "50-64", "65+"])
before = bands.value_counts(normalize=True, sort=False)
after = pd.Series(weighter.weights_).groupby(bands.to_numpy()).sum() / len(survey)
known = pd.Series([1800, 1500, 1600, 1294], index=before.index) / 6194
figure, axes = plt.subplots(figsize=(7, 3), layout="constrained")
place = np.arange(4)
axes.bar(place - 0.27, before, 0.25, color="#c1440e", label="survey")
axes.bar(place, after[before.index], 0.25, color="#1b6ca8", label="survey, raked")
axes.bar(place + 0.27, known, 0.25, color="#bbbbbb", label="census")
axes.set(xticks=place, xticklabels=list(before.index), xlabel="age", ylabel="share")
axes.legend(frameon=False)
plt.show()
