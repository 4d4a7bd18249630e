"""``unskew demo``: the main job on data inside the package."""

from __future__ import annotations

from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from unskew.experiments.demonstration import Draw, Outcome

_STORY = (
    "[bold]The data[/bold] are made up by a formula inside the package "
    "(unskew.experiments.clinic): patients, and what they cost in a year. [bold]The selection is "
    "drawn by us[/bold], as in the paper: in each of {draws} draws the chance to be in the sample "
    "rises along a random direction of the patients' features. A straight line is fitted to the "
    "selected patients and judged on {tests:,} others, drawn evenly."
)

_READING = (
    "Test error: mean squared error as a share of the variance, mean ± standard deviation over "
    "draws. Change: against unweighted in the same draw, ± the half-width of its 95 % interval. "
    "Ideal knows each patient's true chance; tree estimates it from the leaves of a regression "
    "tree. Where a learner fits the whole population well, weights have less to mend: a straight "
    "line does not."
)


def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Where the first draw's weights go (Parquet).")
    ] = Path("unskew-demo-weights.parquet"),
    draws: Annotated[int, typer.Option(min=1, help="How many biased samples to draw.")] = 30,
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Another seed, other draws.")] = 0,
) -> None:
    """Correct a biased sample on data inside the package, and show the true error.

    [bold]Example:[/bold] unskew demo --draws 10 -o weights.parquet
    """
    from rich.console import Console
    from rich.markup import escape

    from unskew.experiments.demonstration import N_TEST, summarise
    from unskew.files import whole_file

    console = Console(highlight=False)
    with whole_file(output) as temporary:  # first, so that a bad path is known before the work
        made = _draws_with_progress(draws, seed, console)
        _write_weights(made[0], temporary)
    console.print(_STORY.format(draws=draws, tests=N_TEST))
    _print_table(summarise(made), made, console)
    console.print(_READING, style="dim")
    console.print(f"Weights of the first draw, with its rows: [bold]{escape(str(output))}[/bold]")


def _draws_with_progress(draws: int, seed: int, console: Console) -> list[Draw]:
    from unskew.cli.progress import progress_shown
    from unskew.experiments.demonstration import demonstrate

    made: list[Draw] = []
    with progress_shown("Drawing, weighing, training", console) as show:
        for draw in demonstrate(draws, seed=seed):
            made.append(draw)
            show(len(made) / draws, f"{len(made)} of {draws} draws")
    return made


def _print_table(outcomes: list[Outcome], draws: list[Draw], console: Console) -> None:
    from rich import box
    from rich.table import Table

    covered = sum(draw.covered for draw in draws) / len(draws)
    sizes = sum(len(draw.sample) for draw in draws) / len(draws)
    table = Table(
        title=f"{sizes:,.0f} selected patients a draw", box=box.SIMPLE_HEAD, pad_edge=False
    )
    table.add_column("weights", no_wrap=True)
    headings = ("test error", "change", "better in", "effective\nsample", "coverage")
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    for outcome in outcomes:
        baseline = outcome.method == "unweighted"
        mean, margin = outcome.change
        table.add_row(
            outcome.method,
            _with_spread(f"{outcome.error:.3f}", outcome.spread),
            "" if baseline else _with_spread(f"{mean:+.3f}", margin),
            "" if baseline else f"{outcome.better} of {len(draws)}",
            f"{outcome.effective:.0%}",
            f"{covered:.1%}" if outcome.method == "tree" else "",
        )
    console.print(table)


def _with_spread(mean: str, spread: float) -> str:
    return mean if isnan(spread) else f"{mean} ± {spread:.3f}"  # one draw has no spread


def _write_weights(draw: Draw, path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from unskew.experiments.clinic import COLUMNS

    columns = dict(zip(COLUMNS, draw.sample.T, strict=True))
    table = pa.table({**columns, "cost": draw.labels, "weight": draw.weights["tree"]})
    pq.write_table(table, path)
