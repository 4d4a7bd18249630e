"""
LaLonde: what would the trained have earned without training?
=============================================================

185 people took part in a job training programme; 429 others, of a survey, did not and are quite
different. Weighting the others to the participants is weighting a sample to a population. The
data are those of R's MatchIt, which writes the file that is read here:
``data(lalonde, package = "MatchIt"); arrow::write_parquet(lalonde, "lalonde.parquet")``.
"""

# %%
import matplotlib.pyplot as plt
import pandas as pd

from unskew import CalibrationWeights, diagnose, effective_sample_size, estimate

rows = pd.read_parquet("../../../shared/references/lalonde.parquet")
columns = ["age", "educ", "race", "married", "nodegree", "re74", "re75"]
trained, others = rows[rows["treat"] == 1], rows[rows["treat"] == 0]

# %%
# Entropy balancing: R's ``ebal`` gives the mean 5075.88 and an effective sample size of 98.46.
weighter = CalibrationWeights(features="means", overlap="ignore")
weighter.fit(others[columns], population=trained[columns])
found = estimate(others[columns], others["re78"], population=trained[columns], weighter=weighter)
print(found)
print(f"effective sample size {effective_sample_size(weighter.weights_):.2f} of {len(others)}")
print(
    f"the trained earned {trained['re78'].mean():.0f}: {trained['re78'].mean() - found.value:+.0f}"
)

# %%
diagnosis = diagnose(others[columns], trained[columns], weighter)
figure, axes = plt.subplots(figsize=(7, 3.2), layout="constrained")
lines = [(feature.name, line) for feature in diagnosis.bias.features for line in feature.lines]
for place, (_, line) in enumerate(lines):
    axes.plot([line.before, line.after], [place, place], color="#cccccc", zorder=0)
    axes.plot(line.before, place, "o", fillstyle="none", markersize=8, color="#c1440e")
    axes.plot(line.after, place, "o", markersize=8, color="#1b6ca8")
axes.axvspan(-0.1, 0.1, color="#eeeeee", zorder=-1)
names = [f"{name} = {line.category}" if line.category else name for name, line in lines]
axes.set(yticks=range(len(lines)), yticklabels=names)
axes.set(xlabel="difference from the trained, in standard deviations")
plt.show()
