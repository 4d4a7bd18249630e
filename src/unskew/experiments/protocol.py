"""One draw of the experiment: split, select, weigh, train, evaluate.

Each draw has its own random stream, which depends only on the seed and from the draw's name, so
that draws can be made in any order and by any number of processes.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler
from threadpoolctl import threadpool_limits

from unskew import effective_sample_size
from unskew.errors import InputError, UnskewError
from unskew.experiments.datasets import DataSet
from unskew.experiments.learners import Learner, paper_svr
from unskew.experiments.methods import TOTALS, Array, Drawn, Method
from unskew.experiments.paper import TABLE_1
from unskew.experiments.sampling import MECHANISMS, expected_size

SCALINGS = {"range": MinMaxScaler, "standard": StandardScaler}
"""How the inputs are scaled: to [0, 1], or to mean 0 and variance 1."""

MAX_TRIALS = 100_000
"""How many w are drawn at most until one has the printed sample size."""


@dataclass(frozen=True)
class Reading:
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
    "ours": Reading(),
    "any-size": Reading(sized=False),
    "standard-w": Reading(selecting=StandardScaler, sized=False),
    "range-w": Reading(selecting=MinMaxScaler, sized=False),
    "scaled-by-all": Reading(scaled_by="all"),
    "first-rows": Reading(shuffled=False),
    "range-target": Reading(target=MinMaxScaler),
    "raw-target": Reading(target=FunctionTransformer),
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
class Scores:
    """What one method achieved in one draw: its test error for each total of the weights."""

    ess: float
    nmse: dict[str, float]


@dataclass(frozen=True)
class Outcome:
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
    methods: dict[str, Scores]
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


def direction(data: DataSet, number: int, *, seed: int, reading: Reading = OURS) -> Array:
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
    methods: Mapping[str, Method],
    wanted: Mapping[str, Sequence[str]],
    *,
    seed: int,
    learner: Learner = paper_svr,
    reading: Reading = OURS,
) -> Outcome:
    """Make one draw and return what each method achieved.

    Parameters
    ----------
    case : Case
    data : DataSet
    methods : dict of Method
    wanted : dict of sequences
        For each method that takes part, the totals to train with.
    seed : int
    learner : Learner
        By default the paper's SVR.
    reading : Reading
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
    methods: Mapping[str, Method],
    wanted: Mapping[str, Sequence[str]],
    seed: int,
    learner: Learner,
    reading: Reading,
) -> Outcome:
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
        scores[name] = Scores(
            ess=effective_sample_size(weights),
            # Weights of another total that happen to be the same numbers need no second training.
            nmse={total: errors[sum_] for total, sum_ in sums.items() if sum_ in errors},
        )
        watch.lap("training")
    return Outcome(
        m=len(drawn.sample),
        n=len(drawn.population),
        n_test=len(test),
        methods=scores,
        seconds=seconds,
    )


def _draw(case: Case, data: DataSet, seed: int, reading: Reading) -> tuple[Drawn, Array, Array]:
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
    drawn = Drawn(population[mask], y[in_population][mask], probabilities[mask], population)
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
