r"""What share of a classifier's predictions could be another: a bound, asked in one pass.

A row with features x and the score s flips only if its score moves by |s| towards zero. If the
change of the model lies in an ellipsoid, so that the score moves towards zero by :math:`e^\top u`
with :math:`|e| \le 1`, up to a rest, no row with :math:`\lVert u \rVert < c`, c being |s| less the
rest, can flip. But one e cannot flip all others. For any :math:`a \ge 0`, :math:`e^\top u \ge c`
implies :math:`\bigl((e^\top u / c + a) / (1 + a)\bigr)^2 \ge 1`, and a square is never negative. So
the share of those that flip is at most the mean of these squares over the rows with
:math:`\lVert u \rVert \ge c`, a quadratic function of e, and its maximum over the ball is, for any
:math:`\mu` above the eigenvalues :math:`\lambda_j` of M, at most

.. math:: E \frac{a^2}{(1+a)^2} + \mu + \sum_j \frac{b_j^2}{\mu - \lambda_j}, \qquad
          M = E \frac{u u^\top}{(1+a)^2 c^2}, \quad b = E \frac{a\,u}{(1+a)^2 c},

b in the coordinates of M's eigenvectors. Rows with :math:`c \le 0` count as flipped. The bound
holds for whatever a is chosen for each row. Here :math:`a = u^\top P u / c^2`, which is best for a
change that is random with the covariance P; P, of trace one, is found by Frank and Wolfe's method
on rows of the weighted sample as the worst one. The population is asked once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from unskew.numerics.typing import FloatArray
from unskew.population.margins import Margins
from unskew.population.population import Population
from unskew.population.reservoir import Reservoir
from unskew.population.summaries import Summary
from unskew.rows.sample import Sample
from unskew.rows.tables import Form, RowBlock
from unskew.theory.assumption_tests import DrawnPopulation
from unskew.theory.models import Ellipsoid

POPULATION_ROWS = 20_000
"""Rows of the population from which its part of a covariance is estimated; all, if it has fewer."""

MOST_DIMENSIONS = 200
"""Of the ellipsoid, beyond which rows are counted singly: the matrix would cost too much."""

SEARCHED_ROWS = 1_000
"""Rows of the sample on which P is searched, at most. Any P gives a valid bound."""

STEPS = 15
"""Of Frank and Wolfe's method."""

TRIED = np.geomspace(1e-4, 1.0, 60)
"""Distances of μ from the largest eigenvalue, as shares of ‖b‖. Any gives a valid bound."""

CHUNK = 256
"""Rows that are counted at once."""


