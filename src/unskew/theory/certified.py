"""A fitted model that a region of weights certifies, whatever its learner is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from unskew.numerics.typing import FloatArray, IntArray
from unskew.theory.asked import Asked
from unskew.theory.bound import Bound
from unskew.theory.fitted import KernelModel, read_model
from unskew.theory.flips import Anywhere, FlipRule
from unskew.theory.kernel_certificate import region_certificate
from unskew.theory.linear_certificate import best_rule, linear_certificate
from unskew.theory.linear_models import LINEAR, last_step, read_linear
from unskew.theory.linear_moves import LinearSystem
from unskew.theory.regions import Region
from unskew.theory.wording import FLIPPED, Known

NOTHING_KNOWN = Known("", "", (), (), {})


class Reach(NamedTuple):
    """How far a model can have moved."""

    value: float
    """As a root mean square over the weighted sample."""
    flips: Callable[[], tuple[float, FlipRule]]
    """Of a classifier: the share of the weighted sample that could flip, and which rows could."""


@dataclass(frozen=True)
class Given:
    """A fitted model, and what was passed with it."""

    model: Any
    X: Any
    y: Any
    population: Any
    refits: int
    random_state: Any

    @cached_property
    def fitted(self) -> KernelModel | LinearSystem:
        """The learner as the certificate sees it."""
        if isinstance(last_step(self.model), LINEAR):
            return LinearSystem(read_linear(self.model, self.X, self.y))
        return read_model(self.model, self.X)

    @property
    def rows(self) -> IntArray:
        """The places in the sample of the rows on which the learner depends."""
        if isinstance(self.fitted, LinearSystem):
            return np.arange(len(self.model.weights_))
        return self.fitted.places

    @cached_property
    def asked(self) -> Asked:
        """The population, and the columns that are asked for."""
        return Asked(self.population, self.X)

    def reach(self, region: Region) -> Reach:
        """Return how far the weights of a region can move the model, and whom they could flip."""
        if isinstance(self.fitted, LinearSystem):
            system, moves = self.fitted, self.fitted.moves(region)
            return Reach(moves.on_average, lambda: best_rule(system, moves))
        bound = region_certificate(
            self.fitted, self.model.weights_, region, NOTHING_KNOWN, Asked(None, self.X)
        )
        anywhere = Anywhere(float(bound.terms["dual certificate, at any single point"]))
        return Reach(bound.value, lambda: (float(bound.terms[FLIPPED]), anywhere))

    def read(self, rows: Any) -> tuple[FloatArray, FloatArray]:
        """Return features and scores of rows in the form of X."""
        if isinstance(self.fitted, LinearSystem):
            return self.fitted.read(rows)
        return np.empty((len(rows), 0)), np.asarray(self.fitted.score(rows))

    def certify(self, region: Region, known: Known, delta: float = 0.05) -> Bound:
        """Return the certificate for all weights of a region."""
        if isinstance(self.fitted, LinearSystem):
            return linear_certificate(
                self.fitted,
                region,
                known,
                self.asked,
                delta=delta,
                refits=self.refits,
                random_state=self.random_state,
            )
        return region_certificate(self.fitted, self.model.weights_, region, known, self.asked)
