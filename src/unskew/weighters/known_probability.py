"""Weights that are not estimated: equal ones, and the inverse of known probabilities."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from unskew.errors import InputError, ParameterError, which_there_are
from unskew.numerics.typing import FloatArray
from unskew.population.summaries import About
from unskew.rows.sample import Rule, Sample
from unskew.weighters.inductive import InductiveWeighter
from unskew.weighters.linearisation import KnownWeights, Linearisation
from unskew.weighters.parameters import Numbers, OnUncovered


class KnownProbability(InductiveWeighter):
    r"""Weights :math:`1 / \Pr[s = 1 \mid x]`, where the probability of selection is known.

    The paper's *Ideal* column, from its equation for :math:`\Pr_D[z]`.

    Parameters
    ----------
    probability : array-like of shape (n_samples,), str or callable
        Each sample row's probability of selection, in (0, 1]: as an array, as the name of a column
        of X (which the population then need not have), or as a function of X. The function gets
        rows in the form in which X was given to ``fit``: as a pandas frame, say.
    <Weighter parameters>

    Attributes
    ----------
    <Weighter attributes>
    uncovered_ : float
        The share of the population that the sample does not cover, if ``overlap`` is measured;
        otherwise 0.

    Notes
    -----
    ``weigh`` exists where ``probability`` is a column or a function.

    A column of probabilities is not a feature here, but :class:`unskew.Reweighted` passes X to its
    learner as it is: let a pipeline drop the column there.

    Examples
    --------
    >>> from unskew import KnownProbability
    >>> weighter = KnownProbability([0.5, 0.25])
    >>> weighter.fit([[1.0], [2.0]], population=[[1.0], [2.0], [2.0]]).weights_
    array([0.66666667, 1.33333333])
    """

    probability: Numbers | str | Callable[[Any], ArrayLike] = field(kw_only=False)
    overlap: OnUncovered = "ignore"

    traits = replace(
        InductiveWeighter.traits,
        assumes="the probabilities of selection are right",
        estimates=False,
        inverts_probabilities=True,
        not_certifiable=(
            "KnownProbability estimates nothing: its weights are as right as the probabilities "
            "that were given."
        ),
    )

    @property
    def _can_weigh(self) -> bool:
        return isinstance(self.probability, str) or callable(self.probability)

    def _question(self, sample: Sample, about: About) -> None:  # noqa: ARG002
        return None

    def _solve(self, sample: Sample, answer: None) -> FloatArray:  # noqa: ARG002
        if callable(self.probability):
            self.form_ = sample.form
        return sample.design * self._weigh(sample)

    def linearisation(self, sample: Sample) -> Linearisation:
        """Return that the weights are known."""
        return KnownWeights(sample.design * self._weigh(sample))

    def _weigh(self, sample: Sample) -> FloatArray:
        if isinstance(self.probability, str):
            table = sample.all_rows.table
            if self.probability not in table.column_names:
                raise InputError(
                    f"probability='{self.probability}' is not a column of X."
                    f"{which_there_are(self.probability, table.column_names)}"
                )
            return _inverse_column(table, self.probability)
        if callable(self.probability):
            form, table = getattr(self, "form_", None), sample.all_rows.table
            rows = form.of(table, given=sample.given) if form else sample.form.of(table)
            return _inverse(self.probability(rows), len(sample), "What probability(X) returned")
        return _inverse(self.probability, len(sample), "probability")

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the form of X, which a file cannot hold: rows then stay in their own form."""
        return {name: value for name, value in super().__getstate__().items() if name != "form_"}

    def _rule(self) -> Rule:
        if not isinstance(self.probability, str):
            raise ParameterError(
                "probability is a function of X, which cannot be called on rows that are not in "
                "memory. Put the probability into a column of X and give its name."
            )
        return partial(_inverse_column, column=self.probability)

    def _rule_columns(self) -> Sequence[str]:
        return [str(self.probability)]

    def _own_column_names(self) -> list[str]:
        return [self.probability] if isinstance(self.probability, str) else []


def _inverse_column(batch: Any, column: str) -> FloatArray:
    return _inverse(batch.column(column), len(batch), f"Column '{column}'")


def _inverse(given: Any, n_rows: int, name: str) -> FloatArray:
    """Return the inverse of probabilities, checked."""
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
    with np.errstate(over="ignore"):  # a weight that is infinite is an error in fit
        return 1.0 / values


class Unweighted(InductiveWeighter):
    """Equal weights: no correction at all, for comparison.

    The paper's *Unweighted* column. Design weights, where given, are kept.

    Parameters
    ----------
    <Weighter parameters>

    Attributes
    ----------
    <Weighter attributes>
    uncovered_ : float
        The share of the population that the sample does not cover, if ``overlap`` is measured;
        otherwise 0.

    Examples
    --------
    >>> from unskew import Unweighted
    >>> Unweighted().fit([[1.0], [2.0]], population=[[1.0], [2.0], [3.0]]).weights_
    array([1., 1.])
    """

    overlap: OnUncovered = "ignore"

    traits = replace(
        InductiveWeighter.traits,
        assumes="the sample was drawn uniformly at random from the population",
        estimates=False,
        not_certifiable=(
            "Unweighted makes no correction, so there is no estimate whose error could be bounded."
        ),
    )

    def _question(self, sample: Sample, about: About) -> None:  # noqa: ARG002
        return None

    def _solve(self, sample: Sample, answer: None) -> FloatArray:  # noqa: ARG002
        return sample.design

    def linearisation(self, sample: Sample) -> Linearisation:
        """Return that the weights follow nothing."""
        return KnownWeights(sample.design)

    def _weigh(self, sample: Sample) -> FloatArray:
        return np.ones(len(sample))

    def _rule(self) -> Rule:
        return _one_each


def _one_each(batch: Any) -> FloatArray:
    return np.ones(len(batch))
