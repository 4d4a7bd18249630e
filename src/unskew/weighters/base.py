"""What all weighters share: the contract of ``fit``, the single pass, the scale of the weights.

A weighter writes ``_question``, what it asks of the population, and ``_solve``, which turns the
answer into one number per sample row. One that can weigh new rows derives from
:class:`InductiveWeighter` and also writes ``_weigh``. Everything else is done here, once.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from unskew._compat import validate_parameters
from unskew.errors import (
    InputError,
    OverlapError,
    OverlapWarning,
    ParameterError,
    RoundingWarning,
    warn_caller,
)
from unskew.numerics.typing import FloatArray
from unskew.overlap.measure import OverlapSearch
from unskew.overlap.overlap import LIMIT, Overlap, OverlapRule
from unskew.overlap.scales import ScaleCheck
from unskew.population.margins import Margins
from unskew.population.open_sample import match_columns, open_sample
from unskew.population.population import Population, progress_of
from unskew.population.progress import tell, watching
from unskew.population.summaries import About, OfColumns, Summaries, Summary
from unskew.rows.column_names import remember_columns
from unskew.rows.doubtful_columns import doubtful_columns, warn_of_doubtful_columns
from unskew.rows.sample import Rule, Sample
from unskew.weighters.linearisation import Linearisation
from unskew.weighters.next_step import NextStep
from unskew.weighters.parameters import Columns, OnUncovered, RandomState, Total, WithParameters

Family = Literal["trees", "smooth"]

WARN_ABOVE = 0.01
"""The uncovered share above which a method warns of what it leaves uncovered itself."""


class Fit(NamedTuple):
    """What a fit has seen."""

    sample: Sample
    """With the columns that were weighed by."""
    target: Population | Margins
    """With the same columns."""
    answer: Summary | None


Replicator = Callable[[Sample, Any], tuple["Weighter", FloatArray]]
"""Returns a fitted weighter and its weights of the sample."""


@dataclass(frozen=True)
class Traits:
    """What a weighter says of itself: nothing outside recognises one by its class.

    Attributes
    ----------
    assumes : str
        What must hold for the weights to be right, in a sentence.
    uncovered_means : str
        What ``uncovered_`` counts.
    judged_by : {"smooth", "trees"}
        The family of classifiers that judges the weights: one that has not made them.
    is_automatic : bool
        Whether it chooses among ways of weighing, so that a learner may choose their strength.
    refused_above : float
        The uncovered share above which weights mean nothing, so that ``overlap="warn"`` refuses.
    smoothed_by, sharpened_by : tuple of str
        Which parameters make the weights more even, or correct more, for example "a larger ridge".
    estimates : bool
        Whether weights are fitted to the sample's rows; otherwise they are known.
    corrects_columns : bool
        Whether it corrects selection by the columns; otherwise ``assumes`` says by what.
    inverts_probabilities : bool
        Whether weights over ``scale_`` are the inverse of probabilities of selection.
    matches_kernel_means : bool
        Whether the weighted sample matches the population's mean in a kernel's feature space.
    has_parameters : bool
        Whether weights may be smooth functions of parameters whose covariance is known.
    not_certifiable : str
        Why there is no certificate for a model with these weights; empty where there is one.

    Examples
    --------
    >>> from unskew import TreeWeights
    >>> TreeWeights.traits.assumes
    'within a leaf, every row is equally likely to be selected'
    """

    assumes: str = ""
    uncovered_means: str = (
        "the share of the population in regions without sample rows, if overlap is measured; else 0"
    )
    judged_by: Family = "smooth"
    is_automatic: bool = False
    refused_above: float = np.inf
    smoothed_by: tuple[str, ...] = ()
    sharpened_by: tuple[str, ...] = ()
    estimates: bool = True
    corrects_columns: bool = True
    inverts_probabilities: bool = False
    matches_kernel_means: bool = False
    has_parameters: bool = False
    not_certifiable: str = ""


class Weighter(WithParameters, ABC):
    """Gives every row of a biased sample a weight, so that the sample represents the population.

    Parameters
    ----------
    columns : None, list or "shared", default=None
        The columns to weigh by: all columns of X, which the population must then have; those in a
        list of names (or positions, for columns without names); or those that both have. A learner
        or an outcome model still gets all of X.
    total : {"sample", "population"}, default="sample"
        What the weights sum to: the number of sample rows, or the population's size.
    overlap : {"warn", "raise", "ignore"} or float, default="warn"
        What to do where the sample does not cover part of the population. "warn" warns if the
        method itself leaves more than 1 % uncovered, or if regions without sample rows hold more
        than 5 %; "raise" raises an ``OverlapError`` at these shares; a number does so at that share
        of either. A value that no sample row has, though chance does not explain it, is named in a
        warning whatever its share. ``overlap_`` describes the regions. "ignore" skips the search
        and saves its time.
    random_state : int, RandomState instance or None, default=0
        Controls all random choices: the same value gives the same weights. The rows that are drawn
        from the population are the same for every value, so that weighters can share them.

    Attributes
    ----------
    weights_ : ndarray of shape (n_samples,)
        One weight per row of X.
    columns_ : list of str
        The columns that were weighed by.
    overlap_ : Overlap or None
        Which part of the population the sample does not cover, and where; None if ignored.
    rounded_ : tuple of str
        For each column in which one side is rounded and the other is not, what was done.
    """

    # The parameters of every weighter; a subclass adds its own in the same way.
    columns: Columns = None
    total: Total = "sample"
    overlap: OnUncovered = "warn"
    random_state: RandomState = 0

    traits: ClassVar[Traits] = Traits()

    @property
    def is_cross_fitted(self) -> bool:
        """Whether each sample row's weight comes from models that have not seen the row."""
        return False

    @property
    def _least_weight(self) -> float:
        """The smallest weight that there may be."""
        return 0.0

    @abstractmethod
    def _question(self, sample: Sample, about: About) -> Summary | None:
        """Return what to ask of the population, or None.

        Writes nothing on the weighter: whatever ``_solve`` needs travels in the summary.
        """

    @abstractmethod
    def _solve(self, sample: Sample, answer: Any) -> FloatArray:
        """Return one non-negative number per sample row, in any scale, and set the attributes.

        ``answer`` is the question, filled.
        """

    def _replicator(self, sample: Sample, answer: Any) -> Replicator:  # noqa: ARG002
        """Return how to solve for other design weights of the sample, and another answer.

        ``sample`` and ``answer`` are those of the fit; what they decide may be kept.
        """

        def solve(replicate: Sample, redrawn: Any) -> tuple[Weighter, FloatArray]:
            twin = copy.copy(self)
            return twin, twin._solve(replicate, redrawn)

        return solve

    def linearisation(self, sample: Sample) -> Linearisation | None:  # noqa: ARG002
        """Return how the weights that ``_solve`` has just set follow the rows.

        None where that is not smooth or not known: the bootstrap then has to show it.
        """
        return None

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        population: Any = None,
        sample_weight: ArrayLike | str | None = None,
    ) -> Self:
        """Weigh the sample.

        Parameters
        ----------
        X : array-like, dataframe or SparkSample of shape (n_samples, n_features)
            The sample: rows that were not drawn uniformly. A Spark DataFrame is taken as a
            :class:`unskew.SparkSample`, whose rows stay where they are.
        y : array-like of shape (n_samples,), optional
            Their labels, for weighters that use them; or the name of a column of X, which is then
            no feature.
        population : Population, Margins, or anything that :class:`unskew.Population` takes
            An unbiased reference sample of the population, with the same columns. Required, except
            by weighters that estimate nothing (``KnownProbability``, ``Unweighted``) where the
            weights sum to the number of sample rows.
        sample_weight : array-like of shape (n_samples,), optional
            Design weights of the sample, which the weights include; or the name of a column of X.

        Returns
        -------
        self
        """
        self._fit(X, y, population, sample_weight)
        return self

    def _fit(
        self,
        X: Any,
        y: Any,
        population: Any,
        sample_weight: ArrayLike | str | None = None,
        beside: Sequence[OfColumns[Any]] = (),
    ) -> Fit:
        """Weigh the sample, and fill further questions about columns of X in the same pass."""
        with watching(progress_of(population)):
            return self._fit_watched(X, y, population, sample_weight, beside)

    def _fit_watched(
        self,
        X: Any,
        y: Any,
        population: Any,
        sample_weight: ArrayLike | str | None,
        beside: Sequence[OfColumns[Any]],
    ) -> Fit:
        validate_parameters(self)
        for name in vars(self).keys() - self.get_params(deep=False):
            if name.endswith("_"):
                delattr(self, name)  # of an earlier fit
        given = self._open(X, y, sample_weight)
        if population is None and not self.traits.estimates:
            population = self._own_rows(given)
        known = population if isinstance(population, Margins) else Population.from_data(population)
        chosen = self._columns_to_choose(given, known)
        sample, target = self._matched(given, known)
        self.columns_ = sample.rows.table.column_names
        search = self._search(sample, target)
        scales = None
        if isinstance(target, Population) and self.traits.estimates:
            scales = ScaleCheck(sample, target)
        drawn = [one for part in (search, scales) if part is not None for one in part.asked]
        question = self._checked_question(sample, target)
        asked = [*([] if question is None else [question]), *drawn]
        self._ask(given, known, target, asked, beside)
        if scales is not None:
            scales.warn()
        if question is not None and (chosen is None or isinstance(chosen, str)):
            warn_of_doubtful_columns(doubtful_columns(sample.rows.encoded))
        tell("computing weights")
        raw = self._solve_or_say_where(sample, question, search)
        if search:
            tell("searching for what the sample does not cover")
        self.overlap_: Overlap | None = search.result() if search else None
        self._judge_overlap()
        _check_marks(target, sample.size)
        # Without a question, this is what notices that the population is empty or unreadable.
        mass = target.mass if target.about.margins is None or self.total != "sample" else 0.0
        total = float(sample.size) if self.total == "sample" else mass
        self.scale_, weights = sample.scaled(raw, self._rule, self._rule_columns(), total)
        if weights is not None:
            self.weights_: FloatArray = weights
        return Fit(sample, target, question)

    def _columns_to_choose(self, given: Sample, known: Population | Margins) -> Columns:
        """Return what ``columns`` says of X; margins need none but those that they know."""
        if isinstance(known, Margins):
            return self.columns
        return self._chosen_columns(given.rows.table.column_names)

    def _matched(
        self, given: Sample, known: Population | Margins
    ) -> tuple[Sample, Population | Margins]:
        """Return sample and population with the columns to weigh by."""
        chosen = self._columns_to_choose(given, known)
        return match_columns(given, known, chosen, apart=self._own_column_names())

    def _open(self, X: Any, y: Any, sample_weight: Any) -> Sample:
        """Return the sample with all columns of X, and remember what they are."""
        given = open_sample(X, y, sample_weight)
        if not given.in_memory:
            if not hasattr(self, "weigh"):
                raise InputError(
                    f"X is a distributed table, and {type(self).__name__} weighs only rows in "
                    "memory. Use a weighter that can weigh new rows, such as TreeWeights, or bring "
                    "the sample into memory: X.toArrow()."
                )
            self.subsample_size_ = len(given)
        rows = given.rows
        if not len(rows):
            # The wording is scikit-learn's, which its own estimator checks look for.
            raise InputError(
                f"X has no rows: found array with 0 sample(s) (shape=(0, {rows.table.num_columns}))"
                " while a minimum of 1 is required."
            )
        remember_columns(self, rows.labels)
        return given

    def _own_rows(self, given: Sample) -> Population:
        """Return the sample's own rows, of which nothing is asked, in place of a population."""
        if self.total == "population" or self.overlap != "ignore":
            raise ParameterError(
                f"population is None. {type(self).__name__} needs one for its size, with "
                'total="population", and to search for overlap: pass it, or use total="sample" and '
                'overlap="ignore".'
            )
        return Population(given.rows)

    def _search(self, sample: Sample, target: Population | Margins) -> OverlapSearch | None:
        """Return the search for overlap, where there is one."""
        if self.overlap == "ignore" or not isinstance(target, Population):
            return None
        return OverlapSearch(sample, target, thorough=self.overlap != "warn")

    def _checked_question(self, sample: Sample, target: Population | Margins) -> Summary | None:
        """Return what the weighter asks, and refuse what margins do not know."""
        question = self._question(sample, target.about)
        if question is not None and not target.can_answer(question):
            raise InputError(
                f"{type(self).__name__} asks what these Margins do not know; they hold totals of "
                f"{', '.join(target.columns)}. CalibrationWeights matches what they know; for "
                "other weighters pass rows: Population(data)."
            )
        return question

    def _ask(
        self,
        given: Sample,
        known: Population | Margins,
        target: Population | Margins,
        asked: Sequence[Summary],
        beside: Sequence[OfColumns[Any]],
    ) -> None:
        """Answer the weighter's own questions, and those of others beside it, in one pass.

        The pass reads the columns that are weighed by, and those of X that others need as well.
        """
        names, read, reading = given.rows.table.column_names, self.columns_, target
        wanted = {*read}.union(*(one.columns for one in beside))
        if wanted != {*read}:
            read = [name for name in names if name in wanted]
            wide = given.select(read).rows
            reading = known.matched(wide, among=names, ignored=self._own_column_names())
        questions = [*(OfColumns(self.columns_, one) for one in asked), *beside]
        summaries = [one.summary if one.columns == read else one for one in questions]
        if summaries:
            reading.reduce(Summaries(summaries))

    def _solve_or_say_where(
        self, sample: Sample, answer: Any, search: OverlapSearch | None
    ) -> FloatArray:
        """Solve; to a refusal, add what the search for overlap finds."""
        try:
            return self._solve(sample, answer)
        except OverlapError as error:
            where = search.result() if search and not error.rules else None
            if where is None or where.uncovered <= LIMIT:
                raise
            raise OverlapError(f"{error} {where}", error.share) from error

    def _judge_overlap(self) -> None:
        """Set ``uncovered_``; warn or raise if too much is uncovered."""
        share, rules = 0.0, tuple[OverlapRule, ...]()
        if self.overlap_ is not None:
            share, rules = self.overlap_.uncovered, self.overlap_.rules
        seen = () if self.overlap_ is None else self.overlap_.rounded
        self.rounded_: tuple[str, ...] = getattr(self, "rounded_", seen)
        if self.rounded_:
            warn_caller(RoundingWarning(" ".join(self.rounded_)))
        own: float = getattr(self, "uncovered_", 0.0)  # what the method itself leaves out
        self.uncovered_: float = getattr(self, "uncovered_", share)
        if self.overlap == "ignore":
            return
        limits = (WARN_ABOVE, LIMIT) if isinstance(self.overlap, str) else (self.overlap,) * 2
        messages = [self._describe_uncovered()] if own > limits[0] else []
        messages += [str(self.overlap_)] if share > limits[1] else []
        lacking = () if share > limits[1] or self.overlap_ is None else self.overlap_.lacking
        message, most = " ".join([*messages, *lacking]), max(own, share)
        if messages and (self.overlap != "warn" or most > self.traits.refused_above):
            if isinstance(self.overlap, str):
                raise OverlapError(f"{message} (overlap={self.overlap!r})", most, rules)
            raise OverlapError(
                f"{message} At most {self.overlap:.1%} is allowed; overlap={most + 0.0005:.3f} "
                "would allow it.",
                most,
                rules,
            )
        if message:
            warn_caller(OverlapWarning(message, most, rules))

    def _describe_uncovered(self) -> str:
        """Return what ``uncovered_`` means for this method, and what was done with it."""
        return f"{self.uncovered_:.1%} of the population: {self.traits.uncovered_means}."

    def coverage_advice(self) -> NextStep | None:
        """Return how to leave less of the population uncovered; None if the method is not why."""
        return None

    def _chosen_columns(self, names: Sequence[str]) -> Columns:  # noqa: ARG002
        """Return the columns to weigh by among those of X, as the parameters choose them."""
        return self.columns

    def _own_column_names(self) -> list[str]:
        """Return the columns of X that are not features, and that the population may lack."""
        return []

    def _rule(self) -> Rule:
        """Return how the weight of a row is computed, where rows are not in memory.

        A weighter that cannot weigh new rows has refused such a sample before.
        """
        raise InputError(f"{type(self).__name__} cannot weigh new rows.")

    def _rule_columns(self) -> Sequence[str]:
        """Return the columns that the rule needs."""
        return self.columns_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


