"""``unskew weigh``: weights for a sample in a file, against a population of any size."""

from __future__ import annotations

from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unskew.cli import options
from unskew.cli.methods import Method, Total, make_weighter

if TYPE_CHECKING:
    from unskew.cli.inputs import SampleFile

MAX_UNCOVERED = 0.05
"""The share of the population that may be uncovered by the sample before weights are refused."""

_Settings = Annotated[
    list[str] | None,
    typer.Option("--set", help="A parameter of the method, name=value; repeat for more."),
]
_Save = Annotated[
    Path | None, typer.Option(help="Save the fitted weighter for unskew apply (.skops).")
]
_AllowUncovered = Annotated[
    float,
    typer.Option(
        min=0.0,
        max=1.0,
        metavar="SHARE",
        help="Refuse if more of the population than this is not covered by the sample.",
    ),
]
_Resume = Annotated[
    bool,
    typer.Option(
        "--resume",
        help="Save the progress of the pass in OUTPUT.checkpoint, and resume from there if a run "
        "with the same arguments was killed.",
    ),
]


def weigh(
    sample: options.Sample,
    population: options.Population,
    output: options.Output,
    target: options.Target = None,
    method: Annotated[Method, typer.Option(help="How to weigh.")] = Method.TREE,
    setting: _Settings = None,
    identifier: options.Identifier = None,
    columns: options.Columns = None,
    exclude: options.Exclude = None,
    sample_weight: options.SampleWeight = None,
    population_weight: options.PopulationWeight = None,
    total: Annotated[
        Total, typer.Option(help="What the weights sum to: the sample's size or the population's.")
    ] = Total.SAMPLE,
    report: options.Report = None,
    save: _Save = None,
    allow_uncovered: _AllowUncovered = MAX_UNCOVERED,
    resume: _Resume = False,
    delimiter: options.Delimiter = None,
    quiet: options.Quiet = False,
) -> None:
    r"""Weigh a sample so that it represents the population.

    Writes one weight for each row of SAMPLE, in its order. POPULATION is read
    once, in bounded memory. Exit code 3 means refused: too much of the
    population is not covered by the sample.

    [bold]Weights from a label that only the sample has:[/bold]

    unskew weigh answers.csv customers.parquet --target spend -o weights.csv

    [bold]With ids, a report, and a weighter for rows that come later:[/bold]

    unskew weigh answers.csv "customers/*.parquet" --target spend \
      --id customer -o weights.csv --report report.html --save weighter.skops

    [bold]Another method, with a parameter, and design weights:[/bold]

    unskew weigh survey.csv census.parquet --method histogram --set buckets=4 \
      --columns age,town --population-weight persons -o weights.parquet
    """
    from unskew import diagnose, save_weighter
    from unskew.cli.inputs import Roles, open_inputs
    from unskew.cli.outputs import check_outputs, check_table, warnings_as_notes, write_weights
    from unskew.cli.reports import name_inputs, write_report
    from unskew.files import beside, whole_files, writing

    started = monotonic()
    # With overlap=1.0 the overlap is measured in full, and it is refused below, not in fit.
    weighter = make_weighter(method, setting or [], total=total.value, overlap=1.0)
    _check_method(weighter, method, target, save)
    outputs = [check_table(output), *(path for path in (report, save) if path is not None)]
    check_outputs(outputs, [sample, population])
    roles = Roles(target, identifier, sample_weight, columns, exclude, population_weight)
    checkpoint = beside(output, ".checkpoint") if resume else None
    inputs = open_inputs(
        sample, population, roles, quiet=quiet, checkpoint=checkpoint, delimiter=delimiter
    )
    # The files come first, so that a bad path is found before the work.
    with whole_files(outputs) as temporaries, inputs as (rows, opened):
        temporary = dict(zip(outputs, temporaries, strict=True))
        data = {"y": rows.labels, "sample_weight": rows.design}
        with warnings_as_notes():
            weighter.fit(rows.features, population=opened, **data)
            _check_overlap(weighter, allow_uncovered)
        write_weights(rows.identifiers, weighter.weights_, temporary[output], output)
        if save is not None:
            with writing(save), temporary[save].open("wb") as file:
                save_weighter(weighter, file)
        if report is not None:
            with warnings_as_notes():
                diagnosis = diagnose(rows.features, opened.without_checkpoint(), weighter, **data)
            diagnosis = name_inputs(diagnosis, sample, population, target)
            write_report(diagnosis, temporary[report], report)
    if not quiet:
        _print_summary(rows, opened.size, weighter, method, monotonic() - started)
        typer.echo("Written: " + ", ".join(map(str, outputs)))


def _check_method(weighter: Any, method: Method, target: str | None, save: Path | None) -> None:
    """Refuse what is known to fail before anything is read."""
    from unskew import ParameterError

    if target is None and method is Method.TREE:
        raise ParameterError(
            "--method tree needs labels to grow its tree: name their column with --target, or "
            "choose another --method."
        )
    if save is not None and not hasattr(weighter, "weigh"):
        raise ParameterError(
            f"--save: --method {method} cannot weigh new rows. Use --method ratio."
        )


def _uncovered(weighter: Any) -> float:
    """Return the uncovered share, by the method itself or by regions and distances."""
    return max(weighter.uncovered_, weighter.overlap_.uncovered)


def _check_overlap(weighter: Any, allowed: float) -> None:
    from unskew import OverlapError

    share, rules = _uncovered(weighter), weighter.overlap_.rules
    if share <= allowed:
        return
    where = [str(rule) for rule in rules[:3]] + [f"and {len(rules) - 3} more"] * (len(rules) > 3)
    if share > weighter.overlap_.uncovered:
        where.insert(0, f"measured by {type(weighter).__name__}")
    raise OverlapError(
        f"Refused: {share:.1%} of the population is not covered by the sample "
        f"({'; '.join(where)}), so no weights can make the sample represent it. At most "
        f"{allowed:.1%} is allowed; --allow-uncovered {share + 0.0005:.3f} would allow it.",
        share,
        rules,
    )


def _print_summary(
    rows: SampleFile, population_rows: int, weighter: Any, method: Method, seconds: float
) -> None:
    from unskew.cli.reports import format_effective_size, format_regions

    for line in (
        f"{len(rows):,} sample rows weighed against {population_rows:,} population rows by "
        f"{method} in {seconds:.1f} s.",
        format_effective_size(weighter.weights_),
        f"Not covered by the sample: {_uncovered(weighter):.2%} of the population.",
        *format_regions(weighter.overlap_.rules),
    ):
        typer.echo(line)
