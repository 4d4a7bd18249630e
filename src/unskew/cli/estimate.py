"""``unskew estimate``: a number of the population, with an interval, from files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from unskew.cli.methods import make_weighter
from unskew.cli.options import (
    OPTIONS,
    REQUIRED,
    WEIGHING,
    Given,
    call,
    choice,
    column,
    command,
    method,
    option,
    output,
)
from unskew.cli.outputs import check_table
from unskew.errors import ParameterError

if TYPE_CHECKING:
    from unskew.results import Estimate as Estimated
    from unskew.results import Estimates, Sensitivity


@command(
    *WEIGHING,
    target=column(
        "The column of SAMPLE of which the population's number is wanted.", default=REQUIRED
    ),
    statistic=choice(
        ("mean", "total", "proportion", "quantile"),
        "What to estimate. Default: the mean, or of text the proportions.",
    ),
    q=option(float, "Which quantile: 0.5 is the median.", "--quantile"),
    by=column("One estimate for each value of a column; if POPULATION has it, a feature."),
    outcome=choice(
        ("boosted", "linear"), "A model of the target that makes the estimate doubly robust."
    ),
    method=method("calibration to what predicts TARGET"),
    variance=choice(
        ("auto", "linear", "m_estimator", "hc3", "orthogonal", "bootstrap"),
        "How the variance is estimated.",
        "auto",
    ),
    replicates=option(int, "Of the bootstrap.", default=200, min=2),
    level=option(float, "Of the interval.", default=0.95),
    finite_population=option(
        bool, "POPULATION is complete, and SAMPLE a part of it.", "--finite-population"
    ),
    sensitivity=option(
        bool,
        "Also say how strong hidden selection would have to be to change the conclusion.",
        "--sensitivity",
    ),
    odds=option(list[float], "A factor by which odds of selection may be off; can be repeated."),
    threshold=option(
        float, "The value that would change it. Default: that of the sample as it is."
    ),
    output=output("Also write the result: .json, .csv or .parquet."),
    **{name: OPTIONS[name] for name in ("as_json", "random_state")},
)
def estimate(given: Given) -> None:
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
    import unskew
    from unskew.cli.inputs import file_of_population, open_inputs
    from unskew.cli.outputs import check_outputs, warnings_as_notes
    from unskew.files import whole_files

    known = file_of_population(given)
    outputs = [] if given.output is None else [given.output]
    if outputs and given.output.suffix.lower() != ".json":
        check_table(given.output)
    check_outputs(outputs, [given.sample, known])
    for name in ("odds", "threshold"):
        if getattr(given, name) is not None and not given.sensitivity:
            raise ParameterError(f"--{name} is for --sensitivity.")
    if given.setting and given.method is None:
        raise ParameterError("--set is for a method: name it with --method.")
    weighter = make_weighter(
        given.method or "rake", given.setting or [], overlap=given.allow_uncovered
    )
    with whole_files(outputs) as temporaries, open_inputs(given) as inputs:
        weighter.set_params(columns=inputs.columns or "shared")
        data = {"X": inputs.X, "population": inputs.population, **inputs.roles}
        data["statistic"] = given.statistic or _statistic(given.q, data["y"])
        with warnings_as_notes(given):
            found = call(unskew.estimate, given, weighter=weighter, **data)
            hidden = _sensitivities(found, given) if given.sensitivity else {}
        for temporary, path in zip(temporaries, outputs, strict=True):
            _write(found, hidden, temporary, path)
    if given.as_json:
        print(_json(found, hidden))
    elif not given.quiet:
        print(str(found))
        for label, one in hidden.items():
            print(str(one) if label is None else f"{_shown(label)}: {one}")
        for path in outputs:
            print(f"Written: {path}")


def _statistic(q: float | None, labels: Any) -> str:
    if q is not None:
        return "quantile"
    return "mean" if labels.dtype.kind in "biuf" else "proportion"


def _sensitivities(found: Estimated | Estimates, given: Given) -> dict[Any, Sensitivity]:
    """Return the sensitivity of each estimate by its label; that of a single one by None."""
    from unskew.results import Estimate as Estimated

    asked: dict[str, Any] = {"threshold": given.threshold}
    asked |= {} if given.odds is None else {"odds": given.odds}
    each = {None: found} if isinstance(found, Estimated) else found
    return {label: one.sensitivity(**asked) for label, one in each.items()}


def _shown(label: Any) -> str:
    return ", ".join(map(str, label)) if isinstance(label, tuple) else str(label)


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


COMMAND = estimate
