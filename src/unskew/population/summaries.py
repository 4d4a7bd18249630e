"""The questions that can be put to a population, each answered in one pass.

A summary is updated with batches of rows and merged with summaries of other rows. It knows nothing
of where the rows come from, so that one pass may be spread over threads, files or machines.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from unskew.errors import ParameterError
from unskew.numerics.kernels import FARTHEST, Kernel, blocks
from unskew.numerics.row_keys import row_keys
from unskew.numerics.typing import BoolArray, FloatArray, IntArray
from unskew.population.encode import Encoded
from unskew.population.kinds import in_common_form

__all__ = [
    "CellCounts",
    "EncodedRows",
    "KernelSums",
    "Moments",
    "Reservoir",
    "Summaries",
    "Summary",
    "Total",
    "sum_of_waves",
]


class Summary(ABC):
    """A small answer that grows with batches and merges with its like.

    A summary is handed to :meth:`unskew.Population.reduce` empty. The population makes copies of it
    for the pieces that it reads and merges them in the order of the rows, whichever is read first.

    Attributes
    ----------
    position : int
        The number, in the whole population, of the next row to come. The population sets it where a
        piece begins; a summary whose answer depends on it keeps it up to date.
    """

    position: int = 0
    grows: ClassVar[bool] = False
    """Whether the answer takes up more than the empty one does."""
    shared: ClassVar[frozenset[str]] = frozenset()
    """Attributes that are only read: copies share them, checkpoints leave them out."""

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        twin = copy.copy(self)
        for name, value in vars(self).items():
            if name not in self.shared:
                setattr(twin, name, copy.deepcopy(value, memo))
        return twin

    def stand_alone(self) -> None:  # noqa: B027  (most share nothing that they learn)
        """Stop sharing with other copies what they have learned and may have to take back.

        Called on each copy of a pass that may leave out files of which it has read a part already.
        """

    def state(self) -> dict[str, Any]:
        """Return what the summary has gathered, by name; a checkpoint stores it.

        Attributes that are not in ``shared`` must be numbers, text, None, NumPy arrays, Arrow
        record batches, summaries or lists of summaries. A summary that gathers anything else
        overrides this method and :meth:`restore`; any value that JSON can hold is allowed as well.
        """
        state: dict[str, Any] = {}
        for name, value in self.unshared():
            if isinstance(value, Summary):
                state |= {f"{name}.{inner}": entry for inner, entry in value.state().items()}
            elif _is_storable(value):
                state[name] = value
            else:
                raise ParameterError(
                    f"{type(self).__name__}.{name} is a {type(value).__name__}, which a checkpoint "
                    "cannot store. Gather numbers, text, NumPy arrays, Arrow record batches or "
                    "summaries, name what never changes in `shared`, override `state` and "
                    "`restore`, or omit checkpoint=."
                )
        return state

    def restore(self, state: dict[str, Any]) -> None:
        """Put back what :meth:`state` of a like summary has returned."""
        for name, value in list(self.unshared()):
            if isinstance(value, Summary):
                inner = [key for key in state if key.startswith(f"{name}.")]
                value.restore({key.removeprefix(f"{name}."): state[key] for key in inner})
        vars(self).update({name: entry for name, entry in state.items() if "." not in name})

    def unshared(self) -> Iterator[tuple[str, Any]]:
        """Yield the attributes that are not in ``shared``; of a list of summaries, each."""
        for name, value in vars(self).items():
            if name not in self.shared:
                if isinstance(value, list) and value and isinstance(value[0], Summary):
                    yield from ((f"{name}.{place}", part) for place, part in enumerate(value))
                else:
                    yield name, value

    @abstractmethod
    def update(self, batch: Any, weight: FloatArray) -> None:
        """Take in the rows of ``batch``, an Arrow record batch, each counted ``weight`` times."""

    @abstractmethod
    def merge(self, other: Self) -> None:
        """Take in what ``other``, a summary of later rows, has seen."""


def _is_storable(value: Any) -> bool:
    if isinstance(value, np.generic) or type(value) is np.ndarray:
        return not value.dtype.hasobject
    return value is None or type(value) in (bool, int, float, str, pa.RecordBatch)


class Total(Summary):
    """How many rows there are, and their total weight.

    Examples
    --------
    >>> total = Total()
    >>> total.update(range(3), np.array([1.0, 0.5, 2.0]))
    >>> total.rows, total.mass
    (3, 3.5)
    """

    def __init__(self) -> None:
        self.rows = 0
        self.mass = 0.0

    def update(self, batch: Any, weight: FloatArray) -> None:
        """Count the rows."""
        self.rows += len(batch)
        self.mass += float(weight.sum())

    def merge(self, other: Self) -> None:
        """Add the other's counts."""
        self.rows += other.rows
        self.mass += other.mass


