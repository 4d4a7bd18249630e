"""Write docs/table-1.md and its figures from the results in docs/table-1.

    python -m docs.table_1            write the page
    python -m docs.table_1 FOLDER     first take over the cost of ``unskew reproduce -o FOLDER``

The results come from ``python -m benchmarks.table_1`` and ``python -m benchmarks.table_1.sizes``.
"""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
from scipy import stats

from docs import table_1_panels as panels
from docs.table_1_figures import draw_sizes, draw_table
from docs.table_1_rounds import RESULTS, Round, ceiling, comparison, order_kept, pairs, seeds_table
from unskew.paper.printed import COLUMNS
from unskew.paper.results import TextTable, markdown

HERE = Path(__file__).parent
PAGE = HERE / "table-1.md"
TEMPLATE = HERE / "table-1.md.in"
WIDTH = 110
FAR = 0.10
"""How far a cell must be off, besides being outside the interval, to be named."""

SCALERS = {"raw": "as they are", "standardised": "standardised", "[0, 1]": "in [0, 1]"}


def main() -> None:
    """Write the page and draw its figures."""
    if sys.argv[1:]:
        shutil.copyfile(Path(sys.argv[1]) / "run.json", RESULTS / "reproduce.json")
    draw_table(Round("table"), Round("totals"), RESULTS / "figure.png")
    draw_sizes(_sizes(), RESULTS / "sizes.png")
    PAGE.write_text(page(), encoding="utf-8")


def page() -> str:
    """Return the page's text."""
    table = Round("table")
    template = Template(TEMPLATE.read_text(encoding="utf-8"))
    text = template.substitute(
        **_agreement(table),
        **_disagreement(table),
        **_size_evidence(),
        **_run(table),
        **panels.totals(),
        **panels.directions(),
        **panels.today(),
        **panels.mechanisms(),
        **panels.matchings(),
        **panels.readings(),
    )
    return _wrapped(text)


def _agreement(table: Round) -> dict[str, str]:
    found = table.found
    same, of = order_kept(table)
    single = [panels.compare(cells, table.printed) for cells in table.tables]
    return {
        "table": markdown(comparison(table)),
        "seed_table": markdown(seeds_table(table)),
        **pairs(table),
        "ceiling": ceiling(table),
        "spearman": f"{found['spearman']:.2f}",
        "spearman_without": f"{found['without_kmm']:.2f}",
        "single": _range([each["spearman"] for each in single]),
        "single_without": _range([each["without_kmm"] for each in single]),
        "better": f"{found['clustered_better']} of {found['sets']}",
        "better_by_seed": ", ".join(str(each["clustered_better"]) for each in single),
        "deviations": ", ".join(
            f"{method} {found['deviations'][method]:.1%} "
            f"(seeds {_range([each['deviations'][method] for each in single], '.1%')})"
            for method in COLUMNS
        ),
        "ordered": f"{same} of {of}",
    }


def _range(values: list[float], form: str = ".2f") -> str:
    return f"{min(values):{form}} to {max(values):{form}}"


def _disagreement(table: Round) -> dict[str, str]:
    """Return the cells of the paper that a further seed of ours would hardly give."""
    quantile = stats.t.ppf(0.975, table.seeds - 1)
    outside, far = [], []
    for key, published in table.printed.items():
        mean = table.mean[key]
        within = quantile * table.spread[key] * np.sqrt(1 + 1 / table.seeds)
        if abs(published - mean) > within:
            outside.append(key)
            if abs(mean / published - 1) > FAR:
                far.append(key)
    named = (
        f"{name} {method} ({table.mean[name, method]:.3f}, published "
        f"{table.printed[name, method]:.3f})"
        for name, method in sorted(far, key=lambda key: COLUMNS.index(key[1]))
    )
    ratios = {
        method: np.median(
            [
                np.mean([row["nmse_sd"] for row in group]) / group[0]["paper_nmse_sd"]
                for group in table.rows(total="paper", method=method)
            ]
        )
        for method in COLUMNS
    }
    groups = table.rows(total="paper", method="KMM")
    kmm_share = np.median([np.mean([row["ess"] / row["m"] for row in group]) for group in groups])
    return {
        "far": "; ".join(named) or "none",
        "inside": f"{len(table.printed) - len(outside)} of {len(table.printed)}",
        "sd_ratios": ", ".join(f"{method} {ratio:.1f}" for method, ratio in ratios.items()),
        "sd_kmm": f"{ratios['KMM']:.1f}",
        "kmm_ess": f"{kmm_share:.1%}",
        "kmm_calhousing": f"{table.mean['cal-housing', 'KMM']:.2f}",
        "kmm_calhousing_printed": f"{table.printed['cal-housing', 'KMM']:.3f}",
    }


