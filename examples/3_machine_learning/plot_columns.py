"""
Which columns to weigh by
=========================

Three columns decide who answers; only one of them also moves the outcome. Weighing by it alone
removes the bias. Weighing by all three removes it too, and adds variance. Weighing by the wrong
one does nothing.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from unskew import CalibrationWeights, effective_sample_size

random = np.random.default_rng(0)
CHOICES = {
    "no weights": [],
    "the wrong one": ["noise"],
    "the right one": ["matters"],
    "all three": ["matters", "noise", "other"],
}

# %%
errors = {name: [] for name in CHOICES}
sizes = {}
for _ in range(60):
    people = pd.DataFrame(random.normal(size=(1500, 3)), columns=["matters", "noise", "other"])
    outcome = people["matters"] + random.normal(size=1500)
    lean = 0.7 * people["matters"] + 1.2 * people["noise"] + 1.2 * people["other"]
    answers = random.uniform(size=1500) < 1 / (1 + np.exp(1.5 - lean))
    for name, columns in CHOICES.items():
        weights = np.ones(answers.sum())
        if columns:
            weighter = CalibrationWeights(columns=columns, features="means", overlap="ignore")
            weights = weighter.fit(people[answers], population=people).weights_
        errors[name].append(np.average(outcome[answers], weights=weights) - outcome.mean())
        sizes[name] = effective_sample_size(weights)

# %%
figure, axes = plt.subplots(figsize=(7, 3.2), layout="constrained")
axes.boxplot(errors.values(), widths=0.5, medianprops={"color": "#c1440e"})
axes.axhline(0, color="#999999", linewidth=0.8)
axes.set(
    xticks=range(1, 5),
    xticklabels=[f"{name}\n({sizes[name]:.0f} effective rows)" for name in CHOICES],
    ylabel="error of the mean, 60 surveys",
)
plt.show()
