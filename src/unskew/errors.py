"""Every error and warning that unskew raises.

Each derives from :class:`UnskewError` and from the built-in exception that a caller would expect,
so ``except ValueError`` and ``except UnskewError`` both work.
"""

from __future__ import annotations

import re
import sys
import unicodedata
import warnings
from collections.abc import Sequence
from difflib import get_close_matches
from types import FrameType
from typing import Any

__all__ = [
    "CollapsedLevelsWarning",
    "ColumnWarning",
    "EstimateWarning",
    "InfiniteIntervalWarning",
    "InputError",
    "InputFileError",
    "InputTypeError",
    "LabelShiftWarning",
    "LearnerError",
    "OverlapError",
    "OverlapWarning",
    "ParameterError",
    "RoundingWarning",
    "UnreadableFileError",
    "UnseenValueWarning",
    "UnskewError",
]


def plain(text: object, *, lines: bool = False) -> str:
    r"""Return text in which characters that a terminal obeys, or does not show, are escape codes.

    Names and values come from data that anybody may have written: an escape sequence in one could
    write the clipboard, and a mark of direction could reorder a line. Letters of every script stay.

    Examples
    --------
    >>> plain("a\x1b[31mb"), plain("two\nlines"), plain("two\nlines", lines=True)
    ('a\\u001b[31mb', 'two⏎lines', 'two\nlines')
    """
    return re.sub("[^ -~]", lambda found: _plain_character(found[0], lines), str(text))


def _plain_character(character: str, lines: bool) -> str:
    # Cc control, Cf format (bidirectional overrides), Cs half of a pair, Zl and Zp line breaks.
    if unicodedata.category(character) not in {"Cc", "Cf", "Cs", "Zl", "Zp"}:
        return character
    if character in "\n\t":
        return character if lines else {"\n": "⏎", "\t": " "}[character]
    pairs = character.encode("utf-16-be", "surrogatepass").hex()  # as JSON writes them
    return "".join(f"\\u{pairs[place : place + 4]}" for place in range(0, len(pairs), 4))


def which_there_are(name: str, available: Sequence[str]) -> str:
    """Return the end of a message about a column that does not exist: which one may be meant.

    Examples
    --------
    >>> which_there_are("Spend", ["age", "spend"])
    " Did you mean 'spend'? Its columns are 'age', 'spend'."
    """
    alike = most_alike(name, available)
    question = "" if alike is None else f" Did you mean '{alike}'?"
    return f"{question} Its columns are {listing(available)}."


def names_alike(missing: Sequence[str], available: Sequence[str]) -> str:
    """Return a sentence about the columns that the other side has under a similar name.

    Examples
    --------
    >>> names_alike(["Birth Year"], ["birth_year", "town"])
    " It has 'birth_year' for 'Birth Year': rename one of them if they are the same."
    """
    pairs = [(most_alike(name, available), name) for name in missing]
    shown = [f"'{alike}' for '{name}'" for alike, name in pairs if alike is not None][:3]
    if not shown:
        return ""
    return f" It has {', '.join(shown)}: rename one of them if they are the same."


def most_alike(name: str, available: Sequence[str]) -> str | None:
    """Return the column whose name is almost this one, if there is one.

    Case, spaces, underscores and hyphens do not count.

    Examples
    --------
    >>> most_alike("targte", ["age", "target"]), most_alike("size", ["age", "town"])
    ('target', None)
    """
    known = {_letters(other): other for other in reversed(available)}
    found = get_close_matches(_letters(name), known, n=1, cutoff=0.75)
    return known[found[0]] if found else None


def _letters(name: str) -> str:
    letters = re.sub(r"[\s_.-]+", "", unicodedata.normalize("NFKC", name).casefold())
    return letters or name


def listing(names: Sequence[str]) -> str:
    """Return names for a message, at most ten of them."""
    shown = ", ".join(f"'{name}'" for name in names[:10])
    return shown + (f" and {len(names) - 10} more" if len(names) > 10 else "")


class UnskewError(Exception):
    """The base class of every error that unskew raises.

    Examples
    --------
    >>> from unskew import TreeWeights
    >>> from unskew.errors import UnskewError
    >>> try:
    ...     TreeWeights(min_samples_leaf=0).fit([[1.0]], [1.0], population=[[1.0]])
    ... except UnskewError as error:
    ...     print(type(error).__name__)
    ParameterError
    """

    def __str__(self) -> str:
        return plain(super().__str__(), lines=True)


class InputError(UnskewError, ValueError):
    """The data cannot be used as they are; the message names the column, file or argument.

    Examples
    --------
    >>> from unskew import FrequencyWeights
    >>> from unskew.errors import InputError
    >>> try:
    ...     FrequencyWeights().fit([[float("inf")]], population=[[1.0]])
    ... except InputError as error:
    ...     isinstance(error, ValueError)
    True
    """


