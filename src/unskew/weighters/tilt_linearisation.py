"""How weights that are a tilt of the design weights follow the rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from unskew.numerics.distances import Distance
from unskew.numerics.typing import BoolArray, FloatArray
from unskew.population.features import FeatureSet
from unskew.population.sample import Sample
from unskew.weighters.linearisation import CalibratedWeights
from unskew.weighters.tilt import Tilt


def linearised_tilt(
    tilt: Tilt,
    feature_set: FeatureSet,
    sample: Sample,
    kept: BoolArray,
    *,
    distance: Distance,
    ridge: float = 0.0,
    max_weight: float | None = None,
) -> CalibratedWeights:
    """Return the linearisation of weights d F(u) that match features.

    Parameters
    ----------
    tilt : Tilt
        The solution.
    feature_set : FeatureSet
    sample : Sample
        Its design weights are the d: given ones, or weights that the tilt starts from.
    kept : ndarray of bool of shape (n_features,)
        Which features are matched, none of them a linear combination of others.
    distance : Distance
        Without the limit of ``max_weight``.
    ridge : float
    max_weight : float, optional
        The largest weight over the mean: a row that has it does not follow the multipliers.
    """
    features = feature_set.of_codes(sample.values, sample.batch)
    features[sample.design == 0] = 0.0
    scaled = (features - tilt.targets) / tilt.spread
    weights = sample.design * tilt.factors(features)
    slopes = sample.design * distance.slopes(scaled @ tilt.multipliers + tilt.intercept)
    slopes[weights == 0.0] = 0.0
    if max_weight is not None:
        limit = max_weight * weights.mean()
        weights = np.minimum(weights, limit)  # of new rows, the limit is another
        slopes[weights >= limit * (1 - 1e-9)] = 0.0

    def of_batch(batch: pa.RecordBatch) -> FloatArray:
        rows = feature_set.transform(batch, side="population")
        return ((rows - tilt.targets) / tilt.spread)[:, kept]

    return CalibratedWeights(weights, scaled[:, kept], of_batch, sample.design, slopes, ridge)
