"""
How far to trim the weights
===========================

Large weights are noisy. Cutting them makes an estimate steadier, and biased towards the answers as
they are. Over many simulated surveys in which the column matters a little for the outcome, the
least error is in between; where it matters more, less should be cut.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

from unskew import CalibrationWeights, trim_weights

random = np.random.default_rng(0)
LIMITS = [1.5, 2, 3, 4, 6, 10, 30]


def survey():
    """Draw a population of 800, the rows that answer, their outcomes, and the true mean."""
    population = random.normal(size=(800, 2))
    answers = random.uniform(size=800) < 1 / (1 + np.exp(2 - 1.5 * population[:, 0]))
    outcome = 0.3 * population[:, 0] + random.normal(size=800)
    return population, population[answers], outcome[answers], outcome.mean()


# %%
# ``trim_weights`` cuts weights at a multiple of their mean, and keeps their sum. For weights that
# are as well balanced as the limit allows, ``CalibrationWeights(max_weight=...)`` solves for them.
errors = []
for _ in range(60):
    population, sample, outcome, truth = survey()
    weighter = CalibrationWeights(features="means", overlap="ignore", on_infeasible="relax")
    weights = weighter.fit(sample, population=population).weights_
    cut = [trim_weights(weights, max_weight=limit) for limit in LIMITS]
    errors.append([np.average(outcome, weights=w) - truth for w in cut])
errors = np.array(errors)

# %%
figure, axes = plt.subplots(figsize=(7, 3.2), layout="constrained")
for values, colour, name in (
    (np.abs(errors.mean(axis=0)), "#c1440e", "bias"),
    (errors.std(axis=0), "#7f8c8d", "standard deviation"),
    (np.sqrt((errors**2).mean(axis=0)), "#1b6ca8", "root mean square error"),
):
    axes.plot(LIMITS, values, "o-", color=colour, label=name)
axes.set(
    xscale="log", xlabel="largest weight, as a multiple of the mean", ylabel="error of the mean"
)
axes.set_xticks(LIMITS, LIMITS)
axes.minorticks_off()
axes.legend(frameon=False)
plt.show()
