"""The default of every door: the shell must give Python's numbers to the last bit."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.answers.designs import Draw
from benchmarks.answers.measure import default_weights, draw_of
from unskew import estimate
from unskew.errors import UnskewError


def same(design: str, seed: int) -> dict[str, str]:
    """Return for both doors "same", or what differs, in the first draw of a design."""
    draw = draw_of(design, seed, 0)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        place = Path(folder)
        files, options, asked = _written(draw, place)
        by = ["--by", draw.options["by"]] if "by" in draw.options else []
        weighed = _weigh(draw, place, [*files, *options])
        return {
            "weigh": weighed,
            "estimate": _estimate(draw, [*files, *options, *asked, *by]),
        }


def _written(draw: Draw, place: Path) -> tuple[list[str], list[str], list[str]]:
    """Write the files; return them, the options of both commands, and those of an estimate."""
    sample, options = draw.X.assign(outcome=draw.y), ["--target", "outcome"]
    asked = []
    if "q" in draw.options:
        asked += ["--quantile", str(draw.options["q"])]
    if draw.options.get("finite_population"):
        asked += ["--finite-population"]
    for name, option in (("sample_weight", "--sample-weight"), ("clusters", "--clusters")):
        if name in draw.options:
            sample[name] = draw.options[name]
            (options if name == "sample_weight" else asked).extend([option, name])
    if "clusters" in sample:
        options += ["--columns", ",".join(draw.X)]
    sample.to_parquet(place / "sample.parquet")
    files = [str(place / "sample.parquet")]
    if draw.has_margins:
        draw.table.to_csv(place / "margins.csv", index=False, float_format="%.17g")
        options += ["--margins", str(place / "margins.csv")]
    else:
        draw.table.to_parquet(place / "population.parquet")
        files.append(str(place / "population.parquet"))
    if draw.weight is not None:
        options += ["--population-weight", draw.weight]
    return files, [*options, "--allow-uncovered", "1"], asked


def _shell(command: list[str]) -> Any:
    return subprocess.run(
        [sys.executable, "-m", "unskew.cli", *command], capture_output=True, text=True, check=False
    )


def _weigh(draw: Draw, place: Path, given: list[str]) -> str:
    made = place / "weights.parquet"
    done = _shell(["weigh", *given, "-o", str(made), "--no-verdict", "--quiet"])
    try:
        weighter = default_weights(draw).set_params(overlap="ignore")
        weighter.fit(draw.X, draw.y, population=draw.population, sample_weight=draw.design)
    except UnskewError as error:
        return "same" if done.returncode else f"Python refuses: {error}"
    if done.returncode:
        return f"The shell refuses: {done.stderr.strip()[-200:]}"
    weights = pd.read_parquet(made)["weight"].to_numpy()
    apart = float(np.abs(weights - weighter.weights_).max())
    return "same" if apart == 0 else f"apart by up to {apart:.3g}"


def _estimate(draw: Draw, given: list[str]) -> str:
    done = _shell(["estimate", *given, "--json"])
    try:
        found = estimate(draw.X, draw.y, population=draw.population, **draw.options)
    except UnskewError as error:
        return "same" if done.returncode else f"Python refuses: {error}"
    if done.returncode:
        return f"The shell refuses: {done.stderr.strip()[-200:]}"
    shell = json.loads(done.stdout)
    pairs = [(found, shell)]
    if "estimates" in shell:
        pairs = [(found[one["label"][0]], one) for one in shell["estimates"]]
    for mine, other in pairs:
        own = (mine.value, mine.standard_error, *mine.interval)
        if own != (other["value"], other["standard_error"], *other["interval"]):
            return f"apart: {own[0]!r} and {other['value']!r}"
    return "same"