class InputTypeError(InputError, TypeError):
    """The data have a type that cannot be used, or that does not match the sample's.

    Examples
    --------
    >>> from unskew import FrequencyWeights
    >>> from unskew.errors import InputTypeError
    >>> try:
    ...     FrequencyWeights().fit([["north"]], population=[[1.0]])
    ... except InputTypeError as error:
    ...     isinstance(error, TypeError)
    True
    """


class MismatchError(InputError):
    """The columns of sample and population do not correspond."""


class TypeMismatchError(MismatchError, InputTypeError):
    """A column holds values of different kinds in sample and population."""


class InputFileError(InputError, FileNotFoundError):
    """A file of the population does not exist.

    Examples
    --------
    >>> from unskew import Population
    >>> from unskew.errors import InputFileError
    >>> try:
    ...     Population("no-such-folder/people.parquet")
    ... except InputFileError as error:
    ...     isinstance(error, FileNotFoundError)
    True
    """


class UnreadableFileError(InputError, OSError):
    """A file of the population is damaged, or was removed or changed while it was read.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from unskew import FrequencyWeights
    >>> from unskew.errors import UnreadableFileError
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "people.parquet"
    ...     _ = path.write_bytes(b"no Parquet")
    ...     try:
    ...         FrequencyWeights().fit([[1.0]], population=path)
    ...     except UnreadableFileError as error:
    ...         "people.parquet" in str(error)
    True
    """


class ParameterError(UnskewError, ValueError):
    """A parameter has an invalid value.

    Examples
    --------
    >>> from unskew import trim_weights
    >>> from unskew.errors import ParameterError
    >>> try:
    ...     trim_weights([1.0, 2.0], max_weight=0.5)
    ... except ParameterError as error:
    ...     isinstance(error, ValueError)
    True
    """


class LearnerError(UnskewError, TypeError):
    """A learner cannot be used as required, for example because it takes no weights.

    Examples
    --------
    >>> from sklearn.neighbors import KNeighborsRegressor
    >>> from unskew import Reweighted, Unweighted
    >>> from unskew.errors import LearnerError
    >>> try:
    ...     Reweighted(KNeighborsRegressor(), Unweighted()).fit([[1.0]], [1.0], population=[[1.0]])
    ... except LearnerError as error:
    ...     "resample" in str(error)
    True
    """


class _WithShare(Exception):  # noqa: N818  (a part of an error, and of a warning)
    """Carries the share of the population that the sample does not cover, and where it is."""

    def __init__(
        self, message: str, share: float = float("nan"), rules: Sequence[Any] = ()
    ) -> None:
        super().__init__(message)
        self.share = share
        self.rules = tuple(rules)


class OverlapError(_WithShare, UnskewError, ValueError):
    """Too much of the population is not covered by the sample.

    Attributes
    ----------
    share : float
        The share of the population's mass that the sample does not cover.
    rules : tuple of OverlapRule
        Where it is, by falling share; each prints as a sentence.

    Examples
    --------
    >>> from unskew import FrequencyWeights
    >>> from unskew.errors import OverlapError
    >>> try:
    ...     FrequencyWeights(empty="raise").fit([["a"]], population=[["a"], ["b"]])
    ... except OverlapError as error:
    ...     error.share
    0.5
    """


class OverlapWarning(_WithShare, UserWarning):
    """Part of the population is not covered by the sample.

    Attributes
    ----------
    share : float
        The share of the population's mass that the sample does not cover.
    rules : tuple of OverlapRule
        Where it is, by falling share; each prints as a sentence.

    Examples
    --------
    >>> import warnings
    >>> from unskew import FrequencyWeights
    >>> from unskew.errors import OverlapWarning
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     weighter = FrequencyWeights(empty="drop").fit([["a"]], population=[["a"], ["b"]])
    >>> [warning.message.share for warning in caught if warning.category is OverlapWarning]
    [0.5]
    """


class EstimateWarning(UserWarning):
    """An estimate's interval is less certain than it says, for example with few rows.

    Examples
    --------
    >>> import warnings
    >>> from unskew import Unweighted, estimate
    >>> from unskew.errors import EstimateWarning
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     found = estimate([[1.0], [2.0]], [1.0, 3.0], population=[[1.0]], weighter=Unweighted())
    >>> any(warning.category is EstimateWarning for warning in caught)
    True
    """