def _sizes() -> dict[str, Any]:
    return dict(json.loads((RESULTS / "sizes.json").read_text(encoding="utf-8")))


def _size_evidence() -> dict[str, str]:
    sizes = _sizes()
    lines = []
    for name, found in sizes["sets"].items():
        cells = []
        for scaler in SCALERS:
            low, high = (round(size) for size in found[scaler]["percentiles"][::98])
            inside = low <= found["m"] <= high
            cells.append(f"{low} to {high}" + ("" if inside else " ✗"))
        lines.append((name, str(found["m"]), *cells))
    density = sizes["log_density"]
    lines.append(("log density of all nine", "", *(f"{density[scaler]:.1f}" for scaler in SCALERS)))
    headings = ("set", "printed", *(f"w on inputs {words}" for words in SCALERS.values()))
    best = max(density, key=density.__getitem__)
    others = [density[best] - value for name, value in density.items() if name != best]
    sex = sizes["sex_as_a_number"]
    outside = [
        name
        for name, found in sizes["sets"].items()
        if not found[best]["percentiles"][0] <= found["m"] <= found[best]["percentiles"][-1]
    ]
    return {
        "size_table": markdown(TextTable("", headings, lines, 1)),
        "size_directions": str(sizes["directions"]),
        "best_reading": SCALERS[best],
        "outside_best": ", ".join(outside) or "none",
        "least_ahead": f"{min(others):.0f}",
        "sex_least": f"{sex['least']:.0f}",
        "sex_printed": str(sex["m"]),
    }


def _run(table: Round) -> dict[str, str]:
    run = table.run
    settings = run["settings"]
    names = ("unskew", "numpy", "scipy", "scikit-learn")
    seconds = panels.seconds_spent()
    spent = sum(seconds.values())
    return {
        "seeds": str(table.seeds),
        "last_seed": str(table.seeds - 1),
        "draws": str(run["draws"]),
        "directions": str(run["directions"]),
        "choosing": str(run["choosing_draws"]),
        "core_minutes": f"{spent / 60:.0f}",
        "shares": ", ".join(
            f"{panels.PARTS.get(part, part)} {value / spent:.0%}"
            for part, value in seconds.most_common()
            if value > 0.01 * spent
        ),
        "versions": ", ".join(f"{name} {settings[name]}" for name in names),
        **_cost(),
        **_training(),
        "warnings": str(sum(sum(r["run"]["warnings"].values()) for r in table.reports)),
    }


def _cost() -> dict[str, str]:
    """Return how long ``unskew reproduce`` took, with its defaults."""
    run = json.loads((RESULTS / "reproduce.json").read_text(encoding="utf-8"))
    return {
        "reproduce_wall": f"{sum(call['seconds'] for call in run['calls']) / 60:.0f}",
        "reproduce_jobs": str(max(call["jobs"] for call in run["calls"])),
        "reproduce_draws": str(run["draws"]),
        "reproduce_sum": f"{sum(run['seconds'].values()) / 60:.0f}",
    }


def _training() -> dict[str, str]:
    """Return how near the SVR's training is to its optimum, and LIBSVM's."""
    found = json.loads((RESULTS / "training.json").read_text(encoding="utf-8"))
    words = {"training_rows": f"{found['rows']:,}", "training_rank": str(found["rank"])}
    for name in ("factor", "libsvm"):
        words[f"{name}_largest"] = f"{found[name]['largest']:.4f}"
        words[f"{name}_rms"] = f"{found[name]['rms']:.5f}"
        words[f"{name}_seconds"] = f"{found[name]['processor_seconds']:.1f}"
    return words


def _wrapped(text: str) -> str:
    """Return the text with paragraphs that numbers made too wide wrapped again."""
    return "\n\n".join(map(_block, text.split("\n\n")))


def _block(block: str) -> str:
    lines = block.split("\n")
    prose = not any(line.startswith(("|", "!", "#", "```", "    ")) for line in lines)
    if not prose or max(map(len, lines)) <= WIDTH:
        return block
    items: list[str] = []
    for line in lines:
        if line.startswith("- ") or not items:
            items.append(line)
        else:
            items[-1] += " " + line.strip()
    return "\n".join(
        textwrap.fill(
            item,
            WIDTH,
            subsequent_indent="  " if item.startswith("- ") else "",
            break_long_words=False,
            break_on_hyphens=False,
        )
        for item in items
    )


if __name__ == "__main__":
    main()
