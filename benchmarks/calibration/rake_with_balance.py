"""Rake with balance, in its own environment: `python rake_with_balance.py FOLDER`.

FOLDER has sample.csv and population.csv, and gets balance.json with the seconds and the weights.
"""

from __future__ import annotations

import json
import logging
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd


def main() -> None:
    """Rake, and write what it took."""
    from balance import Sample

    logging.getLogger("balance").setLevel(logging.ERROR)
    folder = Path(sys.argv[1])
    tables = [pd.read_csv(folder / f"{name}.csv", dtype=str) for name in ("sample", "population")]
    sample, target = (
        Sample.from_frame(rows.assign(id=np.arange(len(rows)).astype(str)), id_column="id")
        for rows in tables
    )
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        adjusted = sample.adjust(target, method="rake", transformations=None)
    seconds = time.perf_counter() - started
    frame = adjusted.df
    weights = frame.set_index(frame["id"].astype(int))["weight"].sort_index()
    found = {"seconds": seconds, "weights": weights.tolist()}
    (folder / "balance.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main()
