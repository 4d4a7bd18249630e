"""``unskew weigh``: weights for a sample in a file, against a population of any size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unskew.cli import options
from unskew.cli.arguments import WeighingArguments
from unskew.cli.methods import Method, TotalOption, make_weighter
from unskew.errors import refuse_removed

if TYPE_CHECKING:
    from unskew import Margins, Population
    from unskew.cli.inputs import SampleFile
    from unskew.results import Diagnosis
    from unskew.rows.doubtful_columns import Doubt


@dataclass(frozen=True, kw_only=True)
class Weigh(WeighingArguments):
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

    output: options.Output
    total: Annotated[
        TotalOption,
        typer.Option(help="What the weights sum to: the sample's size or the population's."),
    ] = TotalOption.SAMPLE
    report: options.Report = None
    title: options.Title = None
    save: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Save the fitted weighter for unskew apply (.skops)."),
    ] = None
    replicates: Annotated[
        int,
        typer.Option(
            min=0, help="Also write as many bootstrap replicates of the weights: weight_1, …"
        ),
    ] = 0
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            hidden=True,
        ),
    ] = False
    verdict: Annotated[
        bool,
        typer.Option(
            help="Say at the end whether the weights correct the bias, which takes a few seconds: "
            "weights are judged on at most 50,000 sample and 20,000 population rows."
        ),
    ] = True

    def run(self) -> None:
        """Weigh the sample, write weights and report, and print the verdict."""
        from unskew.cli.inputs import open_inputs
        from unskew.cli.outputs import check_outputs, check_table, print_note, write_weights
        from unskew.cli.reports import name_inputs, write_report
        from unskew.files import whole_files

        refuse_removed("--resume", self.resume or None, "A run that was killed starts again")
        started, known = monotonic(), self.file_of_population()
        method, weighter = self._chosen()
        others = [path for path in (self.report, self.save) if path is not None]
        outputs = [check_table(self.output), *others]
        check_outputs(outputs, [self.sample, known])
        inputs = open_inputs(self)
        # The files come first, so that a bad path is found before the work.
        with whole_files(outputs) as temporaries, inputs as (rows, opened):
            temporary = dict(zip(outputs, temporaries, strict=True))
            found, why = self._fit(weighter, rows, opened)
            replicates = vars(weighter).pop("replicates_", None)
            write_weights(
                rows.identifiers, weighter.weights_, temporary[self.output], self.output, replicates
            )
            self._save(weighter, temporary)
            if self.report is not None and found is not None:
                found = name_inputs(found, rows.identifiers, **self.named(self.title))
                write_report(found, temporary[self.report], self.report)
        if not self.quiet:
            against = "margins" if self.margins else f"{opened.size:,} population rows"
            _print_summary(rows, against, weighter, method, monotonic() - started)
            print("Written: " + ", ".join(map(str, outputs)))
        if why:
            print_note(f"The weights could not be judged. {why}")
        elif found is not None and self._judged:
            _print_verdict(found)

    @property
    def _judged(self) -> bool:
        return self.verdict and not self.quiet

    def _chosen(self) -> tuple[Method, Any]:
        """Return the method and its weighter, and refuse what is known to fail."""
        method = self.method or (Method.AUTO if self.margins is None else Method.RAKE)
        # A number measures the overlap in full, and spares what a refusal makes useless.
        weighter = make_weighter(
            method, self.setting or [], total=self.total.value, overlap=self.allow_uncovered
        )
        _check_method(weighter, method, self.target, self.save)
        return method, weighter

    def _fit(
        self, weighter: Any, rows: SampleFile, population: Population | Margins
    ) -> tuple[Diagnosis | None, str]:
        """Fit the weighter, and diagnose its weights if that is asked for, in one pass.

        Weights that cannot be judged are written all the same; return why there is no diagnosis.
        """
        from unskew import diagnose, replicate_weights
        from unskew.cli.outputs import warnings_as_notes
        from unskew.cli.phrases import OPTIONS
        from unskew.errors import OverlapError, UnskewError
        from unskew.weighters.next_step import leave_out

        data: dict[str, Any] = {"y": rows.labels, "sample_weight": rows.design}
        if self.replicates:
            data |= {"replicates": self.replicates, **self.design_of(rows.aside)}
        try:
            with warnings_as_notes():
                if self.report is not None or self._judged:
                    data["consequences"] = self.report is not None
                    return diagnose(rows.features, population, weighter, **data), ""
                if self.replicates:
                    data["weighter"] = weighter
                fit = replicate_weights if self.replicates else weighter.fit
                fit(rows.features, population=population, **data)
                return None, ""
        except OverlapError as error:
            if getattr(weighter, "overlap_", None) is not None:  # measured, and too little
                _check_overlap(weighter, self.allow_uncovered, rows.doubts)
            if not rows.doubts:
                raise
            step = leave_out(rows.doubts).sentence(OPTIONS)
            raise OverlapError(f"Refused: {error} {step}", error.share, error.rules) from error
        except UnskewError as error:
            if not hasattr(weighter, "weights_") or self.report is not None:
                raise
            return None, str(error)

    def _save(self, weighter: Any, temporary: dict[Path, Path]) -> None:
        from unskew import save_weighter
        from unskew.files import writing

        if self.save is not None:
            with writing(self.save), temporary[self.save].open("wb") as file:
                save_weighter(weighter, file)


def _check_method(weighter: Any, method: Method, target: str | None, save: Path | None) -> None:
    """Refuse what is known to fail before anything is read."""
    from unskew.errors import ParameterError

    why = {Method.TREE: "to grow its tree", Method.LABEL_SHIFT: "as its weights go by class"}
    if target is None and method in why:
        raise ParameterError(
            f"--method {method} needs labels {why[method]}: name their column with --target, or "
            "choose another --method."
        )
    if save is not None and not hasattr(weighter, "weigh"):
        raise ParameterError(
            f"--save: --method {method} cannot weigh new rows. Use --method ratio."
        )


def _uncovered(weighter: Any) -> float:
    """Return the uncovered share, by the method itself or by regions and distances."""
    searched = 0.0 if weighter.overlap_ is None else weighter.overlap_.uncovered
    return max(weighter.uncovered_, searched)


def _check_overlap(weighter: Any, allowed: float, doubts: Sequence[Doubt]) -> None:
    from unskew.cli.phrases import OPTIONS
    from unskew.cli.reports import not_covered, refusal

    share, rules = _uncovered(weighter), weighter.overlap_.rules
    if share <= allowed:
        return
    step = weighter.coverage_advice()
    if weighter.overlap_.uncovered <= allowed and step is not None:
        why = f"lies in cells without sample rows. {step.sentence(OPTIONS)}"
    else:
        measured = share > weighter.overlap_.uncovered
        why = not_covered(rules, f"measured by {type(weighter).__name__}" if measured else "")
    raise refusal(share, rules, allowed, why, doubts)


def _print_summary(
    rows: SampleFile, population: str, weighter: Any, method: Method, seconds: float
) -> None:
    from unskew.cli.reports import format_classes, format_effective_size, format_regions

    print(f"{len(rows):,} sample rows weighed against {population} by {method} in {seconds:.1f} s.")
    trained = getattr(weighter, "sample_rows_", len(rows))
    if trained < len(rows):
        both = f"{trained:,} sample rows and {weighter.population_rows_:,} population rows"
        print(f"Models were trained on {both}, drawn uniformly within 1 GB.")
    print(format_effective_size(weighter.weights_))
    if hasattr(weighter, "population_shares_"):  # of classes: no column leaves anything uncovered
        print("\n".join(format_classes(weighter)))
        return
    print(f"Not covered by the sample: {_uncovered(weighter):.2%} of the population.")
    for line in format_regions(weighter.overlap_.rules if weighter.overlap_ else ()):
        print(line)


def _print_verdict(diagnosis: Diagnosis) -> None:
    """Print whether the weights correct the bias."""
    from unskew.cli.reports import format_verdict

    headline, *step = format_verdict(diagnosis.verdict)
    untested = any(test.before.low is None for test in diagnosis.bias.tests[:1])
    if untested and not diagnosis.bias_left:
        headline += f" {diagnosis.verdict.sentences[0]}"  # that there were too few rows
    print("\n".join([headline, *step]))
