"""What an estimate says, and how it is shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from html import escape
from typing import Any

FEW_ROWS = 30
"""An effective sample size below which intervals are too short, and which is warned of."""


@dataclass(frozen=True)
class Estimate:
    """A number of the population, with an interval.

    Attributes
    ----------
    value : float
    standard_error : float
    interval : tuple of float
        Lower and upper end.
    level : float
        How often such intervals contain the population's number, if the assumptions hold.
    unweighted : float
        What the sample says as it is, with its design weights.
    statistic : str
        What is estimated.
    parts : dict from str to float
        The variance by where it comes from: the sample's rows, and the population's, where these
        are themselves a sample.
    effective_sample_size : float
        Of the weights.
    degrees_of_freedom : float
        Of Student's distribution, from which the interval is; infinite for the normal one.
    n_rows : int
        Sample rows.
    weighter : str
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
    weighter: str
    outcome: str | None
    variance: str
    assumptions: tuple[str, ...]
    notes: tuple[str, ...] = ()
    is_share: bool = False

    def __str__(self) -> str:
        low, high = self.interval
        text = f"{self.headline}, against {self._shown(self.unweighted)} unweighted"
        del low, high
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
        if self.is_share:
            ends = f"{100 * low:.{digits}f} to {100 * high:.{digits}f}"
        else:
            ends = f"{low:,.{digits}f} to {high:,.{digits}f}"
        return f"{self._shown(self.value)} ({ends})"

    @property
    def _digits(self) -> int:
        """The decimals that the standard error leaves certain, and one more."""
        import math

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
        plain = asdict(self)
        for name in ("interval", "assumptions", "notes"):
            plain[name] = list(plain[name])
        if plain["degrees_of_freedom"] == float("inf"):
            plain["degrees_of_freedom"] = None
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
