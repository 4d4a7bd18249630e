"""The paper's nine regression sets, from a local folder or from OpenML; no data set is bundled.

A folder holds one Parquet file per set, the target in the last column, and a ``datasets.json`` that
describes them. A folder may hold further sets: each is one entry of ``datasets.json`` with a
``name``, and then takes part under that name.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from unskew.errors import InputError, InputFileError, ParameterError
from unskew.paper.printed import TABLE_1

FOLDER_VARIABLE = "UNSKEW_DATA"
"""The environment variable that names the folder, where no folder is given."""

POPULATION_SHARE = 0.55
"""How much of a set that is not in the paper is population; the rest is test rows."""


class SetFacts(NamedTuple):
    """What a set must look like, and where OpenML has it.

    The statistics are those of the target, its standard deviation with n - 1.
    """

    openml: int
    rows: int
    columns: int
    mean: float
    std: float
    minimum: float
    maximum: float


PAPER_SETS = {
    "abalone": SetFacts(183, 4177, 8, 9.933684462532918, 3.2241690320681284, 1.0, 29.0),
    "bank32nh": SetFacts(558, 8192, 32, 0.08362133081054687, 0.12180160143112691, 0.0, 0.819665),
    "bank8FM": SetFacts(572, 8192, 8, 0.16152485815429685, 0.15190657782841602, 0.0, 0.802263),
    "cal-housing": SetFacts(
        537, 20640, 8, 206855.81690891474, 115395.61587441387, 14999.0, 500001.0
    ),
    "cpu-act": SetFacts(573, 8192, 21, 83.9688720703125, 18.401904505037443, 0.0, 99.0),
    "cpu-small": SetFacts(562, 8192, 12, 83.9688720703125, 18.401904505037443, 0.0, 99.0),
    "housing": SetFacts(531, 506, 13, 22.532806324110677, 9.197104087379818, 5.0, 50.0),
    "kin8nm": SetFacts(189, 8192, 8, 0.714283492357422, 0.2636067956976762, 0.040165378, 1.4585206),
    "puma8NH": SetFacts(225, 8192, 8, 1.162047080810547, 5.622332637445459, -12.415322, 11.87619),
}


@dataclass(frozen=True)
class DataSet:
    """A regression set as numbers, with the sizes of its population and its test set.

    Attributes
    ----------
    X : ndarray of shape (n_rows, n_features)
        Unscaled. A nominal column has become one column of zeros and ones per category.
    n, n_test : int
        The paper's, where it has the set. bank32nh's printed sizes make 8193 rows of 8192; its
        test set has one row less.
    source : str
        Where the rows come from, for the reader.
    """

    name: str
    X: NDArray[np.float64]
    y: NDArray[np.float64]
    n: int
    n_test: int
    source: str

    @property
    def fingerprint(self) -> str:
        """A digest of all values, which ties kept draws to their data."""
        return sha256(self.X.tobytes() + self.y.tobytes()).hexdigest()[:16]


def available_sets(folder: Path | str | None = None) -> list[str]:
    """Return the sets that a folder describes, the paper's first; without a folder, the paper's."""
    place = _folder(folder)
    described = _descriptions(place) if place else PAPER_SETS
    return sorted(described, key=lambda name: (name not in PAPER_SETS, name.lower()))


def load(name: str, folder: Path | str | None = None) -> DataSet:
    """Return a data set, checked against what is known of it.

    Parameters
    ----------
    name : str
        As the paper spells it; an underscore counts as a hyphen.
    folder : path, optional
        A folder with a ``datasets.json``; by default that of the environment variable UNSKEW_DATA.
        Where neither is given, the set comes from OpenML through scikit-learn's cache.
    """
    place = _folder(folder)
    available = available_sets(place)
    spelt = {_spelling(each): each for each in available}
    if _spelling(name) not in spelt:
        where = f"'{place}' has no data set '{name}'" if place else f"Unknown data set '{name}'"
        raise ParameterError(f"{where}. Choose from {', '.join(available)}.")
    name = spelt[_spelling(name)]
    table, source = _from_folder(name, place) if place else _from_openml(name)
    y = _target(table, name, source)
    if name in PAPER_SETS:
        _check(name, table, y, PAPER_SETS[name], source)
    return _with_sizes(
        name, _numbers(table.drop_columns(table.column_names[-1:]), source), y, source
    )


def _spelling(name: str) -> str:
    return name.replace("_", "-").lower()


def _folder(folder: Path | str | None) -> Path | None:
    given = folder or os.environ.get(FOLDER_VARIABLE)
    if not given:
        return None
    path, how = Path(given), "" if folder else f" ({FOLDER_VARIABLE})"
    if not path.is_dir():
        raise InputFileError(f"The data folder '{path}'{how} does not exist or is not a folder.")
    return path


def _descriptions(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the entries of the folder's datasets.json by the names that are used here."""
    index = folder / "datasets.json"
    try:
        entries = json.loads(index.read_text(encoding="utf-8"))["datasets"]
        described = {str(entry.get("paper_name", entry["name"])): entry for entry in entries}
    except FileNotFoundError:
        raise InputFileError(
            f"'{folder}' has no datasets.json, which describes its Parquet files."
        ) from None
    except OSError as error:
        raise InputError(f"'{index}' cannot be read: {error.strerror}.") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"'{index}' must be JSON with a list 'datasets' of objects with a 'name' ({error!r})."
        ) from error
    spelt = {_spelling(name): name for name in PAPER_SETS}
    return {spelt.get(_spelling(name), name): entry for name, entry in described.items()}


