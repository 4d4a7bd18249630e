r"""The result of every theorem, a number that prints as an explanation; and its parameters' checks.

A theorem is one function. It checks its parameters (``check_...``), computes a number and returns
it as a :class:`Bound`, with the terms it is made of, what it assumes, and the statement that it
comes from. What the theory does not cover is a ``LearnerError`` (:func:`not_covered`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, fields
from html import escape
from types import MappingProxyType
from typing import Any, Literal, NoReturn, Self, get_args

import numpy as np
from numpy.typing import ArrayLike

from unskew.errors import InputError, LearnerError, ParameterError
from unskew.numerics.typing import FloatArray
from unskew.numerics.weight_vectors import float_vector

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
        # What cannot be changed later: a bound may be part of another's terms.
        object.__setattr__(self, "terms", MappingProxyType(dict(self.terms)))
        object.__setattr__(self, "assumptions", tuple(self.assumptions))
        object.__setattr__(self, "remarks", tuple(self.remarks))
        object.__setattr__(self, "vacuous", self.vacuous or bool(self.reason))

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        # A number is made with its value; the class is called with all fields to make it again.
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


def check_probability(value: Any, *, name: str) -> float:
    """Return a probability strictly between zero and one."""
    return _checked(value, name, lambda number: 0 < number < 1, "lie strictly between 0 and 1")


def check_positive(value: Any, *, name: str) -> float:
    """Return a positive, finite number."""
    return _checked(value, name, lambda number: 0 < number < np.inf, "be positive and finite")


def check_kappa(value: Any) -> float:
    """Return a bound on K(x, x), or raise an error that lists kernels with one."""
    try:
        return check_positive(value, name="kappa")
    except ParameterError as error:
        raise ParameterError(
            f"{error} Kernels with a bound on K(x, x) qualify: Gaussian, Laplace, chi-squared and "
            "cosine kernels have 1, others only on inputs that are bounded."
        ) from None


def check_at_least(value: Any, least: float, *, name: str) -> float:
    """Return a finite number that is not below ``least``."""
    return _checked(
        value, name, lambda number: least <= number < np.inf, f"be finite and at least {least:g}"
    )


def check_option(value: Any, options: Collection[str], *, name: str) -> str:
    """Return one of several words; case, spaces and underscores do not matter."""
    word = str(value).lower().replace("_", "-").replace(" ", "-")
    if not isinstance(value, str) or word not in options:
        listed = ", ".join(f'"{option}"' for option in options)
        raise ParameterError(f"{name} must be one of {listed}; got {value!r}.")
    return word


def check_form(value: Any) -> Form:
    """Return which form of a statement is meant: as printed, or corrected."""
    return "paper" if check_option(value, get_args(Form), name="form") == "paper" else "corrected"


def check_norm(value: Any) -> str:
    """Return the norm in which weights are compared."""
    return check_option(value, ("l1", "l2"), name="norm")


def check_counts(
    population_counts: ArrayLike, sample_counts: ArrayLike | None = None
) -> tuple[FloatArray, FloatArray]:
    """Return the counts of each cell in the population and in the sample.

    Every cell must hold population rows. One without sample rows carries no weight but counts among
    the cells. Without sample counts, those of the population are returned twice.
    """
    population = _whole(population_counts, "population_counts")
    if not len(population):
        raise InputError("population_counts is empty; give at least one cell.")
    if (population < 1).any():
        cell = int(np.flatnonzero(population < 1)[0])
        raise InputError(
            f"population_counts must be at least 1 in every cell; got {population[cell]:g} in cell "
            f"{cell}. Leave out cells that hold no row of the population."
        )
    if sample_counts is None:
        return population, population
    sample = _whole(sample_counts, "sample_counts")
    if len(sample) != len(population):
        raise InputError(
            f"sample_counts has {len(sample)} cells and population_counts {len(population)}; give "
            "one count of each for every cell."
        )
    if (sample > population).any():
        cell = int(np.flatnonzero(sample > population)[0])
        raise InputError(
            f"Cell {cell} has {sample[cell]:g} sample rows and {population[cell]:g} population "
            "rows. The theory needs a sample that is part of the population."
        )
    if not sample.any():
        raise InputError("sample_counts is zero in every cell; give at least one sample row.")
    return population, sample


def _whole(counts: ArrayLike, name: str) -> FloatArray:
    vector = float_vector(counts, name=name, per="cell")
    wrong = ~((vector >= 0) & (vector == np.floor(vector)) & np.isfinite(vector))
    if wrong.any():
        cell = int(np.flatnonzero(wrong)[0])
        raise InputError(
            f"{name} must be whole numbers of rows, not negative; got {vector[cell]} in cell "
            f"{cell}. Sums of design weights are not binomial counts."
        )
    return vector


def _checked(value: Any, name: str, valid: Callable[[float], bool], demand: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ParameterError(f"{name} must be a number; got {value!r}.") from None
    if not valid(number):
        raise ParameterError(f"{name} must {demand}; got {value!r}.")
    return number


def not_covered(why: str) -> NoReturn:
    """Raise the error for what the theory does not cover."""
    raise LearnerError(f"not covered: {why}")
