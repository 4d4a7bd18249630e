"""``unskew estimate``: a number of the population, with an interval, from files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unskew.cli import options
from unskew.cli.arguments import WeighingArguments
from unskew.cli.methods import Method, make_weighter

if TYPE_CHECKING:
    from unskew import Margins, Population
    from unskew.cli.inputs import SampleFile
    from unskew.results import Estimate as Estimated
    from unskew.results import Estimates, Sensitivity


class StatisticName(StrEnum):
    """The values of ``--statistic``."""

    MEAN = "mean"
    TOTAL = "total"
    PROPORTION = "proportion"
    QUANTILE = "quantile"


class OutcomeName(StrEnum):
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


@dataclass(frozen=True, kw_only=True)
class EstimateCommand(WeighingArguments):
    r"""Estimate a number of the population from a biased sample, with an interval.

    Prints the number, its interval and what the sample says as it is. POPULATION
    is read once. Exit code 3 means refused: too much of the population is not
    covered by the sample.

    The population's mean of a column that only the sample has:

    unskew estimate answers.csv customers.parquet --target spend --id customer

    For each region, with a model of the target as well:

    unskew estimate answers.csv customers.parquet --target spend --by region \
      --outcome boosted

    From a census table, for other programs:

    unskew estimate survey.csv --margins census.csv --target buys --json

    What if selection depends on something that no column shows?

    unskew estimate answers.csv customers.parquet --target buys --sensitivity \
      --threshold 0.5
    """

    target: Annotated[
        str, options.column("The column of SAMPLE of which the population's number is wanted.")
    ] = field()
    statistic: Annotated[
        StatisticName | None,
        typer.Option(help="What to estimate. Default: the mean, or of text the proportions."),
    ] = None
    q: Annotated[
        float | None, typer.Option("--quantile", help="Which quantile: 0.5 is the median.")
    ] = None
    by: Annotated[
        str | None,
        options.column("One estimate for each value of a column; if POPULATION has it, a feature."),
    ] = None
    outcome: Annotated[
        OutcomeName | None,
        typer.Option(help="A model of the target that makes the estimate doubly robust."),
    ] = None
    method: Annotated[Method | None, options.method("calibration to what predicts TARGET")] = None
    variance: Annotated[Variance, typer.Option(help="How the variance is estimated.")] = (
        Variance.AUTO
    )
    replicates: Annotated[int, typer.Option(min=2, help="Of the bootstrap.")] = 200
    level: Annotated[float, typer.Option(help="Of the interval.")] = 0.95
    finite_population: Annotated[
        bool,
        typer.Option(
            "--finite-population", help="POPULATION is complete, and SAMPLE a part of it."
        ),
    ] = False
    sensitivity: Annotated[
        bool,
        typer.Option(
            "--sensitivity",
            help="Also say how strong hidden selection would have to be to change the conclusion.",
        ),
    ] = False
    odds: Annotated[
        list[float] | None,
        typer.Option(help="A factor by which odds of selection may be off; can be repeated."),
    ] = None
    threshold: Annotated[
        float | None,
        typer.Option(help="The value that would change it. Default: that of the sample as it is."),
    ] = None
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Also write the result: .json, .csv or .parquet."),
    ] = None
    as_json: options.AsJson = False
    seed: options.Seed = 0

    def run(self) -> None:
        """Estimate, write the result, and print it."""
        from unskew.cli.inputs import open_inputs
        from unskew.cli.outputs import check_outputs, warnings_as_notes
        from unskew.cli.reports import not_covered, refusal
        from unskew.errors import OverlapError
        from unskew.files import whole_files

        known = self.file_of_population()
        outputs = [] if self.output is None else [_check_output(self.output)]
        check_outputs(outputs, [self.sample, known])
        asked = _asked(self.sensitivity, self.odds, self.threshold)
        weighter = _weighter(self.method, self.setting, self.allow_uncovered)
        with whole_files(outputs) as temporaries, open_inputs(self) as (rows, opened):
            with warnings_as_notes():
                try:
                    found = self._estimate(rows, opened, weighter)
                except OverlapError as error:
                    if not error.rules:
                        raise
                    why, allowed = not_covered(error.rules), self.allow_uncovered
                    raise refusal(error.share, error.rules, allowed, why, rows.doubts) from error
                hidden = {} if asked is None else _sensitivities(found, asked)
            for temporary, path in zip(temporaries, outputs, strict=True):
                _write(found, hidden, temporary, path)
        if self.as_json:
            print(_json(found, hidden))
        elif not self.quiet:
            print(str(found))
            for label, one in hidden.items():
                print(str(one) if label is None else f"{_shown(label)}: {one}")
            for path in outputs:
                print(f"Written: {path}")

    @property
    def aside(self) -> Mapping[str, str]:
        """The columns that are read for something else, by the option that names them."""
        return super().aside if self.by is None else {**super().aside, "--by": self.by}

    @property
    def features(self) -> Sequence[str] | None:
        """The columns that are features, or None: all without another role."""
        if self.columns and self.by is not None and "--by" not in self.apart:
            return [*self.columns, self.by]
        return self.columns

    def _estimate(
        self, rows: SampleFile, population: Population | Margins, weighter: Any
    ) -> Estimated | Estimates:
        from unskew import estimate

        return estimate(
            _with_groups(rows, self.by if "--by" in self.apart else None),
            rows.labels,
            population=population,
            weighter=weighter,
            outcome=None if self.outcome is None else self.outcome.value,
            statistic=_statistic(self.statistic, self.q, rows.labels, self.target),
            q=self.q,
            by=self.by,
            variance=self.variance.value,
            **self.design_of(rows.aside),
            finite_population=self.finite_population,
            level=self.level,
            sample_weight=rows.design,
            replicates=self.replicates,
            random_state=self.seed,
        )


def _asked(
    sensitivity: bool, odds: list[float] | None, threshold: float | None
) -> dict[str, Any] | None:
    """Return how sensitivity is to be computed, checked before anything is read; None if not."""
    from unskew.errors import ParameterError
    from unskew.estimation.hidden_selection import checked_odds

    if not sensitivity:
        for option, value in (("--odds", odds), ("--threshold", threshold)):
            if value is not None:
                raise ParameterError(f"{option} is for --sensitivity.")
        return None
    chosen = {} if odds is None else {"odds": checked_odds(odds)}
    return {"threshold": threshold, **chosen}


def _sensitivities(found: Estimated | Estimates, asked: dict[str, Any]) -> dict[Any, Sensitivity]:
    """Return the sensitivity of each estimate by its label; that of a single one by None."""
    from unskew.results import Estimate as Estimated

    each = {None: found} if isinstance(found, Estimated) else found
    return {label: one.sensitivity(**asked) for label, one in each.items()}


def _shown(label: Any) -> str:
    return ", ".join(map(str, label)) if isinstance(label, tuple) else str(label)


def _with_groups(rows: SampleFile, by: str | None) -> Any:
    """Return the features, and the column of groups that the population lacks."""
    import pyarrow as pa

    if by is None:
        return rows.features
    return rows.features.append_column(by, pa.array(rows.aside["--by"]))


def _weighter(method: Method | None, settings: list[str] | None, allowed: float) -> Any:
    from unskew.errors import ParameterError
    from unskew.weighters.auto import default_weighter

    if method is not None:
        return make_weighter(method, settings or [], overlap=allowed, columns="shared")
    if settings:
        raise ParameterError("--set is for a method: name it with --method.")
    return default_weighter("estimate").set_params(overlap=allowed)


def _statistic(statistic: StatisticName | None, q: float | None, labels: Any, target: str) -> Any:
    if labels.dtype.kind not in "biuf" and statistic is not StatisticName.PROPORTION:
        _check_words(labels, target)
    if statistic is not None:
        return statistic.value
    if q is not None:
        return "quantile"
    return "mean" if labels.dtype.kind in "biuf" else "proportion"


def _check_words(labels: Any, target: str) -> None:
    """Refuse labels that are numbers but for some words, which make all of them classes."""
    import pyarrow as pa

    from unskew.errors import InputError
    from unskew.rows.doubtful_columns import numbers_read_as_text

    for value in numbers_read_as_text(pa.table({target: labels})).values():
        raise InputError(
            f"The target '{target}' is read as text, since '{value}' is not a number. Write "
            "numbers with a decimal point, not a comma, and missing ones as empty fields; "
            "--statistic proportion takes every value as a class."
        )


def _check_output(path: Path) -> Path:
    from unskew.cli.outputs import check_table

    return path if path.suffix.lower() == ".json" else check_table(path)


def _json(found: Estimated | Estimates, hidden: dict[Any, Sensitivity]) -> str:
    import json

    plain = found.to_dict()
    for one, own in zip(plain.get("estimates", [plain]), hidden.values(), strict=False):
        one["sensitivity"] = own.to_dict()
    return json.dumps(plain, indent=2, ensure_ascii=False, default=str)


def _write(
    found: Estimated | Estimates, hidden: dict[Any, Sensitivity], temporary: Path, path: Path
) -> None:
    """Write the result: everything as JSON, or a row for each estimate."""
    import pyarrow as pa

    from unskew.cli.outputs import write_table
    from unskew.files import writing
    from unskew.results import Estimate as Estimated

    if path.suffix.lower() == ".json":
        with writing(path):
            temporary.write_text(_json(found, hidden) + "\n", encoding="utf-8")
        return
    each = {(): found} if isinstance(found, Estimated) else found
    names = () if isinstance(found, Estimated) else found.names
    labels = [label if len(names) > 1 else (label,) for label in each]
    data: dict[str, Any] = {
        name: [str(label[place]) for label in labels] for place, name in enumerate(names)
    }
    for name in ("value", "standard_error", "unweighted", "effective_sample_size"):
        data[name] = [getattr(one, name) for one in each.values()]
    for place, name in enumerate(("low", "high")):
        data[name] = [one.interval[place] for one in each.values()]
    if hidden:
        data["breakdown_odds"] = [one.breakdown for one in hidden.values()]
    write_table(pa.table(data), temporary, path)
