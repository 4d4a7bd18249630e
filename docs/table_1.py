"""Write docs/table-1.md and its figure from docs/table-1: ``python -m docs.table_1``.

The results come from ``python -m benchmarks.table_1``; ``unskew.paper`` computes what they mean.
Figures of settled questions (sample sizes, other readings, trials of kernel mean matching, other
mechanisms, cost) stand in the template itself, with the commit that has their program.
"""

from __future__ import annotations

import textwrap
from pathlib import Path
from string import Template

import numpy as np
from scipy import stats

from unskew.paper.printed import COLUMNS, Row, compare
from unskew.paper.results import by_method, draw_results, markdown
from unskew.paper.seeds import SeededRuns, ceiling, comparison, order_kept, pairs, seeds_table

HERE = Path(__file__).parent
PAGE = HERE / "table-1.md"
TEMPLATE = HERE / "table-1.md.in"
RESULTS = HERE / "table-1"
WIDTH = 110
FAR = 0.10
"""How far a cell must be off, besides being outside the interval, to be named."""


def main() -> None:
    """Write the page and draw its figure."""
    draw_table(stored("table"), stored("totals"), RESULTS / "figure.png")
    PAGE.write_text(page(), encoding="utf-8")


def stored(name: str) -> SeededRuns:
    """Return the results of a round."""
    return SeededRuns.from_file(RESULTS / f"{name}.json")


def draw_table(table: SeededRuns, totals: SeededRuns, path: Path) -> None:
    """Draw our means over seeds, with the standard deviation between them, and the printed ones."""
    rows: list[Row] = []
    for panel, total in ((table, "paper"), (totals, "sample"), (totals, "population")):
        for group in panel.rows(total=total):
            errors = [row["nmse_mean"] for row in group]
            spread = float(np.std(errors, ddof=1))
            rows.append({**group[0], "nmse_mean": float(np.mean(errors)), "nmse_sd": spread})
    draw_results(rows, "range", path)


def page() -> str:
    """Return the page's text."""
    table = stored("table")
    run = table.run
    names = ("unskew", "numpy", "scipy", "scikit-learn")
    text = Template(TEMPLATE.read_text(encoding="utf-8")).substitute(
        **_agreement(table),
        **_disagreement(table),
        **_totals(stored("totals")),
        **_directions(stored("directions")),
        seeds=str(table.seeds),
        last_seed=str(table.seeds - 1),
        draws=str(run["draws"]),
        choosing=str(run["choosing_draws"]),
        versions=", ".join(f"{name} {run['settings'][name]}" for name in names),
    )
    return _wrapped(text)


def _agreement(table: SeededRuns) -> dict[str, str]:
    found = compare(table.mean, table.printed)
    same, of = order_kept(table)
    single = [compare(cells, table.printed) for cells in table.tables]
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
        "deviations": ", ".join(
            f"{method} {found['deviations'][method]:.1%} "
            f"(seeds {_range([each['deviations'][method] for each in single], '.1%')})"
            for method in COLUMNS
        ),
        "ordered": f"{same} of {of}",
    }


def _range(values: list[float], form: str = ".2f") -> str:
    return f"{min(values):{form}} to {max(values):{form}}"


def _disagreement(table: SeededRuns) -> dict[str, str]:
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


def _totals(panel: SeededRuns) -> dict[str, str]:
    """Return the tables at equal totals, and how much of Ideal's gain is the total's."""
    found: dict[str, str] = {}
    for total in ("sample", "population"):
        found[f"total_{total}"] = markdown(by_method("", panel.against_unweighted(total)))
    error = {
        (row["set"], row["method"], total): row["nmse_mean"]
        for total in ("paper", "sample", "population")
        for row in panel.against_unweighted(total)
    }
    shares = []
    for name in dict.fromkeys(key[0] for key in error):
        plain = error[name, "Unweighted", "paper"]
        gain = plain - error[name, "Ideal", "paper"]
        shares.append((plain - error[name, "Unweighted", "population"]) / gain)
    better = sum(
        row["high"] < 0
        for row in panel.against_unweighted("sample")
        if row["method"] == "Clustered"
    )
    ideal = [
        np.mean([r["ess"] / r["m"] for r in g]) for g in panel.rows(total="paper", method="Ideal")
    ]
    return {
        **found,
        "scale_share": f"{np.median(shares):.0%}",
        "clustered_same_total": f"{better} of {len(shares)}",
        "totals_draws": str(panel.run["draws"]),
        "ideal_ess": f"{np.median(ideal):.0%}",
    }


def _directions(panel: SeededRuns) -> dict[str, str]:
    """Return the averages over all directions."""
    plain = panel.averaged(total="paper", method="Unweighted")
    return {
        "average_paper": markdown(by_method("", panel.averaged(total="paper"))),
        "average_sample": markdown(by_method("", panel.averaged(total="sample"))),
        "all_directions": str(plain[0]["directions"]),
        "direction_seeds": ", ".join(str(report["seed"]) for report in panel.reports),
        "spread": f"{np.median([row['nmse_sd'] / row['nmse_mean'] for row in plain]):.0%}",
    }


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