def _from_folder(name: str, folder: Path) -> tuple[pa.Table, str]:
    entry = _descriptions(folder)[name]
    path = folder / str(entry.get("file", f"{entry['name']}.parquet"))
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputFileError(f"'{path}' cannot be read: {error.strerror}.") from error
    if entry.get("sha256", sha256(content).hexdigest()) != sha256(content).hexdigest():
        raise InputError(f"'{path}' is not the file that datasets.json describes: sha256 differs.")
    try:
        # No thread of Arrow's may hold Python's memory when the interpreter shuts down: see
        # https://github.com/apache/arrow/issues/34314.
        table = pq.ParquetFile(pa.BufferReader(content)).read(use_threads=False)
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"'{path}' cannot be read as Parquet: {error}") from error
    target = str(entry.get("target", table.column_names[-1] if table.num_columns else ""))
    if target not in table.column_names:
        raise InputError(f"'{path}' has no column '{target}', which datasets.json names as target.")
    features = [column for column in table.column_names if column != target]
    _check_counts(entry, table, str(path))
    return table.select([*features, target]), str(path)


def _check_counts(entry: dict[str, Any], table: pa.Table, source: str) -> None:
    for what, found in (("rows", table.num_rows), ("features", table.num_columns - 1)):
        if entry.get(what, found) != found:
            raise InputError(
                f"'{source}' has {found} {what}; datasets.json expects {entry[what]}. Is the file "
                "complete?"
            )


def _from_openml(name: str) -> tuple[pa.Table, str]:
    from sklearn.datasets import fetch_openml

    identity = PAPER_SETS[name].openml
    try:
        with warnings.catch_warnings():
            # The error below reports what fails; a warning for each retry would repeat it.
            warnings.filterwarnings("ignore", "A network error occurred", UserWarning)
            fetched = fetch_openml(data_id=identity, as_frame=True)
        frame, target = fetched.data, fetched.target
        columns = {column: _as_arrow(frame[column]) for column in frame.columns}
    except Exception as error:  # pandas missing, no network, a damaged cache mean the same here
        raise InputError(
            f"{name} could not be downloaded from OpenML ({type(error).__name__}: {error}). Either "
            f"give a folder that holds it as Parquet, by --data or the environment variable "
            f"{FOLDER_VARIABLE}; or connect to OpenML (data set {identity}), which "
            "needs pandas: pip install 'unskew[reproduce]'."
        ) from error
    return pa.table({**columns, str(target.name): _as_arrow(target)}), f"OpenML {identity}"


def _as_arrow(series: Any) -> pa.Array:
    """Return numbers as such, also where OpenML calls them categories, as in housing."""
    values = series.astype(str).to_numpy()
    try:
        return pa.array(values.astype(np.float64))
    except ValueError:
        return pa.array(values)


def _target(table: pa.Table, name: str, source: str) -> NDArray[np.float64]:
    column = table.column(table.num_columns - 1)
    if not _is_numeric(column.type) or column.null_count:
        raise InputError(f"The target of {name} in '{source}' must be numbers without gaps.")
    return np.asarray(column.to_numpy(), dtype=np.float64)


def _check(
    name: str, table: pa.Table, y: NDArray[np.float64], facts: SetFacts, source: str
) -> None:
    found = (table.num_rows, table.num_columns - 1, y.mean(), y.std(ddof=1), y.min(), y.max())
    wanted = facts[1:]
    words = (
        "rows",
        "feature columns",
        "target mean",
        "target sd",
        "least target",
        "largest target",
    )
    for word, is_, should in zip(words, found, wanted, strict=True):
        if not np.isclose(is_, should, rtol=1e-6, atol=1e-12):
            raise InputError(
                f"'{source}' is not the paper's {name}: {word} {is_:.10g}, expected {should:.10g}."
            )


def _numbers(features: pa.Table, source: str) -> NDArray[np.float64]:
    """Return a matrix; a nominal column becomes one column of zeros and ones per category."""
    columns: list[NDArray[np.float64]] = []
    for name, column in zip(features.column_names, features.columns, strict=True):
        if column.null_count:
            raise InputError(f"Column '{name}' of '{source}' has missing values; fill them first.")
        if _is_numeric(column.type):
            columns.append(np.asarray(column.to_numpy(), dtype=np.float64))
        else:
            columns += _indicators(column)
    X = np.column_stack(columns) if columns else np.empty((features.num_rows, 0))
    if not X.size or not np.isfinite(X).all():
        raise InputError(f"'{source}' must have feature columns of finite numbers.")
    return X


def _indicators(column: pa.ChunkedArray) -> Iterable[NDArray[np.float64]]:
    text = pc.cast(column, pa.string()).to_numpy()
    return [(text == category).astype(np.float64) for category in sorted(set(text))]


def _is_numeric(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)


def _with_sizes(name: str, X: NDArray[np.float64], y: NDArray[np.float64], source: str) -> DataSet:
    n_rows = len(y)
    if name in TABLE_1:
        n, n_test = TABLE_1[name].n, TABLE_1[name].n_test
    else:
        n, n_test = round(POPULATION_SHARE * n_rows), n_rows
    return DataSet(name, X, y, n, min(n_test, n_rows - n), source)
