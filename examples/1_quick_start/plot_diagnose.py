"""
Is my sample biased, and did the weights help?
==============================================

``diagnose`` compares sample and population, before and after weighting. Its report is a page;
here its numbers make a love plot.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from unskew import CalibrationWeights, diagnose

random = np.random.default_rng(1)
people = pd.DataFrame(
    {
        "age": random.gamma(9, 5, 5000),
        "income": np.exp(random.normal(10, 0.5, 5000)),
        "rooms": random.poisson(3, 5000),
        "owner": random.uniform(size=5000) < 0.5,
    }
)
lean = (people["age"] - 45) / 12 + (np.log(people["income"]) - 10) - 1.5
survey = people[random.uniform(size=5000) < 1 / (1 + np.exp(-lean))]

# %%
weighter = CalibrationWeights().fit(survey, population=people)
diagnosis = diagnose(survey, people, weighter)
print(diagnosis.verdict)

# %%
# ``diagnosis.to_html("report.html")`` writes the page; every number is an attribute as well.
figure, axes = plt.subplots(figsize=(7, 3), layout="constrained")
for place, feature in enumerate(diagnosis.bias.features):
    line = feature.lines[0]
    axes.plot([line.before, line.after], [place, place], color="#cccccc", zorder=0)
    axes.plot(line.before, place, "o", markersize=9, fillstyle="none", color="#c1440e")
    axes.plot(line.after, place, "o", markersize=9, color="#1b6ca8")
axes.axvspan(-0.1, 0.1, color="#eeeeee", zorder=-1)
axes.set(
    yticks=range(len(diagnosis.bias.features)),
    yticklabels=[feature.name for feature in diagnosis.bias.features],
    xlabel="difference from the population, in standard deviations (ring: before, disc: after)",
)
plt.show()
