"""``unskew demo``: the main job on data inside the package."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from unskew.diagnostics.diagnosis import Diagnosis
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
        Path, typer.Option("--output", "-o", help="Where a draw's weights go (Parquet).")
    ] = Path("unskew-demo-weights.parquet"),
    report: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where its report goes. Default: beside the weights."),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Keep its sample.csv and population.parquet here, to try things."
        ),
    ] = None,
    draws: Annotated[int, typer.Option(min=1, help="How many biased samples to draw.")] = 30,
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Another seed, other draws.")] = 0,
    open_report: Annotated[
        bool, typer.Option("--open", help="Open the report in the browser.")
    ] = False,
) -> None:
    """Correct a biased sample on data inside the package, and show the true error.

    [bold]Example:[/bold] unskew demo --draws 10 -o weights.parquet --open
    """
    from rich.console import Console
    from rich.markup import escape

    from unskew.cli.outputs import check_outputs
    from unskew.cli.reports import write_report
    from unskew.experiments.demonstration import N_TEST, summarise
    from unskew.files import whole_files, writing

    console = Console(highlight=False)
    report = output.with_suffix(".html") if report is None else report
    outputs = [output, report]
    if data is not None:
        with writing(data):
            data.mkdir(parents=True, exist_ok=True)
        outputs += [data / "sample.csv", data / "population.parquet"]
    check_outputs(outputs, [])
    with whole_files(outputs) as temporaries:  # first, so that a bad path is known before the work
        made = _draws_with_progress(draws, seed, console)
        number, shown = _draw_to_show(made)
        shown.write_weights(temporaries[0], output)
        found = shown.diagnosis()
        write_report(found, temporaries[1], report)
        if data is not None:
            shown.write_data(temporaries[2:], outputs[2:])
    console.print(_STORY.format(draws=draws, tests=N_TEST))
    console.print(
        f"[bold]Draw {number}[/bold], whose sample reaches most of the population: "
        f"{escape(str(found.verdict))}"
    )
    _print_table(summarise(made), made, console)
    console.print(_READING, style="dim")
    console.print(f"Of draw {number} there are")
    for words, path in (("the weights, with their rows", output), ("a report", report)):
        console.print(f"  {words}: [bold]{escape(str(path))}[/bold]", soft_wrap=True)
    if data is not None:
        console.print(f"  the data: [bold]{escape(str(data))}[/bold]", soft_wrap=True)
    if open_report:
        typer.launch(str(report.resolve()))


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


def _draw_to_show(draws: Sequence[Draw]) -> tuple[int, _Tables]:
    """Return the draw whose sample reaches most of the population, and its number from 1."""
    tables = [_Tables(draw) for draw in draws]
    uncovered = [each.uncovered() for each in tables]
    best = uncovered.index(min(uncovered))
    return best + 1, tables[best]


class _Tables:
    """One draw as tables with named columns."""

    def __init__(self, draw: Draw) -> None:
        import pyarrow as pa

        from unskew.experiments.clinic import COLUMNS

        def table(rows: Any) -> Any:
            return pa.table(dict(zip(COLUMNS, rows.T, strict=True)))

        self._weights = draw.weights["tree"]
        self._labels = draw.labels
        self._features, self._population = table(draw.sample), table(draw.population)
        self._sample = self._features.append_column("cost", pa.array(draw.labels))

    def uncovered(self) -> float:
        """Return the share of the population that the sample does not reach."""
        from unskew import TreeWeights

        # An overlap of 1 has it measured as the command line does, and refuses nothing.
        weighter = TreeWeights(overlap=1.0)
        weighter.fit(self._features, self._labels, population=self._population)
        assert weighter.overlap_ is not None
        return weighter.overlap_.uncovered

    def write_weights(self, temporary: Path, path: Path) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        from unskew.files import writing

        with writing(path):
            pq.write_table(self._sample.append_column("weight", pa.array(self._weights)), temporary)

    def write_data(self, temporaries: Sequence[Path], paths: Sequence[Path]) -> None:
        import pyarrow.parquet as pq
        from pyarrow import csv

        from unskew.files import writing

        with writing(paths[0]):
            csv.write_csv(self._sample, temporaries[0])
        with writing(paths[1]):
            pq.write_table(self._population, temporaries[1])

    def diagnosis(self) -> Diagnosis:
        from unskew import diagnose

        return diagnose(self._features, self._population, self._weights, y=self._labels)
