"""The parameters of a weighter: declared as fields, and documented once, where they are declared.

A class docstring names a section of a base class in angle brackets on a line of its own, as in
``<Weighter parameters>``; the base class replaces the name when the class is created.
"""

from __future__ import annotations

import inspect
import re
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


def with_inherited_docs(cls: type) -> str:
    """Return the docstring of a class with the sections of its base classes in place of names."""

    def section(name: re.Match[str]) -> str:
        (base,) = (one for one in cls.__mro__ if one.__name__ == name[1])
        title = name[2].capitalize()
        text = inspect.cleandoc(base.__doc__ or "").partition(f"{title}\n{'-' * len(title)}\n")[2]
        return re.split(r"\n\n\w+\n-+\n", text)[0].rstrip()

    return re.sub(r"<(\w+) (parameters|attributes)>", section, inspect.cleandoc(cls.__doc__ or ""))
