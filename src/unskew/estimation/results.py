"""What an estimate, and an analysis of its hidden selection, say, and how they are shown.

An :class:`Estimate` is a number with its interval, :class:`Estimates` several of them by group and
class. A :class:`Sensitivity` says between which bounds the number lies if odds of selection are off
by a factor, beside how much each column changes odds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from unskew.errors import InputError
from unskew.numerics.typing import FloatArray

if TYPE_CHECKING:
    from unskew.weighters.base import Weighter

ODDS = (1.1, 1.2, 1.35, 1.5, 1.75, 2.0, 2.5, 3.0)
"""The factors for which sensitivity is computed, where none are given."""
FEW_ROWS = 30
"""An effective sample size below which few rows decide, and which is warned of."""


@dataclass(frozen=True)
class Estimate:
    r"""A number of the population, with an interval.

    Attributes
    ----------
    value : float
    standard_error : float
    interval : tuple of float
        Lower and upper end.
    level : float
        How often such intervals contain the population's number, if the assumptions hold.
    unweighted : float
        What the sample says as it is, every row counted once.
    design_weighted : float or None
        What it says with its design weights; None where it has none.
    statistic : str
        What is estimated.
    parts : dict from str to float
        The variance by where it comes from: the sample's rows, and the population's, where these
        are themselves a sample.
    effective_sample_size : float
        Of the weights, :math:`(\sum w)^2 / \sum w^2`; with clusters, over the design effect of
        clustering: the variance by clusters over that if rows were drawn one by one, at least 1.
    degrees_of_freedom : float
        Of Student's distribution, from which the interval is; infinite for the normal one.
    n_rows : int
        Sample rows.
    weighter : Weighter
        Fitted: ``diagnose(X, population, found.weighter)`` judges the weights behind the number.
    weights : ndarray of shape (n_rows,)
        Of the sample's rows, in their order; not in :meth:`to_dict`.
    outcome : str or None
        The outcome model, if there is one.
    variance : str
        How the variance was estimated.
    assumptions : tuple of str
        What must hold for the number to be right.
    notes : tuple of str
        What was done, and what to be careful with.
    is_share : bool
        Whether the number is a share, and shown in percent.
    bias_allowed : float
        The bias that the interval allows for: with ``variance="orthogonal"``, how far the number is
        from that of the weights, or of the outcome model, alone.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew import FrequencyWeights, estimate
    >>> sample, y = [["a"]] * 60 + [["b"]] * 20, np.r_[np.zeros(60), np.ones(20)]
    >>> population = [["a"]] * 50 + [["b"]] * 50
    >>> found = estimate(sample, y, population=population, weighter=FrequencyWeights())
    >>> round(found.value, 6), found.unweighted
    (0.5, 0.25)
    """

    value: float
    standard_error: float
    interval: tuple[float, float]
    level: float
    unweighted: float
    statistic: str
    parts: dict[str, float]
    effective_sample_size: float
    degrees_of_freedom: float
    n_rows: int
    weighter: Weighter = field(compare=False)
    weights: FloatArray = field(compare=False)
    outcome: str | None
    variance: str
    assumptions: tuple[str, ...]
    notes: tuple[str, ...] = ()
    is_share: bool = False
    bias_allowed: float = 0.0
    design_weighted: float | None = None
    _basis: Any = field(default=None, repr=False, compare=False)
    """What it was made from; or why its sensitivity is not known from that."""

    def sensitivity(
        self,
        odds: ArrayLike = ODDS,
        *,
        threshold: float | None = None,
        sharp: bool = True,
        nested: bool | None = None,
        benchmark: bool = True,
    ) -> Sensitivity:
        r"""Say how strong hidden selection would have to be to change the conclusion.

        The weights account for what the columns show. If odds of selection are off by a factor of
        at most Λ, because of something that no column shows, the number lies between bounds.

        Parameters
        ----------
        odds : float or array-like, default=(1.1, 1.2, 1.35, 1.5, 1.75, 2, 2.5, 3)
            The factors Λ, at least 1.
        threshold : float, optional
            The value that would change the conclusion: it is that the number is above or below it.
            By default that of the unweighted sample.
        sharp : bool, default=True
            Also compute the bounds of weights that still match the population, which are narrower:
            a linear program for each of the odds.
        nested : bool, optional
            Whether the sample is a part of the population, and weights w the inverse of
            probabilities: odds then multiply w − 1, otherwise w. By default, where the population
            marks the sample's rows or ``finite_population`` was given.
        benchmark : bool, default=True
            Fit the weights again without each column in turn, to say how much that changes odds.

        Returns
        -------
        Sensitivity

        Notes
        -----
        The plain bounds are those of Zhao, Small and Bhattacharya (2019), by one sort. The sharp
        ones keep what the weights match, as in Dorn and Guo (2022): the means of a calibration's
        features, the shares of cells, and for other weighters the means of the columns. An
        interval adds the sampling error to both ends, with the variance of the estimate's own kind.

        References
        ----------
        Zhao, Small and Bhattacharya, "Sensitivity analysis for inverse probability weighting
        estimators via the percentile bootstrap", JRSS B 81 (2019).
        Dorn and Guo, "Sharp sensitivity analysis for inverse propensity weighting via quantile
        balancing", JASA 118 (2022).
        Little, West, Boonstra and Hu, "Measures of the degree of departure from ignorable sample
        selection", JSSAM 8 (2020).

        Examples
        --------
        >>> import numpy as np
        >>> from unskew import estimate
        >>> random = np.random.RandomState(0)
        >>> population = random.normal(size=(5000, 2))
        >>> sample = population[random.uniform(size=5000) < 1 / (1 + np.exp(2 - population[:, 0]))]
        >>> y = sample[:, 0] + random.normal(size=len(sample))
        >>> found = estimate(sample, y, population=population).sensitivity(odds=[1.5, 2])
        >>> bool(found.breakdown > 2), found.strongest.column
        (True, 'x0')
        """
        if self._basis is None or isinstance(self._basis, str):
            lost = "This estimate was copied or loaded without its rows. Estimate it again."
            raise InputError(self._basis or lost)
        return self._basis.analyse(
            self,
            odds=odds,
            threshold=threshold,
            sharp=sharp,
            nested=nested,
            benchmark=benchmark,
        )

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the rows, which a file need not hold."""
        return {**self.__dict__, "_basis": None}

    def __str__(self) -> str:
        text = f"{self.headline}, against {self._shown(self.unweighted)} unweighted"
        if self.design_weighted is not None:
            text += f" and {self._shown(self.design_weighted)} with design weights alone"
        total = sum(self.parts.values())
        if len(self.parts) > 1 and total > 0:
            share = self.parts["sample"] / total
            text += f"; {share:.0%} of the variance is the sample's"
        text += f"; effective sample size {self.effective_sample_size:,.0f}"
        if self.assumptions:
            text += f"; assumes that {self.assumptions[0]}"
        return " ".join([f"{text}.", *self.notes])

    __repr__ = __str__

    @property
    def headline(self) -> str:
        """The number and its interval."""
        digits = self._digits
        low, high = self.interval
        if math.isinf(high):
            ends = "no interval"
        elif self.is_share:
            ends = f"{100 * low:.{digits}f} to {100 * high:.{digits}f}"
        else:
            ends = f"{low:,.{digits}f} to {high:,.{digits}f}"
        return f"{self._shown(self.value)} ({ends})"

    @property
    def _digits(self) -> int:
        """The decimals that the standard error leaves certain, and one more."""
        scale = 100 if self.is_share else 1
        error = self.standard_error * scale
        if not math.isfinite(error) or error <= 0:
            return 1 if self.is_share else 3
        return min(max(1 - math.floor(math.log10(error)), 1 if self.is_share else 0), 9)

    def _shown(self, number: float) -> str:
        return _number(number, self._digits, is_share=self.is_share)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, which JSON can hold."""
        names = [one.name for one in fields(self) if not one.name.startswith("_")]
        whole = {name: getattr(self, name) for name in names if name != "weights"}
        plain: dict[str, Any] = _plain({**whole, "weighter": str(self.weighter)})
        return plain

    def _repr_html_(self) -> str:
        return f"<p>{escape(str(self))}</p>"


class Estimates(Mapping[Any, Estimate]):
    """Several estimates: of groups, of classes, or of both.

    Parameters
    ----------
    estimates : mapping of label to Estimate
        A label is a group or a class, or a pair of both.
    names : tuple of str
        What the parts of a label are.
    notes : tuple of str
        What holds for all of them.

    Examples
    --------
    >>> Estimates({}, ("region",))
    no estimates
    """

    def __init__(
        self, estimates: Mapping[Any, Estimate], names: tuple[str, ...], notes: tuple[str, ...] = ()
    ) -> None:
        self._estimates = dict(estimates)
        self.names = names
        self.notes = notes

    def __getitem__(self, label: Any) -> Estimate:
        return self._estimates[label]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._estimates)

    def __len__(self) -> int:
        return len(self._estimates)

    def _parts(self, label: Any) -> tuple[Any, ...]:
        return label if len(self.names) > 1 else (label,)

    def _table(self) -> tuple[list[str], list[list[str]]]:
        headings = [*self.names, "estimate", "unweighted", "standard error", "effective size"]
        rows = [
            [
                *map(str, self._parts(label)),
                one.headline,
                one._shown(one.unweighted),
                f"{one.standard_error:.4g}",
                f"{one.effective_sample_size:,.0f}",
            ]
            for label, one in self.items()
        ]
        return headings, rows

    def _all_notes(self) -> list[str]:
        """Return what holds for all, and what is said of each, once."""
        own = [note for one in self.values() for note in one.notes]
        first = next(iter(self.values()), None)
        assumed = [f"Assumes that {first.assumptions[0]}."] if first and first.assumptions else []
        return list(dict.fromkeys([*assumed, *self.notes, *own]))

    def __str__(self) -> str:
        if not self:
            return "no estimates"
        headings, rows = self._table()
        widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
        lines = [
            "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
            for row in [headings, *rows]
        ]
        return "\n".join([*lines, *self._all_notes()])

    __repr__ = __str__

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, which JSON can hold."""
        return {
            "names": list(self.names),
            "notes": list(self.notes),
            "estimates": [
                {
                    "label": [
                        getattr(part, "item", lambda p=part: p)() for part in self._parts(label)
                    ],
                    **one.to_dict(),
                }
                for label, one in self.items()
            ],
        }

    def _repr_html_(self) -> str:
        headings, rows = self._table()
        head = "".join(f"<th>{escape(text)}</th>" for text in headings)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(text)}</td>" for text in row) + "</tr>" for row in rows
        )
        notes = "".join(f"<p>{escape(note)}</p>" for note in self._all_notes())
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{notes}"


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
        return _number(number, self.digits, is_share=self.is_share)

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


def _number(number: float, digits: int, *, is_share: bool) -> str:
    return f"{100 * number:.{digits}f} %" if is_share else f"{number:,.{digits}f}"


def _plain(value: Any) -> Any:
    """Return a value that JSON can hold, without infinite numbers."""
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
