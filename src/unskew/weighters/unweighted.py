"""Every row counts once: the baseline."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from unskew.numerics.typing import FloatArray
from unskew.population.about import About
from unskew.rows.sample import Rule, Sample
from unskew.weighters.inductive import InductiveWeighter
from unskew.weighters.linearisation import KnownWeights, Linearisation
from unskew.weighters.typing import OnUncovered


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
