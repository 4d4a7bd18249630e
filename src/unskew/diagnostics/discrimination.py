"""Whether a classifier tells the sample from the population, on rows that it has not seen.

The area under its curve is the chance that it ranks a sample row above a population row: 0.5 if the
two look alike. Every row is scored by a model of the other folds; areas are taken within folds,
whose scores come from one model, and averaged.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from scipy.stats import norm

from unskew.diagnostics.diagnosis import Comparison
from unskew.numerics.typing import FloatArray, IntArray

__all__ = ["MAX_ROWS", "Family", "cross_fitted", "weighted_auc"]

Family = Literal["trees", "smooth"]

FOLDS = 5
MAX_ROWS = 10_000
"""Of each side, drawn evenly."""


def cross_fitted(
    family: Family,
    values: FloatArray,
    is_sample: Any,
    weight: FloatArray,
    *,
    categories: Any,
    seed: int,
) -> tuple[Comparison, FloatArray]:
    """Return the area under the curve, and each row's log odds of being from the sample.

    Parameters
    ----------
    family : {"trees", "smooth"}
        Boosted trees on codes, or a logistic regression on kernel features of points.
    values : ndarray of shape (n, d)
        Codes for trees, points of a feature space otherwise.
    is_sample : ndarray of bool of shape (n,)
    weight : ndarray of shape (n,)
    categories : ndarray of bool of shape (d,)
        Which columns hold ranks of categories.
    seed : int
    """
    from sklearn.model_selection import StratifiedKFold

    # Rows without weight have no say, and a fold of them alone would have none at all.
    counted = np.flatnonzero(weight > 0)
    if len(counted) < len(weight):
        comparison, scores = cross_fitted(
            family,
            values[counted],
            is_sample[counted],
            weight[counted],
            categories=categories,
            seed=seed,
        )
        all_scores = np.zeros(len(values))
        all_scores[counted] = scores
        return comparison, all_scores
    folds = min(FOLDS, int(is_sample.sum()), int((~is_sample).sum()))
    scores = np.zeros(len(values))
    if folds < 2:
        return Comparison(float("nan"), None, None, 1.0), scores
    areas, errors, null_errors = [], [], []
    splitter = StratifiedKFold(folds, shuffle=True, random_state=seed)
    for train, test in splitter.split(values, is_sample):
        model = _model(family, categories, len(train), seed)
        even = _evened(weight[train], is_sample[train])
        scores[test] = _log_odds(_fit(model, values[train], is_sample[train], even), values[test])
        area, error, null_error = weighted_auc(scores[test], is_sample[test], weight[test])
        areas.append(area)
        errors.append(error)
        null_errors.append(null_error)
    area = float(np.mean(areas))
    error = float(np.sqrt(np.mean(np.square(errors)) / folds))
    null_error = float(np.sqrt(np.mean(np.square(null_errors)) / folds))
    margin = 1.96 * error
    comparison = Comparison(
        statistic=area,
        low=max(0.0, area - margin),
        high=min(1.0, area + margin),
        p_value=float(norm.sf((area - 0.5) / null_error)) if null_error else 1.0,
    )
    return comparison, scores


def weighted_auc(
    scores: FloatArray, positive: Any, weight: FloatArray
) -> tuple[float, float, float]:
    """Return the weighted area under the curve, its standard error, and that of pure chance.

    The first error is from the placements of each row among the rows of the other side (DeLong,
    DeLong and Clarke-Pearson, Biometrics 44, 1988), with weights. The second is what the placements
    would vary by if the scores had nothing to do with the sides.

    Examples
    --------
    >>> area, *_ = weighted_auc(np.array([0.1, 0.4, 0.3, 0.9]), np.array([0, 0, 1, 1]) == 1,
    ...                         np.ones(4))
    >>> area
    0.75
    """
    sides = []
    for side in (positive, ~positive):
        share = weight[side] / weight[side].sum()
        order = np.argsort(scores[side], kind="stable")
        sides.append(
            (scores[side], share, scores[side][order], np.append(0.0, share[order].cumsum()))
        )
    (mine, my_share, _, _), (theirs, their_share, _, _) = sides
    above = _share_below(mine, sides[1])  # of each sample row: the share of the others below it
    below = 1.0 - _share_below(theirs, sides[0])
    area = float(my_share @ above)
    variance = my_share**2 @ (above - area) ** 2 + their_share**2 @ (below - area) ** 2
    # By chance a placement is a uniform draw, of variance 1/12, but for ties, which narrow it.
    pooled = np.concatenate([scores[positive], scores[~positive]])
    shares = np.concatenate([my_share, their_share]) / 2
    order = np.argsort(pooled, kind="stable")
    both = (pooled, shares, pooled[order], np.append(0.0, shares[order].cumsum()))
    ranks = _share_below(pooled, both)
    spread = float(shares @ (ranks - 0.5) ** 2)
    chance = spread * (my_share @ my_share + their_share @ their_share)
    return area, float(np.sqrt(variance)), float(np.sqrt(chance))


def _share_below(values: FloatArray, side: tuple[Any, Any, FloatArray, FloatArray]) -> FloatArray:
    """Return the mass of a side below each value, half of that at it included."""
    _, _, ordered, cumulative = side
    lower = cumulative[np.searchsorted(ordered, values, side="left")]
    upper = cumulative[np.searchsorted(ordered, values, side="right")]
    return np.asarray((lower + upper) / 2)


def _evened(weight: FloatArray, is_sample: Any) -> FloatArray:
    """Scale the weights so that both sides have the same total, and the mean is one."""
    even = weight.astype(np.float64)
    for side in (is_sample, ~is_sample):
        even[side] *= len(weight) / (2 * even[side].sum())
    return even


def _model(family: Family, categories: Any, n_rows: int, seed: int) -> Any:
    if family == "trees":
        from sklearn.ensemble import HistGradientBoostingClassifier

        return HistGradientBoostingClassifier(
            max_iter=50,
            max_leaf_nodes=15,
            min_samples_leaf=max(2, min(20, n_rows // 50)),
            l2_regularization=1.0,
            early_stopping=False,
            categorical_features=categories,
            random_state=seed,
        )
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import FeatureUnion, make_pipeline
    from sklearn.preprocessing import FunctionTransformer, StandardScaler

    kernel_features = Nystroem(n_components=min(200, n_rows), random_state=seed)
    return make_pipeline(
        FeatureUnion([("as they are", FunctionTransformer()), ("kernel", kernel_features)]),
        StandardScaler(),
        LogisticRegression(C=0.01, max_iter=500),
    )


def _fit(model: Any, values: FloatArray, is_sample: Any, weight: FloatArray) -> Any:
    keyword = "logisticregression__sample_weight" if hasattr(model, "steps") else "sample_weight"
    return model.fit(values, is_sample, **{keyword: weight})


def _log_odds(model: Any, values: FloatArray) -> FloatArray:
    return np.asarray(model.decision_function(values), dtype=np.float64)


def some_rows(n_rows: int, at_most: int, seed: int) -> IntArray:
    """Return evenly drawn positions, in order; all of them where there are no more."""
    return np.sort(np.random.RandomState(seed).permutation(n_rows)[:at_most])
