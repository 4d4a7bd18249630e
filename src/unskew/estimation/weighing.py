"""The weights for an estimate, in one pass, and those of its bootstrap replicates.

Whatever an estimate asks of the population is answered in the pass that weighs. A replicate is the
same rows with other design weights: whole clusters are drawn with replacement in each stratum, and
population rows in blocks; the question that was asked once is answered again from the blocks, and
the weighter solves again. :func:`replicate_weights` hands these weights to the user.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from unskew.errors import EstimateWarning, InputError, ParameterError, UnskewError, warn_caller
from unskew.estimation.inputs import open_design, opened
from unskew.estimation.outcome_models import GroupSums
from unskew.numerics.cores import in_order, n_threads, one_blas_thread
from unskew.numerics.design_variance import SurveyDesign
from unskew.numerics.typing import BoolArray, FloatArray
from unskew.population.margins import Margins
from unskew.population.open_sample import open_sample
from unskew.population.population import Population, progress_of
from unskew.population.progress import tell, watching
from unskew.population.reservoir import Reservoir
from unskew.population.summaries import OfColumns, Summaries, Summary
from unskew.rows.sample import Sample
from unskew.rows.tables import RowBlock
from unskew.weighters.auto import default_weighter
from unskew.weighters.base import Fit, Weighter, ask, fit_beside, replicator, weighed_columns
from unskew.weighters.inductive import InductiveWeighter, weigh_rows
from unskew.weighters.linearisation import Linearisation

NOISE_ROWS = 20_000
"""Rows of the population from which its own sampling noise is estimated; all, if it has fewer."""


@dataclass(frozen=True)
class Weighed:
    """A sample with its weights, and what the pass has answered beside them."""

    weighter: Weighter
    fit: Fit
    sums: GroupSums | None
    drawn: Reservoir | None
    """Rows of the population; None where it has none, or is known without error."""
    n_rows: int
    """The population's."""
    census: bool = False
    """Whether the population is complete, and its own number is asked for."""

    @property
    def weights(self) -> FloatArray:
        """One weight for each sample row."""
        return self.weighter.weights_

    @cached_property
    def linearisation(self) -> Linearisation | None:
        """How the weights follow the rows; None where only a bootstrap can show it."""
        return self.weighter.linearisation(self.fit.sample)

    @property
    def beyond_itself(self) -> FloatArray:
        """The share of each row's variance that counts: of a census, what it does not stand for."""
        if not self.census:
            return np.ones(len(self.weights))
        whole = self.weights * (self.mass() / self.weights.sum())
        return np.maximum(1.0 - 1.0 / np.maximum(whole, 1e-300), 0.0)

    @cached_property
    def drawn_rows(self) -> pa.RecordBatch:
        """The rows that were drawn of the population, with the columns that were weighed by."""
        assert self.drawn is not None
        return self.select_columns(self.drawn.rows)

    def mass(self) -> float:
        """Return the population's size, or raise that it is not known."""
        return self.fit.target.mass

    def select_columns(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return rows that were drawn with the columns that were weighed by."""
        return batch.select(self.fit.sample.rows.table.column_names)


def weigh(
    fitted: Weighter,
    given: Sample,
    population: Population | Margins,
    columns: Sequence[str],
    sums: GroupSums | None,
    *,
    census: bool,
    beside: Sequence[OfColumns[Any]] = (),
) -> Weighed:
    """Fit the weights; ask for the sums, and draw rows, in the same pass.

    Parameters
    ----------
    fitted : Weighter
        It is fitted.
    given : Sample
        With all columns of X.
    population : Population or Margins
    columns : sequence of str
        Those of X that ``sums`` needs.
    sums : GroupSums or None
    census : bool
        Whether the population has no sampling noise of its own.
    beside : sequence of OfColumns
        What else the pass answers.
    """
    if not given.in_memory:
        raise InputError("X is a distributed table; replicates need a sample in memory.")
    rows = isinstance(population, Population)
    drawn = Reservoir(NOISE_ROWS) if rows and not census else None
    asked: list[Summary] = [one for one in (sums, drawn) if one is not None]
    if asked:
        weighed_by = weighed_columns(fitted, given, population)[0].rows.table.column_names
        needed = {*weighed_by, *columns}
        wide = [name for name in given.rows.table.column_names if name in needed]
        read = weighed_by if needed == set(weighed_by) else wide
        beside = [*beside, OfColumns(read, Summaries(asked))]
    fit = fit_beside(fitted, given, population, beside)
    size = population.size if isinstance(population, Population) else 0
    return Weighed(fitted, fit, sums, drawn, size, census)


Answers = tuple[Summary | None, GroupSums | None]
"""What the weighter and the estimate have asked."""
MOST_BLOCKS = 400
TOLD_EVERY = 10
MOST_FAILURES = 0.1
"""The share of replicates without weights above which there is no certificate."""


class Replicates:
    """Weights that were solved again, and the sums of the population that was drawn with them.

    Sample units are drawn again within strata. What was asked of the population is drawn from the
    normal distribution of such answers, whose variance is that between blocks of its rows; a
    weighter that keeps rows of the population gets these with other weights. The question stays:
    a tree is not grown again.

    Parameters
    ----------
    weighed : Weighed
    design : SurveyDesign
    n_replicates : int
    random_state : int, RandomState instance or None
    of_all_rows : bool
        Whether to give each replicate's weights of all sample rows, as of new rows, instead of
        those of the rows that were drawn. The weighter must be able to weigh new rows.
    """

    def __init__(
        self,
        weighed: Weighed,
        design: SurveyDesign,
        n_replicates: int,
        random_state: Any,
        *,
        of_all_rows: bool = False,
    ) -> None:
        self._weighed, self._design, self._n = weighed, design, n_replicates
        self._of_all_rows = of_all_rows
        self._random = check_random_state(random_state)
        self._failed: list[UnskewError] = []
        self._tried = 0
        fit = weighed.fit
        self._answers: Answers = (fit.answer, weighed.sums)
        self._replicator = replicator(weighed.weighter, fit)
        self._blocks: list[FloatArray] = []
        self._counts: list[BoolArray] = []
        if weighed.drawn is not None and weighed.drawn.rows is not None:
            self._blocks = self._answer_by_blocks()

    def __iter__(self) -> Iterator[tuple[FloatArray, GroupSums | None]]:
        sample = self._weighed.fit.sample
        sample.order  # noqa: B018  (made once, before threads share it)

        def drawn() -> Iterator[tuple[Answers, FloatArray]]:
            for _ in range(self._n):
                self._tried += 1
                if self._tried % TOLD_EVERY == 1:
                    tell(f"drawing replicates, {self._tried:,} of {self._n:,}")
                answers = self._redrawn()
                # Of a census, a row that stands for itself alone is in every sample.
                more = self._design.redraw(self._random) - 1.0
                yield answers, 1.0 + np.sqrt(self._weighed.beyond_itself) * more

        listener = watching(progress_of(self._weighed.fit.target))
        with warnings.catch_warnings(), one_blas_thread(), listener:
            warnings.simplefilter("ignore")  # they repeat what the fit has said
            for answers, times, weights in in_order(self._solve, drawn(), n_threads(None)):
                if not isinstance(weights, UnskewError):
                    yield weights, answers[1]
                    continue
                self._failed.append(weights)
                known = self._weighed.weights * times
                if not self._of_all_rows and known.any():
                    yield known, answers[1]

    def _solve(
        self, drawn: tuple[Answers, FloatArray]
    ) -> tuple[Answers, FloatArray, FloatArray | UnskewError]:
        """Solve the weights of a replicate, or return why there are none."""
        answers, times = drawn
        try:
            sample = self._weighed.fit.sample
            twin, weights = self._replicator(sample.replicate(times), answers[0])
            if self._of_all_rows and isinstance(twin, InductiveWeighter):
                weights = weigh_rows(twin, sample)
        except UnskewError as error:
            return answers, times, error
        empty = InputError("Every row has weight zero.")
        return answers, times, weights if weights.any() else empty

    def check(self) -> None:
        """Raise if too many replicates have no weights."""
        if len(self._failed) > MOST_FAILURES * self._tried:
            raise InputError(
                f"{len(self._failed)} of {self._tried} bootstrap replicates have no weights, for "
                f"example because: {self._failed[0]}"
            )

    @property
    def notes(self) -> tuple[str, ...]:
        """Which replicates have no weights of their own."""
        if not self._failed:
            return ()
        lost = f"{len(self._failed)} of {self._tried} replicates have no weights of their own"
        if self._of_all_rows:
            return (f"{lost} and are left out.",)
        return (
            f"{lost} (such as: {self._failed[0]}) The weights of the sample stand in for them, "
            "times how often each row was drawn.",
        )

    def _answer_by_blocks(self) -> list[FloatArray]:
        """Return what blocks of the population's rows change of each number of the answers."""
        weighed, fit = self._weighed, self._weighed.fit
        drawn = weighed.drawn
        assert drawn is not None
        n_blocks = min(len(drawn.weight), MOST_BLOCKS)
        size = len(drawn.weight) // n_blocks
        order = self._random.permutation(len(drawn.weight))[: n_blocks * size]
        sums, columns = weighed.sums, fit.sample.rows.table.column_names
        empty: Answers = (
            ask(weighed.weighter, fit.sample, fit.target.about),
            None if sums is None else GroupSums(sums.groups, sums.models, sums.sums.shape[1]),
        )
        shapes = [number.shape for number in _numbers(self._answers)]
        found = []
        order = np.sort(order.reshape(n_blocks, size), axis=1).reshape(-1)
        rows, weight = drawn.rows.take(pa.array(order)), drawn.weight[order]
        for begin in range(0, len(order), size):
            answers = copy.deepcopy(empty)
            block = RowBlock(rows.slice(begin, size), weight[begin : begin + size])
            if answers[0] is not None:
                OfColumns(columns, Summaries([answers[0]])).update(block)
            if answers[1] is not None:
                answers[1].update(block)
            numbers = zip(_numbers(answers), shapes, strict=True)
            found.append([np.broadcast_to(number, shape) for number, shape in numbers])
        # So that the sum over blocks has the variance of the sum over all rows.
        scale = np.sqrt(weighed.n_rows / len(order) * n_blocks / max(n_blocks - 1, 1))
        stacked = [np.array(column) for column in zip(*found, strict=True)]
        self._counts = [_are_counts(column) for column in stacked]
        return [scale * (column - column.mean(axis=0)) for column in stacked]

    def _redrawn(self) -> Answers:
        """Return the answers of another population."""
        answers = copy.deepcopy(self._answers)
        if not self._blocks:
            return answers
        normal = self._random.standard_normal(len(self._blocks[0]))
        changes = [np.tensordot(normal, block, axes=1) for block in self._blocks]
        left = iter(zip(changes, self._counts, strict=True))
        for one in _single(answers):
            for name in one.added:
                change, is_count = next(left)
                after = getattr(one, name) + change
                setattr(one, name, np.where(is_count & (after.real < 0), 0.0, after))
        for one in _single(answers):
            if isinstance(one, Reservoir) and len(one.weight):  # its rows count as often as drawn
                n_rows = len(one.weight)
                one.count(self._random.multinomial(n_rows, np.full(n_rows, 1 / n_rows)))
        return answers


def _single(answers: Iterable[Summary | None]) -> Iterator[Summary]:
    """Yield the summaries of which answers are composed."""
    for one in answers:
        if one is not None:
            yield one
            yield from _single(one.nested())


def _numbers(answers: Sequence[Summary | None]) -> list[FloatArray]:
    """Return all numbers that passes add up."""
    return [np.asarray(getattr(one, name)) for one in _single(answers) for name in one.added]


def _are_counts(blocks: FloatArray) -> BoolArray:
    """Return which numbers are never negative, as counts and weights are."""
    if np.iscomplexobj(blocks):
        return np.zeros(blocks.shape[1:], dtype=bool)
    return np.asarray((blocks >= 0).all(axis=0))


def replicate_weights(
    X: Any,
    y: Any = None,
    *,
    population: Any,
    weighter: Weighter | None = None,
    replicates: int = 200,
    strata: ArrayLike | str | None = None,
    clusters: ArrayLike | str | None = None,
    finite_population: bool | None = None,
    sample_weight: ArrayLike | str | None = None,
    random_state: Any = 0,
) -> FloatArray:
    r"""Return weights of bootstrap replicates, as survey offices publish them.

    Each column has the weights that the method gives if sample units are drawn again within strata,
    and the population's sums from their distribution. The variance of any estimate is that of the
    same estimate with each column in turn, which needs neither the population nor the method:
    :math:`\frac{1}{R-1} \sum_r (\theta_r - \bar\theta)^2`.

    Parameters
    ----------
    X : array-like or dataframe of shape (n_samples, n_features)
        The sample.
    y : array-like of shape (n_samples,), optional
        Its labels, for weighters that use them.
    population : Population, Margins, or anything that :class:`unskew.Population` takes
    weighter : Weighter, optional
        It is fitted. By default that of :func:`unskew.estimate`.
    replicates : int, default=200
        How many.
    strata, clusters, finite_population, sample_weight, random_state
        As in :func:`unskew.estimate`. With ``finite_population`` the population's sums are fixed,
        and a row that stands for itself alone is in every replicate.

    Returns
    -------
    ndarray of shape (n_samples, replicates)
        In the scale of the weighter's ``weights_``. A row that was not drawn has weight zero.

    Warns
    -----
    EstimateWarning
        If replicates have no weights of their own: those of the sample stand in for them.

    Notes
    -----
    In R: ``survey::svrepdesign(weights=~weight, repweights=..., type="bootstrap",
    combined.weights=TRUE)``. A tree is not grown again, nor a kernel chosen.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew import replicate_weights
    >>> random = np.random.RandomState(0)
    >>> sample, population = random.normal(0.3, 1, (200, 1)), random.normal(size=(1000, 1))
    >>> columns = replicate_weights(sample, population=population, replicates=50)
    >>> means = columns.T @ sample[:, 0] / columns.sum(axis=0)
    >>> columns.shape, bool(0.02 < means.std(ddof=1) < 0.05)  # 1/√1000 is 0.032
    ((200, 50), True)
    """
    return fit_with_replicates(
        default_weighter("estimate") if weighter is None else weighter,
        X,
        y,
        population,
        sample_weight,
        replicates=replicates,
        strata=strata,
        clusters=clusters,
        finite=bool(finite_population),
        random_state=random_state,
    )


def fit_with_replicates(
    weighter: Weighter,
    X: Any,
    y: Any,
    population: Any,
    sample_weight: ArrayLike | str | None,
    *,
    replicates: int,
    strata: Any = None,
    clusters: Any = None,
    finite: bool = False,
    random_state: Any = 0,
    beside: Sequence[OfColumns[Any]] = (),
) -> FloatArray:
    """Fit the weighter, and return weights of replicates in the scale of its weights.

    Questions ``beside`` its own are filled in the same pass.
    """
    if not isinstance(replicates, Integral) or int(replicates) < 2:
        raise ParameterError(f"replicates must be 2 or more; got {replicates!r}.")
    given = open_sample(X, y, sample_weight)
    design = open_design(X, given.rows, None, strata, clusters)
    weighed = weigh(weighter, given, opened(population), [], None, census=finite, beside=beside)
    drawn = Replicates(weighed, design, int(replicates), random_state)
    found = [weights for weights, _ in drawn]
    for note in drawn.notes:
        warn_caller(EstimateWarning(note))
    total = weighed.weights.sum()
    columns = np.column_stack([weights * (total / weights.sum()) for weights in found])
    vars(weighter)["replicates_"] = columns
    return columns
