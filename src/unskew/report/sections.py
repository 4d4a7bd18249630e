"""The sections of a report, each made from a diagnosis by one function.

To add a section, write its function and put it in ``SECTIONS``: the page and Markdown render what
it returns. A section without content is None.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Literal

from unskew.diagnostics.diagnosis import Diagnosis, HeavyRow, Status
from unskew.diagnostics.shift_tests import SHIFT_TESTS
from unskew.overlap.overlap import Overlap, OverlapRule
from unskew.report import answers, charts, features
from unskew.report.blocks import (
    Block,
    Chart,
    Charts,
    Column,
    Figure,
    Figures,
    Item,
    Items,
    Paragraph,
    Report,
    Section,
    Table,
)
from unskew.report.numbers import NOTHING, SPACE, count, decimal, share
from unskew.report.untrusted import visible

MAX_HEAVY_COLUMNS = 6
"""Columns shown of the heaviest rows: the most biased ones."""
VISIBLE_SHARE = 0.0005
"""Shares below it would be shown as zero."""

_STATUS: dict[Status, tuple[str, Literal["good", "caution", "bad"]]] = {
    "no bias found": ("No bias found", "good"),
    "correctable": ("Correctable", "good"),
    "corrected": ("Corrected", "good"),
    "costly": ("Correctable at a cost", "caution"),
    "not corrected": ("Not corrected", "bad"),
    "not correctable": ("Not correctable", "bad"),
}


def build_report(diagnosis: Diagnosis) -> Report:
    """Return the content of the report."""
    verdict = diagnosis.verdict
    status, tone = _STATUS[verdict.status]
    if diagnosis.weights is not None:
        status = status.replace("Correctable", "Corrected")
    sections = [section for build in SECTIONS if (section := build(diagnosis)) is not None]
    step = () if verdict.next_step is None else (f"Next step: {verdict.next_step}",)
    reasons = [visible(sentence, 900) for sentence in (*verdict.sentences, *step)]
    headline, origin = visible(verdict.headline, 600), _origin(diagnosis)
    title = visible(diagnosis.provenance.title or "Bias report")
    return Report(title, headline, status, tone, reasons, sections, origin)


def _origin(diagnosis: Diagnosis) -> list[Item]:
    """Return which data the report is about, and when it was made."""
    about = diagnosis.provenance
    made = datetime.fromisoformat(about.date)
    entries = {
        "Sample": about.sample,
        "Population": about.population,
        "Target": about.target,
        "Weights": about.weights or diagnosis.method,
        "Made": f"{made:%Y-%m-%d %H:%M} {made.tzname()} by unskew {about.version}",
    }
    return [Item(name, visible(text)) for name, text in entries.items() if text is not None]


def key_figures(diagnosis: Diagnosis) -> Section:
    """Return the numbers to see at a glance."""
    overlap, weights, rows = diagnosis.overlap, diagnosis.weights, count(diagnosis.sample_rows)
    size = count(diagnosis.population_rows) if diagnosis.population_rows else NOTHING
    figures = [
        Figure("Sample", rows, None, "rows"),
        Figure("Population", size, None, "rows" if overlap is not None else "margins only"),
    ]
    if overlap is not None:
        note = _margin(overlap) or "of the population"
        figures.append(Figure("Not covered", share(overlap.uncovered), None, note))
    shown = {test.name: test.figure for test in SHIFT_TESTS}
    for test in diagnosis.bias.tests:
        if (figure := shown[test.name]) is not None:
            label, note = figure
            after = None if test.after is None else decimal(test.after.statistic)
            figures.append(Figure(label, decimal(test.before.statistic), after, note))
    if weights is not None:
        note = f"{share(weights.effective_share)} of the rows"
        size = count(weights.effective_sample_size)
        figures.append(Figure("Effective sample size", rows, size, note))
    return Section("figures", "At a glance", [Figures(figures)])


def _margin(measured: Overlap | OverlapRule) -> str:
    return f"±{SPACE}{share(measured.margin)}" if measured.margin >= VISIBLE_SHARE else ""


def _chance(rule: OverlapRule) -> str:
    by_chance = rule.by_chance >= VISIBLE_SHARE
    return f" beyond the {share(rule.by_chance)} that chance explains" if by_chance else ""


def coverage(diagnosis: Diagnosis) -> Section | None:
    """Return the regions of the population that the sample does not cover."""
    overlap = diagnosis.overlap
    if overlap is None:
        return None
    rules = overlap.rules
    blocks: list[Block] = []
    if rules:
        shares = [f"{share(rule.share)} {_margin(rule)}{_chance(rule)}".strip() for rule in rules]
        inside = [f"{count(rule.sample_rows)} of {count(rule.sample_size)}" for rule in rules]
        columns = [
            Column("Region", [visible(rule.text, 400) for rule in rules], "data"),
            Column("Population share", shares, bars=[rule.share for rule in rules]),
            Column("Sample rows in it", inside),
        ]
        text = (
            "No sample row represents these parts of the population, so no weights can correct for "
            "them. Regions may overlap."
        )
        caption = "Regions of the population without sample rows"
        blocks = [Paragraph(text), Table("rules", caption, columns)]
    unexplained = overlap.unexplained if rules else overlap.uncovered
    if unexplained >= VISIBLE_SHARE:
        text = f"{share(unexplained)} of the population is not covered but fits no simple rule."
        blocks.append(Paragraph(text, note=bool(rules)))
    if overlap.chance_sentence:
        blocks.append(Paragraph(overlap.chance_sentence, note=bool(rules)))
    if not blocks:
        blocks.append(Paragraph("The sample covers every part of the population examined."))
    return Section("coverage", "Not covered by the sample", blocks)


def weight_summary(diagnosis: Diagnosis) -> Section:
    """Return the effective sample size, the histogram of the weights, and the heaviest rows."""
    weights, rows = diagnosis.weights, count(diagnosis.sample_rows)
    if weights is None:
        missing = Paragraph("No weights were given: this report describes the sample as it is.")
        return Section("weights", "The weights", [missing])
    zero = f" {count(weights.zero_rows)} of {rows} rows have weight 0." if weights.zero_rows else ""
    blocks: list[Block] = [
        Paragraph(
            f"The {rows} weighted rows determine a mean as precisely as "
            f"{count(weights.effective_sample_size)} equally weighted rows "
            f"({share(weights.effective_share)}): weighting multiplies its variance by "
            f"{decimal(weights.design_effect)}."
        ),
        Paragraph(
            f"Weights range from {decimal(weights.smallest)} to {decimal(weights.largest)}; their "
            f"mean is 1. The largest 1 % of the weights carries {share(weights.top_share)} of the "
            f"total.{zero}"
        ),
    ]
    edges, counts = weights.histogram.edges, weights.histogram.counts
    ranges = [f"{decimal(low)} to {decimal(high)}" for low, high in pairwise(edges)]
    columns = [Column("Weight", ranges, "text"), Column("Rows", [count(n) for n in counts])]
    caption = "Rows by positive weight, on a logarithmic axis. The dashed line is the mean, 1."
    chart = Chart(
        "histogram",
        charts.weights(weights.histogram),
        f"Histogram of the weights. {caption}",
        caption=caption,
        table=Table("histogram-table", "Rows by weight", columns),
    )
    heaviest = _heaviest_rows(diagnosis, weights.heaviest)
    return Section("weights", "The weights", [*blocks, Charts([chart]), *heaviest])


def _heaviest_rows(diagnosis: Diagnosis, rows: Sequence[HeavyRow]) -> Iterator[Block]:
    identifier = diagnosis.provenance.identifier
    heading = "Row" if identifier is None else visible(identifier, 60)
    ranked = [f.name for f in diagnosis.bias.features if f.name in rows[0].values]
    shown, hidden = ranked[:MAX_HEAVY_COLUMNS], len(ranked) - MAX_HEAVY_COLUMNS
    columns = [
        Column(heading, [visible(row.row, 60) for row in rows], "data"),
        Column("Weight", [decimal(row.weight) for row in rows]),
        Column("Share", [share(row.share) for row in rows]),
    ]
    for name in shown:
        cells = [visible(row.values[name], 60) for row in rows]
        columns.append(Column(visible(name, 60), cells, "data"))
    yield Table("heaviest", "The rows of the largest weights", columns)
    notes = [] if identifier is not None else ["Rows are counted from 0."]
    notes += [f"Columns not shown: {count(hidden)}."] if hidden > 0 else []
    if notes:
        yield Paragraph(" ".join(notes), note=True)


def bounds(diagnosis: Diagnosis) -> Section | None:
    """Return what the theory says about this sample, where it says anything."""
    items = []
    for bound in diagnosis.bounds:
        if bound.vacuous or bound.of_learner:  # a report knows of no learner
            continue
        text = visible(bound.statement, 1200)
        if bound.assumptions:
            assumptions = "; ".join(visible(text, 900).rstrip(".") for text in bound.assumptions)
            text = f"{text} Assumptions: {assumptions}."
        items.append(Item(visible(bound.theorem), text))
    return Section("bounds", "Theoretical bounds", [Items(items)]) if items else None


def methods(diagnosis: Diagnosis) -> Section:
    """Return how everything was computed: tests, methods, thresholds."""
    tests = [
        (test.name.capitalize(), stage, result)
        for test in diagnosis.bias.tests
        for stage, result in (("sample", test.before), ("weighted sample", test.after))
        if result is not None
    ]
    intervals = [
        NOTHING if result.low is None else f"{decimal(result.low)} to {decimal(result.high)}"
        for _, _, result in tests
    ]
    test_columns = [
        Column("Test", [name for name, _, _ in tests], "text"),
        Column("Of the", [stage for _, stage, _ in tests], "text"),
        Column("Statistic", [decimal(result.statistic) for _, _, result in tests]),
        Column("95 % interval", intervals),
        Column("p-value", [decimal(result.p_value) for _, _, result in tests]),
    ]
    limits = diagnosis.thresholds
    balanced, effective = decimal(limits.balanced_difference), share(limits.min_effective_share)
    chance = {}
    if limits.chance_difference:
        chance["The same with the weights, and what chance explains of it"] = (
            f"{decimal(limits.largest_difference)}, {decimal(limits.chance_difference)}"
        )
    values = {
        "Significance level of the tests together": share(limits.significance_level),
        "Uncovered share above which weights cannot correct the bias": share(limits.max_uncovered),
        "Standardised difference up to which a feature counts as balanced": balanced,
        **chance,
        "AUC up to which sample and population count as balanced": decimal(limits.balanced_auc),
        "Effective share of the sample below which weights are costly": effective,
    }
    limit_columns = [Column("Threshold", [*values], "text"), Column("Value", [*values.values()])]
    blocks: list[Block] = [Table("tests", "Two-sample tests", test_columns)] if tests else []
    blocks += [
        Items([Item(name, visible(text, 900)) for name, text in _methods(diagnosis)]),
        Table("thresholds", "Thresholds of the verdict", limit_columns),
    ]
    return Section("methods", "How it was computed", blocks)


def _methods(diagnosis: Diagnosis) -> Iterator[tuple[str, str]]:
    examined, total = diagnosis.examined_rows, diagnosis.population_rows
    if diagnosis.overlap is None:
        yield "Rows examined", "None: only margins of the population are known."
    else:
        yield (
            "Rows examined",
            "All rows of the population."
            if examined >= total
            else f"Distances, tests and regions use {count(examined)} of the population's "
            f"{count(total)} rows, drawn uniformly at random; means, variances, missing values and "
            "categories use all rows.",
        )
        yield "Not covered", diagnosis.overlap.method
    if diagnosis.method is not None:
        yield "Weights", diagnosis.method
    for test in diagnosis.bias.tests:
        yield test.name.capitalize(), test.method
    yield (
        "Features",
        "Mean difference: the sample's mean minus the population's, in standard deviations of the "
        "population; of a category, its share instead of the mean. Distance: Kolmogorov-Smirnov "
        "for numbers and times, total variation for categories; between 0 and 1. Missing: the "
        "sample's share of missing values minus the population's.",
    )


SECTIONS: tuple[Callable[[Diagnosis], Section | None], ...] = (
    key_figures,
    features.differences,
    coverage,
    weight_summary,
    answers.answers,
    features.distributions,
    features.all_features,
    bounds,
    methods,
)
