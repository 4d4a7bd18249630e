"""How weights that are a tilt of the design weights follow the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from unskew.numerics.distances import Distance
from unskew.numerics.typing import BoolArray, FloatArray, IntArray
from unskew.population.features import FeatureSet, Levels
from unskew.population.sample import Sample
from unskew.weighters.linearisation import CalibratedWeights
from unskew.weighters.tilt import Tilt, TiltRule

WIDE = 64
"""The largest number of levels of a column that are columns of a matrix."""


def linearised_tilt(
    tilt: Tilt,
    feature_set: FeatureSet,
    sample: Sample,
    kept: BoolArray,
    *,
    distance: Distance,
    ridge: float = 0.0,
    max_weight: float | None = None,
    partial: bool = False,
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
    partial : bool
        Whether a row of the population with an unknown level counts in the other features.
    """
    scores, lost = TiltRule(feature_set, tilt).scores(sample.values, sample.batch)
    weights = np.where(lost, 0.0, sample.design * tilt.distance.factors(scores))
    slopes = np.where(weights == 0.0, 0.0, sample.design * distance.slopes(scores))
    if max_weight is not None:
        limit = max_weight * weights.mean()
        weights = np.minimum(weights, limit)  # of new rows, the limit is another
        slopes[weights >= limit * (1 - 1e-9)] = 0.0
    terms, owner = feature_set.terms, feature_set.term_of_feature
    matched = np.bincount(owner, kept | tilt.absent, len(terms))
    wide = [
        place
        for place, term in enumerate(terms)
        if isinstance(term, Levels) and WIDE < len(term.names) <= matched[place] + 1 and not ridge
    ]
    widest = max(wide, key=lambda place: len(terms[place].names), default=-1)
    level: Any = terms[widest] if wide else None
    others = FeatureSet(feature_set.codes, [one for one in terms if one is not level])
    rest = owner != widest
    chosen, targets, spread = kept[rest], tilt.targets[rest], tilt.spread[rest]
    by_term = [isinstance(t, Levels) and (partial or len(t.positions) > 1) for t in others.terms]
    lenient = np.array(by_term, dtype=bool)[others.term_of_feature][chosen]

    def scaled(codes: FloatArray, batch: pa.RecordBatch) -> FloatArray:
        return ((others.of_codes(codes, batch) - targets) / spread)[:, chosen]

    def of_batch(batch: pa.RecordBatch) -> tuple[FloatArray, IntArray]:
        codes = feature_set.codes.transform(batch, side="population").values
        rows = scaled(codes, batch)
        rows[:, lenient] = np.nan_to_num(rows[:, lenient], nan=0.0)
        if level is None:
            return rows, np.zeros(len(codes), dtype=np.int64)
        places = level.places(codes)
        if not partial:
            rows[places < 0] = np.nan
        return rows, places

    features = scaled(sample.values, sample.batch)
    features[sample.design == 0] = 0.0
    levels = None
    if level is not None:
        levels = np.maximum(level.places(sample.values), 0), tilt.targets[owner == widest]
    return CalibratedWeights(weights, features, of_batch, sample.design, slopes, ridge, levels)
