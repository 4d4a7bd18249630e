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

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from scipy.stats import norm

from unskew.diagnostics.diagnosis import Comparison
from unskew.numerics.cores import available_cores, one_thread
from unskew.numerics.ratio_loss import weighted_auc
from unskew.numerics.row_keys import quantile_borders
from unskew.numerics.typing import FloatArray
from unskew.numerics.weight_vectors import balanced
from unskew.weighters.base import Family

N_FOLDS = 5
FIRST_SCORED = 2
"""The folds before it only train: a model of fewer rows would separate little."""
N_BINS = 255
MAX_ROWS = 10_000
"""Of each side, drawn uniformly at random."""


def classifier_two_sample_test(
    family: Family,
    values: Any,
    sample: FloatArray,
    population: FloatArray,
    *,
    categories: Any,
    seed: int,
    two_sided: bool = False,
    made: dict[bytes, tuple[Any, Any]] | None = None,
) -> tuple[Comparison, FloatArray]:
    """Return the AUC on held-out rows, and each row's log odds of being from the sample.

    A row that is in both the sample and the population trains and is scored once, on the side on
    which it has more mass, with the difference as its weight: two copies of it in different folds,
    one on either side, would teach the classifier the opposite of what is true.

    Parameters
    ----------
    family : {"trees", "smooth"}
        Boosted trees on codes, or a logistic regression on kernel features of points.
    values : ndarray of shape (n, d), or sparse matrix
        Codes for trees, points of a feature space otherwise.
    sample, population : ndarray of shape (n,)
        The mass of each row in the sample and in the population.
    categories : ndarray of bool of shape (d,)
        Which columns hold ranks of categories.
    seed : int
    two_sided : bool
        Whether an AUC below 0.5 counts against the two being equal, too. It cannot come from
        different distributions, only from weights that depend on the rows.
    made : dict, optional
        Kernel features of folds of these values, kept for a test of the same rows with other
        masses: features do not depend on these.

    Returns
    -------
    comparison : Comparison
    log_odds : ndarray of shape (n,)
        NaN for rows that were not scored: those that only train, and those that count for nothing.
    """
    from sklearn.model_selection import StratifiedKFold

    sample, population = sample / sample.sum(), population / population.sum()
    net = sample - population
    log_odds = np.full(len(sample), np.nan)
    # Rows without weight count for nothing, and a fold of nothing else could not be scored.
    counted = np.flatnonzero(np.abs(net) > 1e-9 * (sample + population))
    if not len(counted):  # the sample is the population
        return Comparison(0.5, 0.5, 0.5, 1.0), log_odds
    is_sample = net > 0
    sides = is_sample[counted]
    n_folds = min(N_FOLDS, int(sides.sum()), int((~sides).sum()))
    if n_folds < 2:
        return Comparison(float("nan"), None, None, 1.0), log_odds
    splitter = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
    folds = [counted[test] for _, test in splitter.split(counted, sides)]
    if family == "trees":
        values = _quantile_bins(values, categories)
    made = {} if made is None else made

    def score(number: int) -> FloatArray:
        """Return the log odds of a fold by a model of those before."""
        train, test = np.concatenate(folds[:number]), folds[number]
        weight = balanced(np.abs(net[train]), is_sample[train])
        with one_thread():
            seen, new = values[train], values[test]
            if family == "smooth":
                key = train.tobytes() + test.tobytes()
                if key not in made:
                    made[key] = _kernel_features(seen, new, len(categories), seed)
                seen, new = made[key]
            model = _model(family, len(train), categories, seed)
            model.fit(seen, is_sample[train], sample_weight=weight)
            # Equal rows must tie. The last digits of a product of matrices depend on where a row
            # is, and the kernel's features magnify them where rows recur.
            return np.round(model.decision_function(new), 6)

    # The last has the most rows to learn from, and is begun first.
    numbers = range(min(FIRST_SCORED, n_folds - 1), n_folds)
    # Limits of BLAS belong to the process, and must outlast those of the threads.
    with one_thread(), ThreadPoolExecutor(min(available_cores(), len(numbers))) as pool:
        found = dict(zip(reversed(numbers), pool.map(score, reversed(numbers)), strict=True))
    scored = []
    for number in numbers:
        test = folds[number]
        log_odds[test] = found[number]
        scored.append(weighted_auc(log_odds[test], sample[test], population[test]))
    return _mean_auc(scored, two_sided), log_odds


def _mean_auc(scored: list[tuple[float, float, float]], two_sided: bool) -> Comparison:
    """Return the mean AUC of the folds, whose errors are independent, and its test."""
    aucs, errors, null_errors = np.array(scored).T
    auc = float(aucs.mean())
    # With very few rows the placements vary too little to estimate their error.
    errors = np.maximum(errors, null_errors)
    margin = 1.96 * float(np.sqrt(np.square(errors).sum())) / len(aucs)
    null_error = float(np.sqrt(np.square(null_errors).sum())) / len(aucs)
    z = (auc - 0.5) / null_error if null_error > 1e-9 else 0.0
    p_value = 2 * norm.sf(abs(z)) if two_sided else norm.sf(z)
    return Comparison(
        statistic=auc,
        low=max(0.0, auc - margin),
        high=min(1.0, auc + margin),
        p_value=float(p_value) if null_error > 1e-9 else 1.0,
    )


def _quantile_bins(values: FloatArray, categories: Any) -> FloatArray:
    """Return the quantile bin of each number in its column, and ranks of categories, from one on.

    A missing value is zero: a column of nothing else in some fold would be refused as NaN. The
    boosted trees would bin by themselves, but with weights they sort the rows once for each border,
    which takes far longer than growing the trees.
    """
    places = values + 1.0
    places[np.isnan(values)] = 0.0
    for column in np.flatnonzero(~np.asarray(categories, dtype=bool)):
        here = ~np.isnan(values[:, column])
        borders = quantile_borders(values[:, column], N_BINS)
        places[here, column] = borders.searchsorted(values[here, column]) + 1.0
    return places


def _model(family: Family, n_rows: int, categories: Any, seed: int) -> Any:
    """Return the classifier: boosted trees, or a logistic regression on kernel features."""
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
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=0.01, max_iter=500)


def _kernel_features(train: Any, test: Any, n_columns: int, seed: int) -> tuple[Any, Any]:
    """Return points and their kernel features, of the rows these are learned from and of others."""
    from scipy.sparse import issparse
    from sklearn.kernel_approximation import Nystroem
    from sklearn.pipeline import FeatureUnion, make_pipeline
    from sklearn.preprocessing import StandardScaler

    # With one column for each number and 1 as its variance, the squared distance of two rows is
    # about twice the number of columns; that of one column of categories is at most 2.
    kernel = Nystroem(
        n_components=min(200, train.shape[0]), gamma=1 / max(1, n_columns), random_state=seed
    )
    both = FeatureUnion(
        [
            ("linear", StandardScaler(with_mean=not issparse(train))),
            ("kernel", make_pipeline(kernel, StandardScaler())),
        ]
    )
    return both.fit_transform(train), both.transform(test)
