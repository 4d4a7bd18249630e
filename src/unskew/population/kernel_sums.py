"""Sums of a kernel over the population: what kernel mean matching asks."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from unskew.numerics.kernels import FARTHEST, Kernel, blocks
from unskew.numerics.typing import FloatArray
from unskew.population.summaries import Summary
from unskew.rows.design import Design
from unskew.rows.tables import RowBlock


class KernelSums(Summary):
    r"""For each sample point the sum :math:`\sum_u v_u K(x_i, u)` over the population.

    Kernel mean matching needs nothing else of the population. Kernel values are computed in blocks,
    in single precision by default, and added up in double precision: the relative error of a sum is
    at most about ``1e-6``.

    Parameters
    ----------
    encoder : Design
        Turns rows into points.
    kernel : Kernel
    points : ndarray of shape (m, d)
        The sample rows, as points minus ``centre``.
    centre : ndarray of shape (d,)
        Subtracted from the population's points too: a kernel of differences is unchanged, and
        single precision keeps more digits.
    frequencies : ndarray of shape (d, D), optional
        Where to evaluate the population's characteristic function, for an estimate of its distance
        from the sample that is independent of the solver.
    dtype : {numpy.float32, numpy.float64}

    Attributes
    ----------
    sums : ndarray of shape (m,)
    points : ndarray of shape (d,)
        The sum of the population's points, minus ``centre``.
    frequencies : ndarray of shape (d, D), or None
        As given.
    waves : ndarray of complex of shape (D,)
        The sum of exp(iω·u).
    mass : float
        The population's total weight.
    uncovered : float
        The weight of the rows with unseen values, or at which the kernel of every sample point is
        below the kernel's ``far``.
    """

    costly = True
    shared = frozenset({"encoder", "kernel", "dtype", "_prepared", "_centre", "frequencies"})
    added: ClassVar[tuple[str, ...]] = ("sums", "points", "waves", "mass", "uncovered")

    def __init__(
        self,
        encoder: Design,
        kernel: Kernel,
        points: FloatArray,
        centre: FloatArray,
        *,
        frequencies: FloatArray | None = None,
        dtype: Any = np.float32,
    ) -> None:
        self.encoder = encoder
        self.kernel = kernel
        self.dtype = dtype
        self._centre = centre
        self._prepared = kernel.prepare(points, dtype=dtype)
        self.frequencies = frequencies
        self.sums: FloatArray = np.zeros(len(points))
        self.points: FloatArray = np.zeros(len(centre))
        self.waves = np.zeros(0 if frequencies is None else frequencies.shape[1], dtype=complex)
        self.mass = 0.0
        self.uncovered = 0.0

    def update(self, rows: RowBlock) -> None:
        """Add the kernel between a block and the points."""
        weight = rows.weight
        values, unseen = self.encoder.transform(rows.batch, side="population")
        values = values - self._centre
        beyond = np.zeros(len(values), dtype=bool) if unseen is None else unseen.copy()
        parts = list(blocks(len(values), len(self._prepared)))
        # The same memory for every block: to find new one would take as long as the values.
        size = (parts[0].stop if parts else 0, len(self._prepared))
        single, double = np.empty(size, dtype=self.dtype), np.empty(size)
        for part in parts:
            prepared = self.kernel.prepare(values[part], dtype=self.dtype)
            block, wide = single[: len(prepared)], double[: len(prepared)]
            self.kernel.block(prepared, self._prepared, block)
            np.copyto(wide, block)
            self._add(values[part], weight[part], wide)
            beyond[part] |= block.max(axis=1) < self.kernel.far
        self.points += weight @ np.clip(values, -FARTHEST, FARTHEST)
        self.mass += float(weight.sum())
        self.uncovered += float(weight[beyond].sum())
        if self.frequencies is not None:
            self.waves += sum_of_waves(values, weight, self.frequencies)

    def _add(self, values: FloatArray, weight: FloatArray, block: FloatArray) -> None:  # noqa: ARG002
        """Add the kernel between some rows and the points to the sums."""
        share, scale = _shares(weight, np.float64)
        self.sums += scale * (share @ block)


def sum_of_waves(
    points: FloatArray, weight: FloatArray, frequencies: FloatArray
) -> NDArray[np.complex128]:
    """Return the weighted sum of exp(iω·x) for each frequency ω.

    Several rows of weights give as many rows of sums, at little more than the price of one.
    """
    total = np.zeros((*weight.shape[:-1], frequencies.shape[1]), dtype=complex)
    narrow = frequencies.astype(np.float32)
    for part in blocks(len(points), frequencies.shape[1]):
        phases = np.clip(points[part], -FARTHEST, FARTHEST).astype(np.float32) @ narrow
        share, scale = _shares(weight[..., part], np.float32)
        total.real += scale * (share @ np.cos(phases))
        total.imag += scale * (share @ np.sin(phases, out=phases))
    return total


def _shares(weight: FloatArray, dtype: Any) -> tuple[FloatArray, FloatArray]:
    """Return weights as shares of the largest, which no precision overflows, and the largest."""
    largest = weight.max(axis=-1, keepdims=True, initial=0.0)
    largest[largest == 0.0] = 1.0
    return (weight / largest).astype(dtype), largest
