"""``unskew diagnose``: whether the sample is biased, where, and whether the weights helped."""

from __future__ import annotations

from typing import Annotated

import typer

from unskew.cli import options
from unskew.cli.inputs import Unlabelled

BIAS_LEFT = 1


def diagnose(
    sample: options.Sample,
    population: options.Population = None,
    target: options.Target = None,
    weights: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Weights to evaluate, as unskew weigh writes them."),
    ] = None,
    margins: options.MarginsFile = None,
    identifier: options.Identifier = None,
    columns: options.Columns = None,
    exclude: options.Exclude = None,
    unlabelled: options.UnlabelledRows = Unlabelled.RAISE,
    sample_weight: options.SampleWeight = None,
    population_weight: options.PopulationWeight = None,
    report: options.Report = None,
    delimiter: options.Delimiter = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print everything as JSON, for other programs.")
    ] = False,
    check: Annotated[
        bool,
        typer.Option(
            "--check", help="Exit with code 1 if there is bias or, with --weights, if it is left."
        ),
    ] = False,
    quiet: options.Quiet = False,
) -> None:
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
    from unskew import diagnose as make_diagnosis
    from unskew.cli.inputs import Roles, check_one_population, open_inputs, read_weights
    from unskew.cli.outputs import check_outputs, warnings_as_notes
    from unskew.cli.reports import format_diagnosis, name_inputs, write_report
    from unskew.files import whole_files

    outputs = [] if report is None else [report]
    roles = Roles(
        target, identifier, sample_weight, columns, exclude, population_weight, unlabelled
    )
    known = check_one_population(sample, population, margins, roles)
    check_outputs(outputs, [sample, known, *([] if weights is None else [weights])])
    inputs = open_inputs(
        sample, population, roles, quiet=quiet, delimiter=delimiter, margins=margins
    )
    with whole_files(outputs) as temporaries, inputs as (rows, opened):
        given = None if weights is None else read_weights(weights, rows)
        with warnings_as_notes():
            diagnosis = make_diagnosis(
                rows.features, opened, given, y=rows.labels, sample_weight=rows.design
            )
        diagnosis = name_inputs(diagnosis, sample, known, target, weights)
        for temporary, path in zip(temporaries, outputs, strict=True):
            write_report(diagnosis, temporary, path)
    if as_json:
        typer.echo(diagnosis.to_json(), nl=False)
    elif not quiet:
        typer.echo("\n".join(format_diagnosis(diagnosis)))
        for path in outputs:
            typer.echo(f"Written: {path}")
    if check and diagnosis.bias_left:
        raise typer.Exit(BIAS_LEFT)
