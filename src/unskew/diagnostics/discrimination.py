"""The classifier two-sample test: whether a classifier can separate sample and population rows.

Its AUC on held-out rows is the probability that it ranks a sample row above a population row: 0.5
if the two distributions are equal. Folds are processed in sequence, each scored by a model that was
trained on the folds before it. Ordinary cross-fitting (each fold scored by a model of all others)
would use the rows better, but the AUCs of its folds are correlated, because every row also trains
the models of the other folds: on unbiased samples, a test that treats them as independent rejects
twice as often as its level. In sequence, a fold is independent of the model that scores it, so the
errors of the AUCs are martingale differences and their variances add up.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import norm

from unskew.diagnostics.diagnosis import Comparison
from unskew.numerics.typing import FloatArray, IntArray
from unskew.weighters.base import Family

N_FOLDS = 5
FIRST_SCORED = 2
"""The folds before it only train: a model of fewer rows would separate little."""
N_BINS = 255
MAX_ROWS = 10_000
"""Of each side, drawn uniformly at random."""


def classifier_two_sample_test(
    family: Family,
    values: FloatArray,
    is_sample: Any,
    weight: FloatArray,
    *,
    categories: Any,
    seed: int,
) -> tuple[Comparison, FloatArray]:
    """Return the AUC on held-out rows, and each row's log odds of being from the sample.

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
        NaN for rows that were not scored: those that only train, and those of weight zero.
    """
    from sklearn.model_selection import StratifiedKFold

    log_odds = np.full(len(values), np.nan)
    # Rows of weight zero count for nothing, and a fold of nothing else could not be scored.
    counted = np.flatnonzero(weight > 0)
    sides = is_sample[counted]
    n_folds = min(N_FOLDS, int(sides.sum()), int((~sides).sum()))
    if n_folds < 2:
        return Comparison(float("nan"), None, None, 1.0), log_odds
    splitter = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
    folds = [counted[test] for _, test in splitter.split(counted, sides)]
    if family == "trees":
        values = _quantile_bins(values, categories)
    scored = []
    for number in range(min(FIRST_SCORED, n_folds - 1), n_folds):
        train, test = np.concatenate(folds[:number]), folds[number]
        model = _fitted_model(
            family, values[train], is_sample[train], weight[train], categories, seed
        )
        log_odds[test] = model.decision_function(values[test])
        scored.append(weighted_auc(log_odds[test], is_sample[test], weight[test]))
    aucs, errors, null_errors = np.array(scored).T
    auc = float(aucs.mean())
    # With very few rows the placements vary too little to estimate their error.
    errors = np.maximum(errors, null_errors)
    margin = 1.96 * float(np.sqrt(np.square(errors).sum())) / len(aucs)
    null_error = float(np.sqrt(np.square(null_errors).sum())) / len(aucs)
    comparison = Comparison(
        statistic=auc,
        low=max(0.0, auc - margin),
        high=min(1.0, auc + margin),
        p_value=float(norm.sf((auc - 0.5) / null_error)) if null_error > 1e-9 else 1.0,
    )
    return comparison, log_odds


def weighted_auc(
    scores: FloatArray, positive: Any, weight: FloatArray
) -> tuple[float, float, float]:
    """Return the weighted AUC, its standard error, and its standard error under the null.

    The first standard error is DeLong's, DeLong's and Clarke-Pearson's (Biometrics 44, 1988), with
    weights: it uses the placement of each row among the rows of the other side. The second assumes
    that the scores are independent of the sides.

    Examples
    --------
    >>> auc, *_ = weighted_auc(np.array([0.1, 0.4, 0.3, 0.9]), np.array([0, 0, 1, 1]) == 1,
    ...                         np.ones(4))
    >>> auc
    0.75
    """
    mine, theirs = scores[positive], scores[~positive]
    my_share, their_share = (weight[side] / weight[side].sum() for side in (positive, ~positive))
    above = _share_below(mine, theirs, their_share)
    below = 1.0 - _share_below(theirs, mine, my_share)
    auc = float(my_share @ above)
    variance = my_share**2 @ (above - auc) ** 2 + their_share**2 @ (below - auc) ** 2
    # Under the null a placement is uniform, with variance 1/12; ties reduce it.
    pooled = np.concatenate([mine, theirs])
    shares = np.concatenate([my_share, their_share]) / 2
    spread = float(shares @ (_share_below(pooled, pooled, shares) - 0.5) ** 2)
    null_variance = spread * (my_share @ my_share + their_share @ their_share)
    return auc, float(np.sqrt(variance)), float(np.sqrt(null_variance))


def _share_below(values: FloatArray, others: FloatArray, share: FloatArray) -> FloatArray:
    """Return the share of the others below each value, plus half of the share equal to it."""
    order = np.argsort(others, kind="stable")
    ordered, cumulative = others[order], np.append(0.0, share[order].cumsum())
    lower = cumulative[np.searchsorted(ordered, values, side="left")]
    upper = cumulative[np.searchsorted(ordered, values, side="right")]
    return np.asarray((lower + upper) / 2)


def _balanced(weight: FloatArray, is_sample: Any) -> FloatArray:
    """Scale the weights so that both sides have the same total and the mean is one."""
    balanced = weight.astype(np.float64)
    for side in (is_sample, ~is_sample):
        balanced[side] *= len(weight) / (2 * balanced[side].sum())
    return balanced


def _quantile_bins(values: FloatArray, categories: Any) -> FloatArray:
    """Return the quantile bin of each number in its column, over both sides; NaN stays.

    The boosted trees would bin by themselves, but with weights they sort the rows once for each
    border, which takes far longer than growing the trees.
    """
    places = values.astype(np.float64)
    for column in np.flatnonzero(~np.asarray(categories, dtype=bool)):
        here = ~np.isnan(values[:, column])
        numbers = values[here, column]
        borders = np.unique(numbers)
        if len(borders) > N_BINS:
            borders = np.unique(np.quantile(numbers, np.arange(1, N_BINS) / N_BINS))
        places[here, column] = borders.searchsorted(numbers)
    return places


def _fitted_model(
    family: Family,
    values: FloatArray,
    is_sample: Any,
    weight: FloatArray,
    categories: Any,
    seed: int,
) -> Any:
    n_rows = len(values)
    balanced = _balanced(weight, is_sample)
    if family == "trees":
        from sklearn.ensemble import HistGradientBoostingClassifier

        trees = HistGradientBoostingClassifier(
            max_iter=50,
            max_leaf_nodes=15,
            min_samples_leaf=max(2, min(20, n_rows // 50)),
            l2_regularization=1.0,
            early_stopping=False,
            categorical_features=categories,
            random_state=seed,
        )
        return trees.fit(values, is_sample, sample_weight=balanced)
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import FeatureUnion, make_pipeline
    from sklearn.preprocessing import FunctionTransformer, StandardScaler

    kernel_features = Nystroem(n_components=min(200, n_rows), random_state=seed)
    smooth = make_pipeline(
        FeatureUnion([("linear", FunctionTransformer()), ("kernel", kernel_features)]),
        StandardScaler(),
        LogisticRegression(C=0.01, max_iter=500),
    )
    return smooth.fit(values, is_sample, logisticregression__sample_weight=balanced)


def draw_rows(weight: FloatArray, max_rows: int, seed: int) -> IntArray:
    """Return the positions, in order, of a uniform random draw of rows with positive weight."""
    counted = np.flatnonzero(weight > 0)
    return counted[np.sort(np.random.RandomState(seed).permutation(len(counted))[:max_rows])]
