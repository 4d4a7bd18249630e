"""``unskew demo``: the main job on data inside the package."""

from __future__ import annotations

import os
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from unskew.cli.options import OPTIONS, Given, command, option, output
from unskew.cli.outputs import check_report

if TYPE_CHECKING:
    from rich.console import Console

    from unskew.cli.demonstration import Draw, ErrorSummary
    from unskew.results import Diagnosis

WORTH_A_PROCESS = 10
"""How many draws repay the start of a second process."""

_STORY = (
    "[bold]The data[/bold] are made up by a formula inside the package "
    "(unskew.cli.demonstration): patients, and what they cost in a year. [bold]The selection bias "
    "is simulated[/bold], as in the paper: in each of {draws} draws the probability to be in the "
    "sample rises along a random direction of the patients' features. A straight line is fitted to "
    "the selected patients and tested on {tests:,} others, drawn uniformly at random."
)

_LEGEND = (
    "Test error: mean squared error as a share of the variance, mean ± standard deviation over "
    "draws. Change: against unweighted in the same draw, ± the half-width of its 95 % interval. "
    "Ideal knows each patient's true probability. Tree estimates it from the leaves of a "
    "regression tree on the costs; auto, the default, needs no costs and learns what distinguishes "
    "the selected patients from all. Where a learner fits the whole population well, weights have "
    "less to correct: a straight line does not."
)


@command(
    output=output("Where to write the weights of one draw. Default: a new temporary folder."),
    report=option(
        Path,
        "Where to write its report. Default: with the weights.",
        metavar="FILE",
        callback=check_report,
    ),
    data=option(
        Path, "Write its sample.csv and population.parquet here, to try them.", metavar="FOLDER"
    ),
    draws=option(int, "How many biased samples to draw.", default=30, min=1),
    random_state=OPTIONS["random_state"],
    open_report=option(bool, "Open the report in the browser.", "--open"),
)
def demo(given: Given) -> None:
    """Correct a biased sample on data inside the package, and show the true error.

    Example: unskew demo --draws 10 -o weights.parquet --open
    """
    from rich.console import Console
    from rich.markup import escape

    from unskew.files import whole_files

    console = Console(highlight=False)
    outputs = _outputs(given)
    with whole_files(outputs) as temporaries:  # first, so that a bad path is found at once
        made = _draws_with_progress(given.draws, given.random_state, console)
        shown = max(range(len(made)), key=lambda number: made[number].covered)
        diagnosis = _write(made[shown], temporaries, outputs)
    _print(made, shown, diagnosis, console)
    console.print(f"Written for draw {shown + 1}:")
    for name, path in zip(("weights", "report", "data"), (*outputs[:2], given.data), strict=True):
        if path is not None:
            console.print(f"  {name}: [bold]{escape(str(path))}[/bold]", soft_wrap=True)
    if given.open_report:
        typer.launch(str(outputs[1].resolve()))


def _outputs(given: Given) -> list[Path]:
    """Return the files for weights, report and, if asked for, sample and population."""
    from unskew.cli.outputs import check_outputs, check_table
    from unskew.files import writing

    check_table(given.output)
    output = given.output or _temporary_output()
    outputs = [output, output.with_suffix(".html") if given.report is None else given.report]
    if given.data is not None:
        with writing(given.data):
            given.data.mkdir(parents=True, exist_ok=True)
        outputs += [given.data / "sample.csv", given.data / "population.parquet"]
    check_outputs(outputs, [])
    return outputs


def _print(made: list[Draw], shown: int, diagnosis: Diagnosis, console: Console) -> None:
    from rich.markup import escape

    from unskew.cli.demonstration import N_TEST, summarise

    console.print(_STORY.format(draws=len(made), tests=N_TEST))
    console.print(
        f"[bold]Draw {shown + 1}[/bold], whose sample covers the population best, with the "
        f"automatic weights: {escape(str(diagnosis.verdict))}"
    )
    _print_table(summarise(made), made, console)
    console.print(_LEGEND, style="dim")


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
    from unskew.cli.demonstration import demonstrate
    from unskew.cli.progress import show_progress

    made: list[Draw] = []
    with show_progress("Drawing, weighing, training", console, forecast=True) as show:
        jobs = min(2, os.cpu_count() or 1) if draws >= WORTH_A_PROCESS else 1
        for draw in demonstrate(draws, seed=seed, jobs=jobs):
            made.append(draw)
            show(len(made) / draws, f"{len(made)} of {draws} draws")
    return made


def _print_table(outcomes: list[ErrorSummary], draws: list[Draw], console: Console) -> None:
    from unskew.cli.outputs import print_table
    from unskew.paper.results import TextTable

    covered = sum(draw.covered for draw in draws) / len(draws)
    sizes = sum(len(draw.sample) for draw in draws) / len(draws)
    headings = ("weights", "test error", "change", "better in", "effective\nsample")
    rows: list[tuple[str, ...]] = []
    for outcome in outcomes:
        baseline = outcome.method == "unweighted"
        row = (
            outcome.method,
            _with_spread(f"{outcome.error:.3f}", outcome.spread),
            "" if baseline else _with_spread(f"{outcome.change[0]:+.3f}", outcome.change[1]),
            "" if baseline else f"{outcome.better} of {len(draws)}",
            f"{outcome.effective:.0%}",
        )
        rows.append(row)
    title = f"{sizes:,.0f} selected patients a draw cover {covered:.0%} of the population"
    print_table(TextTable(title, headings, rows, 1), console)


def _with_spread(mean: str, spread: float) -> str:
    return mean if isnan(spread) else f"{mean} ± {spread:.3f}"  # one draw has no spread


def _table(rows: Any) -> Any:
    import pyarrow as pa

    from unskew.cli.demonstration import COLUMNS

    return pa.table(dict(zip(COLUMNS, rows.T, strict=True)))


def _write(draw: Draw, temporaries: list[Path], paths: list[Path]) -> Diagnosis:
    """Write the weights with their rows, the report, and sample and population if asked for."""
    import pyarrow as pa

    from unskew import diagnose
    from unskew.cli.demonstration import auto_weights
    from unskew.cli.outputs import name_inputs, write_report, write_table, write_weights

    features, population = _table(draw.sample), _table(draw.population)
    sample = features.append_column("cost", pa.array(draw.labels))
    weighter = auto_weights().fit(features, population=population)
    diagnosis = diagnose(features, population, weighter, y=draw.labels)
    write_weights(sample, weighter.weights_, temporaries[0], paths[0])
    if paths[2:]:
        write_table(sample, temporaries[2], paths[2])
        write_table(population, temporaries[3], paths[3])
        names = [str(path) for path in paths]
        about = Given(sample=names[2], target="cost", weights=names[0])
        diagnosis = name_inputs(diagnosis, about, names[3])
    write_report(diagnosis, temporaries[1], paths[1])
    return diagnosis


COMMAND = demo
