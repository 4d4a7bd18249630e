"""``unskew weigh``: weights for a sample in a file, against a population of any size."""

from __future__ import annotations

from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from unskew.cli.methods import make_weighter
from unskew.cli.options import OPTIONS, WEIGHING, Given, call, choice, command, option
from unskew.errors import refuse_removed

if TYPE_CHECKING:
    from unskew.cli.inputs import Inputs
    from unskew.results import Diagnosis


@command(
    *WEIGHING,
    "output",
    total=choice(
        ("sample", "population"),
        "What the weights sum to: the sample's size or the population's.",
        "sample",
    ),
    **{name: OPTIONS[name] for name in ("report", "title")},
    save=option(Path, "Save the fitted weighter for unskew apply (.skops).", metavar="FILE"),
    replicates=option(
        int,
        "Also write as many bootstrap replicates of the weights: weight_1, …",
        default=0,
        min=0,
    ),
    resume=option(bool, "", "--resume", hidden=True),
    verdict=option(
        bool,
        "Say at the end whether the weights correct the bias, which takes a few seconds: "
        "weights are judged on at most 50,000 sample and 20,000 population rows.",
        default=True,
    ),
)
def weigh(given: Given) -> None:
    r"""Weigh a sample so that it represents the population.

    Writes one weight for each row of SAMPLE, in its order, and says whether the
    weights correct the bias. POPULATION is read once, in bounded memory. Exit
    code 3 means refused: too much of the population is not covered by the
    sample.

    The right weights by default; --target names the label, which is no feature:

    unskew weigh answers.csv customers.parquet --target spend -o weights.csv

    With ids, a report, and a weighter for rows that come later:

    unskew weigh answers.csv "customers/*.parquet" --target spend \
      --id customer -o weights.csv --report report.html --save weighter.skops

    A census table instead of rows:

    unskew weigh survey.csv --margins census.csv --method rake -o weights.csv

    Another method, with a parameter, and design weights:

    unskew weigh survey.csv census.parquet --method histogram --set buckets=4 \
      --columns age,town --population-weight persons -o weights.parquet
    """
    from unskew import save_weighter
    from unskew.cli.inputs import file_of_population, open_inputs
    from unskew.cli.outputs import (
        check_outputs,
        name_inputs,
        print_note,
        write_report,
        write_weights,
    )
    from unskew.files import whole_files, writing

    refuse_removed("--resume", given.resume or None, "A run that was killed starts again")
    started, known = monotonic(), file_of_population(given)
    method = given.method or ("auto" if given.margins is None else "rake")
    # A number measures the overlap in full, and spares what a refusal makes useless.
    limits = {"total": given.total, "overlap": given.allow_uncovered}
    weighter = make_weighter(method, given.setting or [], **limits)
    _check_method(weighter, method, given)
    outputs = [path for path in (given.output, given.report, given.save) if path is not None]
    check_outputs(outputs, [given.sample, known])
    # The files come first, so that a bad path is found before the work.
    with whole_files(outputs) as temporaries, open_inputs(given) as inputs:
        temporary = dict(zip(outputs, temporaries, strict=True))
        found, why = _fit(weighter, inputs, given)
        replicates = vars(weighter).pop("replicates_", None)
        written = inputs.identifiers, weighter.weights_, temporary[given.output], given.output
        write_weights(*written, replicates)
        if given.save is not None:
            with writing(given.save), temporary[given.save].open("wb") as file:
                save_weighter(weighter, file)
        if given.report is not None and found is not None:
            found = name_inputs(found, given, known, inputs.identifiers)
            write_report(found, temporary[given.report], given.report)
    if not given.quiet:
        against = "margins" if given.margins else f"{inputs.population.size:,} population rows"
        rows = len(weighter.weights_)
        seconds = monotonic() - started
        print(f"{rows:,} sample rows weighed against {against} by {method} in {seconds:.1f} s.")
        _print_summary(weighter)
        print("Written: " + ", ".join(map(str, outputs)))
    if why:
        print_note(f"The weights could not be judged. {why}")
    elif found is not None and given.verdict and not given.quiet:
        _print_verdict(found)


def _fit(weighter: Any, inputs: Inputs, given: Given) -> tuple[Diagnosis | None, str]:
    """Fit the weighter, and diagnose its weights if that is asked for, in one pass.

    Weights that cannot be judged are written all the same; return why there is no diagnosis.
    """
    from unskew import diagnose, replicate_weights
    from unskew.cli.outputs import warnings_as_notes
    from unskew.errors import OverlapError, UnskewError

    weighter.set_params(columns=inputs.columns)
    data = {"X": inputs.X, "population": inputs.population, **inputs.roles}
    try:
        with warnings_as_notes(given):
            if given.report is not None or (given.verdict and not given.quiet):
                data |= {"weights": weighter, "columns": None}
                return call(diagnose, given, consequences=given.report is not None, **data), ""
            if given.replicates:
                call(replicate_weights, given, weighter=weighter, **data)
            else:
                weighter.fit(
                    **{name: data[name] for name in ("X", "y", "population", "sample_weight")}
                )
            return None, ""
    except OverlapError:
        raise
    except UnskewError as error:
        if not hasattr(weighter, "weights_") or given.report is not None:
            raise
        return None, str(error)


def _check_method(weighter: Any, method: str, given: Given) -> None:
    """Refuse what is known to fail before anything is read."""
    from unskew.errors import ParameterError

    why = {"tree": "to grow its tree", "label-shift": "as its weights go by class"}
    if given.target is None and method in why:
        raise ParameterError(
            f"--method {method} needs labels {why[method]}: name their column with --target, or "
            "choose another --method."
        )
    if given.save is not None and not hasattr(weighter, "weigh"):
        raise ParameterError(
            f"--save: --method {method} cannot weigh new rows. Use --method ratio."
        )


def _print_summary(weighter: Any) -> None:
    from unskew.cli.outputs import format_classes, format_effective_size, format_regions

    rows = len(weighter.weights_)
    trained = getattr(weighter, "sample_rows_", rows)
    if trained < rows:
        both = f"{trained:,} sample rows and {weighter.population_rows_:,} population rows"
        print(f"Models were trained on {both}, drawn uniformly within 1 GB.")
    print(format_effective_size(weighter.weights_))
    if hasattr(weighter, "population_shares_"):  # of classes: no column leaves anything uncovered
        print("\n".join(format_classes(weighter)))
        return
    searched = 0.0 if weighter.overlap_ is None else weighter.overlap_.uncovered
    uncovered = max(weighter.uncovered_, searched)  # by the method itself, or by regions
    print(f"Not covered by the sample: {uncovered:.2%} of the population.")
    for line in format_regions(weighter.overlap_.rules if weighter.overlap_ else ()):
        print(line)


def _print_verdict(diagnosis: Diagnosis) -> None:
    """Print whether the weights correct the bias."""
    from unskew.cli.outputs import format_verdict

    headline, *step = format_verdict(diagnosis)
    untested = any(test.before.low is None for test in diagnosis.bias.tests[:1])
    if untested and not diagnosis.bias_left:
        headline += f" {diagnosis.verdict.sentences[0]}"  # that there were too few rows
    print("\n".join([headline, *step]))


COMMAND = weigh
