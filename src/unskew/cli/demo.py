"""``unskew demo``: the main job on data inside the package."""

from __future__ import annotations

from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unskew.cli import options
from unskew.cli.outputs import check_report

if TYPE_CHECKING:
    from rich.console import Console

    from unskew.diagnostics.diagnosis import Diagnosis
    from unskew.experiments.demonstration import Draw, Outcome

_STORY = (
    "[bold]The data[/bold] are made up by a formula inside the package "
    "(unskew.experiments.clinic): patients, and what they cost in a year. [bold]The selection bias "
    "is simulated[/bold], as in the paper: in each of {draws} draws the probability to be in the "
    "sample rises along a random direction of the patients' features. A straight line is fitted to "
    "the selected patients and tested on {tests:,} others, drawn uniformly at random."
)

_LEGEND = (
    "Test error: mean squared error as a share of the variance, mean ± standard deviation over "
    "draws. Change: against unweighted in the same draw, ± the half-width of its 95 % interval. "
    "Ideal knows each patient's true probability; tree estimates it from the leaves of a "
    "regression tree. Where a learner fits the whole population well, weights have less to "
    "correct: a straight line does not."
)


def demo(
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Where to write the weights of one draw. Default: a new temporary folder.",
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            callback=check_report,
            help="Where to write its report. Default: with the weights.",
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Write its sample.csv and population.parquet here, to try them."
        ),
    ] = None,
    draws: Annotated[int, typer.Option(min=1, help="How many biased samples to draw.")] = 30,
    seed: options.Seed = 0,
    open_report: Annotated[
        bool, typer.Option("--open", help="Open the report in the browser.")
    ] = False,
) -> None:
    """Correct a biased sample on data inside the package, and show the true error.

    [bold]Example:[/bold] unskew demo --draws 10 -o weights.parquet --open
    """
    from rich.console import Console
    from rich.markup import escape

    from unskew.cli.outputs import check_outputs, check_table
    from unskew.experiments.demonstration import N_TEST, summarise
    from unskew.files import whole_files, writing

    console = Console(highlight=False)
    output = _temporary_output() if output is None else check_table(output)
    report = output.with_suffix(".html") if report is None else report
    outputs = [output, report]
    if data is not None:
        with writing(data):
            data.mkdir(parents=True, exist_ok=True)
        outputs += [data / "sample.csv", data / "population.parquet"]
    check_outputs(outputs, [])
    with whole_files(outputs) as temporaries:  # first, so that a bad path is found before the work
        made = _draws_with_progress(draws, seed, console)
        uncovered = [_uncovered(draw) for draw in made]
        shown = uncovered.index(min(uncovered))
        diagnosis = _write(made[shown], temporaries, outputs)
    console.print(_STORY.format(draws=draws, tests=N_TEST))
    console.print(
        f"[bold]Draw {shown + 1}[/bold], whose sample covers the population best: "
        f"{escape(str(diagnosis.verdict))}"
    )
    _print_table(summarise(made), made, console)
    console.print(_LEGEND, style="dim")
    console.print(f"Written for draw {shown + 1}:")
    for name, path in (("weights", output), ("report", report), ("data", data)):
        if path is not None:
            console.print(f"  {name}: [bold]{escape(str(path))}[/bold]", soft_wrap=True)
    if open_report:
        typer.launch(str(report.resolve()))


def _temporary_output() -> Path:
    """Return a name for the weights in a new folder, which goes again if nothing was written."""
    import atexit
    import tempfile
    from contextlib import suppress

    folder = Path(tempfile.mkdtemp(prefix="unskew-demo-"))

    def remove() -> None:
        with suppress(OSError):  # it is not empty
            folder.rmdir()

    atexit.register(remove)
    return folder / "weights.parquet"


def _draws_with_progress(draws: int, seed: int, console: Console) -> list[Draw]:
    from unskew.cli.progress import show_progress
    from unskew.experiments.demonstration import demonstrate

    made: list[Draw] = []
    with show_progress("Drawing, weighing, training", console) as show:
        for draw in demonstrate(draws, seed=seed):
            made.append(draw)
            show(len(made) / draws, f"{len(made)} of {draws} draws")
    return made


def _print_table(outcomes: list[Outcome], draws: list[Draw], console: Console) -> None:
    from unskew.cli.outputs import print_table
    from unskew.experiments.table import TextTable

    covered = sum(draw.covered for draw in draws) / len(draws)
    sizes = sum(len(draw.sample) for draw in draws) / len(draws)
    headings = ("weights", "test error", "change", "better in", "effective\nsample", "coverage")
    rows: list[tuple[str, ...]] = []
    for outcome in outcomes:
        baseline = outcome.method == "unweighted"
        row = (
            outcome.method,
            _with_spread(f"{outcome.error:.3f}", outcome.spread),
            "" if baseline else _with_spread(f"{outcome.change[0]:+.3f}", outcome.change[1]),
            "" if baseline else f"{outcome.better} of {len(draws)}",
            f"{outcome.effective:.0%}",
            f"{covered:.1%}" if outcome.method == "tree" else "",
        )
        rows.append(row)
    print_table(TextTable(f"{sizes:,.0f} selected patients a draw", headings, rows, 1), console)


def _with_spread(mean: str, spread: float) -> str:
    return mean if isnan(spread) else f"{mean} ± {spread:.3f}"  # one draw has no spread


def _table(rows: Any) -> Any:
    import pyarrow as pa

    from unskew.experiments.clinic import COLUMNS

    return pa.table(dict(zip(COLUMNS, rows.T, strict=True)))


def _uncovered(draw: Draw) -> float:
    """Return the share of the population that the sample does not cover."""
    from unskew import TreeWeights

    # With overlap=1.0 it is measured as in unskew weigh, and nothing is refused.
    weighter = TreeWeights(overlap=1.0)
    weighter.fit(_table(draw.sample), draw.labels, population=_table(draw.population))
    assert weighter.overlap_ is not None
    return weighter.overlap_.uncovered


def _write(draw: Draw, temporaries: list[Path], paths: list[Path]) -> Diagnosis:
    """Write the weights with their rows, the report, and sample and population if asked for."""
    import pyarrow as pa

    from unskew import diagnose
    from unskew.cli.outputs import write_table, write_weights
    from unskew.cli.reports import name_inputs, write_report

    features, population = _table(draw.sample), _table(draw.population)
    sample = features.append_column("cost", pa.array(draw.labels))
    weights = draw.weights["tree"]
    diagnosis = diagnose(features, population, weights, y=draw.labels)
    write_weights(sample, weights, temporaries[0], paths[0])
    if paths[2:]:
        write_table(sample, temporaries[2], paths[2])
        write_table(population, temporaries[3], paths[3])
        names = [str(path) for path in paths]
        diagnosis = name_inputs(diagnosis, names[2], names[3], "cost", names[0])
    write_report(diagnosis, temporaries[1], paths[1])
    return diagnosis