class Locator(Protocol):
    """Says in which cell each row lies: the one thing that cell counts need of a partition."""

    n_cells: int

    def locate(self, batch: pa.RecordBatch) -> tuple[IntArray, BoolArray | None]:
        """Return each row's cell and which rows no sample row can stand for; their cell is -1.

        The second is None where there are no such rows.
        """

    def merged_counts(self, batch: pa.RecordBatch, weight: FloatArray) -> FloatArray:
        """Return what such rows are to add to the counts all the same."""


class CellCounts(Summary):
    """The total weight of the rows in each cell.

    Attributes
    ----------
    counts : ndarray of shape (n_cells,)
        Exact, whatever the order, as long as the weights are whole numbers.
    uncovered : float
        The weight of the rows that no sample row can stand for.
    """

    shared = frozenset({"locator"})

    def __init__(self, locator: Locator) -> None:
        self.locator = locator
        self.counts = np.zeros(locator.n_cells)
        self.uncovered = 0.0
        self.mass = 0.0

    def update(self, batch: pa.RecordBatch, weight: FloatArray) -> None:
        """Count the rows of a batch."""
        self.mass += float(weight.sum())
        cells, uncovered = self.locator.locate(batch)
        if uncovered is not None:
            rest = batch.filter(pa.array(uncovered))
            self.uncovered += float(weight[uncovered].sum())
            self.counts += self.locator.merged_counts(rest, weight[uncovered])
            cells, weight = cells[~uncovered], weight[~uncovered]
        self.counts += np.bincount(cells, weights=weight, minlength=len(self.counts))

    def merge(self, other: CellCounts) -> None:
        """Add the other's counts."""
        self.counts += other.counts
        self.uncovered += other.uncovered
        self.mass += other.mass


class Encoder(Protocol):
    """Turns record batches into numbers."""

    def transform(self, batch: pa.RecordBatch, *, side: str) -> Encoded:
        """Return the rows as numbers."""


SummaryType = TypeVar("SummaryType", bound=Summary)


class EncodedRows(Summary, Generic[SummaryType]):
    """A summary of the rows after encoding: its batches are matrices of numbers.

    Attributes
    ----------
    summary : Summary
        The summary of the encoded rows.
    novel : float
        The weight of the rows that hold a value which only the population has.
    """

    shared = frozenset({"encoder"})

    def __init__(self, encoder: Encoder, summary: SummaryType) -> None:
        self.encoder = encoder
        self.summary = summary
        self.novel = 0.0

    def update(self, batch: pa.RecordBatch, weight: FloatArray) -> None:
        """Encode a batch and hand it on."""
        values, novel = self.encoder.transform(batch, side="population")
        if novel is not None:
            self.novel += float(weight[novel].sum())
        self.summary.position = self.position
        self.summary.update(values, weight)
        self.position += len(values)

    def merge(self, other: Self) -> None:
        """Merge the summaries of the encoded rows."""
        self.summary.merge(other.summary)
        self.novel += other.novel


class Summaries(Summary):
    """Several questions at once, answered in the same pass."""

    def __init__(self, parts: Sequence[Any]) -> None:
        self.parts = list(parts)

    def update(self, batch: Any, weight: FloatArray) -> None:
        """Hand a batch to each of them."""
        for part in self.parts:
            part.position = self.position
            part.update(batch, weight)
        self.position += len(batch)

    def merge(self, other: Self) -> None:
        """Merge each with its like."""
        for mine, theirs in zip(self.parts, other.parts, strict=True):
            mine.merge(theirs)


