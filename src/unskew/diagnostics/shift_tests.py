r"""Tests of shift: whether sample and population, also weighted, have one distribution.

A test is a value in :data:`SHIFT_TESTS`: its name, how it is run, what it says in a sentence, and
its figure in a report. The verdict, the page and the command line go through the list, so that a
further test is a further value here. With the masses a and b that each row has in the sample and
in the population, each summing to one (mostly one of the two is zero; a row of both counts as the
one row that it is):

- The classifier's statistic is its AUC on held-out rows, the probability that it ranks a sample row
  above a population row: 0.5 if the two distributions are equal.
- The maximum mean discrepancy (MMD) is :math:`\| \sum_i (a_i - b_i) \phi(x_i) \|`, with the feature
  map φ of the Gaussian kernel.
- Both pass over one category that is three times too frequent. The test of columns one by one has
  the difference :math:`t_C = \sum_{i \in C} (a_i - b_i)` of each category and of each quintile C,
  and the largest :math:`|t_C| / s_C`, where s is the standard deviation of t in draws from the null
  distribution. Its p-value is from the largest of all cells in these same draws, which corrects for
  their number, however they depend on each other (Westfall and Young, 1993).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist, pdist
from scipy.stats import norm

from unskew.diagnostics.compared_rows import ComparedRows, DrawnRows
from unskew.diagnostics.diagnosis import Comparison, TwoSampleTest
from unskew.numerics.cores import available_cores, one_thread
from unskew.numerics.far_rows import count_matches, narrow
from unskew.numerics.kernels import GaussianKernel
from unskew.numerics.ratio_loss import weighted_auc
from unskew.numerics.row_keys import quantile_borders
from unskew.numerics.typing import BoolArray, FloatArray, IntArray
from unskew.numerics.weight_vectors import balanced
from unskew.weighters.base import Family


class ShiftTest(NamedTuple):
    """A test of shift.

    Attributes
    ----------
    name : str
    run : callable
        Returns the test of the rows, before weighting and, where there are weights, after.
    sentence : callable
        Returns what a test found, as a part of a sentence: of the sample or, if its second argument
        is true, after "With the weights". Empty where it is not worth a word.
    figure : tuple of str, or None
        A label and a note for the statistic in the figures of a report; None leaves it out.
    share : float
        Its part of the significance level, beside those of the other tests.
    """

    name: str
    run: Callable[[ComparedRows], TwoSampleTest]
    sentence: Callable[[TwoSampleTest, bool], str] = lambda found, weighted: ""  # noqa: ARG005
    figure: tuple[str, str] | None = None
    share: float = 1.0


N_RESAMPLES = 499
"""Draws from the null distribution."""


def swapped(signed: FloatArray, seed: int) -> FloatArray:
    """Return masses a − b under the null distribution, a draw a row, by swapping rows.

    This is exact for rows of equal weight on each side: if the sample were drawn uniformly, any
    other rows could have been in it, whether it is part of the population or not.
    """
    random = np.random.RandomState(seed)
    permuted = np.empty((N_RESAMPLES, len(signed)), dtype=np.float32)
    for row in permuted:
        row[:] = random.permutation(signed)
    return permuted


def flipped(signed: FloatArray, seed: int) -> FloatArray:
    """Return the same for rows with weights, by random signs (wild bootstrap).

    The weights are treated as fixed. If they were fitted to make a distance small, its test is
    conservative.
    """
    random = np.random.RandomState(seed)
    draws = np.zeros((len(signed), N_RESAMPLES))
    for side in (signed > 0, signed < 0):
        part = signed[side]
        signs = random.choice([-1.0, 1.0], size=(len(part), N_RESAMPLES))
        draws[side] = part[:, None] * (signs - part @ signs / (part.sum() or 1.0))
    return draws.T


def _resampling(rows: ComparedRows) -> tuple[Callable[[FloatArray, int], FloatArray], str]:
    """Return how the null distribution is drawn before weighting, and that in words."""
    if rows.even:
        return swapped, f"p by swapping rows between the two {N_RESAMPLES} times"
    return flipped, f"p by flipping signs at random {N_RESAMPLES} times"


def _p(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"= {value:.3f}"


# The maximum mean discrepancy. -------------------------------------------------------------------

MMD_ROWS = 1500
"""Of each side, drawn uniformly at random; the kernel matrix has twice as many rows."""
_BLOCK_ROWS = 256
_FAR = 1e8


def discrepancy_test(rows: ComparedRows) -> TwoSampleTest:
    """Test by the maximum mean discrepancy, before and after weighting."""
    resample, how = _resampling(rows)
    drawn = rows.draw(rows.design, MMD_ROWS)
    kernel = _kernel_of(rows, drawn)
    before, after = discrepancy(kernel, drawn.sample, drawn.population, resample, rows.seed), None
    if rows.tested is not None:
        now = rows.draw(rows.tested, MMD_ROWS)
        if not np.array_equal(now.rows, drawn.rows):  # some rows have no weight now
            kernel = _kernel_of(rows, now)
        after = discrepancy(kernel, now.sample, now.population, flipped, rows.seed)
        how += ", with weights by flipping signs"
    width = "Gaussian kernel with the median distance as its width"
    method = rows.method(width, drawn, how, weighted=after is not None)
    return TwoSampleTest("maximum mean discrepancy", method, before, after)


def _kernel_of(rows: ComparedRows, drawn: DrawnRows) -> FloatArray:
    return kernel_matrix(rows.points(drawn.rows), rows.categories(drawn.rows), seed=rows.seed)


def discrepancy(
    kernel: FloatArray,
    sample: FloatArray,
    population: FloatArray,
    resample: Callable[[FloatArray, int], FloatArray],
    seed: int,
) -> Comparison:
    """Return the distance of the masses of each row in sample and population, and its test."""
    signed = sample / sample.sum() - population / population.sum()
    statistic = _squared(kernel, signed[None])[0]
    rounding = 1e-6 * (statistic + np.abs(signed).sum() ** 2 / 4)
    beyond = int((_squared(kernel, resample(signed, seed)) >= statistic - rounding).sum())
    distance = float(np.sqrt(max(statistic, 0.0)))
    return Comparison(distance, None, None, p_value=(1 + beyond) / (1 + N_RESAMPLES))


def kernel_matrix(
    points: FloatArray, categories: IntArray | None = None, *, seed: int
) -> FloatArray:
    """Return the Gaussian kernel of all rows with the median distance as its width.

    The squared distance of categories is twice the number of columns in which two rows differ, as
    that of one-hot columns would be. Blocks below the diagonal mirror those above and are zero.
    """
    codes = np.empty((len(points), 0), np.int64) if categories is None else categories
    some = np.random.RandomState(seed).permutation(len(points))[:500]
    squares = pdist(points[some], "sqeuclidean") if len(some) > 1 else np.ones(1)
    if codes.shape[1] and len(some) > 1:
        squares += 2 * codes.shape[1] * pdist(codes[some], "hamming")
    typical = float(np.median(squares[squares > 0])) if (squares > 0).any() else 1.0
    kernel = GaussianKernel(np.sqrt(typical / 2))  # the median heuristic
    prepared, columns = kernel.prepare(points), narrow(codes)
    found = np.zeros((len(points), len(points)), dtype=np.float32)
    for here in _diagonal_blocks(len(points)):
        above = slice(here.stop)
        block = kernel.block(prepared[above], prepared[here])
        if columns:
            differing = len(columns) - count_matches(columns, columns, above, here)
            block *= np.exp(-2 / typical * differing)
        found[above, here] = block
    # So far out, the product has lost the distance to rounding.
    for row in np.flatnonzero(np.einsum("ij,ij->i", points, points) > _FAR * typical):
        far = cdist(points[[row]], points, "sqeuclidean")
        far += 2 * (codes[row] != codes).sum(axis=1)
        found[row] = found[:, row] = np.exp(-far[0] / typical)
    return found


def _squared(kernel: FloatArray, signed: FloatArray) -> FloatArray:
    """Return x'Kx of each row x; K is symmetric."""
    rows = signed.astype(np.float32, order="C")
    squares = np.zeros(len(rows))
    for here in _diagonal_blocks(len(kernel)):
        above = slice(here.start)
        product = 2 * (rows[:, above] @ kernel[above, here])
        product += rows[:, here] @ kernel[here, here]
        squares += np.einsum("ij,ij->i", product, rows[:, here], dtype=np.float64)
    return squares


