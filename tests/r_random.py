"""Random numbers as R draws them, to make the data of examples that R's packages print."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

_BIG = 134217728  # 2²⁷: a normal number takes two uniform ones


class RRandom:
    """R's default generator after ``set.seed(seed)``: Mersenne Twister, normal by inversion."""

    def __init__(self, seed: int) -> None:
        state, states = seed, []
        for place in range(50 + 625):
            state = (69069 * state + 1) % 2**32
            if place > 50:
                states.append(state)
        self._twister = np.random.RandomState()
        self._twister.set_state(("MT19937", np.array(states, dtype=np.uint32), 624))

    def runif(self, n):
        """Return what ``runif(n)`` does."""
        return self._twister.randint(0, 2**32, size=n, dtype=np.uint64) * 2.3283064365386963e-10

    def rnorm(self, n):
        """Return what ``rnorm(n)`` does."""
        first, second = self.runif(2 * n).reshape(n, 2).T
        return ndtri((np.floor(_BIG * first) + second) / _BIG)

    def pairs(self, n, correlation):
        """Return what mvtnorm's ``rmvnorm`` does, for two standard normal numbers."""
        sizes, axes = np.linalg.eigh([[1, correlation], [correlation, 1]])
        return self.rnorm(2 * n).reshape(n, 2) @ (axes * np.sqrt(sizes)) @ axes.T
