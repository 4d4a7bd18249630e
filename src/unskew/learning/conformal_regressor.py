"""Conformal intervals around any regressor's predictions.

A regressor's conformity score needs a band around each row: a lower and an upper edge and a scale.
The score of a label is how far it lies outside, in units of the scale, and negative inside:
``max(lower - y, y - upper) / scale``. So the absolute residual is the band whose edges are both the
prediction; the scaled residual has a scale that a second model predicts (Lei, G'Sell, Rinaldo,
Tibshirani and Wasserman 2018); and conformalised quantile regression (Romano, Patterson and Candès
2019) has two quantiles as edges.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin, clone, is_classifier
from sklearn.utils import check_random_state

from unskew._compat import HasMethods
from unskew.errors import InputError, LearnerError, ParameterError
from unskew.learning.choose_power import split
from unskew.learning.conformal import Conformal, is_pair
from unskew.learning.trainer import Committee, TrainingRows, is_frozen, learner_name
from unskew.numerics.typing import FloatArray
from unskew.rows.column_names import in_fitted_order

LEAST_SCALE = 0.05
"""The least scale of a row, as a share of the mean residual: a model of them can predict zero."""
QUANTILE_PARAMETERS = ("quantile", "quantile_alpha", "alpha")
"""Under which names learners take the quantile that they predict, the surest first."""


class BandModel(NamedTuple):
    """Predicts an edge, or two, and a scale for each row."""

    edges: tuple[Any, ...]
    """The learner of the prediction, or those of two quantiles."""
    spread: Any = None
    """The learner of the residuals' size, which is the scale."""
    least: float = 1.0

    @property
    def learner(self) -> Any:
        """What predicts a number for each row: between two quantiles their middle."""
        return self.edges[0] if len(self.edges) == 1 else Committee(self.edges, None)

    def band(self, X: Any) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the lower and the upper edge, in order where they cross, and the scale."""
        edges = np.array([predicted(one, X) for one in self.edges])
        sizes = np.ones(edges.shape[1]) if self.spread is None else predicted(self.spread, X)
        return edges.min(axis=0), edges.max(axis=0), np.maximum(sizes, self.least)


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
    return BandModel((rows.train(learner),), rows.train(spread, sizes), least)


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


class ConformalRegressor(RegressorMixin, Conformal):
    r"""Intervals around any regressor's predictions that hold on the population.

    Conformal prediction under covariate shift (Tibshirani, Foygel Barber, Candès and Ramdas 2019):
    the interval of a row is as wide as a weighted quantile of how far labels of calibration rows
    lie from predictions, in which the row itself has its weight, at infinity. With the true weights
    an interval for 90 % covers at least 90 % of the population's labels, whatever the learner and
    the distribution; with estimated ones up to their error.

    Parameters
    ----------
    estimator : regressor, or pair of regressors
        Trained without weights; ``Reweighted(learner)`` trains with them, and then also weighs the
        calibration rows. ``FrozenEstimator(model)`` is a model that is trained already, on other
        rows. A pair predicts a lower and an upper quantile, for ``conformity_score="quantile"``.
    <Conformal parameters>
    conformity_score : {"absolute", "scaled", "quantile"}, default="absolute"
        How far a label is from a prediction. "absolute": intervals of one width, but for the
        weights. "scaled": in units of the size that ``scale_estimator`` predicts for it.
        "quantile": how far it is outside of two predicted quantiles; the estimator is then a
        learner of quantiles, such as ``HistGradientBoostingRegressor(loss="quantile")``, of which
        two clones are trained.
    scale_estimator : regressor, optional
        Learns the size of residuals in folds of the training rows; by default a clone of the
        estimator. Its predictions count as at least 5 % of the mean size.
    quantiles : pair of floats, default=(0.05, 0.95)
        Which quantiles the two clones predict. The coverage of the intervals does not depend on
        it; they are narrowest if it fits.

    Attributes
    ----------
    <Conformal attributes>

    See Also
    --------
    ConformalClassifier : Sets of classes.
    estimate : Intervals of the population's mean, rather than of single labels.

    Notes
    -----
    With "split" and known weights the coverage is at least the one asked for (Tibshirani and others
    2019, theorem 2), on average over samples. With "cv+" at least :math:`1 - 2\alpha` where
    :math:`1 - \alpha` is asked for (Prinster, Liu and Saria 2022); usually it is near
    :math:`1 - \alpha`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from unskew import ConformalRegressor
    >>> random = np.random.default_rng(0)
    >>> population = random.normal(size=(4000, 1))
    >>> labels = population[:, 0] + np.exp(population[:, 0]) * random.normal(size=4000)
    >>> selected = random.uniform(size=4000) < 1 / (1 + np.exp(population[:, 0]))
    >>> model = ConformalRegressor(LinearRegression())
    >>> model = model.fit(population[selected], labels[selected], population=population)
    >>> low, high = model.predict_interval(population, coverage=0.9).T
    >>> round(float(np.mean((low <= labels) & (labels <= high))), 1)
    0.9
    """

    conformity_score: Literal["absolute", "scaled", "quantile"] = "absolute"
    scale_estimator: Annotated[Any, HasMethods(["fit", "predict"]), None] = None
    quantiles: tuple[float, float] = (0.05, 0.95)

    _nothing_known = "intervals are infinite"

    def _check_learner(self) -> None:
        if is_pair(self.estimator) and (
            self.conformity_score != "quantile" or len(self.estimator) != 2
        ):
            raise ParameterError(
                f"estimator is {len(self.estimator)} learners. A pair of a lower and an upper "
                'quantile goes with conformity_score="quantile"; otherwise give one.'
            )
        for learner in self.estimator if is_pair(self.estimator) else [self.estimator]:
            if is_classifier(learner) or not hasattr(learner, "predict"):
                hint = " For classes use ConformalClassifier." if is_classifier(learner) else ""
                raise ParameterError(
                    "The 'estimator' parameter of ConformalRegressor must be a regressor with "
                    f"predict. Got {learner_name(learner)} instead.{hint}"
                )
        lacking = self.scale_estimator is None or self.conformity_score == "quantile"
        if self.conformity_score != "absolute" and is_frozen(self.estimator) and lacking:
            raise ParameterError(
                f'conformity_score="{self.conformity_score}" trains the estimator once more, and a '
                "FrozenEstimator stays as it is. Give scale_estimator= with "
                'conformity_score="scaled", or two quantiles: estimator=(lower, upper).'
            )
        low, high = self.quantiles if len(self.quantiles) == 2 else (1.0, 0.0)
        if not 0 < low < high < 1:
            raise ParameterError(
                f"quantiles must be two levels between 0 and 1, as (0.05, 0.95); got "
                f"{self.quantiles}."
            )

    def _labels(self, labels: NDArray[Any]) -> NDArray[Any]:
        try:
            return labels.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(
                f"y must be numbers ({error}). For classes use ConformalClassifier."
            ) from error

    def _fit_model(self, rows: TrainingRows) -> BandModel:
        if self.conformity_score == "quantile":
            pair = self.estimator
            if not is_pair(pair):
                pair = [with_quantile(pair, level) for level in self.quantiles]
            return BandModel(tuple(rows.train(one) for one in pair))
        if self.conformity_score == "scaled":
            spread = self.estimator if self.scale_estimator is None else self.scale_estimator
            seed = check_random_state(self.random_state).randint(2**31 - 1)
            return fit_scaled(self.estimator, spread, rows, seed)
        return BandModel((rows.train(self.estimator),))

    def _learner(self, model: BandModel) -> Any:
        return model.learner

    def _scores(self, model: BandModel, X: Any, labels: NDArray[Any]) -> FloatArray:
        lower, upper, scale = model.band(X)
        return np.maximum(lower - labels, labels - upper) / scale

    def predict_interval(self, X: Any, coverage: float = 0.9) -> FloatArray:
        """Return an interval for the label of each row.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_rows, n_features)
        coverage : float, default=0.9
            The share of the population whose labels are to lie inside; between 0 and 1.

        Returns
        -------
        ndarray of shape (n_rows, 2)
            The lower and the upper end. They are infinite where the calibration rows say nothing
            of a row with this coverage, which ``infinite_share_`` counts.

        Warns
        -----
        InfiniteIntervalWarning
            If there are such rows; it says why, and with which coverage there are none.
        """
        X = in_fitted_order(self, X)
        own, cells = self._new_rows(X, coverage)
        bands = [part.model.band(X) for part in self.parts_]
        if len(bands) == 1:
            lower, upper, scale = bands[0]
            widths = self.parts_[0].scores.quantile(coverage, own, cells)
            lower, upper = lower - scale * widths, upper + scale * widths
        else:
            lowers, uppers, scales = np.array(bands).swapaxes(0, 1)
            crossed = self._crossed
            upper = crossed.quantile(coverage, own, uppers, scales)
            lower = -crossed.quantile(coverage, own, -lowers, scales)
        # Calibration can take more from a band than it has: what is left is its middle.
        crossing = np.flatnonzero(lower > upper)
        lower[crossing] = upper[crossing] = (lower[crossing] + upper[crossing]) / 2
        return np.column_stack([lower, upper])