def _diagonal_blocks(n_rows: int) -> Iterator[slice]:
    for start in range(0, n_rows, _BLOCK_ROWS):
        yield slice(start, min(start + _BLOCK_ROWS, n_rows))


def _say_discrepancy(found: TwoSampleTest, weighted: bool) -> str:
    before, after = found.before, found.after
    if weighted:
        change = f" (from {before.statistic:.3f})"
        return "" if after is None else f"the MMD {after.statistic:.3f}{change}"
    size = f"the maximum mean discrepancy (MMD) is {before.statistic:.3f}"
    return f"{size}, p {_p(before.p_value)}"


# The classifier. ---------------------------------------------------------------------------------

N_FOLDS = 5
FIRST_SCORED = 2
"""The folds before it only train: a model of fewer rows would separate little."""
N_BINS = 255
CLASSIFIER_ROWS = 10_000
"""Of each side, drawn uniformly at random."""
MAX_CATEGORIES = 200
ROWS_A_CATEGORY = 8
"""The trees treat ranks as numbers where there are more categories, or fewer rows for each: they
pass over categories of a few rows, and with no others would give every row the same score."""


def classifier_test(rows: ComparedRows) -> TwoSampleTest:
    """Test by a classifier, before and after weighting."""
    drawn = rows.draw(rows.design, CLASSIFIER_ROWS)
    before, rows.memo["log odds"] = _separate(rows, drawn, two_sided=False)
    by = "boosted trees" if rows.family == "trees" else "logistic regression on kernel features"
    p = "area under the curve, with a 95 % interval; p one-sided"
    after = None
    if rows.tested is not None:
        p += ", with weights two-sided"
        after = separation(rows, rows.tested)
    how = f"{by}, each fold scored by a model of those before"
    method = rows.method(how, drawn, p, weighted=after is not None)
    return TwoSampleTest("classifier", method, before, after)


