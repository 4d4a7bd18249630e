"""Every error and warning that unskew raises.

Each derives from :class:`UnskewError` and from the built-in exception that a caller would expect,
so ``except ValueError`` and ``except UnskewError`` both work.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from typing import Any


class UnskewError(Exception):
    """The base class of every error that unskew raises."""


class InputError(UnskewError, ValueError):
    """The data cannot be used as they are; the message names the column, file or argument."""


class InputTypeError(InputError, TypeError):
    """The data have a type that cannot be used, or that does not match the sample's."""


class MismatchError(InputError):
    """The columns of sample and population do not correspond."""


class TypeMismatchError(MismatchError, InputTypeError):
    """A column holds values of different kinds in sample and population."""


class InputFileError(InputError, FileNotFoundError):
    """A file of the population does not exist."""


class UnreadableFileError(InputError, OSError):
    """A file of the population is damaged, or was removed or changed while it was read."""


class ParameterError(UnskewError, ValueError):
    """A parameter has an invalid value."""


class LearnerError(UnskewError, TypeError):
    """A learner cannot be used as required, for example because it takes no weights."""


class _WithShare(Exception):  # noqa: N818  (a part of an error, and of a warning)
    """Carries the share of the population that the sample does not cover, and where it is."""

    def __init__(
        self, message: str, share: float = float("nan"), rules: Sequence[Any] = ()
    ) -> None:
        super().__init__(message)
        self.share = share
        self.rules = tuple(rules)

    def __reduce__(self) -> tuple[type, tuple[str, float, tuple[Any, ...]]]:
        return type(self), (str(self), self.share, self.rules)


class OverlapError(_WithShare, UnskewError, ValueError):
    """Too much of the population is not covered by the sample.

    Attributes
    ----------
    share : float
        The share of the population's mass that the sample does not cover.
    rules : tuple of OverlapRule
        Where it is, by falling share; each prints as a sentence.
    """


class OverlapWarning(_WithShare, UserWarning):
    """Part of the population is not covered by the sample.

    Attributes
    ----------
    share : float
        The share of the population's mass that the sample does not cover.
    rules : tuple of OverlapRule
        Where it is, by falling share; each prints as a sentence.
    """


class EstimateWarning(UserWarning):
    """An estimate's interval is less certain than it says, for example with few rows."""


class ColumnWarning(UserWarning):
    """A column hardly describes a row: an identifier, free text, or very many categories.

    Attributes
    ----------
    columns : list of str
        Their names.
    """

    def __init__(self, message: str, columns: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.columns = list(columns)

    def __reduce__(self) -> tuple[type, tuple[str, list[str]]]:
        return type(self), (str(self), self.columns)


class LabelShiftWarning(UserWarning):
    """Sample and population differ in more than the shares of the classes."""


class SkippedFilesWarning(UserWarning):
    """Files of the population could not be read and were skipped (``on_error="skip"``).

    Attributes
    ----------
    files : dict from str to str
        Their names, and why each could not be read.
    """

    def __init__(self, message: str, files: dict[str, str]) -> None:
        super().__init__(message)
        self.files = files

    def __reduce__(self) -> tuple[type, tuple[str, dict[str, str]]]:
        return type(self), (str(self), self.files)


class UnseenValueWarning(UserWarning):
    """New rows hold values that no sample row has, so their weights are extrapolated.

    Attributes
    ----------
    values : dict from str to dict from str to int
        For each column the values, and the number of new rows that hold them.
    """

    def __init__(self, message: str, values: dict[str, dict[str, int]]) -> None:
        super().__init__(message)
        self.values = values

    def __reduce__(self) -> tuple[type, tuple[str, dict[str, dict[str, int]]]]:
        return type(self), (str(self), self.values)


def warn_caller(warning: Warning) -> None:
    """Warn at the line outside of unskew that made the call."""
    frame, level = sys._getframe(1), 2
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] == "unskew":
        frame, level = frame.f_back, level + 1
    warnings.warn(warning, stacklevel=level)
