"""A fitted model that a region of weights certifies, whatever its learner is."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from unskew.numerics.typing import IntArray
from unskew.theory.asked import Asked
from unskew.theory.bound import Bound
from unskew.theory.fitted import KernelModel, read_model
from unskew.theory.kernel_certificate import region_certificate
from unskew.theory.linear_certificate import linear_certificate
from unskew.theory.linear_models import LINEAR, last_step, read_linear
from unskew.theory.linear_moves import LinearSystem
from unskew.theory.regions import Region
from unskew.theory.wording import Known


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
