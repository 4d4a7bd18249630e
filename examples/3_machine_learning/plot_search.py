"""
A search that chooses for the population
========================================

Ordinary cross-validation chooses the model that is best on people like those in the sample.
``population_scorer`` scores each test fold with the weights of its rows, so that the search chooses
for the population.
"""

# %%
# The labels are a wave for half of the people, and few of them answer. A sample of mostly quiet
# people suggests a coarser tree than everyone needs.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import GridSearchCV
from sklearn.tree import DecisionTreeRegressor

from unskew import HistogramWeights, Population, Reweighted, population_scorer

random = np.random.default_rng(0)


def draw(n_rows):
    """Draw people and their labels."""
    x = random.uniform(-2, 2, n_rows)
    wave = np.where(x > 0, np.sin(5 * x), 0)
    return x[:, None], wave + 0.4 * random.normal(size=n_rows)


everyone, labels = draw(4000)
answers = random.uniform(size=4000) < np.where(everyone[:, 0] > 0, 0.06, 0.5)
X, y = everyone[answers], labels[answers]

# %%
sizes = [2, 5, 10, 20, 40, 80]
model = Reweighted(DecisionTreeRegressor(random_state=0), HistogramWeights(buckets={0: [0.0]}))
scores = {}
for name, scoring in (
    ("ordinary cross-validation", "neg_mean_squared_error"),
    ("population_scorer", population_scorer("neg_mean_squared_error")),
):
    search = GridSearchCV(
        model, {"estimator__min_samples_leaf": sizes}, scoring=scoring, refit=False, cv=10
    )
    search.fit(X, y, population=Population(everyone))
    scores[name] = -search.cv_results_["mean_test_score"]

# %%
# What only a simulation knows: the error of each candidate on new people.
new, truth = draw(4000)
errors = []
for size in sizes:
    fitted = model.set_params(estimator__min_samples_leaf=size).fit(X, y, population=everyone)
    errors.append(np.mean((fitted.predict(new) - truth) ** 2))
figure, axes = plt.subplots(figsize=(7, 3.2), layout="constrained")
axes.plot(sizes, errors, "k--", label="true error")
for (name, found), colour in zip(scores.items(), ("#c1440e", "#1b6ca8"), strict=True):
    axes.plot(sizes, found, "o-", color=colour, label=name)
    best = int(np.argmin(found))
    axes.plot(sizes[best], found[best], "o", color=colour, markersize=13, fillstyle="none")
axes.set(
    xscale="log", xlabel="rows in a leaf of the tree (ring: the choice)", ylabel="squared error"
)
axes.set_xticks(sizes, sizes)
axes.minorticks_off()
axes.legend(frameon=False)
plt.show()
