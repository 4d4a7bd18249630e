"""Whether a classifier tells the sample from the population, on rows that it has not seen.

The area under its curve is the chance that it ranks a sample row above a population row: 0.5 if the
two look alike. Folds are taken one after the other, each scored by a model of the folds before it.
Ordinary cross-fitting, each fold by a model of all others, would use the rows better, but its areas
lean on one another, as every row also trains the models of the other folds: on unbiased draws a
test that takes them as independent finds bias twice as often as its level. In sequence, a fold is
independent of the model that judges it, so that the areas' errors are a martingale's steps, and
their variances add up.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import norm

from unskew.diagnostics.diagnosis import Comparison
from unskew.numerics.typing import FloatArray, IntArray
from unskew.weighters.base import Family

__all__ = ["MAX_ROWS", "tell_apart", "weighted_auc"]

FOLDS = 5
FIRST_TESTED = 2
"""Of five folds, the first two only train: a model of fewer rows would tell little."""
BINS = 255
MAX_ROWS = 10_000
"""Of each side, drawn evenly."""


def tell_apart(
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

    Returns
    -------
    comparison : Comparison
    log_odds : ndarray of shape (n,)
        NaN for rows that were not scored: those that only train, and those without weight.
    """
    from sklearn.model_selection import StratifiedKFold

    log_odds = np.full(len(values), np.nan)
    # Rows without weight have no say, and a fold of them alone would have none at all.
    counted = np.flatnonzero(weight > 0)
    sides = is_sample[counted]
    n_folds = min(FOLDS, int(sides.sum()), int((~sides).sum()))
    if n_folds < 2:
        return Comparison(float("nan"), None, None, 1.0), log_odds
    splitter = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
    folds = [counted[test] for _, test in splitter.split(counted, sides)]
    if family == "trees":
        values = _in_bins(values, categories)
    judged = []
    for number in range(min(FIRST_TESTED, n_folds - 1), n_folds):
        train, test = np.concatenate(folds[:number]), folds[number]
        model = _model(family, categories, len(train), seed)
        _fit(model, values[train], is_sample[train], _evened(weight[train], is_sample[train]))
        log_odds[test] = _log_odds(model, values[test])
        judged.append(weighted_auc(log_odds[test], is_sample[test], weight[test]))
    areas, errors, null_errors = np.array(judged).T
    area = float(areas.mean())
    # Of very few rows the placements vary too little to show their error.
    errors = np.maximum(errors, null_errors)
    margin = 1.96 * float(np.sqrt(np.square(errors).sum())) / len(areas)
    null_error = float(np.sqrt(np.square(null_errors).sum())) / len(areas)
    comparison = Comparison(
        statistic=area,
        low=max(0.0, area - margin),
        high=min(1.0, area + margin),
        p_value=float(norm.sf((area - 0.5) / null_error)) if null_error > 1e-9 else 1.0,
    )
    return comparison, log_odds


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


def _in_bins(values: FloatArray, categories: Any) -> FloatArray:
    """Return each number's place among quantiles of its column, over both sides; NaN stays.

    The boosted trees would do so themselves, but by one sort of the rows for each border where rows
    have weights, which takes far longer than the trees.
    """
    places = values.astype(np.float64)
    for column in np.flatnonzero(~np.asarray(categories, dtype=bool)):
        here = ~np.isnan(values[:, column])
        numbers = values[here, column]
        borders = np.unique(numbers)
        if len(borders) > BINS:
            borders = np.unique(np.quantile(numbers, np.arange(1, BINS) / BINS))
        places[here, column] = borders.searchsorted(numbers)
    return places


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


def _fit(model: Any, values: FloatArray, is_sample: Any, weight: FloatArray) -> None:
    keyword = "logisticregression__sample_weight" if hasattr(model, "steps") else "sample_weight"
    model.fit(values, is_sample, **{keyword: weight})


def _log_odds(model: Any, values: FloatArray) -> FloatArray:
    return np.asarray(model.decision_function(values), dtype=np.float64)


def some_rows(weight: FloatArray, at_most: int, seed: int) -> IntArray:
    """Return evenly drawn positions of rows that have weight, in order; at most so many."""
    counted = np.flatnonzero(weight > 0)
    return counted[np.sort(np.random.RandomState(seed).permutation(len(counted))[:at_most])]
