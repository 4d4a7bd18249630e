"""``unskew diagnose``: is the sample biased, where, and did the weights help."""

from __future__ import annotations

from typing import Annotated

import typer

from unskew.cli import options


def diagnose(
    sample: options.Sample,
    population: options.Population,
    target: options.Target = None,
    weights: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Weights to judge, as unskew weigh has written them."),
    ] = None,
    identifier: options.Identifier = None,
    columns: options.Columns = None,
    exclude: options.Exclude = None,
    sample_weight: options.SampleWeight = None,
    population_weight: options.PopulationWeight = None,
    report: options.Report = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print everything as JSON, for other programs.")
    ] = False,
    quiet: options.Quiet = False,
) -> None:
    r"""Say whether a sample is biased, how badly and where, and whether weights mend it.

    Prints the verdict in a few lines; the report has pictures and every column.

    [bold]Is there bias, and is there overlap?[/bold]

    unskew diagnose answers.csv customers.parquet --target spend --id customer

    [bold]Did the weights help? With a report for people:[/bold]

    unskew diagnose answers.csv customers.parquet --target spend \
      --id customer --weights weights.csv --report report.html

    [bold]For other programs:[/bold]

    unskew diagnose answers.csv customers.parquet --target spend --json
    """
    from unskew import diagnose as diagnosis_of
    from unskew.cli.inputs import Roles, both_sides, read_weights
    from unskew.cli.outputs import check_outputs, told_as_notes
    from unskew.cli.reports import lines_of, write_report
    from unskew.files import whole_files

    outputs = [] if report is None else [report]
    check_outputs(outputs, [sample, population, *([] if weights is None else [weights])])
    roles = Roles(target, identifier, sample_weight, columns or (), exclude or ())
    sides = both_sides(sample, population, roles, weight=population_weight, quiet=quiet)
    with whole_files(outputs) as temporaries, sides as (rows, people):
        judged = None if weights is None else read_weights(weights, rows)
        with told_as_notes():
            found = diagnosis_of(
                rows.features, people, judged, y=rows.labels, sample_weight=rows.design
            )
        for temporary, path in zip(temporaries, outputs, strict=True):
            write_report(found, temporary, path)
    if as_json:
        typer.echo(found.to_json(), nl=False)
    elif not quiet:
        typer.echo("\n".join(lines_of(found)))
        for path in outputs:
            typer.echo(f"Written: {path}")