class KernelSums(Summary):
    r"""For each of some rows the sum :math:`\sum_u v_u K(x_i, u)` over the population.

    Kernel mean matching knows the population through these alone. Values are taken in blocks, in
    single precision by default, and added up in double precision: a sum is then off by about
    ``1e-6`` of its size at the most.

    Parameters
    ----------
    encoder : Encoder
        Turns rows into points.
    kernel : Kernel
    points : ndarray of shape (m, d)
        The rows, as points less ``centre``.
    centre : ndarray of shape (d,)
        Taken off the population's points too: a kernel of differences does not mind, and single
        precision gains by it.
    frequencies : ndarray of shape (d, D), optional
        Where to take the population's characteristic function, for an estimate of its distance from
        a sample that owes nothing to the weights.
    dtype : {numpy.float32, numpy.float64}

    Attributes
    ----------
    sums : ndarray of shape (m,)
    points : ndarray of shape (d,)
        The sum of the population's points, less ``centre``.
    waves : ndarray of complex of shape (D,)
        The sum of exp(iω·u).
    mass : float
        The population's total weight.
    uncovered : float
        The weight of the rows that are novel, or at which the kernel of every row is below its
        ``far``.
    """

    shared = frozenset({"encoder", "kernel", "_dtype", "_prepared", "_centre", "_frequencies"})

    def __init__(
        self,
        encoder: Encoder,
        kernel: Kernel,
        points: FloatArray,
        centre: FloatArray,
        *,
        frequencies: FloatArray | None = None,
        dtype: Any = np.float32,
    ) -> None:
        self.encoder = encoder
        self.kernel = kernel
        self._dtype = dtype
        self._centre = centre
        self._prepared = kernel.prepare(points, dtype=dtype)
        self._frequencies = frequencies
        self.sums: FloatArray = np.zeros(len(points))
        self.points: FloatArray = np.zeros(len(centre))
        self.waves = np.zeros(0 if frequencies is None else frequencies.shape[1], dtype=complex)
        self.mass = 0.0
        self.uncovered = 0.0

    def update(self, batch: pa.RecordBatch, weight: FloatArray) -> None:
        """Add the kernel between a batch and the rows."""
        values, novel = self.encoder.transform(batch, side="population")
        values = values - self._centre
        beyond = np.zeros(len(values), dtype=bool) if novel is None else novel.copy()
        for part in blocks(len(values), len(self._prepared)):
            block = self.kernel.block(
                self.kernel.prepare(values[part], dtype=self._dtype), self._prepared
            )
            share, scale = _shares(weight[part], block.dtype)
            self.sums += scale * (share @ block).astype(np.float64)
            beyond[part] |= block.max(axis=1) < self.kernel.far
        self.points += weight @ np.clip(values, -FARTHEST, FARTHEST)
        self.mass += float(weight.sum())
        self.uncovered += float(weight[beyond].sum())
        if self._frequencies is not None:
            self.waves += sum_of_waves(values, weight, self._frequencies)

    def merge(self, other: KernelSums) -> None:
        """Add the other's sums."""
        self.sums += other.sums
        self.points += other.points
        self.waves += other.waves
        self.mass += other.mass
        self.uncovered += other.uncovered


def sum_of_waves(
    points: FloatArray, weight: FloatArray, frequencies: FloatArray
) -> NDArray[np.complex128]:
    """Return the weighted sum of exp(iω·x) for each frequency ω."""
    total = np.zeros(frequencies.shape[1], dtype=complex)
    narrow = frequencies.astype(np.float32)
    for part in blocks(len(points), frequencies.shape[1]):
        phases = np.clip(points[part], -FARTHEST, FARTHEST).astype(np.float32) @ narrow
        share, scale = _shares(weight[part], np.float32)
        real, imaginary = ((share @ wave(phases)).astype(np.float64) for wave in (np.cos, np.sin))
        total += scale * (real + 1j * imaginary)
    return total


def _shares(weight: FloatArray, dtype: Any) -> tuple[FloatArray, float]:
    """Return weights as shares of the largest, which no precision overflows, and the largest."""
    largest = float(weight.max(initial=0.0)) or 1.0
    return (weight / largest).astype(dtype), largest


class Moments(Summary):
    """Weighted mean and variance of each column of a matrix; missing entries are left out.

    Merging uses the centred update of Chan, Golub and LeVeque, "Algorithms for computing the sample
    variance", The American Statistician 37 (1983), so that columns far from zero keep their digits.

    Examples
    --------
    >>> moments = Moments(1)
    >>> moments.update(np.array([[1.0], [2.0], [np.nan]]), np.ones(3))
    >>> moments.mean, moments.variance, moments.mass
    (array([1.5]), array([0.25]), array([2.]))
    """

    def __init__(self, n_columns: int) -> None:
        self.mass: FloatArray = np.zeros(n_columns)
        self.mean: FloatArray = np.zeros(n_columns)
        self._squares: FloatArray = np.zeros(n_columns)

    @property
    def variance(self) -> FloatArray:
        """The population variance, that is with divisor ``mass``."""
        return self._squares / np.maximum(self.mass, np.finfo(float).tiny)

    def update(self, batch: FloatArray, weight: FloatArray) -> None:
        """Take in the rows of a matrix."""
        present = ~np.isnan(batch)
        part = Moments(batch.shape[1])
        part.mass = weight @ present
        divisor = np.maximum(part.mass, np.finfo(float).tiny)
        part.mean = weight @ np.where(present, batch, 0.0) / divisor
        part._squares = weight @ np.where(present, batch - part.mean, 0.0) ** 2
        self.merge(part)

    def merge(self, other: Moments) -> None:
        """Combine with the moments of other rows."""
        mass = self.mass + other.mass
        share = other.mass / np.maximum(mass, np.finfo(float).tiny)
        shift = other.mean - self.mean
        self._squares += other._squares + shift**2 * self.mass * share
        self.mean = self.mean + shift * share
        self.mass = mass


