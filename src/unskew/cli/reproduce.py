"""``unskew reproduce``: the paper's Table 1, beside the printed one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from unskew.cli.options import OPTIONS, Given, command, option, output

if TYPE_CHECKING:
    from rich.console import Console

    from unskew.paper.protocol import Plan
    from unskew.paper.results import ExperimentReport
    from unskew.paper.run import Finished

_LEGEND = (
    "Ours and the paper's: mean ± standard deviation over draws, for the one of ten directions w "
    "with the largest gain of Ideal over Unweighted; the seed decides which ten. The paper lets "
    "Ideal's and Clustered's weights sum to about n, Unweighted's and KMM's to m, and that alone "
    "moves the error: the columns Σw=m and Σw=n have the errors with every method at the same "
    "total. ESS: effective share of the sample."
)


def _list(text: str, default: str = "all") -> Any:
    return option(list[str], f"{text}; repeat for more. Default: {default}.")


@command(
    data=option(Path, "Folder with the data sets as Parquet. Default: UNSKEW_DATA, else OpenML."),
    sets=_list("A data set to run"),
    draws=option(int, "Biased samples of each w to choose one, and to report.", default=10, min=1),
    jobs=option(int, "Processes; the results stay the same.", default=2, min=1),
    output=output("Folder for the results and finished draws.", Path("unskew-table-1")),
    scaling=_list("range or standard", "range"),
    total=_list("paper, sample or population"),
    mechanism=_list("logistic, quadratic, threshold or label", "logistic"),
    reading=option(
        str,
        "What the paper leaves open: ours, any-size (w not given the printed size of the "
        "sample), standard-w, range-w, scaled-by-all, first-rows, range-target or raw-target.",
        default="ours",
    ),
    random_state=OPTIONS["random_state"],
)
def reproduce(given: Given) -> None:
    """Repeat the paper's experiment, and show our figures beside the printed ones.

    A run can be stopped at any time: run again with the same output folder, it makes only the
    draws that are missing.

    Example: unskew reproduce --data DIR --sets housing --sets abalone -o results
    """
    from rich.console import Console

    from unskew.cli.progress import show_progress
    from unskew.paper.results import report_on
    from unskew.paper.run import run

    console = Console(highlight=False)
    plan = _plan(given, console)
    with show_progress("Drawing, weighing, training", console, forecast=True) as show:

        def update(finished: Finished) -> None:
            draws = f"{finished.made:,} of {finished.made + finished.missing:,} draws"
            show(finished.share, f"{draws} ({finished.case.set})")

        report = report_on(plan, run(plan, given.output, jobs=given.jobs, progress=update))
    _write(plan, report, given.output)
    _draw(plan, report, given.output, console)
    _print(plan, report, given.output, console)


def _plan(given: Given, console: Console) -> Plan:
    from unskew.errors import ParameterError
    from unskew.paper.datasets import PAPER_SETS, available_sets, load
    from unskew.paper.protocol import CHOOSING_DRAWS, READINGS, Plan

    if given.reading not in READINGS:
        raise ParameterError(
            f"--reading '{given.reading}' is unknown. Choose from {', '.join(READINGS)}."
        )
    lists = {"scalings": given.scaling, "totals": given.total, "mechanisms": given.mechanism}
    chosen: dict[str, Any] = {
        name: tuple(dict.fromkeys(given)) for name, given in lists.items() if given
    }
    if "paper" not in chosen.get("totals", ("paper",)):
        raise ParameterError("--total must include paper, by which the direction is chosen.")
    names = given.sets or available_sets(given.data)
    loaded = {each.name: each for each in (load(name, given.data) for name in names)}
    if not given.sets and (absent := [name for name in PAPER_SETS if name not in loaded]):
        console.print(f"Skipped, because not in the data folder: {', '.join(absent)}.")
    return Plan(
        sets=tuple(loaded.values()),
        draws=given.draws,
        choosing_draws=min(CHOOSING_DRAWS, given.draws),
        reading=READINGS[given.reading],
        seed=given.random_state,
        **chosen,
    )


def _write(plan: Plan, report: ExperimentReport, folder: Path) -> None:
    """Write the result files, each whole or not at all."""
    import json

    from unskew.files import write_whole
    from unskew.paper.results import markdown, tables, verdict

    for name, content in report._asdict().items():
        write_whole(folder / f"{name}.json", json.dumps(content, indent=1) + "\n")
    parts = [f"## {table.title}\n\n{markdown(table)}\n" for table in tables(plan, report)]
    parts += [f"{scaling}: {verdict(report.results, scaling)}\n" for scaling in plan.scalings]
    write_whole(folder / "table.md", "\n".join(parts))


def _draw(plan: Plan, report: ExperimentReport, folder: Path, console: Console) -> None:
    from unskew.files import whole_file
    from unskew.paper.results import draw_results, has_matplotlib

    if "logistic" not in plan.mechanisms:
        return  # the figure shows the paper's table
    if not has_matplotlib():
        console.print(
            "No figure: matplotlib is missing. Run pip install 'unskew[reproduce]' and rerun.",
            markup=False,
        )
        return
    with whole_file(folder / "figure.png") as temporary:
        draw_results(report.results, plan.scalings[0], temporary)


def _print(plan: Plan, report: ExperimentReport, folder: Path, console: Console) -> None:
    from rich.markup import escape

    from unskew.cli.outputs import print_table
    from unskew.paper.results import paper_table, verdict

    if "logistic" in plan.mechanisms:
        for scaling in plan.scalings:
            print_table(paper_table(report.results, scaling), console)
            console.print(verdict(report.results, scaling))
        console.print(_LEGEND, style="dim")
    if report.run["warnings"]:
        console.print(f"{sum(report.run['warnings'].values())} draws gave warnings: see run.json.")
    console.print(
        f"All results, with intervals: [bold]{escape(str(folder / 'table.md'))}[/bold]",
        soft_wrap=True,
    )


COMMAND = reproduce
