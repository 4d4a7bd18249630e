"""A scorer for scikit-learn's cross-validation and searches: the score on the population."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.metrics import get_scorer
from sklearn.utils.validation import check_is_fitted

from unskew.errors import ParameterError


class PopulationScorer:
    """Scores held-out rows with the weights that the fitted model gives them.

    Parameters
    ----------
    scoring : str or scorer
    """

    def __init__(self, scoring: str | Callable[..., float]) -> None:
        self.scoring = scoring
        try:
            self._scorer = get_scorer(scoring)
        except ValueError as error:
            raise ParameterError(str(error)) from error

    def __call__(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the weighted score of a fitted :class:`unskew.Reweighted`."""
        weights = _weigh(estimator)(X)
        if sample_weight is not None:
            weights = weights * np.asarray(sample_weight)
        return float(self._scorer(estimator, X, y, sample_weight=weights))

    def __repr__(self) -> str:
        return f"population_scorer({self.scoring!r})"


def population_scorer(scoring: str | Callable[..., float]) -> PopulationScorer:
    """Return a scorer that estimates a score on the population, for cross-validation and searches.

    The model must be a :class:`unskew.Reweighted` whose weighter can weigh new rows. The weights of
    a test fold are those that the weighter, fitted on the training fold, gives to its rows.

    Parameters
    ----------
    scoring : str or scorer
        The name of a scorer of scikit-learn, or a scorer; it must take ``sample_weight``.

    Returns
    -------
    callable
        For ``scoring=`` of ``cross_validate`` and ``GridSearchCV``, alone or among others.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import cross_validate
    >>> from unskew import CalibrationWeights, Population, Reweighted, population_scorer
    >>> random = np.random.RandomState(0)
    >>> population = random.normal(size=(2000, 1))
    >>> sample = population[random.uniform(size=2000) < 1 / (1 + np.exp(-2 * population[:, 0]))]
    >>> y = sample[:, 0] > random.normal(size=len(sample))
    >>> model = Reweighted(LogisticRegression(), CalibrationWeights(overlap="ignore"))
    >>> found = cross_validate(model, sample, y, scoring=population_scorer("roc_auc"),
    ...                        params={"population": Population(population)})
    >>> bool(found["test_score"].mean() > 0.7)
    True
    """
    return PopulationScorer(scoring)


def _weigh(estimator: Any) -> Callable[[Any], Any]:
    """Return how a fitted model weighs new rows."""
    weigh = getattr(estimator, "weigh", None)
    if weigh is None:
        if not hasattr(estimator, "weighter"):
            raise ParameterError(
                f"population_scorer is for Reweighted models, whose weighter weighs the test fold; "
                f"got {type(estimator).__name__}."
            )
        check_is_fitted(estimator)
        weigh = getattr(estimator.weighter_, "weigh", None)
        if weigh is None:
            raise ParameterError(
                f"{type(estimator.weighter_).__name__} cannot weigh new rows, such as those of a "
                "test fold. Use a weighter that can, such as CalibrationWeights."
            )
    return weigh
