"""Codes to points: a space of numbers in which distances between rows are meaningful.

Fitted and applied with NumPy alone, on the formulas of scikit-learn's ``StandardScaler``,
``MinMaxScaler``, ``SimpleImputer`` and ``OneHotEncoder``: the space travels to executors without
scikit-learn, where trees that merge uncovered rows need it, and is cheaper to fit than a
``ColumnTransformer``.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, Self

import numpy as np
import pyarrow as pa

from unskew.errors import InputError
from unskew.numerics.typing import FloatArray, IntArray
from unskew.rows.encode import ColumnCodes, Encoded
from unskew.rows.kinds import Kind

MAX_CATEGORIES = 64
"""The largest number of one-hot columns that a column of categories gets."""

LARGEST = 1e150
"""The largest coordinate of which distances can be taken: beyond, squares overflow."""

Scaling = Literal["standard", "range"] | None


class FeatureSpace:
    """A space of numbers in which distances between rows are meaningful.

    Parameters
    ----------
    scaling : {"standard", "range", None}
        Numbers and times get mean 0 and variance 1 on the sample, or the range 0 to 1 on the
        sample, or stay as they are.

    Examples
    --------
    >>> sample = pa.record_batch({"age": [30, 40], "town": ["Ulm", "Bonn"]})
    >>> space = FeatureSpace(scaling="standard").fit(sample)
    >>> space.transform(sample, side="sample").values
    array([[-1.,  0.,  1.], [ 1.,  1.,  0.]])
    """

    def __init__(self, *, scaling: Scaling = "standard") -> None:
        self.scaling = scaling

    def fit(self, sample: pa.RecordBatch) -> Self:
        """Learn scales, categories and indicators from the sample."""
        codes = ColumnCodes()
        return self.fit_codes(codes, codes.fit_transform(sample))

    def fit_codes(self, codes: ColumnCodes, values: FloatArray) -> Self:
        """Learn from the sample's codes, where they have been made already."""
        self.codes = codes
        is_category = np.array([kind == Kind.CATEGORY for kind in codes.kinds])
        self._numbers = np.flatnonzero(~is_category)
        self._indicators = np.flatnonzero(~is_category & codes.has_missing)
        self._one_hots = [OneHot.learn(int(p), values[:, p]) for p in np.flatnonzero(is_category)]
        columns = np.array(values[:, self._numbers], order="F")
        missing = np.isnan(columns)
        with np.errstate(over="ignore", invalid="ignore"):  # callers check for finite points
            present = np.maximum((~missing).sum(axis=0), 1)
            self._means = np.where(missing, 0.0, columns).sum(axis=0) / present
            np.copyto(columns, self._means, where=missing)
            self._shift, self._scale = _scaling(columns, self.scaling)
        return self

    def transform(self, batch: pa.RecordBatch, *, side: str) -> Encoded:
        """Return the rows of ``batch`` as points of the space."""
        values, unseen = self.codes.transform(batch, side=side)
        return Encoded(self.of_codes(values), unseen)

    @property
    def n_features(self) -> int:
        """The dimension of the space."""
        one_hot_columns = sum(one_hot.width for one_hot in self._one_hots)
        return len(self._numbers) + len(self._indicators) + one_hot_columns

    def labels(self) -> list[str]:
        """Return what each dimension of the space is, in words.

        Examples
        --------
        >>> sample = pa.record_batch({"town": ["Ulm", "Bonn"], "age": [30, None]})
        >>> FeatureSpace(scaling=None).fit(sample).labels()
        ['age', 'age is missing', 'town = Bonn', 'town = Ulm']
        """
        names = self.codes.names
        labels = [names[position] for position in self._numbers]
        labels += [f"{names[position]} is missing" for position in self._indicators]
        for one_hot in self._one_hots:
            labels += one_hot.labels(self.codes)
        return labels

    def first_categories(self) -> list[int]:
        """Return the dimension of the first category of each column of categories.

        With a constant, it is determined by the others: what equations leave out.
        """
        begin = len(self._numbers) + len(self._indicators)
        widths = [one_hot.width for one_hot in self._one_hots]
        begins = begin + np.cumsum([0, *widths])[:-1]
        return [int(b) for b, width in zip(begins, widths, strict=True) if width]

    def of_codes(self, codes: FloatArray) -> FloatArray:
        """Return rows of codes as points of the space."""
        points = np.zeros((len(codes), self.n_features))
        begin = len(self._numbers) + len(self._indicators)
        self._write_numbers(codes, points[:, :begin])
        for one_hot in self._one_hots:
            output = one_hot.of(codes[:, one_hot.position])
            rows = np.flatnonzero(output >= 0)
            points[rows, begin + output[rows]] = 1.0
            begin += one_hot.width
        return points

    def split_codes(self, codes: FloatArray) -> tuple[FloatArray, IntArray]:
        """Return rows of codes as points, but for each column of categories one number.

        That is the position of the one among its one-hot columns, or -1 if all are zero: the same
        space, in the memory of the columns instead of that of the categories.
        """
        points = np.empty((len(codes), len(self._numbers) + len(self._indicators)))
        self._write_numbers(codes, points)
        outputs = [one_hot.of(codes[:, one_hot.position]) for one_hot in self._one_hots]
        return points, np.array(outputs, dtype=np.int64).reshape(-1, len(codes)).T

    def _write_numbers(self, codes: FloatArray, points: FloatArray) -> None:
        numbers = points[:, : len(self._numbers)]
        numbers[:] = codes[:, self._numbers]
        missing = np.isnan(numbers)
        if missing.any():
            np.copyto(numbers, self._means, where=missing)
        with np.errstate(over="ignore", invalid="ignore"):  # callers check for finite points
            if self.scaling == "range":
                numbers *= self._scale
                numbers += self._shift
            else:
                numbers -= self._shift
                numbers /= self._scale
        points[:, len(self._numbers) :] = np.isnan(codes[:, self._indicators])

    def distinguish(self, codes: FloatArray) -> list[FloatArray]:
        """Return columns that are equal in two rows if these are the same point of the space.

        They are the numbers themselves, which no arithmetic has rounded, and far fewer than the
        columns of a point where categories are one-hot.
        """
        columns = [codes[:, position] for position in self._numbers]
        one_hots = ((one_hot, codes[:, one_hot.position]) for one_hot in self._one_hots)
        return columns + [one_hot.of(column).astype(np.float64) for one_hot, column in one_hots]

    def check_distances(self, points: FloatArray, *, side: str, remedy: str = "") -> None:
        """Refuse points too large to take distances, naming the column.

        ``side`` is where the points are from, ``remedy`` what can be done besides rescaling.
        """
        numbers = points[:, : len(self._numbers)]
        with np.errstate(invalid="ignore"):
            reach = np.abs(numbers).max(axis=0, initial=0.0)
            for place in np.flatnonzero(~(reach < LARGEST) | ~(self._scale < np.inf)):
                raise InputError(
                    f"Column '{self.codes.names[self._numbers[place]]}' of the {side} holds values "
                    "too large to take distances between rows: their squares are beyond floating "
                    f"point. Replace them, rescale the column{remedy}."
                )


