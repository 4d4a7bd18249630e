"""Models of the density ratio of population and sample, one for each fold.

Each is fitted on the rows outside a fold and judged on those inside, by the balanced log loss
(:mod:`unskew.numerics.ratio_loss`), which also chooses its parameters.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from unskew._compat import _safe_indexing
from unskew.numerics.cores import available_cores, one_blas_thread
from unskew.numerics.logistic_ratio import LogisticProblem, log_ratio_of
from unskew.numerics.ratio_loss import Sided, ratio_loss
from unskew.numerics.typing import FloatArray, IntArray
from unskew.population.progress import tell
from unskew.population.sample import BLOCK
from unskew.weighters.selection_features import SelectionFeatures
from unskew.weighters.two_samples import TwoSamples
from unskew.weighters.value_folds import AVERAGE

SEARCH_ROWS = 5_000
"""Rows of either side on which the logistic model's parameters are chosen."""
PENALTIES = (1.0, 0.1, 0.01, 0.001, 0.0001)
RATES = (0.05, 0.2, 0.4, 0.6, 0.8, 0.95)


class RatioModels(ABC):
    """Models of the ratio, one for each fold."""

    n_models: int

    @abstractmethod
    def fit(self, rows: TwoSamples, dealt: IntArray, n_folds: int) -> FloatArray:
        """Fit a model outside of each fold, or one of all rows if there is one fold.

        Returns the logarithm of each row's ratio, by the model that has not seen it.
        """

    @abstractmethod
    def encode(self, codes: FloatArray, table: pa.Table) -> Any:
        """Return rows, given as codes and as they are, as the models take them."""

    @abstractmethod
    def predict(self, number: int, encoded: Any) -> FloatArray:
        """Return the logarithm of the ratio by one of the models."""

    def log_ratio(self, codes: FloatArray, table: pa.Table, numbers: IntArray) -> FloatArray:
        """Return the logarithm of the ratio by the model of this number, or their average."""
        if len(codes) > BLOCK:  # features of all rows would be many times as large as their codes
            tell(f"weighing {len(codes):,} rows")
            parts = [slice(begin, begin + BLOCK) for begin in range(0, len(codes), BLOCK)]
            return np.concatenate(
                [self.log_ratio(codes[p], table.slice(p.start, BLOCK), numbers[p]) for p in parts]
            )
        encoded = self.encode(codes, table)
        found = np.zeros(len(codes))
        for number in range(self.n_models):
            own = np.flatnonzero(numbers == number)
            if len(own):
                found[own] = self.predict(number, take(encoded, own))
        rest = np.flatnonzero(numbers == AVERAGE)
        if len(rest):
            others = take(encoded, rest)
            for number in range(self.n_models):
                found[rest] += self.predict(number, others) / self.n_models
        return found


def take(encoded: Any, places: IntArray) -> Any:
    """Return some rows of an array, a dataframe or a table."""
    if isinstance(encoded, pa.Table):
        return encoded.take(pa.array(places))
    return _safe_indexing(encoded, places)


def outside(rows: TwoSamples, dealt: IntArray, number: int, n_folds: int) -> IntArray:
    """Return the rows that train a model: those outside its fold.

    All rows, if there is one fold, or if a side has no row outside.
    """
    train = np.flatnonzero(dealt != number)
    one_sided = n_folds == 1 or len(set(rows.is_mine[train].tolist())) < 2
    return np.arange(len(dealt)) if one_sided else train


def rebalanced(rows: TwoSamples, train: IntArray) -> FloatArray:
    """Return the weights of some rows, with the same mass on either side and a mean of one."""
    weight = rows.balanced[train]
    for side in (rows.is_mine[train], ~rows.is_mine[train]):
        if side.any():
            weight[side] *= len(train) / (2 * weight[side].sum())
    return weight


def _only(shares: FloatArray, rows: IntArray) -> FloatArray:
    """Return the shares of some rows, which sum to one, and zero for all others."""
    found = np.zeros(len(shares))
    found[rows] = shares[rows] / shares[rows].sum()
    return found


