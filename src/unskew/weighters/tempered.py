"""Weaker or capped weights of any weighter."""

from __future__ import annotations

from dataclasses import field, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from unskew._compat import validate_parameters
from unskew.errors import ParameterError
from unskew.numerics.typing import FloatArray
from unskew.numerics.weight_vectors import ratio_cap
from unskew.population.summaries import About, Summary
from unskew.rows.encode import ColumnCodes
from unskew.rows.sample import Sample
from unskew.weighters.base import Weighter
from unskew.weighters.inductive import InductiveWeighter
from unskew.weighters.parameters import AtLeastOne, AtLeastZero


class Tempered(InductiveWeighter):
    r"""The weights of another weighter to a power, and capped.

    With the other's weight :math:`d\, r(x)` of a row of design weight d, the weight is
    :math:`d \min(r(x)^\tau, c)`: less correction, and less variance. The cap c is such that no
    weight without design weights is more than ``max_weight`` times their mean.

    Parameters
    ----------
    weighter : Weighter
        Whose weights are tempered. Its ``columns``, ``total`` and ``overlap`` are not used; those
        given here are.
    power : float, default=1.0
        The exponent τ: 1 keeps the weights, 0 makes them equal.
    max_weight : float, optional
        The largest weight as a multiple of the mean weight, at least 1: larger ones are cut.
    <Weighter parameters>

    Attributes
    ----------
    <Weighter attributes>
    weighter_ : Weighter
        The other weighter, fitted.
    n_capped_ : int
        Sample rows whose weight ``max_weight`` has cut.
    uncovered_ : float
        As the other weighter counts it.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew import FrequencyWeights, Tempered
    >>> sample, population = [["a"], ["a"], ["b"]], [["a"], ["b"]]
    >>> FrequencyWeights().fit(sample, population=population).weights_
    array([0.75, 0.75, 1.5 ])
    >>> half = Tempered(FrequencyWeights(), power=0.5).fit(sample, population=population)
    >>> bool(np.isclose(half.weights_[2] / half.weights_[0], 2**0.5))
    True
    """

    weighter: Weighter = field(kw_only=False)
    power: AtLeastZero = 1.0
    max_weight: AtLeastOne | None = None

    traits = replace(
        InductiveWeighter.traits,
        assumes="what its weighter assumes, apart from the strength of the correction",
        not_certifiable="tempered weights are not those of the counts",
    )

    def _inner(self) -> Any:
        """Return the other weighter, not fitted."""
        inner = clone(self.weighter).set_params(overlap=self.overlap, columns=None)
        validate_parameters(inner)
        return inner

    def _question(self, sample: Sample, about: About) -> Summary | None:
        question: Summary | None = self._inner()._question(sample, about)
        return question

    def _solve(self, sample: Sample, answer: Any) -> FloatArray:
        inner = self.weighter_ = self._inner()
        inner.columns_ = sample.rows.table.column_names
        raw = inner._solve(sample, answer)
        if (raw < 0).any():
            raise ParameterError(
                f"{int((raw < 0).sum())} weights of {type(inner).__name__} are negative, and have "
                "no power. Use bounds=(0, None) on it."
            )
        if hasattr(inner, "uncovered_"):
            self.uncovered_ = inner.uncovered_
        counted = sample.design > 0
        ratios = np.zeros(len(raw))
        ratios[counted] = raw[counted] / sample.design[counted]
        self.largest_ratio_ = float(ratios[counted].max())  # so that no power overflows
        powers = self._powers(ratios)
        self.cap_ = ratio_cap(powers, sample.design, self.max_weight)
        self.n_capped_ = int((powers > self.cap_).sum())
        return np.minimum(powers, self.cap_) * sample.design

    def _powers(self, ratios: FloatArray) -> FloatArray:
        return np.asarray((ratios / (self.largest_ratio_ or 1.0)) ** self.power)

    def _weigh(self, sample: Sample) -> FloatArray:
        return np.minimum(self._powers(self.weighter_._weigh(sample)), self.cap_)

    @property
    def _can_weigh(self) -> bool:
        return isinstance(self.weighter, InductiveWeighter) and hasattr(self.weighter, "weigh")

    def _own_column_names(self) -> list[str]:
        return self.weighter._own_column_names()

    def _codes(self) -> ColumnCodes | None:
        codes: ColumnCodes | None = self.weighter_._codes()
        return codes

    def _describe_uncovered(self) -> str:
        self.weighter_.uncovered_ = self.uncovered_
        return str(self.weighter_._describe_uncovered())

    def _describe_unseen(self) -> str:
        return str(self.weighter_._describe_unseen())
