"""Weighters in skops files, which can be refused before anything in them is loaded.

A pickle runs whatever its author wrote into it. A skops file names the types that it holds, and
those that are not trusted are refused before any of them is created.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from unskew.errors import InputError, InputFileError, ParameterError
from unskew.files import write_whole
from unskew.numerics.cell_routing import TreeRouting
from unskew.weighters.inductive import InductiveWeighter

FORMAT = 2
"""Of the files that are written and read; it grows when the types that they name have moved."""

_ABOUT = "unskew.json"
_OVERHEAD = 2**20  # bytes of an archive beside its contents, which is more than any has
_LARGEST_ABOUT = 10_000

_OWN_ROOMS = ("numerics", "rows", "overlap", "weighters")
"""The folders of unskew whose classes only hold numbers: creating one neither reads nor runs."""
_FURTHER = {
    "functools.partial",  # boosted trees with categories keep a check of their input
    "numpy.dtype",
    "sklearn.compose._column_transformer._RemainderColsList",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",  # nodes are checked
    "sklearn.tree._tree.Tree",  # likewise
    "sklearn.utils.validation.check_array",
    "unskew.population.summaries.About",
}
"""What else a file may hold beside NumPy arrays and scikit-learn's estimators."""


def _is_trusted(name: str) -> bool:
    """Return whether a type is one that unskew's own weighters consist of."""
    module, _, own = name.rpartition(".")
    package, _, inner = module.partition(".")
    if package != "unskew" or inner.split(".")[0] not in _OWN_ROOMS:
        return name in _FURTHER
    found = getattr(import_module(module), own, None)
    return isinstance(found, type) and found.__module__ == module


def save_weighter(weighter: InductiveWeighter, path: str | Path | BinaryIO) -> None:
    """Save a fitted weighter that can weigh new rows.

    Parameters
    ----------
    weighter : InductiveWeighter
        Fitted; one that has ``weigh``.
    path : str, Path or binary file
        By convention it ends with ``.skops``. The file appears whole or not at all, unless it is
        open already.

    Notes
    -----
    Cell weighters compare an uncovered row with sample rows, so with ``empty="merge"`` the file
    holds up to 1,024 of the sample's distinct points. The centres of :class:`DensityRatioWeights`
    are population rows. A file never holds labels, or population rows of any other weighter.

    A custom clusterer or function is saved by its name, and has to be trusted by name when the file
    is loaded: ``load_weighter(path, trusted=[...])``. A file whose contents are larger than 1 GiB,
    of a sample with very many distinct rows, needs ``load_weighter(path, max_bytes=...)``.

    See Also
    --------
    load_weighter : the way back.

    Examples
    --------
    >>> import tempfile
    >>> from unskew import HistogramWeights, load_weighter, save_weighter
    >>> sample, population = [[1.0], [2.0], [30.0]], [[1.0], [20.0], [30.0]]
    >>> weighter = HistogramWeights().fit(sample, population=population)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_weighter(weighter, f"{folder}/weighter.skops")
    ...     same = load_weighter(f"{folder}/weighter.skops")
    >>> bool((same.weigh(population) == weighter.weigh(population)).all())
    True
    """
    import skops.io
    from skops.io.exceptions import UnsupportedTypeException

    name = type(weighter).__name__
    if not isinstance(weighter, InductiveWeighter) or not hasattr(weighter, "weigh"):
        raise ParameterError(
            f"{name} cannot weigh new rows, so saving it is of no use. Save its weights_, or use a "
            "weighter that can weigh new rows, such as TreeWeights or DensityRatioWeights."
        )
    if not hasattr(weighter, "scale_"):  # a sample on Spark leaves no weights_
        raise ParameterError(f"{name} is not fitted yet. Call fit before saving it.")
    try:
        data = skops.io.dumps(weighter, compression=zipfile.ZIP_DEFLATED)
    except (UnsupportedTypeException, TypeError) as error:
        raise ParameterError(f"{name} cannot be saved: {error}") from error
    if nameless := [kind for kind in skops.io.get_untrusted_types(data=data) if "<" in kind]:
        raise ParameterError(
            f"{name} cannot be saved: it holds {', '.join(nameless)}, which could not be found "
            "when the file is loaded. Define it at the top level of a module."
        )
    buffer = io.BytesIO(data)
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.writestr(_ABOUT, json.dumps(_about()))
    if isinstance(path, str | Path):
        write_whole(path, buffer.getvalue())
    else:
        path.write(buffer.getvalue())


