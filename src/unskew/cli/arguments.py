"""What a command is, and the arguments that commands share.

A command is a dataclass whose fields are its options and whose docstring is its help.
:class:`SampleArguments` are the files of sample and population, and the columns with a role;
:class:`WeighingArguments` also say how the sample is weighed.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, get_type_hints
from warnings import catch_warnings

import typer

from unskew.cli import options
from unskew.cli.methods import Method
from unskew.errors import ParameterError

if TYPE_CHECKING:
    from unskew import Margins

MAX_UNCOVERED = 0.05
"""The share of the population that may be uncovered by the sample before weights are refused."""


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
    name = command.__name__.lower().removesuffix("command")
    app.command(name, help=text, short_help=story[0])(run)


class Unlabelled(StrEnum):
    """The values of ``--unlabelled``: what to do with sample rows without a label."""

    RAISE = "raise"
    DROP = "drop"
    POPULATION = "population"


@dataclass(frozen=True, kw_only=True)
class SampleArguments(Command):
    """The files of sample and population, and the columns that the options name.

    An entry of a list of columns may hold several names with commas.
    """

    sample: options.Sample
    population: options.Population = None
    margins: options.MarginsFile = None
    reconcile: options.Reconcile = False
    target: options.Target = None
    identifier: options.Identifier = None
    columns: options.Columns = None
    exclude: options.Exclude = None
    categories: options.Categories = None
    unlabelled: Annotated[
        Unlabelled,
        typer.Option(
            help="What to do with rows of SAMPLE without a label: raise an error, drop them, or "
            "take all rows of SAMPLE as the population, instead of POPULATION."
        ),
    ] = Unlabelled.RAISE
    sample_weight: options.SampleWeight = None
    population_weight: options.PopulationWeight = None
    delimiter: options.Delimiter = None
    quiet: options.Quiet = False

    @property
    def aside(self) -> Mapping[str, str]:
        """The columns that are read for something else, by the option that names them."""
        return {}

    @cached_property
    def apart(self) -> Mapping[str, str]:
        """Those of ``aside`` that are no features, as the population knows nothing of them."""
        if not self.aside:
            return {}
        known = columns_of_population(self)
        return {option: name for option, name in self.aside.items() if name not in known}

    @property
    def features(self) -> Sequence[str] | None:
        """The columns that are features, or None: all without another role."""
        return self.columns

    def named(self, title: str | None) -> dict[str, str | None]:
        """Return what a report says of its data."""
        return {
            "title": title,
            "sample": self.sample,
            "population": self.file_of_population(),
            "target": self.target,
            "identifier": self.identifier,
        }

    def file_of_population(self) -> str:
        """Return the file that describes the population; there must be exactly one."""
        population, margins, weight = self.population, self.margins, self.population_weight
        if self.unlabelled is Unlabelled.POPULATION:
            for given, name in ((population, "POPULATION"), (margins, "--margins")):
                if given is not None:
                    raise ParameterError(
                        "--unlabelled population makes all rows of SAMPLE the population, labelled "
                        f"or not: leave {name} out."
                    )
            if weight is not None:
                raise ParameterError(
                    "--population-weight is for another file; with --unlabelled population, "
                    "--sample-weight names the weights of all rows."
                )
            return self.sample
        if (population is None) == (margins is None):
            given = "both are given" if population is not None else "neither is given"
            raise ParameterError(
                f"Give either POPULATION, a file of rows, or --margins, a file of totals; {given}."
            )
        if margins is not None and weight is not None:
            raise ParameterError("--population-weight is for rows; --margins has none.")
        return str(margins if population is None else population)


@dataclass(frozen=True, kw_only=True)
class WeighingArguments(SampleArguments):
    """Sample and population of a command that weighs, the method, and the sample's design."""

    method: Annotated[Method | None, options.method("auto, or rake with --margins")] = None
    setting: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="A parameter of the method, name=value; repeat for more.",
        ),
    ] = None
    strata: Annotated[str | None, options.column("The stratum of each row of SAMPLE.")] = None
    clusters: Annotated[str | None, options.column("The cluster of each row of SAMPLE.")] = None
    allow_uncovered: Annotated[
        float,
        typer.Option(
            min=0.0,
            max=1.0,
            metavar="SHARE",
            help="Refuse if more of the population than this is not covered by the sample.",
        ),
    ] = MAX_UNCOVERED

    @property
    def aside(self) -> Mapping[str, str]:
        """The columns that are read for something else, by the option that names them."""
        named = {"--strata": self.strata, "--clusters": self.clusters}
        return {option: name for option, name in named.items() if name is not None}

    @staticmethod
    def design_of(aside: Mapping[str, Any]) -> dict[str, Any]:
        """Return strata and clusters, of the columns that were read."""
        return {name: aside.get(f"--{name}") for name in ("strata", "clusters")}


def columns_of_population(given: SampleArguments) -> list[str]:
    """Return the columns of which the population knows something."""
    from unskew import Population

    if given.margins is not None:
        with catch_warnings(action="ignore"):  # they come when the file is read for good
            return known_margins(given).columns
    if given.population is None:
        return []
    return Population(given.population, delimiter=character(given.delimiter)).columns


def known_margins(given: SampleArguments) -> Margins:
    """Read the file of margins."""
    from unskew import read_margins

    reconcile: Any = "scale" if given.reconcile else "raise"
    return read_margins(given.margins, reconcile=reconcile)


def character(delimiter: str | None) -> str | None:
    r"""Return the delimiter that --delimiter names: in a shell a tab is tab or \t."""
    return "\t" if delimiter in ("tab", r"\t") else delimiter
