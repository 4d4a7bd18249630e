r"""What each row contributes to a weighted mean whose weights were fitted.

A weighted mean :math:`\theta = \sum w y / \sum w` depends on a sample row directly, and through the
weights, which the row helped to fit; and it depends on the population's rows through what was asked
of them. To first order its error is a sum over both, whose terms are the rows' *influence*: the
variance of the sum is that of the estimate. A weighter that can say so returns a
:class:`Linearisation` from ``linearisation``.

For calibration to features :math:`\varphi` (Deville and Särndal 1992, section 4) the influence is

.. math:: \frac{w_i}{\sum w} (y_i - \theta - \varphi_i^\top B), \qquad
          \frac{v_j}{\sum v} (\varphi_j^\top B - \overline{\varphi^\top B}),

of a sample row and of a population row, where B is a regression of y on the features.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa
from scipy.sparse import csr_array

from unskew.numerics.calibration import pseudo_inverse
from unskew.numerics.design_variance import Entries
from unskew.numerics.row_features import weighted_moments
from unskew.numerics.typing import FloatArray, IntArray

Form = Literal["linear", "m_estimator", "hc3"]
"""How the regression is made and the residuals are scaled.

``"linear"`` weights rows by their design weights, as R's survey does. ``"m_estimator"`` weights
them by the slope of their weights, d F'(u): the sandwich of the stacked estimating equations.
``"hc3"`` also divides residuals by one minus their leverage, as a jackknife would.
"""

MOST_LEVERAGE = 0.99
"""A row that is alone in its cell has the leverage one, and no residual."""
SEVERAL_ROWS, MANY_ROWS = 5, 30
"""Rows without a residual, and rows with one, from which these say how much noise those have."""
LOST_LEVERAGE = 0.9
"""Above it the residual of a row says nothing of its noise."""


class Influence(NamedTuple):
    """What rows contribute to the errors of weighted means."""

    sample: FloatArray
    """Of each sample row; one column for each mean."""
    population: Callable[[pa.RecordBatch], FloatArray] | None
    """Of rows of the population, as a deviation from their mean: the contribution of a row with
    design weight v is v over the population's total weight times this. None if it has none."""
    n_population: int | None = None
    """How many rows of the population the weights were fitted on; None for all."""
    centred: bool = True
    """Whether the contributions vary about their means on either side. Otherwise sample and
    population are one sample, in which also the side of a row is random, and they vary about zero.
    """
    sizes: FloatArray | None = None
    """The variances of the contributions of the rows inside if all values had the same one; None
    where that is not known."""


class Balance(NamedTuple):
    """What weights keep of the population, whoever is selected beyond the columns."""

    features: FloatArray | None
    """Their weighted means are kept; None where cells say it."""
    means: FloatArray
    """The population's means of these features, or its share in each cell."""
    cells: IntArray | None = None
    """The cell of each row, whose total weight is kept; -1 for none."""


class Linearisation(ABC):
    """How a fitted weighter's weights follow the rows of sample and population.

    Attributes
    ----------
    cautions : tuple of str
        What it leaves out, in sentences.
    unbiased : bool
        Whether the weights' parameters have no bias of the order of their errors, such as that of a
        penalty.
    has_leverage : bool
        Whether a row has helped to fit the parameters of its own weight; not with folds.
    """

    cautions: tuple[str, ...] = ()
    unbiased: bool = True
    has_leverage: bool = True

    @abstractmethod
    def influence(self, values: FloatArray, form: Form, inside: Entries | None = None) -> Influence:
        """Return the influence on the weighted means of ``values``.

        Parameters
        ----------
        values : ndarray of shape (n_rows, n_means)
            Of the sample's rows, with weighted means of zero.
        form : {"linear", "m_estimator", "hc3"}
        inside : Entries, optional
            Which rows each mean is about; all by default. The values of others are zero by
            definition: they have no noise that leverage could have damped.
        """

    def balance(self) -> Balance | None:
        """Return what the weights keep; None where they follow the columns in another way."""
        return None

    def responses(self) -> FloatArray | None:
        """Return the derivatives of the logarithm of each row's weight by the parameters.

        None where the weights have no parameters, or are ratios of counts.
        """
        return None