def separation(rows: ComparedRows, weights: FloatArray) -> Comparison:
    """Return how well a classifier separates the weighted sample from the population."""
    return _separate(rows, rows.draw(weights, CLASSIFIER_ROWS), two_sided=True)[0]


def expected_share(rows: ComparedRows) -> float:
    """Return the effective share of the sample that weights can be expected to keep.

    The odds of population over sample are estimated weights. With weights w of mean one on the
    sample, E_S[w²] = E_U[w], and the latter is not raised by noise in the odds. Rows with values
    that no sample row has are left out: no weights represent them, at any cost.
    """
    drawn, log_odds = rows.draw(rows.design, CLASSIFIER_ROWS), rows.memo["log odds"]
    scored = np.isfinite(log_odds) & rows.is_seen[drawn.rows]
    if not drawn.sample[scored].any() or not drawn.population[scored].any():
        return 1.0
    # The odds are those of rows that are not in the sample; the others count as they are.
    shared = float(drawn.population[: drawn.n_sample].sum())
    odds = (1 - shared) * np.exp(np.clip(-log_odds[scored], -20, 20)) + shared
    sample, population = drawn.sample[scored], drawn.population[scored]
    return min(1.0, float(np.average(odds, weights=sample) / np.average(odds, weights=population)))


def _separate(
    rows: ComparedRows, drawn: DrawnRows, *, two_sided: bool
) -> tuple[Comparison, FloatArray]:
    values, categories = _judged_values(rows, drawn.rows)
    key = "kernel features", drawn.rows.tobytes()
    if key not in rows.memo:  # before and after weighting, the rows are mostly the same
        for other in [one for one in rows.memo if one[0] == key[0]]:
            del rows.memo[other]
    return classifier_two_sample_test(
        rows.family,
        values,
        drawn.sample,
        drawn.population,
        categories=categories,
        seed=rows.seed,
        two_sided=two_sided,
        made=rows.memo.setdefault(key, {}),
    )