# The door for other layers: what they may do with a weighter, but for ``fit``. --------------------


def fit_beside(
    weighter: Weighter,
    sample: Sample,
    population: Any,
    beside: Sequence[OfColumns[Any]] = (),
) -> Fit:
    """Fit a weighter to an open sample, and fill further questions in the same pass."""
    return weighter._fit(sample, None, population, beside=beside)


def weighed_columns(
    weighter: Weighter, sample: Sample, population: Population | Margins
) -> tuple[Sample, Population | Margins]:
    """Return sample and population with the columns that a weighter weighs by."""
    return weighter._matched(sample, population)


def ask(weighter: Weighter, sample: Sample, about: About) -> Summary | None:
    """Return what a weighter asks of a population, or None."""
    return weighter._question(sample, about)


def solve(weighter: Weighter, sample: Sample, answer: Any) -> FloatArray:
    """Return the weights of the sample in any scale; the weighter stays as it is."""
    return copy.copy(weighter)._solve(sample, answer)


def replicator(weighter: Weighter, fit: Fit) -> Replicator:
    """Return how to solve for other design weights of a fit's sample, and another answer."""
    return weighter._replicator(fit.sample, fit.answer)


def _check_marks(target: Population | Margins, n_samples: int) -> None:
    """Refuse marks of fewer rows than the sample has."""
    n_selected = target.n_selected
    if n_selected is not None and n_selected < n_samples:
        raise InputError(
            f"selected marks {n_selected} rows of the population as being in the sample, which has "
            f"{n_samples}. It must mark every row of the sample."
        )