class WithinEllipsoid:
    """The change of the model lies in an ellipsoid.

    Parameters
    ----------
    ellipsoid : Ellipsoid
    features, scores, weights
        Of the sample, on which P is searched.
    """

    def __init__(
        self, ellipsoid: Ellipsoid, features: FloatArray, scores: FloatArray, weights: FloatArray
    ) -> None:
        self.ellipsoid = ellipsoid
        self.size = len(ellipsoid.along)
        self.root: FloatArray | None = None
        if 1 < self.size <= MOST_DIMENSIONS:
            kept = np.arange(0, len(scores), -(-len(scores) // SEARCHED_ROWS))
            self.root = _hardest(_Near(ellipsoid, features[kept], scores[kept], weights[kept]))

    def tally(self, features: FloatArray, scores: FloatArray, weight: FloatArray) -> FloatArray:
        """Return the weight of rows that could flip singly, and the sums of the squares."""
        near = _Near(self.ellipsoid, features, scores, weight)
        if self.root is None:
            return np.array([near.mass])
        constant, linear, matrix = near.squares(np.square(near.u @ self.root).sum(axis=1))
        return np.concatenate([[near.mass, constant], linear, matrix.reshape(-1)])

    def shares(self, sums: FloatArray, mass: float) -> FloatArray:
        """Return the smaller of the two bounds."""
        if self.root is None:
            return sums / mass
        linear, matrix = sums[2 : 2 + self.size], sums[2 + self.size :]
        together = sums[1] + _largest(matrix.reshape(self.size, self.size), linear)[0]
        return np.array([min(sums[0], together) / mass])


class _Near:
    """The rows that could flip singly.

    Attributes
    ----------
    u : ndarray of shape (n, k)
        By how much their scores move towards zero, for those that need not flip.
    far, weight : ndarray of shape (n,)
        How far they are from zero, and their weight.
    sure : float
        The weight of the rows that count as flipped.
    mass : float
        The weight of all.
    """

    def __init__(
        self, ellipsoid: Ellipsoid, features: FloatArray, scores: FloatArray, weight: FloatArray
    ) -> None:
        # c of the formula: how far a score is from zero, less what moves it in any case.
        z, rest = ellipsoid.parts(features)
        far = np.abs(scores) - rest
        flips = far <= 0
        some = np.flatnonzero((np.einsum("ij,ij->i", z, z) >= far**2) & ~flips)
        self.sure = float(weight[flips].sum())
        self.u = z[some] * -np.sign(scores[some])[:, None]
        self.far, self.weight = far[some], weight[some]
        self.mass = self.sure + float(self.weight.sum())

    def squares(self, lengths: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Return the sums for rows whose a is this over the square of their distance."""
        # With a = l / c², 1 / (1 + a) is c² / (c² + l), and a / (1 + a) is l / (c² + l): so that
        # c → 0 does no harm.
        total = self.far**2 + lengths
        share = lengths / total
        constant = self.sure + float(self.weight @ share**2)
        scaled = self.u * (np.sqrt(self.weight) * self.far / total)[:, None]
        linear = (self.weight * share * self.far / total) @ self.u
        return constant, linear, scaled.T @ scaled


def _hardest(near: _Near) -> FloatArray:
    """Return a root of the P for which the bound is the least of those tried."""
    size = near.u.shape[1]
    P, best, found = np.eye(size) / size, np.inf, np.zeros((size, size))
    for step in range(STEPS):
        # Each row's a = uᵀPu / c² is the best for changes with the covariance P. The adversary's
        # answer is a direction; P moves towards it, as in Frank and Wolfe's method.
        constant, linear, matrix = near.squares(np.einsum("ij,ij->i", near.u @ P, near.u))
        largest, direction = _largest(matrix, linear)
        if constant + largest < best:
            values, vectors = np.linalg.eigh(P)
            best = constant + largest
            found = vectors * np.sqrt(np.maximum(values, 0.0))
        P += 2 / (step + 3) * (np.outer(direction, direction) - P)
    return found


def _largest(matrix: FloatArray, linear: FloatArray) -> tuple[float, FloatArray]:
    """Bound eᵀMe + 2bᵀe over the ball, and return M's first eigenvector."""
    values, vectors = np.linalg.eigh(matrix)
    parts = np.square(linear @ vectors)
    top = max(float(values[-1]), 0.0)
    length = math.sqrt(float(parts.sum()))
    if not length:
        return top, vectors[:, -1]
    # The best μ exceeds the largest eigenvalue by no more than ‖b‖.
    tried = top + length * TRIED
    bounds = tried + (parts / (tried[:, None] - values)).sum(axis=1)
    return float(bounds.min()), vectors[:, -1]


class PerDraw:
    """Each of some draws of the weights has moved the model.

    Parameters
    ----------
    steps : ndarray of shape (d, n_draws)
        By which the coefficients have moved.
    rest : ndarray of shape (n_draws,)
        How far, in the norm of the root, they may be from that.
    root : ndarray of shape (d, d)
    """

    def __init__(self, steps: FloatArray, rest: FloatArray, root: FloatArray) -> None:
        self.steps, self.rest, self.root = steps, rest, root
        # |x·s| ≤ ‖R x‖ ‖R⁻ᵀ s‖: no draw moves a score farther than this times ‖R x‖.
        lengths = np.linalg.norm(np.linalg.solve(root.T, steps), axis=0)
        self.farthest = float((lengths + rest).max())

    def tally(self, features: FloatArray, scores: FloatArray, weight: FloatArray) -> FloatArray:
        """Return the weight of the rows that flip in each draw."""
        found = np.zeros(self.steps.shape[1])
        length = np.linalg.norm(features @ self.root.T, axis=1)
        near = np.flatnonzero(np.abs(scores) <= self.farthest * (1 + 1e-9) * length)
        for start in range(0, len(near), CHUNK):
            own = near[start : start + CHUNK]
            # Towards zero, each draw moves the score by its step and by at most its rest.
            away = np.sign(scores[own])[:, None]
            towards = (features[own] * -away) @ self.steps
            towards += np.multiply.outer(length[own], self.rest)
            found += weight[own] @ (towards >= np.abs(scores[own])[:, None])
        return found

    def shares(self, sums: FloatArray, mass: float) -> FloatArray:
        """Return the share in each draw."""
        return sums / mass


FlipRule = WithinEllipsoid | PerDraw
"""Which rows could flip: ``tally`` returns what rows add to a few sums, ``shares`` what follows."""


class Flips(Summary):
    """The sums of a rule over rows of the population.

    Parameters
    ----------
    rule : WithinEllipsoid or PerDraw
    read : callable
        Takes rows in the form of X, and returns their features and scores.
    form : Form
        Of X.
    """

    shared = frozenset({"rule", "read", "form"})
    added = ("sums", "mass")

    def __init__(
        self, rule: FlipRule, read: Callable[[Any], tuple[FloatArray, FloatArray]], form: Form
    ) -> None:
        self.rule, self.read, self.form = rule, read, form
        self.sums: Any = 0.0
        self.mass = 0.0

    def update(self, rows: RowBlock) -> None:
        """Add the rows of a block."""
        if not len(rows):
            return
        features, scores = self.read(self.form.of(pa.Table.from_batches([rows.batch])))
        self.sums = self.sums + self.rule.tally(features, scores, rows.weight)
        self.mass += float(rows.weight.sum())

    @property
    def shares(self) -> FloatArray:
        """The shares of the population that could flip."""
        return self.rule.shares(np.asarray(self.sums), self.mass)


class PopulationSource:
    """What was passed as population=, and the X whose columns are asked for.

    Parameters
    ----------
    population : Population, Margins, anything that Population takes, or None
    X : array-like or dataframe
    """

    def __init__(self, population: Any, X: Any) -> None:
        self.population, self.X = population, X
        self._kept: Reservoir | None = None

    @property
    def has_rows(self) -> bool:
        """Whether predictions can be made for the population."""
        return self.population is not None and not isinstance(self.population, Margins)

    @cached_property
    def sample(self) -> Sample:
        """X as rows."""
        return Sample.from_data(self.X)

    @property
    def _names(self) -> list[str]:
        return list(self.sample.rows.table.column_names)

    def _of(self, columns: Sequence[str] | None = None) -> Population:
        wanted = self.sample if columns is None else self.sample.select(list(columns))
        return Population.from_data(self.population).matched(wanted.rows, among=self._names)

    def flips(
        self, rule: FlipRule, read: Callable[[Any], tuple[FloatArray, FloatArray]]
    ) -> FloatArray:
        """Return the shares of the population that could flip, by one pass over its rows.

        Where :meth:`rows` has returned all of them, with all columns, by none.
        """
        question = Flips(rule, read, Form(self.X))
        if self._kept is not None:
            return self._kept.answer(question).shares
        return self._of().reduce(question).shares

    def rows(self, columns: Sequence[str]) -> DrawnPopulation:
        """Return rows with the columns that were weighed by, and how many there are."""
        population = self._of(columns)
        # If that was the whole population, flips are counted on it: no second pass is needed.
        drawn = population.reduce(Reservoir(POPULATION_ROWS))
        if drawn.whole(population.size) and drawn.rows.schema.names == self._names:
            self._kept = drawn
        return DrawnPopulation(drawn.rows, drawn.weight / drawn.weight.sum(), population.size)
