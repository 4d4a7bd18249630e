"""The kinds of weights that the experiment compares.

To compare another one, add it to ``METHODS``:

    METHODS["Histogram"] = ComparedWeights(lambda _: HistogramWeights())
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unskew import KernelMeanMatching, KnownProbability, TreeWeights, Unweighted

Array = NDArray[np.float64]


class BiasedSample(NamedTuple):
    """One biased sample, as a method sees it; the probabilities are the truth, for Ideal only."""

    sample: Array
    labels: Array
    probabilities: Array
    population: Array


TotalWeight = Callable[[BiasedSample], float]


def sample_size(drawn: BiasedSample) -> float:
    """Return m."""
    return float(len(drawn.sample))


def population_size(drawn: BiasedSample) -> float:
    """Return n."""
    return float(len(drawn.population))


def inverse_probabilities(drawn: BiasedSample) -> float:
    """Return Σ 1/p, which is n in the mean over draws."""
    return float(np.sum(1.0 / drawn.probabilities))


@dataclass(frozen=True)
class ComparedWeights:
    """A weighter for each draw, and what the paper lets its weights sum to.

    Anything with ``fit(X, y, population=)`` and then ``weights_`` is a weighter here.
    """

    weighter: Callable[[BiasedSample], Any]
    paper_total: TotalWeight = sample_size


def kernel_width(n_features: int) -> float:
    """Return the paper's σ = √(d/2), of the SVR's kernel and of kernel mean matching's."""
    return sqrt(n_features / 2)


METHODS: dict[str, ComparedWeights] = {
    # Weight 1 for every row.
    "Unweighted": ComparedWeights(lambda _: Unweighted()),
    # Weight 1 / Pr[s = 1 | x].
    "Ideal": ComparedWeights(
        lambda drawn: KnownProbability(drawn.probabilities), inverse_probabilities
    ),
    # Weight |C ∩ U| / |C ∩ S| in the leaves C of a regression tree, which sum to |U|.
    "Clustered": ComparedWeights(
        lambda _: TreeWeights(min_samples_leaf=4, overlap="ignore"), population_size
    ),
    # B = 1000 and ε = 0, so that the mean weight is 1; no ridge. The inputs have been scaled.
    "KMM": ComparedWeights(
        lambda drawn: KernelMeanMatching(
            bandwidth=kernel_width(drawn.sample.shape[1]),
            scaling=None,
            bound=1000.0,
            slack=0.0,
            ridge=0.0,
            method="exact",
            overlap="ignore",
        )
    ),
}

TOTALS: dict[str, TotalWeight | None] = {
    "paper": None,
    "sample": sample_size,
    "population": population_size,
}
"""What the weights sum to: as the paper has it for each method, or the same for all methods."""
