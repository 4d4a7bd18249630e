"""What an estimate says, and how it is shown."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from html import escape
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from unskew.errors import InputError
from unskew.numerics.typing import FloatArray

if TYPE_CHECKING:
    from unskew.estimation.sensitivity import Sensitivity
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
        if self.is_share:
            return f"{100 * number:.{self._digits}f} %"
        return f"{number:,.{self._digits}f}"

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, which JSON can hold."""
        names = [one.name for one in fields(self) if not one.name.startswith("_")]
        plain = {name: getattr(self, name) for name in names if name != "weights"}
        plain |= {"weighter": str(self.weighter), "parts": dict(self.parts)}
        for name in ("interval", "assumptions", "notes"):
            plain[name] = list(plain[name])
        for name, value in plain.items():  # JSON has no infinite numbers
            if isinstance(value, float) and not math.isfinite(value):
                plain[name] = None
        plain["interval"] = [end if math.isfinite(end) else None for end in self.interval]
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