class InfiniteIntervalWarning(UserWarning):
    """Conformal intervals are infinite, or sets hold every class, for some of the rows.

    Attributes
    ----------
    share : float
        Of these rows.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from unskew import ConformalRegressor, Unweighted
    >>> from unskew.errors import InfiniteIntervalWarning
    >>> X = np.arange(8.0)[:, None]
    >>> model = ConformalRegressor(LinearRegression(), Unweighted()).fit(X, X[:, 0], population=X)
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     intervals = model.predict_interval(X, coverage=0.99)
    >>> any(warning.category is InfiniteIntervalWarning for warning in caught)
    True
    """

    def __init__(self, message: str, share: float = float("nan")) -> None:
        super().__init__(message)
        self.share = share


class ColumnWarning(UserWarning):
    """A column hardly describes a row, as an identifier does, or is scaled in the sample alone.

    Attributes
    ----------
    columns : list of str
        Their names.

    Examples
    --------
    >>> import warnings
    >>> from unskew import FrequencyWeights
    >>> from unskew.errors import ColumnWarning
    >>> names = [[f"customer {number}"] for number in range(100)]
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     weighter = FrequencyWeights().fit(names, population=names)
    >>> any(warning.category is ColumnWarning for warning in caught)
    True
    """

    def __init__(self, message: str, columns: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.columns = list(columns)


class RoundingWarning(UserWarning):
    """A column is rounded on one side, sample or population, and not on the other.

    Where rows of the two are compared, both are rounded: ``rounded_`` on the weighter says to what.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from unskew import ClassifierWeights
    >>> from unskew.errors import RoundingWarning
    >>> incomes = np.random.default_rng(0).lognormal(8, 0.5, size=(2000, 1))
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     weighter = ClassifierWeights().fit(incomes[:500], population=incomes.round(-2))
    >>> [warning.category.__name__ for warning in caught]
    ['RoundingWarning']
    """


class CollapsedLevelsWarning(UserWarning):
    """Levels of a margin with few sample rows were merged with others.

    Examples
    --------
    >>> import warnings
    >>> import pandas as pd
    >>> from unskew import CalibrationWeights, Margins
    >>> from unskew.errors import CollapsedLevelsWarning
    >>> survey = pd.DataFrame({"town": ["Ulm"] * 12 + ["Bonn"] * 12 + ["Trier"]})
    >>> census = Margins({"town": {"Ulm": 50, "Bonn": 40, "Trier": 10}}, collapse=5)
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     weighter = CalibrationWeights().fit(survey, population=census)
    >>> any(warning.category is CollapsedLevelsWarning for warning in caught)
    True
    """


class LabelShiftWarning(UserWarning):
    """Sample and population differ in more than the shares of the classes.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from unskew import LabelShiftWeights
    >>> from unskew.errors import LabelShiftWarning
    >>> random = np.random.default_rng(0)
    >>> y = random.uniform(size=500) < 0.5
    >>> X, moved = random.normal(y[:, None] * 2.0), random.normal(5, 1, (500, 1))
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     weighter = LabelShiftWeights().fit(X, y, population=moved)
    >>> any(warning.category is LabelShiftWarning for warning in caught)
    True
    """


class UnseenValueWarning(UserWarning):
    """New rows hold values that no sample row has, so their weights are extrapolated.

    Attributes
    ----------
    values : dict from str to dict from str to int
        For each column the values, and the number of new rows that hold them.

    Examples
    --------
    >>> import warnings
    >>> from unskew import FrequencyWeights
    >>> from unskew.errors import UnseenValueWarning
    >>> weighter = FrequencyWeights().fit([["a"], ["b"]], population=[["a"], ["b"]])
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     weights = weighter.weigh([["c"]])
    >>> [warning.category is UnseenValueWarning for warning in caught]
    [True]
    """

    def __init__(self, message: str, values: dict[str, dict[str, int]] | None = None) -> None:
        super().__init__(message)
        self.values = values or {}


def warn_caller(warning: Warning) -> None:
    """Warn at the line outside of unskew that made the call; in a search of scikit-learn, once."""
    warning.args = tuple(plain(each, lines=True) for each in warning.args)
    frame, level = sys._getframe(1), 2
    while frame.f_back and _module(frame).partition(".")[0] == "unskew":
        frame, level = frame.f_back, level + 1
    above: FrameType | None = frame
    search = None  # the outermost of its calls below ours: it fits folds and candidates in turn
    while above is not None:
        search = above if _module(above).startswith("sklearn.model_selection.") else search
        above = above.f_back
    if search is not None:
        said = search.f_locals.setdefault("_unskew_warned", set())  # it lives as long as the call
        if type(warning) in said:
            return
        said.add(type(warning))
        warning.args = (f"{warning} Said once for all fits of this search.", *warning.args[1:])
    warnings.warn(warning, stacklevel=level)


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def refuse_removed(option: str, value: object, instead: str) -> None:
    """Refuse an option that earlier versions had, and name what to do instead."""
    if value is not None:
        raise ParameterError(f"{option} was removed. {instead}; leave {option} out.")