def load_weighter(
    path: str | Path, *, trusted: Sequence[str | type] = (), max_bytes: int = 2**30
) -> InductiveWeighter:
    """Load a weighter that :func:`save_weighter` saved.

    A file that holds anything but unskew's weighters, what they consist of, and scikit-learn's
    estimators is refused, and nothing in it is run. So is a file of a newer version of unskew, and
    one whose numbers cannot be those of a fitted weighter: negative or infinite weights, tables of
    the wrong size, decision trees whose nodes lead nowhere.

    Parameters
    ----------
    path : str or Path
    trusted : sequence of str or type
        Further types that the file may hold, such as your own clusterer: the class, or its full
        name. Loading runs their code, so trust only files that you know.
    max_bytes : int, default=2**30
        The largest size of the file's unpacked contents, by default 1 GiB: a small file may unpack
        to more than the memory holds.

    Returns
    -------
    InductiveWeighter
        Fitted: ``weigh`` gives what it gave before, bit for bit.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from unskew import FrequencyWeights, load_weighter, save_weighter
    >>> weighter = FrequencyWeights().fit([["a"], ["b"]], population=[["a"], ["b"], ["b"]])
    >>> with TemporaryDirectory() as folder:
    ...     save_weighter(weighter, f"{folder}/weighter.skops")
    ...     again = load_weighter(f"{folder}/weighter.skops")
    >>> bool((again.weigh([["a"], ["b"]]) == weighter.weights_).all())
    True
    """
    if isinstance(trusted, str):
        raise ParameterError(f"trusted must be a list of types; got {trusted!r}.")
    path = Path(path)
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):  # /dev/zero never ends
            raise InputError(f"'{path}' is refused: it is not a regular file.")
        if (size := path.stat().st_size) > max_bytes + _OVERHEAD:
            raise InputError(
                f"'{path}' is refused: it has {size:,} bytes, more than the {max_bytes:,} that are "
                "allowed. If you trust the file: load_weighter(path, max_bytes=...)."
            )
        data = path.read_bytes()
    except FileNotFoundError as error:
        raise InputFileError(f"The weighter's file '{path}' does not exist.") from error
    except OSError as error:
        raise InputError(f"'{path}' could not be read: {error.strerror}.") from error
    try:
        return _load(path, data, {_type_name(kind) for kind in trusted}, max_bytes)
    except InputError:
        raise
    except Exception as error:  # whatever a crafted or damaged file makes of it
        raise _damaged(path, f"{type(error).__name__}: {error}") from error


def _load(path: Path, data: bytes, further: set[str], max_bytes: int) -> InductiveWeighter:
    import skops.io

    _check_about(path, data, max_bytes)
    held = set(skops.io.get_untrusted_types(data=data))
    if untrusted := sorted(one for one in held - further if not _is_trusted(one)):
        names = ", ".join(untrusted)
        raise InputError(
            f"'{path}' is refused: it holds {names}, which is not part of unskew or scikit-learn. "
            "Nothing in it was run. If you trust the file: load_weighter(path, "
            f"trusted={sorted({*untrusted, *further})})."
        )
    weighter = skops.io.loads(data, trusted=sorted(held))
    if not isinstance(weighter, InductiveWeighter) or not hasattr(weighter, "scale_"):
        raise _damaged(path, "it holds no fitted weighter")
    weighter._check_state()
    _check_trees(weighter, len(weighter.columns_), set())
    return weighter


def _type_name(kind: str | type) -> str:
    return kind if isinstance(kind, str) else f"{kind.__module__}.{kind.__qualname__}"


def _about() -> dict[str, Any]:
    import sklearn

    from unskew import __version__

    return {"format": FORMAT, "unskew": __version__, "scikit-learn": sklearn.__version__}


