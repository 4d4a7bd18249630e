"""Data as users bring them: each function makes a small problem with one thing wrong in it."""

from __future__ import annotations

import datetime as dt
import inspect
from collections.abc import Callable
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from unskew import Population
from unskew.errors import InputTypeError, UnskewError

M, N = 24, 60


class Problem(NamedTuple):
    """A sample with labels, and a population.

    A weighter gives weights or refuses, and then its message names the ``cause``. Where the problem
    can have no answer, ``refused`` is the error that every weighter must raise.
    """

    sample: Any
    labels: Any
    population: Any
    cause: str
    sample_weight: Any = None
    refused: type[UnskewError] | None = None


def frames(m: int = M, n: int = N, seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return a harmless sample and population of one column, ``x``.

    The sample leans upwards; its rows, as many as there is room for, are the population's first.
    """
    random = np.random.default_rng(seed)
    sample = random.normal(0.5, 1.0, m)
    population = np.concatenate([sample, random.normal(0.0, 1.0, n)])[:n]
    return pd.DataFrame({"x": sample}), pd.DataFrame({"x": population})


def labels_of(m: int = M) -> np.ndarray:
    return np.sin(np.arange(m)) + np.arange(m) / 7


def beside(sample: Any, population: Any, **options: Any) -> Problem:
    """Return the harmless column with an ugly one, ``u``, beside it."""
    left, right = frames()
    left["u"], right["u"] = sample, population
    return Problem(left, labels_of(), right, **{"cause": "'u'", **options})


def cycled(values: list[Any], size: int) -> list[Any]:
    return [values[position % len(values)] for position in range(size)]


def one_row() -> Problem:
    sample, population = frames(m=1)
    return Problem(sample, labels_of(1), population, cause="n_samples=1")


def one_population_row() -> Problem:
    sample, population = frames(n=1)
    return Problem(sample, labels_of(), population, cause="'x'")


def one_row_on_either_side() -> Problem:
    sample, population = frames(m=1, n=1)
    return Problem(
        sample.assign(u="a"), labels_of(1), population.assign(u="a"), cause="n_samples=1"
    )


def constant_column() -> Problem:
    return beside(3.0, cycled([3.0, 3.0, 4.0], N))


def constant_labels() -> Problem:
    sample, population = frames()
    return Problem(sample, np.ones(M), population, cause="y")


def unseen_categories() -> Problem:
    return beside(cycled(["a", "b"], M), cycled(["a", "b", "c", "d"], N))


def no_category_in_common() -> Problem:
    return beside(cycled(["a", "b"], M), cycled(["c", "d"], N))


def missing_in_the_sample() -> Problem:
    return beside(np.nan, cycled([1.0, 2.0, np.nan], N))


def missing_text_in_the_sample() -> Problem:
    return beside(pd.Series([None] * M, dtype=object), cycled(["a", "b", None], N))


def missing_in_the_population() -> Problem:
    return beside(cycled([1.0, 2.0], M), np.nan)


def missing_everywhere() -> Problem:
    return beside(np.nan, np.nan)


def missing_text_everywhere() -> Problem:
    nothing = (pd.Series([None] * size, dtype=object) for size in (M, N))
    return beside(*nothing)


def nothing_but_missing() -> Problem:
    sample, population = (frame[["x"]] * np.nan for frame in frames())
    return Problem(sample, labels_of(), population, cause="'x'")


def huge_values() -> Problem:
    return beside(np.linspace(-1e300, 1e300, M), np.linspace(-1e300, 1e300, N))


def one_huge_value() -> Problem:
    return beside([*cycled([1.0, 2.0, 3.0], M - 1), 1e300], cycled([1.0, 2.0, 3.0], N))


def huge_values_in_the_population() -> Problem:
    return beside(cycled([1.0, 2.0, 3.0], M), cycled([1.0, 2.0, -1e300, 1e300], N))


def largest_doubles() -> Problem:
    largest = np.finfo(np.float64).max
    return beside(cycled([-largest, largest], M), cycled([-largest, largest], N))


def tiny_values() -> Problem:
    return beside(cycled([5e-324, 0.0, -0.0, 1e-310], M), cycled([0.0, 1e-310], N))


def infinite_values() -> Problem:
    return beside(cycled([1.0, np.inf], M), 1.0)


def infinite_values_in_the_population() -> Problem:
    return beside(1.0, cycled([1.0, -np.inf], N))


def duplicates_of_one_row() -> Problem:
    sample, population = (pd.DataFrame({"x": [1.5] * m, "u": ["a"] * m}) for m in (M, N))
    return Problem(sample, labels_of(), population, cause="'x'")


def duplicates_far_from_the_population() -> Problem:
    sample, population = frames()
    return Problem(sample * 0 + 9.0, labels_of(), population, cause="'x'")


def many_categories() -> Problem:
    names = [f"name {number}" for number in range(5000)]
    sample = pd.DataFrame({"u": cycled(names[::50], M)})
    return Problem(sample, labels_of(), pd.DataFrame({"u": names}), cause="'u'")


def spaces() -> Problem:
    texts = ["", " ", "  ", "a", "a ", " a", "\ta", "\u00a0a"]
    return beside(cycled(texts, M), cycled(texts, N))


def mixed_types() -> Problem:
    return beside(
        pd.Series(cycled([1, "a", 2.5], M), dtype=object),
        pd.Series(cycled([1, "a", 2.5], N), dtype=object),
        refused=InputTypeError,
    )


def mixed_types_in_the_population() -> Problem:
    return beside(
        cycled([1.0, 2.0], M),
        pd.Series(cycled([1, "a", 2.5], N), dtype=object),
        refused=InputTypeError,
    )


def numbers_and_text() -> Problem:
    return beside(cycled([1.0, 2.0], M), cycled(["1", "2"], N), refused=InputTypeError)


def far_dates() -> Problem:
    ends = [dt.datetime(1, 1, 1), dt.datetime(2024, 2, 29), dt.datetime(9999, 12, 31, 23, 59, 59)]
    sample, population = (
        pa.table({"x": frame["x"].to_numpy(), "u": pa.array(cycled(ends, len(frame)))})
        for frame in frames()
    )
    return Problem(sample, labels_of(), population, cause="'x'")


def dates_beyond_pandas() -> Problem:
    ends = [dt.date(1, 1, 1), dt.date(9999, 12, 31)]
    return beside(
        pd.Series(cycled(ends, M), dtype=object), pd.Series(cycled(ends, N), dtype=object)
    )


def dates_out_of_range() -> Problem:
    sample, population = frames()
    near = pa.array(cycled([0, 86_400], M), pa.timestamp("s"))
    beyond = pa.array(cycled([0, 2**62, -(2**62)], N), pa.timestamp("s"))
    return Problem(
        pa.table({"x": sample["x"].to_numpy(), "u": near}),
        labels_of(),
        pa.table({"x": population["x"].to_numpy(), "u": beyond}),
        cause="'u'",
    )


def time_zones() -> Problem:
    days = [pd.date_range("2024-03-30", periods=size, freq="h", tz="UTC") for size in (M, N)]
    return beside(days[0].tz_convert("Europe/Berlin"), days[1].tz_convert("Asia/Kathmandu"))


def durations() -> Problem:
    return beside(*(pd.to_timedelta(cycled([0, 10**9, -1], size), "s") for size in (M, N)))


def small_integers_near_overflow() -> Problem:
    values = [-128, -127, 126, 127]
    return beside(*(np.array(cycled(values, size), dtype=np.int8) for size in (M, N)))


def unsigned_beside_signed() -> Problem:
    return beside(
        np.array(cycled([0, 255], M), dtype=np.uint8), np.array(cycled([0, -1], N), dtype=np.int8)
    )


def integers_beyond_doubles() -> Problem:
    return beside(*(cycled([2**53, 2**53 + 1], size) for size in (M, N)))


def decimals() -> Problem:
    return beside(*(cycled([Decimal("0.10"), Decimal("1e20")], size) for size in (M, N)))


def booleans() -> Problem:
    return beside(cycled([True, False], M), cycled([True, True, False], N))


def booleans_with_gaps() -> Problem:
    return beside(
        pd.array(cycled([True, False, None], M), dtype="boolean"),
        pd.array(cycled([True, None, None], N), dtype="boolean"),
    )


def unused_categories() -> Problem:
    names = ["a", "b", "never", "only in the population"]
    return beside(
        pd.Categorical(cycled(["a", "b"], M), categories=names),
        pd.Categorical(cycled(["a", "b", "only in the population"], N), categories=names[::-1]),
    )


def unique_ids() -> Problem:
    return beside(
        [f"sample-{number:04}" for number in range(M)], [f"person-{number}" for number in range(N)]
    )


def far_population() -> Problem:
    sample, population = frames()
    return Problem(sample, labels_of(), population + 1e6, cause="'x'")


def nearly_apart() -> Problem:
    sample, population = frames()
    return Problem(sample, labels_of(), population * 0.01 + sample["x"].min() - 2.0, cause="'x'")


def single_beside_double_precision() -> Problem:
    sample, population = frames()
    return Problem(sample.astype(np.float32), labels_of(), population, cause="'x'")


def zero_design_weight() -> Problem:
    design = np.ones(M)
    design[:3] = 0.0
    return beside(
        cycled(["a", "b"], M), cycled(["a", "b"], N), sample_weight=design, cause="sample_weight"
    )


def zero_design_weight_of_a_category() -> Problem:
    towns = cycled(["a", "b"], M)
    design = [float(town == "a") for town in towns]
    return beside(towns, cycled(["a", "b"], N), sample_weight=design, cause="sample_weight")


def zero_population_weight() -> Problem:
    sample, population = frames()
    weight = np.where(np.arange(N) % 2, 0.0, 3.0)
    return Problem(sample, labels_of(), Population(population, weight=weight), cause="weight")


def one_positive_population_weight() -> Problem:
    sample, population = frames()
    weight = [0.0] * (N - 1) + [2.0]
    return Problem(sample, labels_of(), Population(population, weight=weight), cause="weight")


def tiny_weights() -> Problem:
    return weighted(1e-300)


def huge_weights() -> Problem:
    return weighted(1e300)


def weighted(scale: float) -> Problem:
    sample, population = frames()
    return Problem(
        sample,
        labels_of(),
        Population(population, weight=scale * np.arange(1.0, N + 1)),
        sample_weight=scale * np.arange(1.0, M + 1),
        cause="weight",
    )


def one_positive_design_weight() -> Problem:
    return beside(1.0, 1.0, sample_weight=[1.0] + [0.0] * (M - 1), cause="sample_weight")


FACTORIES: dict[str, Callable[[], Problem]] = {
    name: function
    for name, function in list(globals().items())
    if inspect.isfunction(function) and not inspect.signature(function).parameters
}
"""Every function above that takes no argument."""
