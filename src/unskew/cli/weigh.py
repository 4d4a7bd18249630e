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

MOST_UNCOVERED = 0.05
"""The share of the population out of the sample's reach above which weights are refused."""


def weigh(
    sample: options.Sample,
    population: options.Population,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Where the weights go: .parquet or .csv.")
    ],
    target: options.Target = None,
    method: Annotated[Method, typer.Option(help="How to weigh.")] = Method.TREE,
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", help="A parameter of the method, name=value; repeat for more."),
    ] = None,
    identifier: options.Identifier = None,
    columns: options.Columns = None,
    exclude: options.Exclude = None,
    sample_weight: options.SampleWeight = None,
    population_weight: options.PopulationWeight = None,
    total: Annotated[
        Total, typer.Option(help="What the weights sum to: the sample's size or the population's.")
    ] = Total.SAMPLE,
    report: options.Report = None,
    save: Annotated[
        Path | None,
        typer.Option(help="Keep the fitted weighter for unskew apply (.skops)."),
    ] = None,
    allow_uncovered: Annotated[
        float,
        typer.Option(
            min=0.0,
            max=1.0,
            metavar="SHARE",
            help="Refuse if more of the population than this is out of the sample's reach.",
        ),
    ] = MOST_UNCOVERED,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Keep what the pass has gathered in OUTPUT.checkpoint, and go on from there if a "
            "run with the same arguments was killed.",
        ),
    ] = False,
    quiet: options.Quiet = False,
) -> None:
    r"""Weigh a sample so that it stands for the population.

    Writes one weight for each row of SAMPLE, in its order. POPULATION is read
    once, in bounded memory. Exit code 3 means refused: too much of the
    population is out of the sample's reach.

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
    from unskew.cli.inputs import Roles, both_sides
    from unskew.cli.outputs import check_output, check_outputs, told_as_notes, write_weights
    from unskew.cli.reports import write_report
    from unskew.files import whole_files, writing

    started = monotonic()
    # An overlap of 1 has it measured with care, and leaves the refusal to us.
    weighter = make_weighter(method, setting or [], total=total.value, overlap=1.0)
    _check_method(weighter, method, target, save)
    outputs = [check_output(output), *(path for path in (report, save) if path is not None)]
    check_outputs(outputs, [sample, population])
    roles = Roles(target, identifier, sample_weight, columns or (), exclude or ())
    checkpoint = output.with_name(f"{output.name}.checkpoint") if resume else None
    sides = both_sides(
        sample, population, roles, weight=population_weight, quiet=quiet, checkpoint=checkpoint
    )
    # The files come first, so that a bad path is known before the work.
    with whole_files(outputs) as temporaries, sides as (rows, people):
        place = dict(zip(outputs, temporaries, strict=True))
        data = {"y": rows.labels, "sample_weight": rows.design}
        with told_as_notes():
            weighter.fit(rows.features, population=people, **data)
            _check_overlap(weighter, allow_uncovered)
        write_weights(rows.identifiers, weighter.weights_, place[output], output)
        if save is not None:
            with writing(save), place[save].open("wb") as file:
                save_weighter(weighter, file)
        if report is not None:
            with told_as_notes():
                found = diagnose(rows.features, people.without_checkpoint(), weighter, **data)
            write_report(found, place[report], report)
    if not quiet:
        for line in _summary(rows, people.size, weighter, method, monotonic() - started):
            typer.echo(line)
        typer.echo("Written: " + ", ".join(map(str, outputs)))


def _check_method(weighter: Any, method: Method, target: str | None, save: Path | None) -> None:
    """Refuse what can be known to fail before anything is read."""
    from unskew import ParameterError

    if target is None and method is Method.TREE:
        raise ParameterError(
            "--method tree grows its tree on the labels: name their column by --target, or take "
            "another --method."
        )
    if save is not None and not hasattr(weighter, "weigh"):
        raise ParameterError(
            "--save: this method cannot weigh new rows as it is. Add --set method=inductive."
        )


def _uncovered(weighter: Any) -> float:
    """Return the share out of reach, by the method itself or by regions and distances."""
    return max(weighter.uncovered_, weighter.overlap_.uncovered)


def _check_overlap(weighter: Any, allowed: float) -> None:
    from unskew import OverlapError

    share, rules = _uncovered(weighter), weighter.overlap_.rules
    if share <= allowed:
        return
    where = "; ".join(map(str, rules[:3])) + (f"; and {len(rules) - 3} more" if rules[3:] else "")
    if share > weighter.overlap_.uncovered:
        where = f"as {type(weighter).__name__} counts it" + (f"; {where}" if where else "")
    raise OverlapError(
        f"Refused: {share:.1%} of the population is out of the sample's reach ({where}), and no "
        f"weights make the sample stand for it. At most {allowed:.1%} is allowed; "
        f"--allow-uncovered {share + 0.0005:.3f} would go on.",
        share,
        rules,
    )


def _summary(
    rows: SampleFile, population_rows: int, weighter: Any, method: Method, seconds: float
) -> list[str]:
    from unskew import effective_sample_size
    from unskew.cli.reports import regions

    effective = effective_sample_size(weighter.weights_)
    return [
        f"{len(rows):,} sample rows weighed against {population_rows:,} population rows by "
        f"{method} in {seconds:.1f} s.",
        f"Effective sample size: {effective:,.1f} ({effective / len(rows):.0%} of the rows).",
        f"Out of the sample's reach: {_uncovered(weighter):.2%} of the population.",
        *regions(weighter.overlap_.rules),
    ]
