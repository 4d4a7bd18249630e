"""``unskew weigh``: weights for a sample in a file, against a population of any size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unskew.cli import options
from unskew.cli.inputs import Unlabelled
from unskew.cli.methods import Method, Total, make_weighter

if TYPE_CHECKING:
    from unskew import Diagnosis
    from unskew.cli.inputs import SampleFile
    from unskew.population.doubtful_columns import Doubt

MAX_UNCOVERED = 0.05
"""The share of the population that may be uncovered by the sample before weights are refused."""

Settings = Annotated[
    list[str] | None,
    typer.Option("--set", help="A parameter of the method, name=value; repeat for more."),
]
_Save = Annotated[
    Path | None, typer.Option(help="Save the fitted weighter for unskew apply (.skops).")
]
_Replicates = Annotated[
    int,
    typer.Option(min=0, help="Also write as many bootstrap replicates of the weights: weight_1, …"),
]
AllowUncovered = Annotated[
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
_Verdict = Annotated[
    bool,
    typer.Option(
        help="Say at the end whether the weights correct the bias, which takes a few seconds."
    ),
]


def weigh(
    sample: options.Sample,
    output: options.Output,
    population: options.Population = None,
    margins: options.MarginsFile = None,
    target: options.Target = None,
    method: Annotated[
        Method | None,
        typer.Option(help="How to weigh. Default: tree, or rake with --margins."),
    ] = None,
    setting: Settings = None,
    identifier: options.Identifier = None,
    columns: options.Columns = None,
    exclude: options.Exclude = None,
    unlabelled: options.UnlabelledRows = Unlabelled.RAISE,
    sample_weight: options.SampleWeight = None,
    population_weight: options.PopulationWeight = None,
    total: Annotated[
        Total, typer.Option(help="What the weights sum to: the sample's size or the population's.")
    ] = Total.SAMPLE,
    report: options.Report = None,
    save: _Save = None,
    replicates: _Replicates = 0,
    strata: Annotated[str | None, options.column("The stratum of each row.")] = None,
    clusters: Annotated[str | None, options.column("The cluster of each row.")] = None,
    allow_uncovered: AllowUncovered = MAX_UNCOVERED,
    resume: _Resume = False,
    delimiter: options.Delimiter = None,
    verdict: _Verdict = True,
    quiet: options.Quiet = False,
) -> None:
    r"""Weigh a sample so that it represents the population.

    Writes one weight for each row of SAMPLE, in its order, and says whether the
    weights correct the bias. POPULATION is read once, in bounded memory. Exit
    code 3 means refused: too much of the population is not covered by the
    sample.

    [bold]Weights from a label that only the sample has:[/bold]

    unskew weigh answers.csv customers.parquet --target spend -o weights.csv

    [bold]With ids, a report, and a weighter for rows that come later:[/bold]

    unskew weigh answers.csv "customers/*.parquet" --target spend \
      --id customer -o weights.csv --report report.html --save weighter.skops

    [bold]A census table instead of rows:[/bold]

    unskew weigh survey.csv --margins census.csv --method rake -o weights.csv

    [bold]Another method, with a parameter, and design weights:[/bold]

    unskew weigh survey.csv census.parquet --method histogram --set buckets=4 \
      --columns age,town --population-weight persons -o weights.parquet
    """
    from unskew import OverlapError, Population, diagnose, save_weighter
    from unskew.cli.inputs import Roles, check_one_population, open_inputs
    from unskew.cli.outputs import check_outputs, check_table, warnings_as_notes, write_weights
    from unskew.cli.reports import name_inputs, write_report
    from unskew.diagnostics.diagnose import ask_with_next_pass
    from unskew.files import beside, whole_files, writing

    started, judged = monotonic(), verdict and not quiet
    # A number measures the overlap in full, and spares what a refusal makes useless.
    aside = {"--strata": strata, "--clusters": clusters}
    roles = Roles(
        target,
        identifier,
        sample_weight,
        columns,
        exclude,
        population_weight,
        unlabelled,
        {option: name for option, name in aside.items() if name is not None},
    )
    known = check_one_population(sample, population, margins, roles)
    method = method or (Method.TREE if margins is None else Method.RAKE)
    weighter = make_weighter(method, setting or [], total=total.value, overlap=allow_uncovered)
    _check_method(weighter, method, target, save)
    outputs = [check_table(output), *(path for path in (report, save) if path is not None)]
    check_outputs(outputs, [sample, known])
    checkpoint = beside(output, ".checkpoint") if resume else None
    inputs = open_inputs(
        sample,
        population,
        roles,
        quiet=quiet,
        checkpoint=checkpoint,
        delimiter=delimiter,
        margins=margins,
    )
    # The files come first, so that a bad path is found before the work.
    with whole_files(outputs) as temporaries, inputs as (rows, opened):
        temporary = dict(zip(outputs, temporaries, strict=True))
        data = {"y": rows.labels, "sample_weight": rows.design}
        if (report is not None or judged) and isinstance(opened, Population):
            ask_with_next_pass(rows.features, opened)
        with warnings_as_notes():
            try:
                columns_of_weights = _fit(weighter, rows, opened, replicates)
            except OverlapError:
                if getattr(weighter, "overlap_", None) is not None:  # measured, and too little
                    _check_overlap(weighter, allow_uncovered, rows.doubts)
                raise
        write_weights(
            rows.identifiers, weighter.weights_, temporary[output], output, columns_of_weights
        )
        if save is not None:
            with writing(save), temporary[save].open("wb") as file:
                save_weighter(weighter, file)
        plain = opened.without_checkpoint() if isinstance(opened, Population) else opened
        judge = partial(diagnose, rows.features, plain, weighter, **data)
        if report is not None:
            with warnings_as_notes():
                diagnosis = name_inputs(judge(), sample, known, target)
            write_report(diagnosis, temporary[report], report)
    if not quiet:
        against = "margins" if margins else f"{opened.size:,} population rows"
        _print_summary(rows, against, weighter, method, monotonic() - started)
        typer.echo("Written: " + ", ".join(map(str, outputs)))
    if judged:
        _print_verdict(judge if report is None else lambda: diagnosis)


def _fit(weighter: Any, rows: SampleFile, population: Any, replicates: int) -> Any:
    """Fit the weighter; return replicates of its weights, or None."""
    data = {"y": rows.labels, "sample_weight": rows.design}
    if not replicates:
        weighter.fit(rows.features, population=population, **data)
        return None
    from unskew.estimation.replicate_weights import fit_with_replicates

    return fit_with_replicates(
        weighter,
        rows.features,
        population=population,
        replicates=replicates,
        strata=rows.aside.get("--strata"),
        clusters=rows.aside.get("--clusters"),
        **data,
    )


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
    searched = 0.0 if weighter.overlap_ is None else weighter.overlap_.uncovered
    return max(weighter.uncovered_, searched)


def _check_overlap(weighter: Any, allowed: float, doubts: Sequence[Doubt]) -> None:
    from unskew import OverlapError
    from unskew.cli.reports import format_rule
    from unskew.cli.words import OPTIONS
    from unskew.weighters.next_step import leave_out

    share, rules = _uncovered(weighter), weighter.overlap_.rules
    if share <= allowed:
        return
    step = weighter.coarser()
    if weighter.overlap_.uncovered <= allowed and step is not None:
        why = f"lies in cells without sample rows. {step.sentence(OPTIONS)}"
    else:
        where = [format_rule(rule) for rule in rules[:3]]
        where += [f"and {len(rules) - 3} more"] * (len(rules) > 3)
        if share > weighter.overlap_.uncovered:
            where.insert(0, f"measured by {type(weighter).__name__}")
        why = (
            f"is not covered by the sample ({'; '.join(where)}), so no weights can make the sample "
            "represent it."
        )
    drop = f" {leave_out(doubts).sentence(OPTIONS)}" if doubts else ""
    raise OverlapError(
        f"Refused: {share:.1%} of the population {why}{drop} At most {allowed:.1%} is "
        f"allowed; --allow-uncovered {share + 0.0005:.3f} would allow it.",
        share,
        rules,
    )


def _print_summary(
    rows: SampleFile, population: str, weighter: Any, method: Method, seconds: float
) -> None:
    from unskew.cli.reports import format_effective_size, format_regions

    for line in (
        f"{len(rows):,} sample rows weighed against {population} by {method} in {seconds:.1f} s.",
        format_effective_size(weighter.weights_),
        f"Not covered by the sample: {_uncovered(weighter):.2%} of the population.",
        *format_regions(weighter.overlap_.rules if weighter.overlap_ else ()),
    ):
        typer.echo(line)


def _print_verdict(judge: Callable[[], Diagnosis]) -> None:
    """Print whether the weights correct the bias; they are written already, whatever happens."""
    from unskew import UnskewError
    from unskew.cli.outputs import print_note, warnings_as_notes
    from unskew.cli.reports import format_verdict

    try:
        with warnings_as_notes():
            diagnosis = judge()
    except UnskewError as error:
        print_note(f"The weights could not be judged. {error}")
        return
    headline, *step = format_verdict(diagnosis.verdict)
    untested = any(test.before.low is None for test in diagnosis.bias.tests[:1])
    if untested and not diagnosis.bias_left:
        headline += f" {diagnosis.verdict.sentences[0]}"  # that there were too few rows
    typer.echo("\n".join([headline, *step]))
