"""Selection with a known probability: the weights that all others try to estimate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.metaestimators import available_if

from unskew.errors import InputError, ParameterError
from unskew.numerics.typing import FloatArray
from unskew.population.population import Population
from unskew.weighters.base import InductiveWeighter, Sample
from unskew.weighters.rules import Rule
from unskew.weighters.typing import OnUncovered, Total


def _can_weigh_new_rows(weighter: KnownProbability) -> bool:
    return isinstance(weighter.probability, str) or callable(weighter.probability)


class KnownProbability(InductiveWeighter):
    r"""Weights :math:`1 / \Pr[s = 1 \mid x]`, where the probability of selection is known.

    The paper's *Ideal* column, from its equation for :math:`\Pr_D[z]`.

    Parameters
    ----------
    probability : array-like of shape (n_samples,), str or callable
        Each sample row's probability of selection, in (0, 1]: as an array, as the name of a column
        of X (which the population then need not have), or as a function of X.
    total : {"sample", "population"}, default="sample"
        What the weights sum to: the number of sample rows, or the population's size.
    overlap : {"warn", "raise", "ignore"} or float, default="ignore"
        What to do where the sample does not reach part of the population. "warn" if the method
        leaves more than 1 % of it uncovered, or if regions without sample rows hold more than 5 %
        of it; "raise" an ``OverlapError`` at 1 % and 5 %, a number at that share of either.
        ``overlap_`` tells in words which regions. "ignore" also saves the time that looking for
        them takes.

    Attributes
    ----------
    weights_ : ndarray of shape (n_samples,)
    overlap_ : Overlap or None
        Which part of the population the sample does not reach, and where; None if ignored.

    Notes
    -----
    ``weigh`` exists where ``probability`` is a column or a function.

    A column of probabilities is no feature here, but :class:`unskew.Reweighted` hands X to its
    learner as it is: let a pipeline drop the column there.

    Examples
    --------
    >>> from unskew import KnownProbability
    >>> weighter = KnownProbability([0.5, 0.25])
    >>> weighter.fit([[1.0], [2.0]], population=[[1.0], [2.0], [2.0]]).weights_
    array([0.66666667, 1.33333333])
    """

    _not_certifiable = (
        "KnownProbability estimates nothing: its weights are as accurate as the probabilities that "
        "were given."
    )
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **InductiveWeighter._parameter_constraints,
        "probability": ["array-like", str, callable],
    }

    def __init__(
        self,
        probability: ArrayLike | str | Callable[[Any], ArrayLike],
        *,
        total: Total = "sample",
        overlap: OnUncovered = "ignore",
    ) -> None:
        self.probability = probability
        self.total = total
        self.overlap = overlap

    @available_if(_can_weigh_new_rows)
    def weigh(self, X: Any, *, name: str = "weight") -> Any:
        """Return the weights of new rows; see :meth:`InductiveWeighter.weigh`."""
        return super().weigh(X, name=name)

    def _fit(self, sample: Sample, population: Population) -> FloatArray:
        population.mass  # noqa: B018  (an empty or unreadable population is an error here too)
        return sample.design * self._weigh(sample)

    def _weigh(self, sample: Sample) -> FloatArray:
        with np.errstate(over="ignore"):  # a weight that is infinite is an error in fit
            return 1.0 / self._probabilities(sample)

    def _rule(self) -> Rule:
        if not isinstance(self.probability, str):
            raise ParameterError(
                "probability is a function of X, which cannot be called on Spark's rows. Put the "
                "probability into a column of X and give its name."
            )
        return _ProbabilityRule(self.probability)

    def _own_column_names(self) -> list[str]:
        return [self.probability] if isinstance(self.probability, str) else []

    def _own_columns(self, sample: Sample) -> Sample:
        if not isinstance(self.probability, str):
            return sample
        table = sample.rows.table
        if self.probability not in table.column_names:
            raise InputError(
                f"probability='{self.probability}' is not a column of X, whose columns are "
                f"{table.column_names}."
            )
        if table.num_columns == 1:
            raise InputError(f"X has no column besides the probability '{self.probability}'.")
        return replace(
            sample,
            rows=replace(sample.rows, table=table.drop_columns([self.probability])),
            original=table.column(self.probability).to_numpy(),
        )

    def _probabilities(self, sample: Sample) -> FloatArray:
        if isinstance(self.probability, str):
            given, name = sample.original, f"Column '{self.probability}'"
        elif callable(self.probability):
            given, name = self.probability(sample.original), "What probability(X) returned"
        else:
            given, name = self.probability, "probability"
        return _checked_probabilities(given, len(sample), name)


class _ProbabilityRule(NamedTuple):
    """The weight of a row is the inverse of a column."""

    column: str

    def __call__(self, batch: Any) -> FloatArray:
        given = batch.column(self.column).to_numpy(zero_copy_only=False)
        with np.errstate(over="ignore"):
            return 1.0 / _checked_probabilities(given, len(batch), f"Column '{self.column}'")


def _checked_probabilities(given: Any, n_rows: int, name: str) -> FloatArray:
    try:
        values = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must be numbers in (0, 1]: {error}.") from error
    if values.shape != (n_rows,):
        raise InputError(
            f"{name} must have one entry for each of the {n_rows} rows; got shape "
            f"{values.shape}. A column of X or a function follows the rows wherever they go."
        )
    outside = ~((values > 0) & (values <= 1))
    if outside.any():
        row = int(np.flatnonzero(outside)[0])
        raise InputError(f"{name} must lie in (0, 1]; got {values[row]} at row {row}.")
    return values
