r"""The logistic model of selection on the columns' features, and how its weights follow the rows.

The features are numbers with hinges, levels and missing flags. The model
(:mod:`unskew.numerics.ratio_loss`) has the density ratio :math:`k (1 + e^{-g(x)})` with
:math:`g = \varphi^\top \beta`, one β for each fold. Its penalty and k are chosen by the held-out
loss. A row moves the β of the models that it trains by :math:`-H^{-1}` times its share of the
estimating equations, and these move the weights of all rows.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from scipy.special import expit

from unskew.errors import ParameterError
from unskew.numerics.calibration import pseudo_inverse
from unskew.numerics.cores import available_cores, one_blas_thread
from unskew.numerics.design_variance import Entries
from unskew.numerics.ratio_loss import LogisticProblem, log_ratio_of, ratio_loss
from unskew.numerics.typing import BoolArray, FloatArray, IntArray
from unskew.numerics.value_folds import AVERAGE
from unskew.population.progress import tell
from unskew.weighters.linearisation import Form, Influence, Linearisation, undamp
from unskew.weighters.ratio_models import RatioModels
from unskew.weighters.selection_features import selection_design, selection_features
from unskew.weighters.two_samples import TwoSamples

SEARCH_ROWS = 5_000
"""Rows of either side on which the logistic model's parameters are chosen."""
PENALTIES = (1.0, 0.1, 0.01, 0.001, 0.0001)
RATES = (0.05, 0.2, 0.4, 0.6, 0.8, 0.95)

NewRows = tuple[FloatArray, IntArray, BoolArray]


class LogisticModels(RatioModels):
    r"""A ridge logistic model of selection, :math:`r = k (1 + e^{-g})`, or the odds.

    Parameters
    ----------
    penalty : float or "cv"
    rate : float, "cv" or "odds"
        The k of :mod:`unskew.numerics.ratio_loss`. "odds" is the ordinary logistic regression
        of sample against population: :math:`r \propto e^{-g}`.
    hinges : bool
        Whether numbers get hinges.
    sampling_rate : float
        The number of sample rows over that of population rows, one of the rates that "cv" tries.

    Attributes
    ----------
    coefficients : list of ndarray
        Of each model.
    curvatures : list of ndarray
        The Hessian of each model's likelihood there.
    training_shares : list of float
        The share of the population that has trained each model.
    """

    def __init__(
        self,
        penalty: float | Literal["cv"] = "cv",
        rate: float | Literal["cv", "odds"] = "cv",
        *,
        hinges: bool = True,
        sampling_rate: float = 0.5,
    ) -> None:
        self.penalty = penalty
        self.rate = rate
        self.hinges = hinges
        self.sampling_rate = sampling_rate

    def fit(self, rows: TwoSamples) -> FloatArray:
        """Choose penalty and rate on some of the rows, then fit them all."""
        tell("fitting a logistic model of selection")
        self.features = selection_design(rows, hinges=self.hinges)
        features = selection_features(self.features, rows.values)
        self.n_models = rows.n_folds
        if rows.marked is not None:  # the sample's rows and the others are the whole population
            self.rate, self.mixture = "odds", rows.marked
        else:
            self.mixture = rows.n_sample / len(rows.values)
        fits = FoldFits(rows, features, self.mixture)
        start = None
        with one_blas_thread():  # products are small, or shared among threads of our own
            if "cv" in (self.penalty, self.rate):
                start = self._choose(FoldFits(rows, features, self.mixture, most=SEARCH_ROWS))
            self.coefficients, log_ratio = fits.fit(self.penalty, self.rate, start)
            self._describe(rows, fits)
        return log_ratio

    def _choose(self, fits: FoldFits) -> list[FloatArray]:
        """Set the penalty, then the rate, by the held-out loss; return the coefficients."""
        first = self.rate if self.rate != "cv" else 0.5
        if self.penalty == "cv":
            self.penalty = fits.best([(penalty, first) for penalty in PENALTIES])[0]
        if self.rate == "cv":
            own = float(np.clip(self.sampling_rate, 1e-3, 0.95))
            rates = sorted({*RATES, own})  # neighbours start from one another's coefficients
            self.rate = fits.best([(self.penalty, rate) for rate in rates])[1]
        return fits.fit(self.penalty, self.rate)[0]

    def _describe(self, rows: TwoSamples, fits: FoldFits) -> None:
        """Set the Hessian of each fold, and the population's share that trains its model."""
        self.curvatures, self.training_shares = [], []
        for number, beta in enumerate(self.coefficients):
            problem = fits.problem(number, self.rate == "odds")
            self.curvatures.append(problem.curvature(beta, float(self.penalty)))
            train = rows.outside(number)
            others = train[train >= rows.n_sample] - rows.n_sample
            share = float(rows.shares.population[others].sum())
            self.training_shares.append((1.0 - rows.uncovered) * share)

    def encode(self, codes: FloatArray, table: pa.Table) -> FloatArray:  # noqa: ARG002
        """Return the features of rows."""
        return selection_features(self.features, codes)

    def predict(self, number: int, encoded: FloatArray) -> FloatArray:
        """Return the logarithm of the ratio."""
        scores = encoded @ self.coefficients[number]
        return log_ratio_at(scores, self.rate, self.mixture)


