"""Replicate weights: columns of weights whose spread is that of the estimates made with them."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from unskew.errors import EstimateWarning, ParameterError, warn_caller
from unskew.estimation.inputs import opened
from unskew.estimation.quantities import design_codes
from unskew.estimation.replicates import Replicates
from unskew.estimation.weighing import weigh
from unskew.numerics.design_variance import Design
from unskew.numerics.typing import FloatArray
from unskew.population.open_sample import open_sample
from unskew.population.summaries import OfColumns
from unskew.weighters.base import Weighter
from unskew.weighters.defaults import default_weighter


def replicate_weights(
    X: Any,
    y: Any = None,
    *,
    population: Any,
    weighter: Weighter | None = None,
    replicates: int = 200,
    strata: ArrayLike | str | None = None,
    clusters: ArrayLike | str | None = None,
    finite_population: bool | None = None,
    sample_weight: ArrayLike | str | None = None,
    random_state: Any = 0,
) -> FloatArray:
    r"""Return weights of bootstrap replicates, as survey offices publish them.

    Each column has the weights that the method gives if sample units are drawn again within strata,
    and the population's sums from their distribution. The variance of any estimate is that of the
    same estimate with each column in turn, which needs neither the population nor the method:
    :math:`\frac{1}{R-1} \sum_r (\theta_r - \bar\theta)^2`.

    Parameters
    ----------
    X : array-like or dataframe of shape (n_samples, n_features)
        The sample.
    y : array-like of shape (n_samples,), optional
        Its labels, for weighters that use them.
    population : Population, Margins, or anything that :class:`unskew.Population` takes
    weighter : Weighter, optional
        By default that of :func:`unskew.estimate`.
    replicates : int, default=200
        How many.
    strata, clusters, finite_population, sample_weight, random_state
        As in :func:`unskew.estimate`. With ``finite_population`` the population's sums are fixed,
        and a row that stands for itself alone is in every replicate.

    Returns
    -------
    ndarray of shape (n_samples, replicates)
        In the scale of the weighter's ``weights_``. A row that was not drawn has weight zero.

    Warns
    -----
    EstimateWarning
        If replicates have no weights of their own: those of the sample stand in for them.

    Notes
    -----
    In R: ``survey::svrepdesign(weights=~weight, repweights=..., type="bootstrap",
    combined.weights=TRUE)``. A tree is not grown again, nor a kernel chosen.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew import replicate_weights
    >>> random = np.random.RandomState(0)
    >>> sample, population = random.normal(0.3, 1, (200, 1)), random.normal(size=(1000, 1))
    >>> columns = replicate_weights(sample, population=population, replicates=50)
    >>> means = columns.T @ sample[:, 0] / columns.sum(axis=0)
    >>> columns.shape, bool(0.02 < means.std(ddof=1) < 0.05)  # 1/√1000 is 0.032
    ((200, 50), True)
    """
    fitted = clone(default_weighter("estimate") if weighter is None else weighter)
    return fit_with_replicates(
        fitted,
        X,
        y,
        population,
        sample_weight,
        replicates=replicates,
        strata=strata,
        clusters=clusters,
        finite=bool(finite_population),
        random_state=random_state,
    )


def fit_with_replicates(
    weighter: Weighter,
    X: Any,
    y: Any,
    population: Any,
    sample_weight: ArrayLike | str | None,
    *,
    replicates: int,
    strata: Any = None,
    clusters: Any = None,
    finite: bool = False,
    random_state: Any = 0,
    beside: Sequence[OfColumns[Any]] = (),
) -> FloatArray:
    """Fit the weighter, and return weights of replicates in the scale of its weights.

    Questions ``beside`` its own are filled in the same pass.
    """
    if not isinstance(replicates, Integral) or int(replicates) < 2:
        raise ParameterError(f"replicates must be 2 or more; got {replicates!r}.")
    given = open_sample(X, y, sample_weight)
    codes = [
        design_codes(one, name, given.rows)
        for one, name in ((strata, "strata"), (clusters, "clusters"))
    ]
    design = Design.of(len(given), *codes)
    weighed = weigh(weighter, given, opened(population), [], None, census=finite, beside=beside)
    drawn = Replicates(weighed, design, int(replicates), random_state)
    found = [weights for weights, _ in drawn]
    for note in drawn.notes:
        warn_caller(EstimateWarning(note))
    total = weighed.weights.sum()
    return np.column_stack([weights * (total / weights.sum()) for weights in found])
