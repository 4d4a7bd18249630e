"""Weights that are the counts of the population, to see how its values were read."""

from __future__ import annotations

from unskew import FrequencyWeights


def frequencies(sample, population, **options):
    weighter = FrequencyWeights(total="population", **options)
    return weighter.fit(sample, population=population).weights_
