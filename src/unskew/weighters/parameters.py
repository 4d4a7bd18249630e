"""The parameters of a weighter, declared as fields."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from typing import Any, TypeVar, dataclass_transform

SHARED = ("columns", "total", "overlap", "random_state")
"""The parameters of every weighter, in which its signature ends."""

Class = TypeVar("Class", bound=type)


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(field,))
def with_parameters(cls: Class) -> Class:
    """Write the ``__init__`` that scikit-learn expects: it stores each field, by keyword, as given.

    A class that is decorated adds its own fields to those that it inherits.
    """
    made: Any = dataclass(kw_only=True, eq=False, repr=False)(cls)
    signature = inspect.signature(made.__init__)
    last = sorted(signature.parameters, key=lambda name: name in SHARED)
    parameters = [signature.parameters[name] for name in last]
    made.__init__.__signature__ = signature.replace(parameters=parameters)
    return made