_HIGHEST_KEY = np.uint64(2**64 - 1)


class Reservoir(Summary):
    """A uniform sample of rows without replacement, the same for every engine and thread count.

    Each row draws a random key from its number in the population and the seed; the rows with the
    smallest keys stay. Once as many have been seen as are to stay, the largest key among them is a
    ceiling, which the parts of a pass share: what lies above it need not even be copied.

    Parameters
    ----------
    size : int
        How many rows to keep; all of them where the population has fewer.
    seed : int

    Attributes
    ----------
    rows : pyarrow.RecordBatch or ndarray
        The rows kept, in the population's order, in the form in which the batches came; None if
        there were none.
    weight : ndarray
        Their weights: the draw itself is by row, not by weight.
    """

    shared = frozenset({"_ceiling"})
    grows = True

    def __init__(self, size: int, *, seed: int = 0) -> None:
        self.size = size
        self.seed = seed
        self.rows: Any = None
        self._ceiling = [_HIGHEST_KEY]  # no row above it can stay; parts share it
        self.weight = np.empty(0)
        self.numbers = np.empty(0, dtype=np.int64)
        self._keys = np.empty(0, dtype=np.uint64)

    def stand_alone(self) -> None:
        """Take a ceiling of its own: that of rows which are left out later would be too low."""
        self._ceiling = [_HIGHEST_KEY]

    def update(self, batch: Any, weight: FloatArray) -> None:
        """Let the rows of a batch compete for a place."""
        keys = row_keys(self.seed, self.position, len(batch))
        numbers = np.arange(self.position, self.position + len(batch))
        self.position += len(batch)
        kept = np.flatnonzero(keys <= self._ceiling[0])  # most rows of a long population fail here
        if len(kept) > self.size:
            kept = kept[np.argsort(keys[kept], kind="stable")[: self.size]]
        self._add(_take(batch, kept), weight[kept], numbers[kept], keys[kept])

    def merge(self, other: Reservoir) -> None:
        """Let the other's rows compete for a place."""
        if other.rows is not None:
            self._add(other.rows, other.weight, other.numbers, other._keys)

    def answer(self, question: SummaryType) -> SummaryType:
        """Answer a question as a population of the rows kept would."""
        if self.rows is not None:
            question.update(self.rows, self.weight)
        return question

    def _add(self, rows: Any, weight: FloatArray, numbers: IntArray, keys: Any) -> None:
        if not len(keys):
            return
        all_rows = rows if self.rows is None else _concatenate(self.rows, rows)
        all_keys = np.concatenate([self._keys, keys])
        kept = np.argsort(all_keys, kind="stable")[: self.size]
        all_numbers = np.concatenate([self.numbers, numbers])
        kept = kept[np.argsort(all_numbers[kept])]
        self.rows = _take(all_rows, kept)
        self.weight = np.concatenate([self.weight, weight])[kept]
        self.numbers = all_numbers[kept]
        self._keys = all_keys[kept]
        if len(self._keys) == self.size:
            self._ceiling[0] = min(self._ceiling[0], self._keys.max(initial=0))


def _take(rows: Any, positions: IntArray) -> Any:
    if not isinstance(rows, pa.RecordBatch):
        return rows[positions]
    taken = rows.take(pa.array(positions))
    columns = [c.dictionary_decode() if pa.types.is_dictionary(c.type) else c for c in taken]
    return pa.RecordBatch.from_arrays(columns, names=taken.schema.names)


def _concatenate(first: Any, second: Any) -> Any:
    if not isinstance(first, pa.RecordBatch):
        return np.concatenate([first, second])
    kinds = zip(first.schema.types, second.schema.types, strict=True)
    if any(pa.types.is_decimal(one) != pa.types.is_decimal(other) for one, other in kinds):
        return _promoted(*_reconciled(first, second))  # Arrow would not take the nearest doubles
    try:
        return _promoted(first, second)
    except pa.ArrowException:  # what Arrow will not promote can be compared all the same
        return _promoted(*_reconciled(first, second))


def _promoted(first: pa.RecordBatch, second: pa.RecordBatch) -> pa.RecordBatch:
    tables = [pa.Table.from_batches([rows]) for rows in (first, second)]
    return pa.concat_tables(tables, promote_options="permissive").combine_chunks().to_batches()[0]


def _reconciled(*batches: pa.RecordBatch) -> list[pa.RecordBatch]:
    """Return batches with the columns that differ in type brought to a common one."""
    kinds = zip(*(batch.schema.types for batch in batches), strict=True)
    differs = [len(set(one)) > 1 for one in kinds]
    return [
        pa.RecordBatch.from_arrays(
            [in_common_form(c) if d else c for c, d in zip(batch.columns, differs, strict=True)],
            names=batch.schema.names,
        )
        for batch in batches
    ]
