"""Prediction intervals that hold on the population."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin, is_classifier
from sklearn.utils import check_random_state

from unskew._compat import HasMethods, StrOptions
from unskew.errors import InputError, ParameterError
from unskew.learning.bands import (
    AroundPrediction,
    BandModel,
    fit_quantiles,
    fit_scaled,
    is_pair,
)
from unskew.learning.conformal import Conformal
from unskew.learning.trainer import Committee, TrainingRows, is_frozen, learner_name
from unskew.numerics.typing import FloatArray
from unskew.population.column_names import in_fitted_order


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
    scale_estimator: Any = None
    quantiles: tuple[float, float] = (0.05, 0.95)

    _nothing_known = "intervals are infinite"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Conformal._parameter_constraints,
        "conformity_score": [StrOptions({"absolute", "scaled", "quantile"})],
        "scale_estimator": [HasMethods(["fit", "predict"]), None],
        "quantiles": [tuple, list],
    }

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
        if labels.ndim != 1:
            raise InputError(
                f"y has {labels.shape[1]} columns; an interval is of one number. Fit one for each."
            )
        try:
            return labels.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(
                f"y must be numbers ({error}). For classes use ConformalClassifier."
            ) from error

    def _fit_model(self, rows: TrainingRows) -> BandModel:
        if self.conformity_score == "quantile":
            return fit_quantiles(self.estimator, self.quantiles, rows)
        if self.conformity_score == "scaled":
            spread = self.estimator if self.scale_estimator is None else self.scale_estimator
            seed = check_random_state(self.random_state).randint(2**31 - 1)
            return fit_scaled(self.estimator, spread, rows, seed)
        return AroundPrediction(rows.train(self.estimator))

    def _scores(self, model: BandModel, X: Any, labels: NDArray[Any]) -> FloatArray:
        return model.band(X).scores(labels)

    def _predictor(self, models: list[BandModel]) -> Any:
        if len(models) == 1:
            return models[0].model
        return Committee([one.model for one in models], None)

    def _learners(self, model: BandModel) -> list[Any]:
        return list(getattr(model.model, "members", [model.model]))

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
        new = self._new_rows(X, coverage)
        bands = [part.model.band(X) for part in self.parts_]
        if len(bands) == 1:
            band = bands[0]
            widths = self.parts_[0].scores.quantile(coverage, new.own, new.cells)
            lower, upper = band.lower - band.scale * widths, band.upper + band.scale * widths
        else:
            scales = np.array([band.scale for band in bands])
            crossed = self._crossed
            uppers = np.array([band.upper for band in bands])
            lowers = np.array([band.lower for band in bands])
            upper = crossed.quantile(coverage, new.own, uppers, scales)
            lower = -crossed.quantile(coverage, new.own, -lowers, scales)
        # Calibration can take more from a band than it has: what is left is its middle.
        crossing = np.flatnonzero(lower > upper)
        lower[crossing] = upper[crossing] = (lower[crossing] + upper[crossing]) / 2
        self._report_infinite(np.isinf(upper), new, coverage)
        return np.column_stack([lower, upper])
