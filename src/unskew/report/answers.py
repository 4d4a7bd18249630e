"""The section about the labels: what the sample answers, and what the population would."""

from __future__ import annotations

from collections.abc import Callable

from unskew.diagnostics.diagnosis import Diagnosis, Outcome, Stage
from unskew.report import charts
from unskew.report.blocks import (
    Block,
    Chart,
    Charts,
    Column,
    LegendEntry,
    Paragraph,
    Section,
    Table,
)
from unskew.report.numbers import decimal, share
from unskew.report.sensitivity import sensitivity_blocks
from unskew.report.untrusted import visible

TITLE = "What the population's answer is"


def answers(diagnosis: Diagnosis) -> Section | None:
    """Return mean or shares of the labels, naive and corrected, with intervals."""
    outcome = diagnosis.outcome
    if outcome is None:
        return None
    number: Callable[[float], str] = decimal if outcome.kind == "mean" else share
    names = ["Mean"] if outcome.kind == "mean" else [visible(name) for name in outcome.labels]
    first = Column("Labels", names, "text")
    columns = [first if outcome.kind == "mean" else Column("Class", names, "data")]
    texts: dict[str, list[str]] = {}
    sides: list[tuple[Stage, str]] = [("before", "Sample"), ("after", "Weighted sample")]
    for stage, heading in sides:
        found = outcome.answers(stage)
        if found is not None:
            texts[stage] = [
                f"{number(value)} ({number(low)} to {number(high)})" for value, low, high in found
            ]
            columns.append(Column(heading, texts[stage]))
    sentence = _sentence(outcome, names, texts)
    spec = charts.answers(outcome, names, texts)
    chart = Chart("answers", spec, f"{TITLE}. {sentence}", caption="Values with 95 % intervals.")
    legend: list[LegendEntry] = ["sample"] if outcome.after is None else ["sample", "weighted"]
    blocks: list[Block] = [
        Paragraph(sentence),
        Charts([chart], legend),
        Table("answer-table", "The labels before and after weighting", columns),
    ]
    if outcome.after is not None:
        counted = outcome.after_interval is not None
        how = "count that the weights were estimated" if counted else "treat the weights as fixed"
        note = f"The 95 % intervals of the weighted sample {how}."
        if diagnosis.bias_left:
            note += " The weights leave bias, which no interval counts."
        blocks.append(Paragraph(note, note=True))
    if outcome.sensitivity is not None:
        what = "mean" if outcome.kind == "mean" else f"share of “{names[0]}”"
        blocks.append(Paragraph(f"Could selection that no column shows change the {what}?"))
        blocks += sensitivity_blocks(outcome.sensitivity)
    return Section("answer", TITLE, blocks)


def _sentence(outcome: Outcome, names: list[str], texts: dict[str, list[str]]) -> str:
    """Return the answer, of several classes that whose share weighting changes most."""
    if outcome.after is None:
        return (
            "No weights were given. These are the sample's answers, and the population's only if "
            "the sample is not biased."
        )
    changes = [abs(new - old) for old, new in zip(outcome.before, outcome.after, strict=True)]
    place = max(range(len(changes)), key=changes.__getitem__)
    what = "mean" if outcome.kind == "mean" else f"share of “{names[place]}”"
    return (
        f"The population's {what} is estimated as {texts['after'][place]}; in the sample it is "
        f"{texts['before'][place]}."
    )
