"""docs/accuracy.md, made from results.json."""

from __future__ import annotations

from collections import Counter

import numpy as np

from benchmarks.accuracy.draws import MECHANISMS
from benchmarks.accuracy.figure import draw, is_peer
from benchmarks.accuracy.results import (
    CANDIDATES,
    MEASURES,
    REWEIGHTED,
    Interval,
    Results,
    change_of,
    over_cells,
)
from benchmarks.accuracy.tables import ROOT

PAGE = ROOT / "docs" / "accuracy.md"
CHOOSER = PAGE.with_name("which-method.md")
MARKS = ("<!-- made by benchmarks.accuracy -->\n", "\n<!-- end -->")
FIGURE = ROOT / "docs" / "images" / "accuracy.png"
TEMPLATE = PAGE.with_suffix(".md.in")
RIVALS = ("TreeWeights(4)", "TreeWeights(20)", "KernelMeanMatching", "Ideal", "AutoWeights")


def write_page() -> None:
    """Write the page and its figure."""
    results = Results()
    PAGE.write_text(page(results), encoding="utf-8")
    CHOOSER.write_text(chooser(results), encoding="utf-8")
    draw(results, FIGURE)


def page(results: Results) -> str:
    """Return the page's text."""
    text = TEMPLATE.read_text(encoding="utf-8")
    for name, part in {
        "counts": counts,
        "weights": weights_table,
        "mechanisms": mechanism_table,
        "learners": learner_table,
        "regret": regret_table,
        "tables": table_table,
        "targets": target_table,
        "failed": failed,
    }.items():
        text = text.replace(f"${{{name}}}", part(results))
    return text


def chooser(results: Results) -> str:
    """Return the text of docs/which-method.md, with the measures of our own weights."""
    before, _, rest = CHOOSER.read_text(encoding="utf-8").partition(MARKS[0])
    after = rest.partition(MARKS[1])[2]
    measures = [line.split(" | ") for line in weights_table(results).splitlines()]
    ours = [cells for cells in measures if not is_peer(cells[0].removeprefix("| "))]
    made = "\n".join(" | ".join([*cells[:1], *cells[2:]]) for cells in ours)  # without the draws
    return before + MARKS[0] + made + MARKS[1] + after


def counts(results: Results) -> str:
    """Say how much was run."""
    rows = [["weights", "draws in all", "pairs of table and selection, of 90", "draws of a pair"]]
    words = {"every-draw": "our main weighters, and learners", "some-draws": "our other weighters"}
    words |= {"kernel": "adapt, densratio and skada", "survey": "balance"}
    for part, who in words.items():
        cells = [one for one in results.cells if one["part"] == part]
        draws = Counter((one["table"], one["mechanism"]) for one in cells)
        least, most = min(draws.values(), default=0), max(draws.values(), default=0)
        per = str(most) if least == most else f"{least} or {most}"
        rows.append([who, str(len(cells)), str(len(draws)), per])
    return table(rows)


def weights_table(results: Results) -> str:
    """Return the measures of all weights, each compared with AutoWeights on the same draws."""
    head = ["weights", "draws", "weight error", "AutoWeights less it", "effective share"]
    rows = [[*head, "label mean", "column means", "seconds"]]
    errors = {name: results.mean(name, "weight", results.of(name)) for name in results.methods}
    for name in sorted(errors, key=lambda one: errors[one].mean):
        cells, apart = results.of(name), results.nearer(name)
        found = {one: results.mean(name, one, cells).mean for one in MEASURES}
        rows.append(
            [
                name,
                str(len(cells)),
                f"{errors[name].mean:.2f}",
                "" if name == "AutoWeights" else f"{apart.mean:+.2f} ± {apart.half:.2f}",
                f"{found['effective']:.2f}",
                f"{found['label mean']:.1f}",
                f"{found['column means']:.1f}",
                f"{found['seconds']:.2f}",
            ]
        )
    return table(rows)


def mechanism_table(results: Results) -> str:
    """Return weight errors and detection under each mechanism."""
    rows = [["selection", "draws", "Unweighted", "TreeWeights(4)", "AutoWeights", "equal weights"]]
    for name in MECHANISMS:
        cells = results.mechanism(name)
        errors = [
            f"{results.mean(method, 'weight', cells).mean:.2f}"
            for method in ("Unweighted", "TreeWeights(4)", "AutoWeights")
        ]
        rows.append([name, str(len(cells)), *errors, f"{results.flat(name):.0%}"])
    return table(rows)