class OneHot(NamedTuple):
    """One column of categories: the one-hot column of each of its codes, -1 for none."""

    position: int
    codes: FloatArray
    outputs: IntArray
    missing: int
    """The output of a missing value."""

    @classmethod
    def learn(cls, position: int, column: FloatArray) -> OneHot:
        """Give a one-hot column to each frequent category, and one to all the others."""
        categories, counts = np.unique(column, return_counts=True)  # missing is one, and the last
        is_rare = np.zeros(len(categories), dtype=bool)
        if len(categories) > MAX_CATEGORIES:
            is_rare[np.argsort(counts, kind="stable")[: 1 - MAX_CATEGORIES]] = True
        outputs = np.where(is_rare, np.count_nonzero(~is_rare), np.cumsum(~is_rare) - 1)
        is_missing = np.isnan(categories)
        missing = int(outputs[is_missing][0]) if is_missing.any() else -1
        return cls(position, categories[~is_missing], outputs[~is_missing], missing)

    @property
    def width(self) -> int:
        return int(max(self.outputs.max(initial=-1), self.missing)) + 1

    def labels(self, codes: ColumnCodes) -> list[str]:
        """Return the name of each one-hot column."""
        name = codes.names[self.position]
        labels = [f"{name} is another value"] * self.width
        for code, output in zip(self.codes, self.outputs, strict=True):
            if (self.outputs == output).sum() == 1:
                labels[output] = f"{name} = {codes.format_value(self.position, code)}"
        if self.missing >= 0 and not (self.outputs == self.missing).any():
            labels[self.missing] = f"{name} is missing"
        return labels

    def of(self, column: FloatArray) -> IntArray:
        """Return each row's one-hot column."""
        if not len(self.codes):
            return np.where(np.isnan(column), self.missing, -1)
        place = np.minimum(np.searchsorted(self.codes, column), len(self.codes) - 1)
        known = np.where(self.codes[place] == column, self.outputs[place], -1)
        return np.where(np.isnan(column), self.missing, known)


def _scaling(columns: FloatArray, scaling: Scaling) -> tuple[FloatArray, FloatArray]:
    """Return the shift and the scale of each column.

    A number becomes x·scale + shift for the range, and (x − shift) / scale otherwise.
    """
    n_rows, n_columns = columns.shape
    eps = np.finfo(float).eps
    if scaling == "range":
        low = columns.min(axis=0)
        width = columns.max(axis=0) - low
        scale = 1.0 / np.where(width < 10 * eps, 1.0, width)
        return -low * scale, scale
    if scaling is None:
        return np.zeros(n_columns), np.ones(n_columns)
    mean = columns.sum(axis=0) / n_rows
    centred = columns - mean
    # The second term corrects the rounding of the mean.
    variance = ((centred**2).sum(axis=0) - centred.sum(axis=0) ** 2 / n_rows) / n_rows
    # A column whose variance is within the rounding error of its mean counts as constant.
    constant = variance <= n_rows * eps * variance + (n_rows * mean * eps) ** 2
    return mean, np.where(constant, 1.0, np.sqrt(variance))
