"""``unskew estimate``: a number of the population, with an interval, from files."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unskew.cli import options
from unskew.cli.inputs import Unlabelled
from unskew.cli.methods import Method, make_weighter
from unskew.cli.weigh import MAX_UNCOVERED, AllowUncovered, Settings

if TYPE_CHECKING:
    from unskew import Estimate, Estimates
    from unskew.cli.inputs import SampleFile


class Statistic(StrEnum):
    """The values of ``--statistic``."""

    MEAN = "mean"
    TOTAL = "total"
    PROPORTION = "proportion"
    QUANTILE = "quantile"


class Outcome(StrEnum):
    """The values of ``--outcome``."""

    BOOSTED = "boosted"
    LINEAR = "linear"


class Variance(StrEnum):
    """The values of ``--variance``."""

    AUTO = "auto"
    LINEAR = "linear"
    M_ESTIMATOR = "m_estimator"
    HC3 = "hc3"
    ORTHOGONAL = "orthogonal"
    BOOTSTRAP = "bootstrap"


_Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="Also write the result: .json, .csv or .parquet."),
]


def estimate(
    sample: options.Sample,
    target: Annotated[
        str, options.column("The column of SAMPLE of which the population's number is wanted.")
    ],
    population: options.Population = None,
    margins: options.MarginsFile = None,
    statistic: Annotated[
        Statistic | None,
        typer.Option(help="What to estimate. Default: the mean, or of text the proportions."),
    ] = None,
    q: Annotated[
        float | None, typer.Option("--quantile", help="Which quantile: 0.5 is the median.")
    ] = None,
    by: Annotated[
        str | None,
        options.column("One estimate for each value of a column; if POPULATION has it, a feature."),
    ] = None,
    outcome: Annotated[
        Outcome | None,
        typer.Option(help="A model of the target that makes the estimate doubly robust."),
    ] = None,
    method: Annotated[
        Method | None, typer.Option(help="How to weigh. Default: by calibration.")
    ] = None,
    setting: Settings = None,
    variance: Annotated[
        Variance, typer.Option(help="How the variance is estimated.")
    ] = Variance.AUTO,
    replicates: Annotated[int, typer.Option(min=2, help="Of the bootstrap.")] = 200,
    level: Annotated[float, typer.Option(help="Of the interval.")] = 0.95,
    strata: Annotated[str | None, options.column("The stratum of each row of SAMPLE.")] = None,
    clusters: Annotated[str | None, options.column("The cluster of each row of SAMPLE.")] = None,
    finite_population: Annotated[
        bool,
        typer.Option(
            "--finite-population", help="POPULATION is complete, and SAMPLE a part of it."
        ),
    ] = False,
    identifier: options.Identifier = None,
    columns: options.Columns = None,
    exclude: options.Exclude = None,
    unlabelled: options.UnlabelledRows = Unlabelled.RAISE,
    sample_weight: options.SampleWeight = None,
    population_weight: options.PopulationWeight = None,
    allow_uncovered: AllowUncovered = MAX_UNCOVERED,
    output: _Output = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print everything as JSON, for other programs.")
    ] = False,
    seed: options.Seed = 0,
    delimiter: options.Delimiter = None,
    quiet: options.Quiet = False,
) -> None:
    r"""Estimate a number of the population from a biased sample, with an interval.

    Prints the number, its interval and what the sample says as it is. POPULATION
    is read once. Exit code 3 means refused: too much of the population is not
    covered by the sample.

    [bold]The population's mean of a column that only the sample has:[/bold]

    unskew estimate answers.csv customers.parquet --target spend --id customer

    [bold]For each region, with a model of the target as well:[/bold]

    unskew estimate answers.csv customers.parquet --target spend --by region \
      --outcome boosted

    [bold]From a census table, for other programs:[/bold]

    unskew estimate survey.csv --margins census.csv --target buys --json
    """
    from unskew import estimate as make_estimate
    from unskew.cli.inputs import Roles, check_one_population, open_inputs
    from unskew.cli.outputs import check_outputs, warnings_as_notes
    from unskew.files import whole_files

    aside = {"--strata": strata, "--clusters": clusters}
    if by not in _columns_of(population, margins, delimiter):
        aside["--by"] = by
    elif columns:
        columns = [*columns, str(by)]
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
    outputs = [] if output is None else [_check_output(output)]
    check_outputs(outputs, [sample, known])
    weighter = _weighter(method, setting, allow_uncovered)
    inputs = open_inputs(
        sample, population, roles, quiet=quiet, delimiter=delimiter, margins=margins
    )
    with whole_files(outputs) as temporaries, inputs as (rows, opened):
        with warnings_as_notes():
            found = make_estimate(
                _with_groups(rows, by),
                rows.labels,
                population=opened,
                weighter=weighter,
                outcome=None if outcome is None else outcome.value,
                statistic=_statistic(statistic, q, rows.labels),
                q=q,
                by=by,
                variance=variance.value,
                strata=rows.aside.get("--strata"),
                clusters=rows.aside.get("--clusters"),
                finite_population=finite_population,
                level=level,
                sample_weight=rows.design,
                replicates=replicates,
                random_state=seed,
            )
        for temporary, path in zip(temporaries, outputs, strict=True):
            _write(found, temporary, path)
    if as_json:
        typer.echo(_json(found))
    elif not quiet:
        typer.echo(str(found))
        for path in outputs:
            typer.echo(f"Written: {path}")


def _columns_of(population: str | None, margins: str | None, delimiter: str | None) -> list[str]:
    """Return the columns of which the population knows something."""
    from unskew import Population, read_margins
    from unskew.cli.inputs import character

    if margins is not None:
        return read_margins(margins).columns
    if population is None:
        return []
    return Population(population, delimiter=character(delimiter)).columns


def _with_groups(rows: SampleFile, by: str | None) -> Any:
    """Return the features, and the column of groups that the population lacks."""
    import pyarrow as pa

    if "--by" not in rows.aside:
        return rows.features
    return rows.features.append_column(str(by), pa.array(rows.aside["--by"]))


def _weighter(method: Method | None, settings: list[str] | None, allowed: float) -> Any:
    from unskew.errors import ParameterError
    from unskew.estimation.weighing import default_weighter

    if method is not None:
        return make_weighter(method, settings or [], overlap=allowed, columns="shared")
    if settings:
        raise ParameterError("--set is for a method: name it with --method.")
    return default_weighter().set_params(overlap=allowed)


def _statistic(statistic: Statistic | None, q: float | None, labels: Any) -> Any:
    if statistic is not None:
        return statistic.value
    if q is not None:
        return "quantile"
    return "mean" if labels.dtype.kind in "biuf" else "proportion"


def _check_output(path: Path) -> Path:
    from unskew.cli.outputs import check_table

    return path if path.suffix.lower() == ".json" else check_table(path)


def _json(found: Estimate | Estimates) -> str:
    import json

    return json.dumps(found.to_dict(), indent=2, ensure_ascii=False, default=str)


def _write(found: Estimate | Estimates, temporary: Path, path: Path) -> None:
    """Write the result: everything as JSON, or a row for each estimate."""
    import pyarrow as pa

    from unskew import Estimate
    from unskew.cli.outputs import write_table
    from unskew.files import writing

    if path.suffix.lower() == ".json":
        with writing(path):
            temporary.write_text(_json(found) + "\n", encoding="utf-8")
        return
    each = {(): found} if isinstance(found, Estimate) else found
    names = () if isinstance(found, Estimate) else found.names
    labels = [label if len(names) > 1 else (label,) for label in each]
    data: dict[str, Any] = {
        name: [str(label[place]) for label in labels] for place, name in enumerate(names)
    }
    for name in ("value", "standard_error", "unweighted", "effective_sample_size"):
        data[name] = [getattr(one, name) for one in each.values()]
    for place, name in enumerate(("low", "high")):
        data[name] = [one.interval[place] for one in each.values()]
    write_table(pa.table(data), temporary, path)
