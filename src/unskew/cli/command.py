"""What a command is: a dataclass whose fields are its options and whose docstring is its help."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar, get_type_hints

import typer


@dataclass(frozen=True, kw_only=True)
class Command(ABC):
    """A command of the command line, with the values that were given; ``run`` does the work.

    Commands that share options derive from the class that has them. Each field is annotated with
    the option or argument that Typer makes of it.
    """

    needs_scipy: ClassVar[bool] = True

    @abstractmethod
    def run(self) -> None:
        """Do what the command is for."""


def register(app: typer.Typer, command: type[Command]) -> None:
    """Add a command to the application, under the name of its class in lower case."""

    def run(**given: Any) -> None:
        if command.needs_scipy:
            # First, because the stack is short here. Importing SciPy calls functions by the ten
            # thousand, and Python maps memory anew at every call beyond 16 KB of its stack, which
            # the chain of imports from a command to SciPy reaches: a tenth of a command's time.
            import_module("scipy.stats")
        command(**given).run()

    hints = get_type_hints(command, include_extras=True)
    parameters = [
        parameter.replace(annotation=hints[name])
        for name, parameter in inspect.signature(command).parameters.items()
    ]
    parameters.sort(key=lambda each: each.default is not each.empty)  # what is required comes first
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = hints
    story = str(inspect.getdoc(command)).split("\n\n")
    as_it_is = ("unskew ", "vacancies: ")  # lines that are not to be wrapped, marked for Click
    text = "\n\n".join("\b\n" * part.startswith(as_it_is) + part for part in story)
    app.command(command.__name__.lower(), help=text, short_help=story[0])(run)
