"""``unskew diagnose``: whether the sample is biased, where, and whether the weights helped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from unskew.cli import options
from unskew.cli.arguments import SampleArguments
from unskew.errors import ParameterError

if TYPE_CHECKING:
    from pathlib import Path

    from unskew.results import Diagnosis

BIAS_LEFT = 1
ANY = "bias"
"""The value of --check without limits."""


@dataclass(frozen=True, kw_only=True)
class Diagnose(SampleArguments):
    r"""Report whether a sample is biased, how much and where, and whether weights correct it.

    Prints the verdict in a few lines; the report has charts and every column.

    Is there bias, and is there overlap?

    unskew diagnose answers.csv customers.parquet --target spend --id customer

    Did the weights help? With a report:

    unskew diagnose answers.csv customers.parquet --target spend \
      --id customer --weights weights.csv --report report.html

    For other programs:

    unskew diagnose answers.csv customers.parquet --target spend --json

    In a script: exit code 1 if the weights leave bias that matters:

    unskew diagnose answers.csv customers.parquet --target spend \
      --weights weights.csv --check auc=0.55,difference=0.1 --quiet
    """

    weights: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Weights to evaluate, as unskew weigh writes them."),
    ] = None
    report: options.Report = None
    title: options.Title = None
    as_json: options.AsJson = False
    check: Annotated[
        str | None,
        typer.Option(
            "--check",
            metavar="[LIMITS]",
            help="Exit with code 1 if there is bias or, with --weights, if it is left; with limits "
            "such as auc=0.55,difference=0.1 only if the AUC or a standardised difference is more.",
        ),
    ] = None

    def run(self) -> None:
        """Diagnose the sample, write the report, and print the verdict."""
        from unskew.cli.outputs import check_outputs
        from unskew.cli.reports import format_diagnosis
        from unskew.files import whole_files

        limits = _limits(self.check)
        outputs = [] if self.report is None else [self.report]
        inputs = [self.sample, self.file_of_population(), *filter(None, [self.weights])]
        check_outputs(outputs, inputs)
        with whole_files(outputs) as temporaries:
            diagnosis = self._diagnosis(temporaries)
        if self.as_json:
            print(diagnosis.to_json(), end="")
        elif not self.quiet:
            print("\n".join(format_diagnosis(diagnosis)))
            for path in outputs:
                print(f"Written: {path}")
        if self.check is not None and _beyond(diagnosis, limits):
            raise typer.Exit(BIAS_LEFT)

    def _diagnosis(self, temporaries: list[Path]) -> Diagnosis:
        """Return the diagnosis, written to the report if one is asked for."""
        from unskew import diagnose
        from unskew.cli.inputs import open_inputs, read_weights
        from unskew.cli.outputs import warnings_as_notes
        from unskew.cli.reports import name_inputs, write_report

        with open_inputs(self) as (rows, opened):
            given = None if self.weights is None else read_weights(self.weights, rows)
            with warnings_as_notes():
                diagnosis = diagnose(
                    rows.features, opened, given, y=rows.labels, sample_weight=rows.design
                )
            named = self.named(self.title) | {"weights": self.weights}
            diagnosis = name_inputs(diagnosis, rows.identifiers, **named)
            if self.report is not None:
                write_report(diagnosis, temporaries[0], self.report)
        return diagnosis


def with_limits(arguments: Sequence[str]) -> list[str]:
    """Return the arguments, with a value after every --check, which Typer demands."""
    pairs = zip(arguments, [*arguments[1:], ""], strict=False)
    return [
        f"--check={ANY}"
        if one == "--check" and not after.startswith(("auc=", "difference="))
        else one
        for one, after in pairs
    ]


def _limits(check: str | None) -> dict[str, float]:
    """Return the limits that --check names: of the AUC, of standardised differences, or none."""
    limits = {}
    for entry in [] if check in (None, ANY) else str(check).split(","):
        name, _, text = entry.partition("=")
        try:
            limits[name.strip()] = float(text)
        except ValueError:
            limits[""] = 0.0
    if set(limits) - {"auc", "difference"}:
        raise ParameterError(
            f"--check takes limits such as auc=0.55,difference=0.1, or none; got '{check}'."
        )
    return limits


def _beyond(diagnosis: Diagnosis, limits: dict[str, float]) -> bool:
    """Return whether bias is found and, where limits are named, is beyond one of them."""
    if not diagnosis.bias_left or not limits:
        return diagnosis.bias_left
    weighted = diagnosis.weights is not None
    found = {"auc": 0.5, "difference": 0.0}
    if (test := diagnosis.bias.classifier) is not None:
        found["auc"] = (test.after if weighted and test.after else test.before).statistic
    for line in (line for feature in diagnosis.bias.features for line in feature.lines):
        found["difference"] = max(
            found["difference"], abs((line.after if weighted else line.before) or 0.0)
        )
    return any(found[name] > limit for name, limit in limits.items())
