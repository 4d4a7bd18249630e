r"""What share of a classifier's predictions could be another: a bound, asked in one pass.

A row with features x and the score s flips only if its score moves by |s| towards zero. If the
change of the model lies in an ellipsoid, so that the score moves by :math:`e^\top z(x)` with
:math:`|e| \le 1`, up to a rest, no row with :math:`\lVert z \rVert < c`, c being |s| less the rest,
can flip. But one e cannot flip all others: with :math:`P = e e^\top`, a row that flips has
:math:`z^\top P z \ge c^2`, so that for any :math:`a(x)` in [0, 1] the share of those that flip is
at most

.. math:: \max_{\operatorname{tr} P \le 1} E \min(1, z^\top P z / c^2) \le
          E(1 - a) + \lambda_{\max} \bigl(E\, a\, z z^\top / c^2\bigr).

The bound holds for whatever a is chosen. Here a is one where :math:`z^\top P z < c^2` for a P that
is found, by Frank and Wolfe's method, on rows of the weighted sample; the population is asked once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.linalg import eigh

from unskew.numerics.typing import FloatArray
from unskew.population.forms import Form
from unskew.population.summaries import RowBlock, Summary

MOST_DIMENSIONS = 200
"""Of the ellipsoid, beyond which rows are counted singly: the matrix would cost too much."""

SEARCHED_ROWS = 1_000
"""Rows of the sample on which P is searched, at most. Any P gives a valid bound."""

STEPS = 15
"""Of Frank and Wolfe's method."""

CHUNK = 256
"""Rows that are counted at once."""


class FlipRule(ABC):
    """Which rows could flip, given what each row adds to a few sums."""

    @abstractmethod
    def tally(self, features: FloatArray, scores: FloatArray, weight: FloatArray) -> FloatArray:
        """Return what rows add to the sums."""

    @abstractmethod
    def shares(self, sums: FloatArray, mass: float) -> FloatArray:
        """Return the share of the rows that could flip: a bound, or one for each draw."""


class Anywhere(FlipRule):
    """Every score can move by the same distance.

    Parameters
    ----------
    reach : float
    """

    def __init__(self, reach: float) -> None:
        self.reach = reach

    def tally(self, features: FloatArray, scores: FloatArray, weight: FloatArray) -> FloatArray:  # noqa: ARG002
        """Return the weight of the rows that are near enough."""
        return np.array([weight[np.abs(scores) <= self.reach].sum()])

    def shares(self, sums: FloatArray, mass: float) -> FloatArray:
        """Return their share."""
        return sums / mass


@dataclass(frozen=True)
class Ellipsoid:
    r"""Scores move by at most :math:`\lVert A x \rVert + |b^\top x| + r \lVert R x \rVert`.

    Attributes
    ----------
    along : ndarray of shape (k, d)
        A: the score moves by e times this, for one e of length one at most.
    centre : ndarray of shape (d,) or None
        b
    root : ndarray of shape (d, d)
        R
    rest : float
        r
    """

    along: FloatArray
    centre: FloatArray | None
    root: FloatArray
    rest: float

    def parts(self, features: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return A x, and the rest of the reach, of each row."""
        rest = np.zeros(len(features))
        if self.rest:
            rest += self.rest * np.linalg.norm(features @ self.root.T, axis=1)
        if self.centre is not None:
            rest += np.abs(features @ self.centre)
        return features @ self.along.T, rest

    def reach(self, features: FloatArray) -> FloatArray:
        """Return by how much each row's score can move."""
        z, rest = self.parts(features)
        return np.asarray(np.linalg.norm(z, axis=1) + rest)


class WithinEllipsoid(FlipRule):
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
            z, rest = ellipsoid.parts(features[kept])
            self.root = _hardest(z, np.abs(scores[kept]) - rest, weights[kept])

    def tally(self, features: FloatArray, scores: FloatArray, weight: FloatArray) -> FloatArray:
        """Return the weight of rows that could flip singly, of those not bounded, and a matrix."""
        z, rest = self.ellipsoid.parts(features)
        far = np.abs(scores) - rest
        single = weight[np.linalg.norm(z, axis=1) >= far].sum()
        if self.root is None:
            return np.array([single])
        bounded = (far > 0) & (np.square(z @ self.root).sum(axis=1) < far**2)
        scaled = z[bounded] * (np.sqrt(weight[bounded]) / far[bounded])[:, None]
        return np.append([single, weight[~bounded].sum()], scaled.T @ scaled)

    def shares(self, sums: FloatArray, mass: float) -> FloatArray:
        """Return the smaller of the two bounds."""
        if self.root is None:
            return sums / mass
        together = sums[1] + _largest(sums[2:].reshape(self.size, self.size))[0]
        return np.array([min(sums[0], together) / mass])


def _hardest(z: FloatArray, far: FloatArray, weight: FloatArray) -> FloatArray:
    """Return a root of the P for which the bound is the least of those tried."""
    size, shares = z.shape[1], weight / weight.sum()
    P, best, found = np.eye(size) / size, np.inf, np.zeros((size, size))
    for step in range(STEPS):
        bounded = (far > 0) & (np.einsum("ij,ij->i", z @ P, z) < far**2)
        scaled = z[bounded] * (np.sqrt(shares[bounded]) / far[bounded])[:, None]
        largest, direction = _largest(scaled.T @ scaled)
        bound = float(shares[~bounded].sum()) + largest
        if bound < best:
            values, vectors = np.linalg.eigh(P)
            best, found = bound, vectors * np.sqrt(np.maximum(values, 0.0))
        P += 2 / (step + 3) * (np.outer(direction, direction) - P)
    return found


def _largest(matrix: FloatArray) -> tuple[float, FloatArray]:
    last = len(matrix) - 1
    values, vectors = eigh(matrix, subset_by_index=[last, last])
    return max(float(values[0]), 0.0), vectors[:, 0]


class PerDraw(FlipRule):
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
            away = np.sign(scores[own])[:, None]
            towards = (features[own] * -away) @ self.steps
            towards += np.multiply.outer(length[own], self.rest)
            found += weight[own] @ (towards >= np.abs(scores[own])[:, None])
        return found

    def shares(self, sums: FloatArray, mass: float) -> FloatArray:
        """Return the share in each draw."""
        return sums / mass


class Several(FlipRule):
    """Several rules at once.

    Parameters
    ----------
    rules : sequence of FlipRule
    """

    def __init__(self, rules: Sequence[FlipRule]) -> None:
        self.rules = list(rules)
        self.sizes: list[int] = []

    def tally(self, features: FloatArray, scores: FloatArray, weight: FloatArray) -> FloatArray:
        """Return what all rules add, one after the other."""
        parts = [rule.tally(features, scores, weight) for rule in self.rules]
        self.sizes = [len(part) for part in parts]
        return np.concatenate(parts)

    def shares(self, sums: FloatArray, mass: float) -> FloatArray:
        """Return the shares by each rule."""
        parts = np.split(sums, np.cumsum(self.sizes)[:-1])
        return np.concatenate(
            [rule.shares(part, mass) for rule, part in zip(self.rules, parts, strict=True)]
        )


class Flips(Summary):
    """The sums of a rule over rows of the population.

    Parameters
    ----------
    rule : FlipRule
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