class KnownWeights(Linearisation):
    """Weights that were not fitted.

    Parameters
    ----------
    weights : ndarray of shape (n_rows,)
    """

    def __init__(self, weights: FloatArray) -> None:
        self._shares = weights / weights.sum()

    def influence(self, values: FloatArray, form: Form, inside: Entries | None = None) -> Influence:
        """Return the influence of rows with fixed weights."""
        found = self._shares[:, None] * values
        return Influence(found, None, sizes=undamp(found, self._shares, form, inside, self._shares))

    def balance(self) -> Balance:
        """Return that known weights keep nothing but their total."""
        return Balance(None, np.ones(1), np.zeros(len(self._shares), dtype=np.int64))


class CalibratedWeights(Linearisation):
    """Weights w = d F(λ₀ + λᵀz) under which z has a mean of zero, and levels have known shares.

    Cells are levels without features. In the regression levels are intercepts, however many there
    are; without them all rows have one.

    Parameters
    ----------
    weights : ndarray of shape (n_rows,)
    features : ndarray of shape (n_rows, n_features)
        z: centred at the population's means, in any scale.
    predict : callable
        Takes rows of the population, a slope for each feature and an effect for each level, whose
        last is zero, for none; returns the sums of each row's slopes and effects.
    design : ndarray of shape (n_rows,)
        d.
    slopes : ndarray of shape (n_rows,), optional
        d F'(u) in the same scale; None where weights are ratios of counts.
    ridge : float
        The ridge of the multipliers, as a share of the weights' sum.
    levels : (ndarray of int, ndarray), optional
        The level of each row, -1 for none, and the population's share of each.
    cautions : tuple of str
    """

    def __init__(
        self,
        weights: FloatArray,
        features: FloatArray,
        predict: Callable[[pa.RecordBatch, FloatArray, FloatArray], FloatArray],
        design: FloatArray,
        slopes: FloatArray | None = None,
        ridge: float = 0.0,
        levels: tuple[IntArray, FloatArray] | None = None,
        cautions: tuple[str, ...] = (),
    ) -> None:
        self._total = float(weights.sum())
        self._shares = weights / self._total
        self._penalty = ridge * self._total
        self.unbiased, self.cautions = not ridge, cautions
        self._features, self._predict = features, predict
        one: tuple[IntArray, FloatArray] = np.zeros(len(weights), dtype=np.int64), np.ones(1)
        found, targets = one if levels is None else levels
        self._targets = np.append(targets, 0.0)  # the last level is none
        self._levels = found % len(self._targets)
        self._design = np.where(found < 0, 0.0, design)
        self._slopes = slopes
        self._regressions: dict[Form, tuple[FloatArray, ...]] = {}

    def influence(self, values: FloatArray, form: Form, inside: Entries | None = None) -> Influence:
        """Return the influence of rows, by a regression of the values on the features."""
        plain = form == "linear" or self._slopes is None
        weights: FloatArray = self._design if plain else self._slopes  # type: ignore[assignment]
        if form not in self._regressions:  # once for all groups
            self._regressions[form] = self._regression(weights)
        means, inner, inverse, leverage = self._regressions[form]
        of_levels = self._level_means(values, weights)
        slope = inverse @ ((weights[:, None] * inner).T @ (values - of_levels[self._levels]))
        effects = of_levels - means @ slope
        effects -= self._targets @ effects
        effects[-1] = 0.0
        predict = self._predict

        def population(batch: pa.RecordBatch) -> FloatArray:
            return predict(batch, slope, effects)

        fitted: FloatArray = inner @ slope + of_levels[self._levels]
        fitted, leverage = believed(values, fitted, leverage, form)
        found = self._shares[:, None] * (values - fitted)
        sizes = undamp(found, leverage, form, inside, self._shares)
        return Influence(found, population, sizes=sizes)

    def _level_means(self, values: FloatArray, weights: FloatArray) -> FloatArray:
        shape = len(weights), len(self._targets)
        by_level = csr_array((weights, self._levels, np.arange(shape[0] + 1)), shape=shape).T
        return np.asarray(by_level @ values) / self._masses(weights)[:, None]

    def _masses(self, weights: FloatArray) -> FloatArray:
        masses = np.bincount(self._levels, weights, len(self._targets))
        return np.maximum(masses, np.finfo(float).tiny)

    def _regression(self, weights: FloatArray) -> tuple[FloatArray, ...]:
        """Return the levels' means of the features, what is left, its inverse, the leverage."""
        means = self._level_means(self._features, weights)
        inner = self._features - means[self._levels]
        gram = weighted_moments(inner, weights).gram
        gram.flat[:: len(gram) + 1] += self._penalty
        inverse = pseudo_inverse(gram) if len(gram) else gram
        products = np.einsum("ij,ij->i", inner @ inverse, inner)
        return means, inner, inverse, weights * (products + 1 / self._masses(weights)[self._levels])

    def balance(self) -> Balance:
        """Return the features, which are centred at the population's means; or the cells."""
        if not self._features.shape[1]:
            n_levels = len(self._targets) - 1
            cells = np.where(self._levels == n_levels, -1, self._levels)
            return Balance(None, self._targets[:-1], cells)
        features = self._with_levels(self._targets)
        return Balance(features, np.zeros(features.shape[1]))

    def responses(self) -> FloatArray | None:
        """Return F'(u) / F(u) times the features, and zero where a weight is."""
        if self._slopes is None:
            return None
        weights = self._shares * self._total
        ratio = np.divide(self._slopes, weights, out=np.zeros_like(weights), where=weights > 0)
        ones = np.ones(len(ratio))
        return ratio[:, None] * np.column_stack([ones, self._with_levels(self._targets * 0.0)])

    def _with_levels(self, centre: FloatArray) -> FloatArray:
        """Return all features; the last level is determined by the others."""
        ones = np.equal.outer(self._levels, np.arange(len(self._targets))) - centre
        return np.column_stack([self._features, ones[:, :-2]])