def learner_table(results: Results) -> str:
    """Return what the weights do to each learner's error."""
    learners = ("linear", "boosted", "kernel")
    rows = [["weights", "all", *learners, "95 % quantile", "worst"]]
    rows[0] += ["Reweighted against it", "over these draws"]
    for name in (REWEIGHTED, "AutoWeights, power ½", *RIVALS):
        harm = results.harm(name)
        by = [results.change(name, lambda one, k=kind: one["learner"] == k) for kind in learners]
        rows.append(
            [
                name,
                percent(results.change(name)),
                *(f"{100 * one.mean:+.1f}" for one in by),
                f"{100 * np.quantile(harm, 0.95):+.1f}",
                f"{100 * harm[-1]:+.0f}",
                *(
                    ["", ""]
                    if name == REWEIGHTED
                    else [
                        percent(results.against(name)),
                        percent(results.against(name, over_cells)),
                    ]
                ),
            ]
        )
    return table(rows)


def regret_table(results: Results) -> str:
    """Return how far each rule is from the best of the candidates in hindsight."""
    rows = [["rule", "above the best candidate, %"]]
    rules = {REWEIGHTED: REWEIGHTED}
    rules |= {f"always {name}": name for name in CANDIDATES[1:]} | {"never": "Unweighted"}
    found = {rule: results.regret(name) for rule, name in rules.items()}
    rows += [
        [rule, f"{100 * found[rule].mean:.2f} ± {100 * found[rule].half:.2f}"]
        for rule in sorted(found, key=lambda one: found[one].mean)
    ]
    return table(rows)


def table_table(results: Results) -> str:
    """Return wins and losses by table."""
    rows = [["table", "n", "draws", "weighted", "better", "worse", "mean change, %", "worst, %"]]
    for name in dict.fromkeys(one["table"] for one in results.core):
        cells = [one for one in results.core if one["table"] == name]
        changes = np.array([change_of(one, REWEIGHTED) for one in cells])
        chosen = [one["reweighted"]["chosen"] != "not weighting" for one in cells]
        rows.append(
            [
                name,
                str(cells[0]["n"]),
                str(len(cells)),
                str(sum(chosen)),
                str(int((changes < 0).sum())),
                str(int((changes > 0).sum())),
                f"{100 * changes.mean():+.2f}",
                f"{100 * changes.max():+.1f}",
            ]
        )
    return table(rows)


def target_table(results: Results) -> str:
    """Return what was to be reached, and what was."""
    rows = [["target", "measured", "reached"]]
    for text, measured, reached in targets(results):
        rows.append([text, measured, "yes" if reached else "**no**"])
    return table(rows)


def targets(results: Results) -> list[tuple[str, str, bool]]:
    """Return each target with what was measured and whether that reaches it."""
    error = results.mean("AutoWeights", "weight", results.of("AutoWeights", full_size=True)).mean
    change, harm = results.change(REWEIGHTED), float(np.quantile(results.harm(REWEIGHTED), 0.95))
    flat, found = results.flat("none"), 1 - results.flat("logistic 4")
    rows = [
        ("weight error of AutoWeights at n = 1,600 at most 0.22", f"{error:.3f}", error <= 0.22),
        ("equal weights in 95 % of draws without selection", f"{flat:.1%}", flat >= 0.95),
        ("selection detected in 95 % of draws of *logistic 4*", f"{found:.1%}", found >= 0.95),
        ("Reweighted −1 % or better against not weighting", percent(change), change.mean <= -0.01),
        ("95 % quantile of its harm under 2.5 %", f"{100 * harm:.1f} %", harm < 0.025),
    ]
    for name in RIVALS[:-1]:
        against = results.against(name)
        rows.append((f"Reweighted better than {name}", percent(against), against.below_zero))
    return rows


def failed(results: Results) -> str:
    """Say which methods have no weights in some cells."""
    found: dict[str, Counter[str]] = {}
    for one in results.cells:
        for name, text in one["failed"].items():
            found.setdefault(name, Counter())[text] += 1
    if not found:
        return "None."
    return "\n".join(
        f"- {name}: {sum(texts.values())} cells; most often “{texts.most_common(1)[0][0]}”"
        for name, texts in found.items()
    )


def percent(value: Interval) -> str:
    """Return an interval in percent."""
    return f"{100 * value.mean:+.1f} ± {100 * value.half:.1f} %"


def table(rows: list[list[str]]) -> str:
    """Return rows as Markdown, numbers to the right."""
    head, *body = rows
    rule = ["---", *["--:"] * (len(head) - 1)]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, rule, *body))