class LogisticModels(RatioModels):
    r"""A ridge logistic model of selection, :math:`r = k (1 + e^{-g})`, or the odds.

    Parameters
    ----------
    penalty : float or "cv"
    rate : float, "cv" or "odds"
        The k of :mod:`unskew.numerics.logistic_ratio`. "odds" is the ordinary logistic regression
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

    def fit(self, rows: TwoSamples, dealt: IntArray, n_folds: int) -> FloatArray:
        """Choose penalty and rate on some of the rows, then fit them all."""
        tell("fitting a logistic model of selection")
        self.features = SelectionFeatures().fit(rows, hinges=self.hinges)
        features = self.features.transform(rows.values)
        self.n_models = n_folds
        if rows.marked is not None:  # the sample's rows and the others are the whole population
            self.rate, self.mixture = "odds", rows.marked
        else:
            self.mixture = rows.n_mine / len(rows.values)
        search = _LogisticFits(self, rows, features, dealt, n_folds)
        start = None
        with one_blas_thread():  # products are small, or shared among threads of our own
            if "cv" in (self.penalty, self.rate):
                start = search.some(SEARCH_ROWS).choose()
            self.coefficients, log_ratio = search.fit(self.penalty, self.rate, start)
            self.curvatures, self.training_shares = search.describe(self.coefficients)
        return log_ratio

    def encode(self, codes: FloatArray, table: pa.Table) -> FloatArray:  # noqa: ARG002
        """Return the features of rows."""
        return self.features.transform(codes)

    def predict(self, number: int, encoded: FloatArray) -> FloatArray:
        """Return the logarithm of the ratio."""
        return self.of_scores(encoded @ self.coefficients[number], self.rate)

    def of_scores(self, scores: FloatArray, rate: Any) -> FloatArray:
        """Return the logarithm of the ratio at which the model has these scores."""
        if rate == "odds":
            return float(np.log(self.mixture / (1 - self.mixture))) - scores
        return log_ratio_of(scores, rate)


class _LogisticFits:
    """Fits of the logistic model on all folds, for a penalty and a rate."""

    def __init__(
        self,
        model: LogisticModels,
        rows: TwoSamples,
        features: FloatArray,
        dealt: IntArray,
        n_folds: int,
        kept: IntArray | None = None,
    ) -> None:
        self.model, self.rows, self.features = model, rows, features
        self.dealt, self.n_folds = dealt, n_folds
        self.kept = np.arange(len(features)) if kept is None else kept
        self._problems: dict[tuple[int, bool], LogisticProblem] = {}

    def some(self, most: int) -> _LogisticFits:
        """Return the fits on at most so many rows of either side, drawn at random."""
        random = np.random.RandomState(0)
        sides = (np.flatnonzero(self.rows.is_mine), np.flatnonzero(~self.rows.is_mine))
        kept = [np.sort(random.permutation(side)[:most]) for side in sides]
        return _LogisticFits(
            self.model, self.rows, self.features, self.dealt, self.n_folds, np.concatenate(kept)
        )

    def choose(self) -> list[FloatArray]:
        """Set the model's penalty, then its rate, by the held-out loss; return coefficients."""
        model = self.model
        first = model.rate if model.rate != "cv" else 0.5
        if model.penalty == "cv":
            model.penalty = self._best([(penalty, first) for penalty in PENALTIES])[0]
        if model.rate == "cv":
            own = float(np.clip(model.sampling_rate, 1e-3, 0.95))
            rates = sorted({*RATES, own})  # neighbours start from one another's coefficients
            model.rate = self._best([(model.penalty, rate) for rate in rates])[1]
        return self.fit(model.penalty, model.rate)[0]

    def _best(self, pairs: list[tuple[Any, Any]]) -> tuple[Any, Any]:
        losses, start = [], None
        shares = self._shares()
        for pair in pairs:
            start, log_ratio = self.fit(*pair, start, tol=1e-4)
            losses.append(ratio_loss(self.rows.split(log_ratio), shares).value)
        return pairs[int(np.argmin(losses))]

    def _shares(self) -> Sided:
        """Return the shares of the rows that are kept."""
        counted = np.zeros(len(self.features))
        counted[self.kept] = np.concatenate(self.rows.shares)[self.kept]
        return Sided(*(side / side.sum() for side in self.rows.split(counted)))

    def fit(
        self, penalty: Any, rate: Any, start: list[FloatArray] | None = None, tol: float = 1e-6
    ) -> tuple[list[FloatArray], FloatArray]:
        """Return the coefficients of each fold, and each row's ratio by the one that is not its.

        Rows that are not kept have a ratio of one.
        """
        if self.n_folds == 1:
            tol = 1e-11

        def solve(number: int) -> FloatArray:
            problem = self._problem(number, rate == "odds")
            share = self.model.mixture if rate == "odds" else rate
            first = None if start is None else start[number]
            beta, certificate = problem.solve(share, penalty, first, tol)
            if first is not None and not certificate.converged:  # too far from that start
                beta, _ = problem.solve(share, penalty, None, tol)
            return beta

        with ThreadPoolExecutor(min(available_cores(), self.n_folds)) as pool:
            coefficients = list(pool.map(solve, range(self.n_folds)))
        log_ratio = np.zeros(len(self.features))
        for number, beta in enumerate(coefficients):
            inside = self.kept
            if self.n_folds > 1:
                inside = inside[self.dealt[inside] == number]
            log_ratio[inside] = self.model.of_scores(self.features[inside] @ beta, rate)
        return coefficients, log_ratio

    def describe(self, coefficients: list[FloatArray]) -> tuple[list[FloatArray], list[float]]:
        """Return the Hessian of each fold, and the population's share that trains its model."""
        curvatures, trained = [], []
        covered = 1.0 - self.rows.uncovered
        for number, beta in enumerate(coefficients):
            problem = self._problem(number, self.model.rate == "odds")
            curvatures.append(problem.curvature(beta, float(self.model.penalty)))
            rows = outside(self.rows, self.dealt, number, self.n_folds)
            theirs = rows[rows >= self.rows.n_mine] - self.rows.n_mine
            trained.append(covered * float(self.rows.shares.theirs[theirs].sum()))
        return curvatures, trained

    @cached_property
    def _kept_features(self) -> FloatArray:
        return self.features if len(self.kept) == len(self.features) else self.features[self.kept]

    def _problem(self, number: int, pooled: bool) -> LogisticProblem:
        """Return the problem outside of a fold; pooled, its population is that of both sides."""
        if (number, pooled) not in self._problems:
            train = np.intersect1d(
                self.kept, outside(self.rows, self.dealt, number, self.n_folds), assume_unique=True
            )
            mine, theirs = train[train < self.rows.n_mine], train[train >= self.rows.n_mine]
            shares = np.concatenate(self.rows.shares)
            own, other = (_only(shares, side) for side in (mine, theirs))
            if pooled:
                mixture = self.model.mixture
                other = mixture * own + (1 - mixture) * other
            # A share of zero costs less than a copy of the other rows, for each fold.
            means = own[self.kept] @ self._kept_features
            problem = LogisticProblem(self._kept_features, other[self.kept], means)
            self._problems[number, pooled] = problem
        return self._problems[number, pooled]
