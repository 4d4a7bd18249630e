"""Validation of the parameters of bounds."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from unskew.errors import InputError, ParameterError
from unskew.numerics.typing import FloatArray
from unskew.numerics.weight_vectors import float_vector


def check_probability(value: Any, *, name: str) -> float:
    """Return a probability strictly between zero and one."""
    return _number(value, name, lambda number: 0 < number < 1, "lie strictly between 0 and 1")


def check_positive(value: Any, *, name: str) -> float:
    """Return a positive, finite number."""
    return _number(value, name, lambda number: 0 < number < np.inf, "be positive and finite")


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
    return _number(
        value, name, lambda number: least <= number < np.inf, f"be finite and at least {least:g}"
    )


def check_option(value: Any, options: Collection[str], *, name: str) -> str:
    """Return one of several words; case, spaces and underscores do not matter."""
    word = str(value).lower().replace("_", "-").replace(" ", "-")
    if not isinstance(value, str) or word not in options:
        listed = ", ".join(f'"{option}"' for option in options)
        raise ParameterError(f"{name} must be one of {listed}; got {value!r}.")
    return word


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


def _number(value: Any, name: str, valid: Callable[[float], bool], demand: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ParameterError(f"{name} must be a number; got {value!r}.") from None
    if not valid(number):
        raise ParameterError(f"{name} must {demand}; got {value!r}.")
    return number
