"""How the weights of a logistic model of selection follow the rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
from scipy.special import expit

from unskew.errors import ParameterError
from unskew.numerics.calibration import pseudo_inverse
from unskew.numerics.design_variance import Entries
from unskew.numerics.typing import BoolArray, FloatArray, IntArray
from unskew.weighters.linearisation import Form, Influence, Linearisation, undamp
from unskew.weighters.ratio_models import LogisticModels
from unskew.weighters.value_folds import AVERAGE

NewRows = tuple[FloatArray, IntArray, BoolArray]


class LogisticWeights(Linearisation):
    r"""Weights whose logarithms follow the scores of logistic models, one for each fold.

    A row moves the coefficients of the models that it trains by :math:`-H^{-1}` times its share of
    the estimating equations, and these move the weighted mean. Penalty and rate count as given.

    Parameters
    ----------
    models : LogisticModels
    weights, design : ndarray of shape (n_rows,)
    features : ndarray of shape (n_rows, n_features)
        The models' features of the sample.
    numbers : ndarray of int of shape (n_rows,)
        Which model weighs a row; ``AVERAGE`` for the mean of all.
    follows : ndarray of bool of shape (n_rows,)
        Whether a weight follows the scores; not if a limit has cut it.
    of_batch : callable
        Returns the features and numbers of the population's rows, and which of them train models.
    n_population : int
        The population's rows that were fitted on.
    """

    def __init__(
        self,
        models: LogisticModels,
        weights: FloatArray,
        design: FloatArray,
        features: FloatArray,
        numbers: IntArray,
        follows: BoolArray,
        of_batch: Callable[[pa.RecordBatch], NewRows],
        n_population: int,
    ) -> None:
        self._models, self._shares = models, weights / weights.sum()
        self._design, self._features, self._numbers = design, features, numbers
        self._follows, self._of_batch, self._n_population = follows, of_batch, n_population
        self.has_leverage = models.n_models == 1
        if models.penalty:
            self.unbiased = False
            self.cautions = (
                f"The penalty {models.penalty:g} counts as given, and its bias is not counted.",
            )

    def influence(self, values: FloatArray, form: Form, inside: Entries | None = None) -> Influence:
        """Return the influence of rows, through the estimating equations of the coefficients."""
        if form == "linear":
            raise ParameterError(
                'variance="linear" is the regression of calibration. For logistic weights use '
                'variance="m_estimator" or "hc3".'
            )
        models, features, shares = self._models, self._features, self._shares
        pooled = models.rate == "odds"
        own_share = models.mixture if pooled else float(models.rate)
        # Of one sample with random sides, the equations sum to zero over both sides only.
        centred = not (pooled and form == "m_estimator")
        found = shares[:, None] * values
        undamp(found, shares, form, inside, shares)
        effects: list[tuple[FloatArray, FloatArray]] = []
        for number, (beta, curvature) in enumerate(
            zip(models.coefficients, models.curvatures, strict=True)
        ):
            chance = _chance(features @ beta)
            moved = shares * self._follow(number, chance)
            inverse = pseudo_inverse(curvature)
            effect = inverse @ (features.T @ (moved[:, None] * values))
            mass = self._design * _trains(self._numbers, number, models.n_models)
            mass /= mass.sum()
            terms = own_share * (chance - 1.0) if pooled else np.full(len(mass), -own_share)
            steps = terms[:, None] * (features @ effect)
            mean = mass @ steps
            leverage = np.zeros(len(mass))
            if pooled:
                leverage = np.einsum("ij,ij->i", features @ inverse, features)
                leverage *= own_share * mass * chance * (1.0 - chance)
            steps -= mean if centred else 0.0
            steps *= mass[:, None]
            undamp(steps, leverage, form, inside, mass)
            found -= steps
            # At the solution the equations of both sides and of the penalty sum to zero.
            theirs = -(mean + effect[1:].T @ (float(models.penalty) * beta[1:]))
            effects.append((effect, theirs if centred else np.zeros_like(theirs)))

        def population(batch: pa.RecordBatch) -> FloatArray:
            rows, numbers, trained = self._of_batch(batch)
            total = np.zeros((len(rows), values.shape[1]))
            for number, (effect, mean) in enumerate(effects):
                chance = _chance(rows @ models.coefficients[number])
                chance *= 1.0 - own_share if pooled else 1.0
                trains = trained * _trains(numbers, number, models.n_models)
                trains /= models.training_shares[number]
                total -= trains[:, None] * (chance[:, None] * (rows @ effect) - mean)
            return total

        return Influence(found, population, self._n_population, centred)

    def responses(self) -> FloatArray:
        """Return the derivatives by the coefficients of all models, one model after the other."""
        found = []
        for number, beta in enumerate(self._models.coefficients):
            follow = self._follow(number, _chance(self._features @ beta))
            found.append(follow[:, None] * self._features)
        return np.hstack(found)

    def _follow(self, number: int, chance: FloatArray) -> FloatArray:
        """Return the derivative of the logarithm of each row's weight by a model's score."""
        slope = -1.0 if self._models.rate == "odds" else chance - 1.0
        return self._follows * self._uses(number) * slope

    def _uses(self, number: int) -> FloatArray:
        """Return by how much a model counts for the weight of each row."""
        average = np.where(self._numbers == AVERAGE, 1.0 / self._models.n_models, 0.0)
        return np.where(self._numbers == number, 1.0, average)


def _chance(scores: FloatArray) -> FloatArray:
    return np.asarray(expit(scores))


def _trains(numbers: IntArray, number: int, n_models: int) -> FloatArray:
    """Return how much each row counts in training; frequent values are dealt over all folds."""
    if n_models == 1:
        return np.ones(len(numbers))
    rest = np.where(numbers == AVERAGE, 1.0 - 1.0 / n_models, 1.0)
    return np.where(numbers == number, 0.0, rest)
