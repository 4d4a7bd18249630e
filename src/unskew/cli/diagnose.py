"""``unskew diagnose``: whether the sample is biased, where, and whether the weights helped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from unskew.cli import options
from unskew.cli.given import Given

if TYPE_CHECKING:
    from pathlib import Path

    from unskew import Diagnosis

BIAS_LEFT = 1


@dataclass(frozen=True, kw_only=True)
class Diagnose(Given):
    r"""Report whether a sample is biased, how much and where, and whether weights correct it.

    Prints the verdict in a few lines; the report has charts and every column.

    [bold]Is there bias, and is there overlap?[/bold]

    unskew diagnose answers.csv customers.parquet --target spend --id customer

    [bold]Did the weights help? With a report:[/bold]

    unskew diagnose answers.csv customers.parquet --target spend \
      --id customer --weights weights.csv --report report.html

    [bold]For other programs:[/bold]

    unskew diagnose answers.csv customers.parquet --target spend --json

    [bold]In a script: exit code 1 if the weights leave bias:[/bold]

    unskew diagnose answers.csv customers.parquet --target spend \
      --weights weights.csv --check --quiet
    """

    weights: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Weights to evaluate, as unskew weigh writes them."),
    ] = None
    report: options.Report = None
    as_json: options.AsJson = False
    check: Annotated[
        bool,
        typer.Option(
            "--check", help="Exit with code 1 if there is bias or, with --weights, if it is left."
        ),
    ] = False

    def run(self) -> None:
        """Diagnose the sample, write the report, and print the verdict."""
        from unskew.cli.outputs import check_outputs
        from unskew.cli.reports import format_diagnosis
        from unskew.files import whole_files

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
        if self.check and diagnosis.bias_left:
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
            diagnosis = name_inputs(
                diagnosis, self.sample, self.file_of_population(), self.target, self.weights
            )
            if self.report is not None:
                write_report(diagnosis, temporaries[0], self.report)
        return diagnosis