def _judged_values(rows: ComparedRows, chosen: IntArray) -> tuple[Any, BoolArray]:
    """Return the rows as the classifier sees them, and which columns are categories."""
    if rows.family == "smooth":
        points = rows.sparse_points if rows.is_category.any() else rows.points
        return points(chosen), rows.is_category
    counts = map(rows.codes.n_categories, range(rows.values.shape[1]))
    most = min(MAX_CATEGORIES, len(chosen) // ROWS_A_CATEGORY)
    return rows.values[chosen], np.array([0 < count <= most for count in counts])


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

    Folds are processed in sequence, each scored by a model that was trained on the folds before it.
    Ordinary cross-fitting (each fold scored by a model of all others) would use the rows better,
    but the AUCs of its folds are correlated, because every row also trains the models of the other
    folds: on unbiased samples, a test that treats them as independent rejects twice as often as its
    level. In sequence, a fold is independent of the model that scores it, so the errors of the AUCs
    are martingale differences and their variances add up.

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


def _say_separation(found: TwoSampleTest, weighted: bool) -> str:
    auc = found.after if weighted else found.before
    if auc is None or auc.low is None:
        return ""
    size = f"{auc.statistic:.2f} ({auc.low:.2f} to {auc.high:.2f})"
    if weighted:
        return f"the AUC is {size}"
    return (
        f"A classifier separates sample rows from population rows with an AUC of {size}, "
        f"p {_p(auc.p_value)}"
    )


# Columns one by one. -----------------------------------------------------------------------------

COLUMN_ROWS = 5000
"""Of each side, drawn uniformly at random."""
MAX_VALUES = 10**6
"""Rows times columns at most: of many columns, fewer rows are compared."""
N_CUTS = 5
"""Into so many parts quantiles cut a column of numbers: the other tests look at these closely."""
FEW = 3
"""A cell counts from so many rows on that the smaller side is expected to have in it, and out."""


def columns_test(rows: ComparedRows) -> TwoSampleTest:
    """Test each column by itself, before weighting: the largest difference of a share."""
    resample, how = _resampling(rows)
    most = max(500, min(COLUMN_ROWS, MAX_VALUES // max(1, rows.values.shape[1])))
    drawn = rows.draw(rows.design, most)
    null = resample(drawn.sample - drawn.population, rows.seed)
    masses = np.vstack([drawn.sample, drawn.population, null])
    sizes = 1 / np.square(drawn.sample).sum(), 1 / np.square(drawn.population).sum()
    variance = float(np.square(drawn.sample - drawn.population).sum())
    largest, by_chance, where, n_cells = 0.0, np.zeros(len(null)), "", 0
    for column in range(len(rows.codes.names)):
        labels, shares = _shares(rows, column, drawn.rows, masses)
        sample, population, draws = shares[:, 0], shares[:, 1], shares[:, 2:]
        # The deviation of rows of one distribution, too: where signs are flipped, a cell without
        # sample rows would have next to none. Cells of few rows are too skewed for either.
        common = np.average([sample, population], axis=0, weights=sizes)
        own = np.sqrt(np.maximum(common * (1 - common), 0.0) * variance)
        spread = draws.std(axis=1)
        enough = np.minimum(common, 1 - common) * min(sizes) >= FEW
        counted = np.flatnonzero((spread > 1e-12) & enough)
        if not len(counted):
            continue
        z = np.abs(sample - population)[counted] / np.maximum(spread, own)[counted]
        sizes_by_chance = np.abs(draws[counted]) / spread[counted, None]
        by_chance = np.maximum(by_chance, sizes_by_chance.max(axis=0))
        n_cells += len(counted)
        if z.max() > largest:
            largest, where = float(z.max()), labels[counted[int(z.argmax())]]
    p_value = (1 + int((by_chance >= largest - 1e-9).sum())) / (1 + len(null))
    what = (
        f"largest difference of {n_cells:,} shares, of categories and below quintiles, "
        f"over its standard deviation: {where}"
    )
    how += ", corrected for the number of shares"
    method = rows.method(what, drawn, how, weighted=False)
    found = Comparison(largest, None, None, p_value)
    return TwoSampleTest("columns one by one", method, found, None)


def _shares(
    rows: ComparedRows, column: int, chosen: IntArray, masses: FloatArray
) -> tuple[list[str], FloatArray]:
    """Return the share of each of a column's cells, one row a cell, in each of the masses."""
    from scipy import sparse

    name, values = rows.codes.names[column], rows.values[chosen, column]
    present = ~np.isnan(values)
    known, form = values[present], rows.codes.format_value
    cell = np.zeros(len(values), dtype=np.int64)  # the first is that of missing values
    labels = [f"{name} is missing"]
    if rows.is_category[column]:
        levels, cell[present] = np.unique(known, return_inverse=True)
        labels += [f"{name} = {form(column, float(level))}" for level in levels]
    elif len(known):
        levels = np.unique(np.quantile(known, np.arange(1, N_CUTS) / N_CUTS, method="lower"))
        cell[present] = np.searchsorted(levels, known)
        labels += [f"{name} ≤ {form(column, float(level))}" for level in levels]
        labels += [f"{name} > {form(column, float(levels[-1]))}"]
    cell[present] += 1
    one_each = (np.ones(len(cell)), (cell, np.arange(len(cell))))
    shares: FloatArray = sparse.csr_matrix(one_each, shape=(len(labels), len(cell))) @ masses.T
    if not rows.is_category[column]:
        shares[1:] = shares[1:].cumsum(axis=0)
    return labels, shares


SHIFT_TESTS = [
    ShiftTest(
        "classifier",
        classifier_test,
        _say_separation,
        ("Classifier AUC", "0.50 is no difference"),
    ),
    ShiftTest(
        "maximum mean discrepancy",
        discrepancy_test,
        _say_discrepancy,
        ("Maximum mean discrepancy", "0 is no difference"),
    ),
    ShiftTest("columns one by one", columns_test, share=2.0),
]
