"""Which draws an experiment consists of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product

import numpy as np
import scipy
import sklearn

import unskew
from unskew.errors import ParameterError
from unskew.experiments.datasets import DataSet
from unskew.experiments.learners import LEARNERS
from unskew.experiments.methods import METHODS, TOTALS, Method
from unskew.experiments.protocol import OURS, SCALINGS, Case, Outcome, Reading
from unskew.experiments.sampling import MECHANISMS

Work = tuple[Case, dict[str, list[str]]]
"""A draw, and for each method that takes part the totals to train with."""

FORMAT = 2
"""Increases when a draw of the same name would give another result."""

CHOOSING_DRAWS = 10
"""On how many draws of each direction the reported one is chosen, by default."""


@dataclass(frozen=True)
class Plan:
    """What an experiment consists of.

    Parameters
    ----------
    sets : tuple of DataSet
    draws : int
        Of the chosen direction under logistic selection, and of each other mechanism.
    scalings, mechanisms, totals : tuple of str
        Keys of ``SCALINGS``, ``MECHANISMS`` and ``TOTALS``. Mechanisms other than "logistic" run
        under the first scaling only, and with a new direction in each draw: no direction
        is chosen there.
    methods : dict of Method
        By name. Kept draws identify a method by its name alone, so different methods need
        different names.
    further : dict of Method
        Methods that only take part in the average over all directions.
    learner : str
        A key of ``LEARNERS``.
    reading : Reading
        Of what the paper leaves open.
    seed : int
    directions : int
        How many w are drawn from [-1, 1]^d, of which the paper reports one.
    choosing_draws : int
        The first draws of each direction, on which that one is chosen.
    averaging_draws : int
        The first draws of each direction that enter the average over all directions, with every
        method, under the first scaling and the ``averaging_totals`` only; never more than
        ``choosing_draws``. 0 leaves this average out.
    """

    sets: tuple[DataSet, ...]
    draws: int = 10
    scalings: tuple[str, ...] = ("range",)
    mechanisms: tuple[str, ...] = ("logistic",)
    totals: tuple[str, ...] = tuple(TOTALS)
    methods: Mapping[str, Method] = field(default_factory=lambda: dict(METHODS))
    further: Mapping[str, Method] = field(default_factory=dict)
    learner: str = "svr"
    reading: Reading = OURS
    seed: int = 0
    directions: int = 10
    choosing_draws: int = CHOOSING_DRAWS
    averaging_draws: int = 1

    def __post_init__(self) -> None:
        for name in ("draws", "directions", "choosing_draws"):
            if getattr(self, name) < 1:
                raise ParameterError(f"{name} must be 1 or more; got {getattr(self, name)}.")
        if self.averaging_draws < 0:
            raise ParameterError(f"averaging_draws must be 0 or more; got {self.averaging_draws}.")
        for name in ("sets", "scalings", "mechanisms", "totals"):
            if not getattr(self, name):
                raise ParameterError(f"{name} is empty: there is nothing to do.")
        for name, known in (
            ("scalings", SCALINGS),
            ("mechanisms", MECHANISMS),
            ("totals", TOTALS),
            ("learner", LEARNERS),
        ):
            given = getattr(self, name)
            for each in [given] if isinstance(given, str) else given:
                if each not in known:
                    raise ParameterError(
                        f"{name}: '{each}' is unknown. Choose from {', '.join(known)}."
                    )
        if missing := {"Unweighted", "Ideal"} - set(self.methods):
            raise ParameterError(f"methods lacks {missing.pop()}, which chooses the direction.")

    @property
    def all_methods(self) -> dict[str, Method]:
        """The methods that take part anywhere."""
        return {**self.methods, **self.further}

    @property
    def averaging_totals(self) -> tuple[str, ...]:
        """The totals of the average over all directions: one that is equal for all is enough."""
        return tuple(total for total in self.totals if total != "population")

    @property
    def settings(self) -> dict[str, object]:
        """What decides the outcome of a draw, apart from its name and data."""
        return {
            "format": FORMAT,
            "seed": self.seed,
            "learner": self.learner,
            "reading": str(self.reading),
            "unskew": unskew.__version__,
            "numpy": np.__version__,
            "scipy": scipy.__version__,
            "scikit-learn": sklearn.__version__,
        }

    def first_stage(self) -> Iterator[Work]:
        """Yield what can be done before the directions are chosen."""
        everything = {name: list(self.totals) for name in self.methods}
        averaging = {name: list(self.averaging_totals) for name in self.all_methods}
        choosing = {name: ["paper"] for name in ("Unweighted", "Ideal")}
        for name in (data.name for data in self.sets):
            for mechanism in self.mechanisms:
                if mechanism != "logistic":
                    for draw in range(self.draws):
                        yield Case(name, self.scalings[0], mechanism, None, draw), everything
            for scaling, number in self._directions():
                for draw in range(self.choosing_draws):
                    case = Case(name, scaling, "logistic", number, draw)
                    yield case, choosing
                    if scaling == self.scalings[0] and draw < self.averaging_draws:
                        yield case, averaging

    def _directions(self) -> Iterator[tuple[str, int]]:
        if "logistic" in self.mechanisms:
            yield from product(self.scalings, range(self.directions))

    def second_stage(self, chosen: Mapping[tuple[str, str], int]) -> Iterator[Work]:
        """Yield the draws of the chosen directions."""
        everything = {name: list(self.totals) for name in self.methods}
        for (name, scaling), number in chosen.items():
            for draw in range(self.draws):
                yield Case(name, scaling, "logistic", number, draw), everything


def choose_directions(plan: Plan, outcomes: Mapping[Case, Outcome]) -> dict[tuple[str, str], int]:
    """Return, for each set and scaling, the direction with the largest mean gain of Ideal.

    That is the mean of Unweighted's error less Ideal's, both with the paper's total weight. The
    first of equals is taken.
    """
    if "logistic" not in plan.mechanisms:
        return {}
    chosen = {}
    for data in plan.sets:
        for scaling in plan.scalings:
            gains = []
            for number in range(plan.directions):
                methods = [
                    outcomes[Case(data.name, scaling, "logistic", number, draw)].methods
                    for draw in range(plan.choosing_draws)
                ]
                gains.append(
                    np.mean(
                        [m["Unweighted"].nmse["paper"] - m["Ideal"].nmse["paper"] for m in methods]
                    )
                )
            chosen[data.name, scaling] = int(np.argmax(gains))
    return chosen