def log_ratio_at(scores: FloatArray, rate: Any, mixture: float) -> FloatArray:
    """Return the logarithm of the ratio at which a model of this rate has these scores."""
    if rate == "odds":
        return float(np.log(mixture / (1 - mixture))) - scores
    return log_ratio_of(scores, rate)


class FoldFits:
    """Fits of a logistic model outside of each fold.

    Parameters
    ----------
    rows : TwoSamples
    features : ndarray of shape (n_rows, n_features)
    mixture : float
        The share of the sample where "odds" separate it from the population.
    n_free : int
        The first features, which have no penalty.
    most : int, optional
        Fits are on at most so many rows of either side, drawn at random.
    """

    def __init__(
        self,
        rows: TwoSamples,
        features: FloatArray,
        mixture: float,
        *,
        n_free: int = 1,
        most: int | None = None,
    ) -> None:
        self.rows, self.features, self.mixture, self.n_free = rows, features, mixture, n_free
        random = np.random.RandomState(0)
        sides = (np.flatnonzero(rows.is_sample), np.flatnonzero(~rows.is_sample))
        drawn = [side if most is None else random.permutation(side)[:most] for side in sides]
        self.kept = np.sort(np.concatenate(drawn))
        self._kept_features = features if len(self.kept) == len(features) else features[self.kept]
        self._problems: dict[tuple[int, bool], LogisticProblem] = {}

    def best(self, pairs: list[tuple[Any, Any]]) -> tuple[Any, Any]:
        """Return the penalty and the rate with the least held-out loss."""
        losses, start = [], None
        counted = _only(np.concatenate(self.rows.shares), self.kept)
        shares = self.rows.split(counted).map(lambda side: side / side.sum())
        for pair in pairs:
            start, log_ratio = self.fit(*pair, start, tol=1e-4)
            losses.append(ratio_loss(self.rows.split(log_ratio), shares).value)
        return pairs[int(np.argmin(losses))]

    def fit(
        self, penalty: Any, rate: Any, start: list[FloatArray] | None = None, tol: float = 1e-6
    ) -> tuple[list[FloatArray], FloatArray]:
        """Return the coefficients of each fold, and each row's ratio by the one that is not its.

        Rows that are not kept have a ratio of one.
        """
        n_folds = self.rows.n_folds
        if n_folds == 1:
            tol = 1e-11

        def solve(number: int) -> FloatArray:
            problem = self.problem(number, rate == "odds")
            share = self.mixture if rate == "odds" else rate
            first = None if start is None else start[number]
            beta, certificate = problem.solve(share, penalty, first, tol)
            if first is not None and not certificate.converged:  # too far from that start
                beta, _ = problem.solve(share, penalty, None, tol)
            return beta

        with ThreadPoolExecutor(min(available_cores(), n_folds)) as pool:
            coefficients = list(pool.map(solve, range(n_folds)))
        log_ratio = np.zeros(len(self.features))
        for number, beta in enumerate(coefficients):
            inside = self.kept[self.rows.fold[self.kept] == number]
            log_ratio[inside] = log_ratio_at(self.features[inside] @ beta, rate, self.mixture)
        return coefficients, log_ratio

    def problem(self, number: int, pooled: bool) -> LogisticProblem:
        """Return the problem outside of a fold; pooled, its population is that of both sides."""
        if (number, pooled) not in self._problems:
            train = np.intersect1d(self.kept, self.rows.outside(number), assume_unique=True)
            own, other = (
                _only(np.concatenate(self.rows.shares), side)
                for side in (train[train < self.rows.n_sample], train[train >= self.rows.n_sample])
            )
            if pooled:
                other = self.mixture * own + (1 - self.mixture) * other
            # A share of zero costs less than a copy of the other rows, for each fold.
            self._problems[number, pooled] = LogisticProblem(
                self._kept_features,
                other[self.kept],
                own[self.kept] @ self._kept_features,
                n_free=self.n_free,
            )
        return self._problems[number, pooled]


def _only(shares: FloatArray, rows: IntArray) -> FloatArray:
    """Return the shares of some rows, which sum to one, and zero for all others."""
    found = np.zeros(len(shares))
    found[rows] = shares[rows] / shares[rows].sum()
    return found


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
            other = -(mean + effect[1:].T @ (float(models.penalty) * beta[1:]))
            effects.append((effect, other if centred else np.zeros_like(other)))

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
    """Return how much each row counts in training; frequent values are in all folds."""
    if n_models == 1:
        return np.ones(len(numbers))
    rest = np.where(numbers == AVERAGE, 1.0 - 1.0 / n_models, 1.0)
    return np.where(numbers == number, 0.0, rest)
