"""What a regressor's conformity score needs of its models: a band around each row.

A band has a lower and an upper edge and a scale. The conformity score of a label is how far it lies
outside, in units of the scale, and negative inside: ``max(lower - y, y - upper) / scale``. So the
absolute residual is the band whose edges are both the prediction; the scaled residual has a scale
that a second model predicts (Lei, G'Sell, Rinaldo, Tibshirani and Wasserman 2018); and
conformalised quantile regression (Romano, Patterson and Candès 2019) has two quantiles as edges.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from sklearn.base import clone

from unskew.errors import InputError, LearnerError, ParameterError
from unskew.learning.choose_power import split
from unskew.learning.trainer import Committee, TrainingRows, learner_name
from unskew.numerics.typing import FloatArray

LEAST_SCALE = 0.05
"""The least scale of a row, as a share of the mean residual: a model of them can predict zero."""
QUANTILE_PARAMETERS = ("quantile", "quantile_alpha", "alpha")
"""Under which names learners take the quantile that they predict, the surest first."""


class Band(NamedTuple):
    """The edges and the scale at each row."""

    lower: FloatArray
    upper: FloatArray
    scale: FloatArray

    def scores(self, y: FloatArray) -> FloatArray:
        """Return how far labels lie outside, in units of the scale."""
        return np.maximum(self.lower - y, y - self.upper) / self.scale


class BandModel(Protocol):
    """Predicts bands; its ``model`` predicts a number for each row, as the user's learner does."""

    @property
    def model(self) -> Any: ...

    def band(self, X: Any) -> Band:
        """Return the band at new rows."""


class AroundPrediction(NamedTuple):
    """The prediction itself."""

    model: Any

    def band(self, X: Any) -> Band:
        """Return the prediction as both edges."""
        centre = predicted(self.model, X)
        return Band(centre, centre, np.ones(len(centre)))


class Scaled(NamedTuple):
    """The prediction, with the size of the residual as another model predicts it."""

    model: Any
    spread: Any
    least: float

    def band(self, X: Any) -> Band:
        """Return the prediction as both edges, and the predicted size of the residual."""
        centre = predicted(self.model, X)
        return Band(centre, centre, np.maximum(predicted(self.spread, X), self.least))


class BetweenQuantiles(NamedTuple):
    """Two quantiles; in the middle between them is the prediction."""

    model: Committee

    def band(self, X: Any) -> Band:
        """Return the two quantiles, in order where they cross."""
        first, second = (predicted(one, X) for one in self.model.members)
        return Band(np.minimum(first, second), np.maximum(first, second), np.ones(len(first)))


def fit_scaled(learner: Any, spread: Any, rows: TrainingRows, seed: int) -> BandModel:
    """Return the band of residuals in units of their predicted size.

    The sizes that the second model learns are of residuals in folds: those of the rows that a model
    was trained on are too small, the more so the better it can learn them by heart.
    """
    if len(rows.y) < 2:
        raise InputError(
            'conformity_score="scaled" needs two training rows, of which one judges a model of the '
            "other; there is 1 sample."
        )
    sizes = np.empty(len(rows.y))
    for training, inside in split(learner, rows.y, seed):
        held_out = rows.take(inside)
        model = rows.take(training).train(learner)
        sizes[inside] = np.abs(predicted(model, held_out.X) - held_out.y)
    least = LEAST_SCALE * float(sizes.mean()) or 1.0  # residuals that are all zero have any scale
    return Scaled(rows.train(learner), rows.train(spread, sizes), least)


def fit_quantiles(learner: Any, levels: Sequence[float], rows: TrainingRows) -> BandModel:
    """Return the band between two quantiles: of a pair of learners, or of clones of one."""
    pair = learner if is_pair(learner) else [with_quantile(learner, level) for level in levels]
    return BetweenQuantiles(Committee([rows.train(one) for one in pair], None))


def is_pair(learner: Any) -> bool:
    """Whether learners of a lower and an upper quantile were given."""
    return isinstance(learner, tuple | list)


def with_quantile(learner: Any, level: float) -> Any:
    """Return a clone that predicts a quantile.

    Examples
    --------
    >>> from sklearn.ensemble import GradientBoostingRegressor
    >>> with_quantile(GradientBoostingRegressor(loss="quantile"), 0.05).alpha
    0.05
    """
    parameters = learner.get_params()
    for name in QUANTILE_PARAMETERS:
        found = [key for key in parameters if _is_quantile(key, name, parameters)]
        if found:
            return clone(learner).set_params(**{min(found, key=len): level})
    raise ParameterError(
        f'conformity_score="quantile" needs a learner of quantiles, and {learner_name(learner)} as '
        'it was given is none. Use QuantileRegressor(), or boosted trees with loss="quantile", or '
        "give two learners that predict a lower and an upper quantile: estimator=(lower, upper)."
    )


def _is_quantile(key: str, name: str, parameters: dict[str, Any]) -> bool:
    """Whether a parameter is the quantile that its learner predicts; alpha often is not."""
    prefix, _, last = key.rpartition("__")
    if last != name:
        return False
    owner = f"{prefix}__" if prefix else ""
    loss = parameters.get(f"{owner}loss", parameters.get(f"{owner}objective"))
    return name == "quantile" if loss is None else "quantile" in str(loss)


def predicted(model: Any, X: Any) -> FloatArray:
    """Return the predictions as one finite number a row."""
    found = np.asarray(model.predict(X), dtype=np.float64)
    if found.ndim == 2 and found.shape[1] == 1:
        found = found[:, 0]
    if found.ndim != 1:
        raise LearnerError(
            f"{learner_name(model)} predicts {found.shape[1]} numbers for each row. Conformal "
            "intervals are of one; fit one for each."
        )
    if not np.isfinite(found).all():
        raise LearnerError(
            f"{learner_name(model)} predicts {found[~np.isfinite(found)][0]} at row "
            f"{int(np.flatnonzero(~np.isfinite(found))[0])}; a conformal interval needs finite "
            "predictions."
        )
    return found
