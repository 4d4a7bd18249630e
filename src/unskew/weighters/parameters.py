"""The parameters of a weighter: declared as fields, and documented once, where they are declared.

A class docstring names a section of a base class in angle brackets on a line of its own, as in
``<Weighter parameters>``, which is replaced when the class is created.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, field
from typing import Any, dataclass_transform

from sklearn.base import BaseEstimator

SHARED = ("columns", "total", "overlap", "random_state")
"""The parameters of every weighter, in which its signature ends."""


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(field,))
class WithParameters(BaseEstimator):
    """An estimator whose parameters are the fields of its class, with those that it inherits.

    The ``__init__`` that scikit-learn expects is written from them: it stores each parameter, by
    keyword, as given.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
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
