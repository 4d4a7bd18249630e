"""One draw of the experiment, and which draws an experiment consists of.

A draw: split the rows into population and test rows, select a biased sample from the population,
weigh it by each method, train, evaluate. Each draw has its own random stream, which depends only on
the seed and on the draw's name, so that draws can be made in any order and by any number of
processes.

A plan: ten directions w of selection for each set, a few draws of each; the direction with the
largest gain of Ideal over Unweighted is chosen, as the paper does; then the reported draws.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import product
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import scipy
import sklearn
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler
from threadpoolctl import threadpool_limits

import unskew
from unskew.errors import InputError, ParameterError, UnskewError
from unskew.paper.datasets import DataSet
from unskew.paper.learners import LEARNERS, Learner, paper_svr
from unskew.paper.methods import METHODS, TOTALS, Array, BiasedSample, ComparedWeights
from unskew.paper.printed import TABLE_1
from unskew.paper.selection import MECHANISMS, expected_size

SCALINGS = {"range": MinMaxScaler, "standard": StandardScaler}
"""How the inputs are scaled: to [0, 1], or to mean 0 and variance 1."""

MAX_TRIALS = 100_000
"""How many w are drawn at most until one has the printed sample size."""


@dataclass(frozen=True)
class PaperReading:
    """What the paper leaves open, besides the scaling of the inputs; the defaults are our choice.

    Parameters
    ----------
    target : scaler class
        How the target is scaled.
    selecting : scaler class
        How the inputs are scaled for the selection along w; the learner's own scaling is separate.
    scaled_by : {"population", "all"}
        Whose rows the scaling is learned from: those of U, or all.
    sized : bool
        Whether w is drawn given the printed sample size m: its expected sample size is within one
        standard deviation √(m(1 - m/n)) of m. Sets that are not in the paper have no such m.
    shuffled : bool
        Whether each draw splits the rows anew, or the population is always the first n rows.
    """

    target: Any = StandardScaler
    selecting: Any = FunctionTransformer
    scaled_by: str = "population"
    sized: bool = True
    shuffled: bool = True

    def __str__(self) -> str:
        scalers = f"target={self.target.__name__}, selecting={self.selecting.__name__}"
        return (
            f"{scalers}, scaled_by={self.scaled_by}, sized={self.sized}, shuffled={self.shuffled}"
        )


READINGS = {
    "ours": PaperReading(),
    "any-size": PaperReading(sized=False),
    "standard-w": PaperReading(selecting=StandardScaler, sized=False),
    "range-w": PaperReading(selecting=MinMaxScaler, sized=False),
    "scaled-by-all": PaperReading(scaled_by="all"),
    "first-rows": PaperReading(shuffled=False),
    "range-target": PaperReading(target=MinMaxScaler),
    "raw-target": PaperReading(target=FunctionTransformer),
}
"""The readings by name; each differs from ours in one point, except that no w on scaled inputs has
the printed sample sizes, so that these come without that condition."""

OURS = READINGS["ours"]


class Case(NamedTuple):
    """The name of a draw; direction is the number of its w, None where it has one of its own."""

    set: str
    scaling: str
    mechanism: str
    direction: int | None
    draw: int


@dataclass(frozen=True)
class MethodScores:
    """What one method achieved in one draw: its test error for each total of the weights."""

    ess: float
    nmse: dict[str, float]


@dataclass(frozen=True)
class DrawOutcome:
    """What one draw gave.

    Attributes
    ----------
    seconds : dict
        Spent on the kernel, on each method's weights and on training and predicting.
    warnings : list of str
        What the weighters warned of.
    """

    m: int
    n: int
    n_test: int
    methods: dict[str, MethodScores]
    seconds: dict[str, float] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)


def nmse(y_true: Array, y_pred: Array) -> float:
    r"""Return :math:`\frac1n \sum_i (y_i - \hat y_i)^2 / \sigma_y^2`, σ_y that of ``y_true``.

    Examples
    --------
    >>> nmse(np.array([1.0, 3.0]), np.array([1.0, 2.0]))
    0.5
    """
    return float(np.mean((y_true - y_pred) ** 2) / np.var(y_true))


def random_stream(seed: int, *name: object) -> np.random.RandomState:
    """Return the random numbers that belong to a name, the same on every machine."""
    words = np.frombuffer(sha256(repr(name).encode()).digest(), dtype="<u4")
    sequence = np.random.SeedSequence([seed, *(int(word) for word in words)])
    return np.random.RandomState(np.random.MT19937(sequence))


def direction(data: DataSet, number: int, *, seed: int, reading: PaperReading = OURS) -> Array:
    """Return one of a set's directions w, uniform on [-1, 1]^d; the same for every scaling.

    Where the reading asks for it, the first of the stream that has the printed sample size.
    """
    random = random_stream(seed, data.name, "direction", number)
    n_features = data.X.shape[1]
    if not reading.sized or data.name not in TABLE_1:
        return np.asarray(random.uniform(-1.0, 1.0, n_features))
    selecting, printed = reading.selecting().fit_transform(data.X), TABLE_1[data.name]
    within = np.sqrt(printed.m * (1 - printed.m / printed.n))
    for _ in range(MAX_TRIALS):
        w = np.asarray(random.uniform(-1.0, 1.0, n_features))
        if abs(expected_size(selecting, w, printed.n) - printed.m) <= within:
            return w
    raise InputError(
        f"{data.name}: none of {MAX_TRIALS} directions has an expected sample size near the "
        f"printed {printed.m}. Take a reading without that condition."
    )


def run_case(
    case: Case,
    data: DataSet,
    methods: Mapping[str, ComparedWeights],
    wanted: Mapping[str, Sequence[str]],
    *,
    seed: int,
    learner: Learner = paper_svr,
    reading: PaperReading = OURS,
) -> DrawOutcome:
    """Make one draw and return what each method achieved.

    Parameters
    ----------
    case : Case
    data : DataSet
    methods : dict of ComparedWeights
    wanted : dict of sequences
        For each method that takes part, the totals to train with.
    seed : int
    learner : Learner
        By default the paper's SVR.
    reading : PaperReading
    """
    with threadpool_limits(limits=1), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            outcome = _run(case, data, methods, wanted, seed, learner, reading)
        except UnskewError as error:
            raise InputError(f"{case.set}, {case.mechanism}, draw {case.draw}: {error}") from error
    outcome.warnings.extend(sorted({str(warning.message) for warning in caught}))
    return outcome


def _run(
    case: Case,
    data: DataSet,
    methods: Mapping[str, ComparedWeights],
    wanted: Mapping[str, Sequence[str]],
    seed: int,
    learner: Learner,
    reading: PaperReading,
) -> DrawOutcome:
    drawn, test, test_labels = _draw(case, data, seed, reading)
    seconds: dict[str, float] = {}
    watch = _Watch(seconds)
    predict = learner(drawn.sample, drawn.labels, test)
    watch.lap("kernel")
    scores = {}
    for name, totals in wanted.items():
        weighter = methods[name].weighter(drawn)
        weighter.fit(drawn.sample, drawn.labels, population=drawn.population)
        weights = weighter.weights_ / weighter.weights_.mean()
        watch.lap(name)
        sums = {
            total: (count or methods[name].paper_total)(drawn) for total, count in TOTALS.items()
        }
        errors = {
            sum_: nmse(test_labels, predict(weights * (sum_ / len(weights))))
            for sum_ in dict.fromkeys(sums[total] for total in totals)
        }
        scores[name] = MethodScores(
            ess=unskew.effective_sample_size(weights),
            # Weights of another total that happen to be the same numbers need no second training.
            nmse={total: errors[sum_] for total, sum_ in sums.items() if sum_ in errors},
        )
        watch.lap("training")
    return DrawOutcome(
        m=len(drawn.sample),
        n=len(drawn.population),
        n_test=len(test),
        methods=scores,
        seconds=seconds,
    )


def _draw(
    case: Case, data: DataSet, seed: int, reading: PaperReading
) -> tuple[BiasedSample, Array, Array]:
    """Split the rows into population and test rows, and select the sample from the population."""
    # The scaling is not part of the name, so that the same rows are drawn under each.
    random = random_stream(seed, case.set, case.mechanism, case.direction, case.draw)
    rows = random.permutation(len(data.y)) if reading.shuffled else np.arange(len(data.y))
    in_population, in_test = rows[: data.n], rows[data.n : data.n + data.n_test]
    scaled_by = in_population if reading.scaled_by == "population" else rows
    X = SCALINGS[case.scaling]().fit(data.X[scaled_by]).transform(data.X)
    labels = data.y.reshape(-1, 1)
    y = reading.target().fit(labels[scaled_by]).transform(labels).ravel()
    population = X[in_population]
    w = None
    if case.direction is not None:
        w = direction(data, case.direction, seed=seed, reading=reading)
    mask, probabilities = MECHANISMS[case.mechanism](
        reading.selecting().fit(data.X[scaled_by]).transform(data.X[in_population]),
        y[in_population],
        direction=w,
        random_state=random,
    )
    if not mask.any():
        raise InputError("no row was selected; the set is too small for this experiment.")
    drawn = BiasedSample(population[mask], y[in_population][mask], probabilities[mask], population)
    return drawn, X[in_test], y[in_test]


class _Watch:
    """Adds the time since the last lap to an account."""

    def __init__(self, accounts: dict[str, float]) -> None:
        self._accounts = accounts
        self._last = perf_counter()

    def lap(self, account: str) -> None:
        now = perf_counter()
        self._accounts[account] = self._accounts.get(account, 0.0) + now - self._last
        self._last = now


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
    methods : dict of ComparedWeights
        By name. Kept draws identify a method by its name alone, so different methods need
        different names.
    further : dict of ComparedWeights
        Methods that only take part in the average over all directions.
    learner : str
        A key of ``LEARNERS``.
    reading : PaperReading
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
    methods: Mapping[str, ComparedWeights] = field(default_factory=lambda: dict(METHODS))
    further: Mapping[str, ComparedWeights] = field(default_factory=dict)
    learner: str = "svr"
    reading: PaperReading = OURS
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
    def all_methods(self) -> dict[str, ComparedWeights]:
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


def choose_directions(
    plan: Plan, outcomes: Mapping[Case, DrawOutcome]
) -> dict[tuple[str, str], int]:
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