def _check_about(path: Path, data: bytes, max_bytes: int) -> None:
    """Refuse a file that unskew did not save, is too large or damaged, or that is too new."""
    from packaging.version import Version

    from unskew import __version__

    if not zipfile.is_zipfile(io.BytesIO(data)):
        raise InputError(
            f"'{path}' is refused: it is not a weighter that unskew saved. Pickles are never "
            "opened, because they may run code; save_weighter and unskew weigh --save write skops "
            "files."
        )
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        # The sizes are as stated, but no more than that is ever unpacked.
        unpacked = sum(member.file_size for member in archive.infolist())
        if unpacked > max_bytes:
            raise InputError(
                f"'{path}' is refused: it would unpack to {unpacked:,} bytes, more than the "
                f"{max_bytes:,} that are allowed. If you trust the file: load_weighter(path, "
                f"max_bytes={unpacked})."
            )
        if damaged := archive.testzip():
            raise _damaged(path, f"{damaged} does not match its checksum")
        if _ABOUT not in archive.namelist():
            raise InputError(
                f"'{path}' is refused: it is not a weighter that unskew saved (it lacks {_ABOUT})."
            )
        if archive.getinfo(_ABOUT).file_size > _LARGEST_ABOUT:
            raise _damaged(path, f"{_ABOUT} is too large")
        about = json.loads(archive.read(_ABOUT))
    if not isinstance(about, dict) or not isinstance(about.get("format"), int):
        raise _damaged(path, f"{_ABOUT} does not state the format")
    if Version(str(about.get("unskew"))) > Version(__version__) or about["format"] > FORMAT:
        raise InputError(
            f"'{path}' was saved by unskew {about['unskew']}, which is newer than this one "
            f"({__version__}). Upgrade unskew, or save the weighter again with this version."
        )
    if about["format"] < FORMAT:
        raise InputError(
            f"'{path}' was saved by an earlier unskew ({about['unskew']}), whose files this one "
            f"({__version__}) cannot read. Fit the weighter again and save it with this version."
        )


def _check_trees(held: Any, n_features: int, seen: set[int]) -> None:
    """Refuse trees that would make scikit-learn read outside of its arrays, or loop for ever.

    It checks no index on its way down, which is why skops does not trust its trees by default.
    ``n_features`` is the number of columns of a row, so no node may use one beyond them. An
    estimator within the weighter, such as a clusterer, sees encoded rows and has its own number.
    """
    from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor
    from sklearn.tree._tree import Tree

    if id(held) in seen:
        return
    seen.add(id(held))
    if isinstance(held, Tree):
        _check_tree(held, n_features)
    elif isinstance(held, TreePredictor):
        _check_boosted(held, n_features)
    elif isinstance(held, TreeRouting):
        _check_routing(held, n_features)
    elif isinstance(held, np.ndarray) and held.dtype == object:
        _check_trees(held.ravel().tolist(), n_features, seen)
    elif isinstance(held, Mapping | list | tuple):
        for entry in held.values() if isinstance(held, Mapping) else held:
            _check_trees(entry, n_features, seen)
    elif hasattr(held, "__dict__"):
        if not isinstance(held, InductiveWeighter):
            n_features = getattr(held, "n_features_in_", n_features)
        _check_trees(vars(held), n_features, seen)


def _check_tree(tree: Any, n_features: int) -> None:
    if tree.n_features != n_features:
        raise ValueError(
            f"the file contains a decision tree for {tree.n_features} columns, not {n_features}"
        )
    routing = TreeRouting.from_tree(tree)
    if not (tree.children_right[routing.is_leaf] == -1).all():
        raise ValueError("the file contains an invalid decision tree")
    _check_routing(routing, n_features)


def _check_boosted(tree: Any, n_features: int) -> None:
    """Refuse a boosted tree unless every step leads down, by an existing column."""
    nodes, places = tree.nodes, np.arange(len(tree.nodes))
    inner = nodes["is_leaf"] == 0
    sides = [nodes[side].astype(np.int64) for side in ("left", "right")]
    downwards = [(places < side) & (side < len(places)) for side in sides]
    known = nodes["feature_idx"] < n_features
    bits = (nodes["is_categorical"] == 0) | (nodes["bitset_idx"] < len(tree.raw_left_cat_bitsets))
    if not len(nodes) or not (np.all(downwards, axis=0) & known & bits)[inner].all():
        raise ValueError("the file contains an invalid boosted tree")


def _check_routing(tree: TreeRouting, n_features: int) -> None:
    """Refuse nodes unless every step leads down, to a leaf, by an existing column."""
    nodes, is_leaf = np.arange(len(tree.feature)), tree.is_leaf
    right, left = tree.children.reshape(len(nodes), 2).T
    shapes = {one.shape for one in (tree.feature, tree.border, tree.missing_left, is_leaf)}
    kinds = [one.dtype.kind for one in (tree.feature, tree.children, tree.missing_left, is_leaf)]
    if shapes != {(len(nodes),)} or not len(nodes) or kinds != ["i", "i", "b", "b"]:
        raise ValueError("the file contains an invalid decision tree")
    downwards = [(nodes < side) & (side < len(nodes)) for side in (left, right)]
    stays = (left == nodes) & (right == nodes)
    known = (tree.feature >= 0) & (tree.feature < n_features)
    if not (known & np.where(is_leaf, stays, np.all(downwards, axis=0))).all():
        raise ValueError("the file contains an invalid decision tree")


def _damaged(path: Path, reason: str) -> InputError:
    return InputError(f"'{path}' is refused: it is damaged, or was tampered with ({reason}).")
