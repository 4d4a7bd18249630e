"""The parameters of a weighter: declared as fields, and documented once, where they are declared.

A field's annotation says what is allowed: ``Literal`` which names, ``bool``, a class which objects,
and ``Annotated`` any of scikit-learn's constraints, such as an interval. What is not allowed is
refused by ``fit``, with what would be.

A class docstring names a section of a base class in angle brackets on a line of its own, as in
``<Weighter parameters>``, which is replaced when the class is created.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    Union,
    dataclass_transform,
    get_args,
    get_origin,
)

from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from unskew._compat import Interval, StrOptions

Share = Annotated[float, Interval(Real, 0, 1, closed="both")]
BelowOne = Annotated[float, Interval(Real, 0, 1, closed="left")]
AtLeastZero = Annotated[float, Interval(Real, 0, None, closed="left")]
AtLeastOne = Annotated[float, Interval(Real, 1, None, closed="left")]
Positive = Annotated[float, Interval(Real, 0, None, closed="neither")]
OneOrMore = Annotated[int, Interval(Integral, 1, None, closed="left")]
TwoOrMore = Annotated[int, Interval(Integral, 2, None, closed="left")]
Numbers = Annotated[ArrayLike, "array-like"]
RandomState = Annotated[Any, "random_state"]

Columns = Sequence[str | int] | NDArray[Any] | Literal["shared"] | None
Total = Literal["sample", "population"]
OnUncovered = Literal["warn", "raise", "ignore"] | Share

SHARED = ("columns", "total", "overlap", "random_state")
"""The parameters of every weighter, in which its signature ends."""


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(field,))
class WithParameters(BaseEstimator):
    """An estimator whose parameters are the fields of its class, with those that it inherits.

    The ``__init__`` that scikit-learn expects is written from them: it stores each parameter, by
    keyword, as given. So are the constraints by which scikit-learn validates them.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "_parameter_constraints" not in vars(cls):
            hints = inspect.get_annotations(cls, eval_str=True).items()
            own = {name: allowed for name, hint in hints if (allowed := _constraints(hint))}
            known = [vars(base).get("_parameter_constraints", {}) for base in cls.__mro__[1:]]
            cls._parameter_constraints = {
                name: allowed for part in (*known[::-1], own) for name, allowed in part.items()
            }
        if "__init__" not in vars(cls):
            dataclass(kw_only=True, eq=False, repr=False)(cls)
            signature = inspect.signature(cls.__init__)
            last = sorted(signature.parameters, key=lambda name: name in SHARED)
            parameters = [signature.parameters[name] for name in last]
            vars(cls)["__init__"].__signature__ = signature.replace(parameters=parameters)
        if cls.__doc__:
            overlap = inspect.signature(cls.__init__).parameters.get("overlap")
            default = f'float, default="{overlap.default if overlap else "warn"}"'
            cls.__doc__ = with_inherited_docs(cls).replace('float, default="warn"', default)


def _constraints(hint: Any) -> list[Any]:
    """Return scikit-learn's constraints of a parameter with this annotation; none for any value."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return [one for part in parts for one in _constraints(part)]
    if origin is Annotated:
        return list(parts[1:])
    if origin is Literal:
        return [StrOptions(set(parts))]
    kind = origin or hint
    if kind in (Any, ClassVar):
        return []
    if issubclass(kind, Sequence) and kind is not str:
        return [list, tuple]
    known = {bool: "boolean", int: Integral, float: Real, NoneType: None, Callable: callable}
    return [known.get(kind, kind)]


def with_inherited_docs(cls: type) -> str:
    """Return the docstring of a class with the sections of its base classes in place of names."""

    def section(name: re.Match[str]) -> str:
        base = next((one for one in cls.__mro__ if one.__name__ == name[1]), None)
        if base is None:  # not one of these names
            return name[0]
        title = name[2].capitalize()
        text = inspect.cleandoc(base.__doc__ or "").partition(f"{title}\n{'-' * len(title)}\n")[2]
        return re.split(r"\n\n\w+\n-+\n", text)[0].rstrip()

    return re.sub(r"<(\w+) (parameters|attributes)>", section, inspect.cleandoc(cls.__doc__ or ""))
