"""The result of every theorem: a number that prints as an explanation."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from html import escape
from types import MappingProxyType
from typing import Any, Literal, Self

Form = Literal["paper", "corrected"]


@dataclass(frozen=True, eq=False, repr=False)
class Bound(float):
    """An upper bound with its terms and assumptions.

    It is a number, so that it can be compared, multiplied and formatted as one; printed, it
    explains itself.

    Attributes
    ----------
    value : float
        The bound; infinite where there is none.
    terms : mapping from str to float
        Its parts. A part may itself be a Bound, with terms of its own.
    assumptions : tuple of str
        What must hold for it.
    vacuous : bool
        Whether it is no better than a trivial bound; so it is where a ``reason`` is given.
    reference : str
        The theorem that gives it.
    form : {"paper", "corrected"}
        The formula as printed, or as it should read.
    statement : str
        What is bounded, in words.
    reason : str
        Why it is vacuous, in words; empty where it is not.
    remarks : tuple of str
        What else a reader should know.

    Examples
    --------
    >>> from unskew.theory import stability_coefficient
    >>> bound = stability_coefficient(kappa=1.0, lam=0.5, lipschitz=1.0, norm="l1")
    >>> bound.value, bound < 2
    (1.0, True)
    >>> print(bound)
    The change of the loss at any point, per unit of l1 distance between the weights: at most 1
      kappa        1
      lam          0.5
      lipschitz    1
    It assumes
      - a convex loss that is Lipschitz in the prediction with this constant
      - a learner that minimises sum_i W_i loss_i + lam * |h|_K^2, without an unpenalised offset
      - K(x, x) <= kappa for every x
    From: Cortes et al. (2008), Theorem 1 (corrected form)
    """

    value: float
    terms: Mapping[str, float]
    assumptions: tuple[str, ...] = ()
    vacuous: bool = False
    reference: str = ""
    form: Form = "corrected"
    statement: str = ""
    reason: str = ""
    remarks: tuple[str, ...] = ()

    def __new__(cls, value: float, *_: Any, **__: Any) -> Self:
        """Make the number; the fields follow."""
        return super().__new__(cls, value)

    def __post_init__(self) -> None:
        object.__setattr__(self, "terms", MappingProxyType(dict(self.terms)))
        object.__setattr__(self, "assumptions", tuple(self.assumptions))
        object.__setattr__(self, "remarks", tuple(self.remarks))
        object.__setattr__(self, "vacuous", self.vacuous or bool(self.reason))

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        state = {part.name: getattr(self, part.name) for part in fields(self)}
        return type(self), tuple({**state, "terms": dict(self.terms)}.values())

    def __repr__(self) -> str:
        empty = ", vacuous" if self.vacuous else ""
        return f"Bound({_number(self.value)}, {self.form}{empty}: {self.reference})"

    def __str__(self) -> str:
        return "\n".join(self._lines(str))

    def _repr_html_(self) -> str:
        head, *rest = self._lines(escape)
        return f"<div><strong>{head}</strong><pre>{chr(10).join(rest)}</pre></div>"

    def _lines(self, clean: Callable[[str], str]) -> Iterator[str]:
        yield clean(f"{self.statement or 'Bound'}: {_at_most(self.value)}")
        if self.vacuous:
            yield clean(f"This bound is vacuous: {self.reason or 'it is no smaller than trivial'}.")
        yield from map(clean, self.remarks)
        width = max((len(name) for name in self.terms), default=0)
        for name, value in self.terms.items():
            remark = ", vacuous" if isinstance(value, Bound) and value.vacuous else ""
            yield clean(f"  {name:{width}}    {_number(value)}{remark}")
        if self.assumptions:
            yield "It assumes"
            yield from (clean(f"  - {assumption}") for assumption in self.assumptions)
        yield clean(f"From: {self.reference} ({self.form} form)")


def _at_most(value: float) -> str:
    return "no bound" if math.isinf(value) else f"at most {_number(value)}"


def _number(value: float) -> str:
    return f"{float(value):.4g}"