def believed(
    values: FloatArray, fitted: FloatArray, leverage: FloatArray, form: Form
) -> tuple[FloatArray, FloatArray]:
    """Return fitted values and leverage; for "hc3" others of rows that are fitted exactly.

    The residual of such a row says nothing of its noise, however it is scaled: it counts with its
    deviation from the mean. Where several rows are such, as of many levels, that is as much noise
    as it is of the other rows' deviations, if these are many.
    """
    lost = (leverage > LOST_LEVERAGE) & (form == "hc3")
    fitted[lost] = 0.0
    if np.count_nonzero(lost) >= SEVERAL_ROWS:
        own, damped = values[~lost], left_by(leverage[~lost])[:, None]
        total = np.maximum((own**2).sum(axis=0), np.finfo(float).tiny)
        noise = np.sqrt(np.minimum(((own - fitted[~lost]) ** 2 / damped).sum(axis=0) / total, 1.0))
        many = np.count_nonzero(own, axis=0) >= MANY_ROWS
        fitted[lost] = values[lost] * np.where(many, 1.0 - noise, 0.0)
    return fitted, np.asarray(np.where(lost, 0.0, leverage))


def undamp(
    influence: FloatArray,
    leverage: FloatArray,
    form: Form,
    inside: Entries | None,
    shares: FloatArray,
) -> FloatArray:
    """Divide what leverage has damped, for "hc3", and return the sizes of contributions inside.

    A row of a domain has at least its share of the domain's weight as leverage, as the domain's
    mean has been taken off.
    """
    rows, columns = inside or (np.arange(len(leverage)), None)
    if columns is None or len(rows) == influence.size:
        left = left_by(leverage)
        influence /= left[:, None] if form == "hc3" else 1.0
        left = left[rows]
    else:
        whole = np.maximum(np.bincount(columns, shares[rows], influence.shape[1]), 1e-300)
        left = left_by(np.maximum(leverage[rows], shares[rows] / whole[columns]))
        influence[rows, columns] /= left if form == "hc3" else 1.0
    return np.asarray(shares[rows] ** 2 / (left if form == "hc3" else 1.0 / left))


def left_by(leverage: FloatArray) -> FloatArray:
    """Return the share of a value's variance that its residual has."""
    return np.asarray(1.0 - np.minimum(leverage, MOST_LEVERAGE))
