"""``unskew diagnose``: whether the sample is biased, where, and whether the weights helped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from unskew.cli.options import OPTIONS, SAMPLE, Given, command, option
from unskew.errors import ParameterError

if TYPE_CHECKING:
    from unskew.results import Diagnosis

BIAS_LEFT = 1
ANY = "bias"
"""The value of --check without limits."""


@command(
    *SAMPLE,
    weights=option(str, "Weights to evaluate, as unskew weigh writes them.", metavar="FILE"),
    **{name: OPTIONS[name] for name in ("report", "title", "as_json")},
    check=option(
        str,
        "Exit with code 1 if there is bias or, with --weights, if it is left; with limits "
        "such as auc=0.55,difference=0.1 only if the AUC or a standardised difference is more.",
        "--check",
        metavar="[LIMITS]",
    ),
)
def diagnose(given: Given) -> None:
    r"""Report whether a sample is biased, how much and where, and whether weights correct it.

    Prints the verdict in a few lines; the report has charts and every column.

    Is there bias, and is there overlap?

    unskew diagnose answers.csv customers.parquet --target spend --id customer

    Did the weights help? With a report:

    unskew diagnose answers.csv customers.parquet --target spend \
      --id customer --weights weights.csv --report report.html

    For other programs:

    unskew diagnose answers.csv customers.parquet --target spend --json

    In a script: exit code 1 if the weights leave bias that matters:

    unskew diagnose answers.csv customers.parquet --target spend \
      --weights weights.csv --check auc=0.55,difference=0.1 --quiet
    """
    import unskew
    from unskew.cli.inputs import file_of_population, open_inputs, read_weights
    from unskew.cli.outputs import (
        check_outputs,
        format_diagnosis,
        name_inputs,
        warnings_as_notes,
        write_report,
    )
    from unskew.files import whole_files

    limits, known = _limits(given.check), file_of_population(given)
    outputs = [] if given.report is None else [given.report]
    check_outputs(outputs, [given.sample, known, *filter(None, [given.weights])])
    with whole_files(outputs) as temporaries, open_inputs(given) as opened:
        X, population, identifiers, roles, columns = opened
        weights = None if given.weights is None else read_weights(given.weights, identifiers)
        with warnings_as_notes(given):
            found = unskew.diagnose(X, population, weights, columns=columns, **roles)
        found = name_inputs(found, given, known, identifiers)
        for temporary, path in zip(temporaries, outputs, strict=True):
            write_report(found, temporary, path)
    if given.as_json:
        print(found.to_json(), end="")
    elif not given.quiet:
        print("\n".join(format_diagnosis(found)))
        for path in outputs:
            print(f"Written: {path}")
    if given.check is not None and _beyond(found, limits):
        raise typer.Exit(BIAS_LEFT)


def with_limits(arguments: Sequence[str]) -> list[str]:
    """Return the arguments, with a value after every --check, which Typer demands."""
    pairs = zip(arguments, [*arguments[1:], ""], strict=False)
    return [
        f"--check={ANY}"
        if one == "--check" and not after.startswith(("auc=", "difference="))
        else one
        for one, after in pairs
    ]


def _limits(check: str | None) -> dict[str, float]:
    """Return the limits that --check names: of the AUC, of standardised differences, or none."""
    limits = {}
    for entry in [] if check in (None, ANY) else str(check).split(","):
        name, _, text = entry.partition("=")
        try:
            limits[name.strip()] = float(text)
        except ValueError:
            limits[""] = 0.0
    if set(limits) - {"auc", "difference"}:
        raise ParameterError(
            f"--check takes limits such as auc=0.55,difference=0.1, or none; got '{check}'."
        )
    return limits


def _beyond(diagnosis: Diagnosis, limits: dict[str, float]) -> bool:
    """Return whether bias is found and, where limits are named, is beyond one of them."""
    if not diagnosis.bias_left or not limits:
        return diagnosis.bias_left
    weighted = diagnosis.weights is not None
    found = {"auc": 0.5, "difference": 0.0}
    if (test := diagnosis.bias.classifier) is not None:
        found["auc"] = (test.after if weighted and test.after else test.before).statistic
    for line in (line for feature in diagnosis.bias.features for line in feature.lines):
        found["difference"] = max(
            found["difference"], abs((line.after if weighted else line.before) or 0.0)
        )
    return any(found[name] > limit for name, limit in limits.items())


COMMAND = diagnose
