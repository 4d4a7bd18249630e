"""What an analysis of hidden selection says, and how it is shown."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from html import escape
from importlib import import_module
from typing import Any

Pair = tuple[float, float]

WEAK_PROXY = 0.3
"""A correlation of y and its prediction below which the columns say little of the bias."""


@dataclass(frozen=True)
class OddsBounds:
    """Between which ends the number lies if odds of selection are off by at most a factor.

    Attributes
    ----------
    odds : float
        The factor, Λ.
    plain : tuple of float
        Every row's odds may be off.
    plain_interval : tuple of float
        The same, with the sampling error on either side.
    sharp : tuple of float or None
        The changed weights also keep what the weights match of the population. None if that was
        not asked for, or is not known of a group.
    sharp_interval : tuple of float or None

    Examples
    --------
    >>> from unskew.results import OddsBounds
    >>> bounds = OddsBounds(2.0, (1.0, 3.0), (0.9, 3.1), sharp=(1.5, 2.5), sharp_interval=None)
    >>> bounds.best  # the sharp ones, where there are some
    (1.5, 2.5)
    """

    odds: float
    plain: Pair
    plain_interval: Pair
    sharp: Pair | None
    sharp_interval: Pair | None

    @property
    def best(self) -> Pair:
        """The sharp bounds, or else the plain ones."""
        return self.plain if self.sharp is None else self.sharp

    @property
    def best_interval(self) -> Pair:
        """Their interval."""
        return self.plain_interval if self.sharp_interval is None else self.sharp_interval


@dataclass(frozen=True)
class ColumnOdds:
    """By which factor odds of selection change if a column is left out.

    Rows to which one of the two fits gives no weight have no odds, and do not count.

    Attributes
    ----------
    column : str
    largest : float
        Of all sample rows.
    typical : float
        Of 95 % of the sample rows it is at most this.

    Examples
    --------
    >>> from unskew.results import ColumnOdds
    >>> ColumnOdds("region", largest=1.8, typical=1.4).typical
    1.4
    """

    column: str
    largest: float
    typical: float


@dataclass(frozen=True)
class SurveyBias:
    """Indices of the bias of the unweighted mean, if selection depends on y as well.

    Selection depends on (1 − φ) times the best linear prediction of y plus φ times y.

    Attributes
    ----------
    correlation : float
        Of y and its prediction from what the weights match.
    smub : tuple of float
        The bias in standard deviations of y, for φ of 0, ½ and 1.
    mub : tuple of float
        The bias, in the unit of y.

    Examples
    --------
    >>> from unskew.results import SurveyBias
    >>> SurveyBias(0.1, smub=(0.0, 0.4, 4.0), mub=(0.0, 0.8, 8.0)).informative
    False
    """

    correlation: float
    smub: tuple[float, float, float]
    mub: tuple[float, float, float]

    @property
    def informative(self) -> bool:
        """Whether the prediction is good enough for the indices to say something."""
        return self.correlation >= WEAK_PROXY


@dataclass(frozen=True)
class Sensitivity:
    """How much a number changes if selection depends on what no column shows.

    Returned by :meth:`unskew.results.Estimate.sensitivity`; prints as a sentence.

    Attributes
    ----------
    value, unweighted : float
        The estimate, and what the sample says as it is.
    interval : tuple of float
        Of the estimate, if no selection is hidden.
    bounds : tuple of OddsBounds
        For each factor by which odds may be off.
    threshold : float
        Which value would change the conclusion.
    breakdown : float
        The smallest factor with which a bound reaches it: of the sharp bounds, where there are
        some. Infinite if no factor up to 1,000 does.
    breakdown_plain : float
        The same of the plain bounds.
    breakdown_with_error : float
        The same of the interval, which counts the sampling error; between the factors that were
        asked for it is interpolated.
    columns : tuple of ColumnOdds
        How much leaving out each column changes odds: a measure of what is large.
    survey_bias : SurveyBias or None
        For means of numbers.
    weighed_by : tuple of str
        The columns that the weights account for; none where they do not go by columns.
    nested : bool
        Whether weights were taken as inverse probabilities of a sample within the population.
    level : float
        Of the intervals.
    notes : tuple of str
    is_share : bool

    Examples
    --------
    >>> import numpy as np
    >>> from unskew import CalibrationWeights, estimate
    >>> random = np.random.default_rng(0)
    >>> people = random.normal(size=(2000, 1))
    >>> seen = random.uniform(size=2000) < 0.1 / (1 + np.exp(-people[:, 0]))
    >>> y = people[:, 0] + random.normal(size=2000)
    >>> found = estimate(
    ...     people[seen], y[seen], population=people, weighter=CalibrationWeights()
    ... )
    >>> hidden = found.sensitivity(benchmark=False)
    >>> hidden.breakdown > 1
    True
    """

    value: float
    unweighted: float
    interval: Pair
    bounds: tuple[OddsBounds, ...]
    threshold: float
    breakdown: float
    breakdown_plain: float
    breakdown_with_error: float
    columns: tuple[ColumnOdds, ...]
    survey_bias: SurveyBias | None
    weighed_by: tuple[str, ...]
    nested: bool
    level: float
    notes: tuple[str, ...] = ()
    is_share: bool = False
    digits: int = 3

    @property
    def strongest(self) -> ColumnOdds | None:
        """The column that changes odds most if it is left out."""
        return max(self.columns, key=lambda one: one.largest, default=None)

    def __str__(self) -> str:
        text = self.sentence
        if self.bounds:
            last = self._nearest_to(self.breakdown)
            low, high = (self.shown(end) for end in last.best)
            text += f" With odds off by at most {_factor(last.odds)} it is {low} to {high}."
        return " ".join([text, *self.notes])

    __repr__ = __str__

    @property
    def sentence(self) -> str:
        """What hidden selection would change the conclusion, beside what columns do."""
        side = "below" if self.value < self.threshold else "above"
        where = self.shown(self.threshold)
        where += ", the unweighted value," if self.threshold == self.unweighted else ""
        if self.value == self.threshold:
            text = f"The number is {where} as it is"
        elif math.isinf(self.breakdown):
            text = (
                f"The conclusion that the number is {side} {where} stands: no odds of selection "
                "that are off by a factor of up to 1,000 change it"
            )
        else:
            rows = "rows differ in their odds of selection from what the weights say"
            if self.weighed_by:
                same = _listed(self.weighed_by)
                rows = f"rows with the same {same} differ in their odds of selection"
            text = (
                f"The conclusion that the number is {side} {where} could change if {rows} by a "
                f"factor of {_factor(self.breakdown)}{self._with_error()}"
            )
        strongest = self.strongest
        if strongest is not None:
            which = ", the strongest column," if len(self.columns) > 1 else ""
            text += (
                f"; leaving out '{strongest.column}'{which} changes odds by a factor of at most "
                f"{_factor(strongest.largest)} ({_factor(strongest.typical)} for 95 % of rows)"
            )
        return f"{text}."

    def _with_error(self) -> str:
        if self.breakdown_with_error <= 1.0:
            return f" (the {100 * self.level:.0f} % interval contains it without any)"
        return f" ({_factor(self.breakdown_with_error)} with the sampling error)"

    def _nearest_to(self, odds: float) -> OddsBounds:
        """Return the bounds of the largest factor that does not change the conclusion."""
        below = [one for one in self.bounds if one.odds <= odds]
        return below[-1] if below else self.bounds[0]

    def shown(self, number: float) -> str:
        """Return a value with the digits that the estimate's error leaves."""
        if self.is_share:
            return f"{100 * number:.{self.digits}f} %"
        return f"{number:,.{self.digits}f}"

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, which JSON can hold; None for infinite odds."""
        plain: dict[str, Any] = _plain(asdict(self))
        del plain["digits"]
        if self.survey_bias is not None:
            plain["survey_bias"]["informative"] = self.survey_bias.informative
        plain["sentence"] = self.sentence
        return plain

    def to_svg(self) -> str:
        """Return the bounds as a curve over the odds: an SVG element."""
        return _render("sensitivity_svg", self)

    def _repr_html_(self) -> str:
        return f"<p>{escape(str(self))}</p>{_render('sensitivity_html', self)}"


def _render(function: str, found: Sensitivity) -> str:
    # As a Diagnosis does, and only when it is shown: the report imports what draws charts.
    text: str = getattr(import_module("unskew.report"), function)(found)
    return text


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _factor(odds: float) -> str:
    return f"{odds:,.2f}" if odds < 10 else f"{odds:,.0f}"


def _listed(names: Sequence[str]) -> str:
    """Return names in a sentence, or how many there are.

    Examples
    --------
    >>> _listed(["age", "sex", "region"])
    'age, sex and region'
    """
    if len(names) > 5:
        return f"{len(names)} columns"
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"
