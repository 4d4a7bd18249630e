"""The certificate of a kernel model whose weights are counts in cells, or lie in a region."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from unskew.numerics.joint_region import RelativeErrors, worst_norm, worst_sum
from unskew.numerics.typing import FloatArray
from unskew.theory.asked import Asked
from unskew.theory.bound import Bound, Form
from unskew.theory.cluster import cluster_bound
from unskew.theory.dual import RidgeCurvature
from unskew.theory.fitted import KernelModel
from unskew.theory.flips import Anywhere
from unskew.theory.mean_certificate import why_vacuous
from unskew.theory.partitions import CountedCells, sums_by
from unskew.theory.refit_spread import refit_spread
from unskew.theory.regions import GramContributions, Region
from unskew.theory.regularisation import lipschitz_constant
from unskew.theory.stability import PAPER, STABLE
from unskew.theory.wording import (
    FLIPPED,
    FLIPPED_IN_POPULATION,
    Known,
    coarse_remark,
    dominant_remark,
    flipped_remark,
    rejected_remark,
    relative_remark,
    weighted_spread,
)

FEW_ROWS = 10
"""Where cells hold fewer rows than this on average, the curvature is not used: the certificate is
vacuous there either way, and would cost more than the fit. Not tuned."""


@dataclass(frozen=True)
class _Moves:
    """The dual certificate on one partition."""

    norm: float
    """In the kernel's norm."""
    anywhere: float
    on_average: float
    dominant: int


@dataclass(frozen=True)
class _Partition:
    """A partition, what its counts allow, and its cells' parts of the model."""

    cells: CountedCells
    region: RelativeErrors
    fixed: FloatArray
    """The coefficients of the part of the gradient that no count leaves open."""
    shared: csr_array
    """A column for each cell: the coefficients of what an error of its count moves."""
    start: float
    """The squared norm of the first."""
    gram: FloatArray
    """The inner products of the second."""


class KernelCertifier:
    """What the bounds on fine and on coarse cells share: the kernel matrix, factored once."""

    def __init__(
        self,
        fitted: KernelModel,
        weights: FloatArray,
        cells: CountedCells,
        merged: CountedCells | None,
        delta: float,
    ) -> None:
        self.fitted, self.weights, self.delta = fitted, weights, delta
        self.likely = f"With probability {100 * (1 - delta):.6g} %"
        self.cells = cells
        self.rejected = merged if merged is not None and merged.even.rejected else None
        merged = None if self.rejected else merged
        self.K = fitted.kernel(fitted.rows)
        self.predictions = self.K @ fitted.coefficients + (fitted.offset or 0.0)
        self.own = self._partition(cells)
        self.merged = None if merged is None else self._partition(merged)
        # An offset is certified as if penalised, by the kernel K + 1.
        self.kappa = fitted.kappa + (not fitted.squared)
        self.curvature: RidgeCurvature | None = None
        if fitted.squared:
            self.base = self._least_weights(self.merged or self.own)
            self.curvature = RidgeCurvature(self.K, self.base, fitted.penalty, overwrite=True)
            del self.K  # the factor has taken its place

    def answer(self, refits: int, random_state: Any, asked: Asked) -> Bound:
        """Return the certificate with all its terms."""
        fitted, own, spread = self.fitted, self._dual(self.own), self._spread()
        estimate = refit_spread(
            fitted,
            self.cells,
            self.K if self.curvature is None else self.curvature,
            refits=refits,
            random_state=random_state,
        )
        printed, corrected, worst = self._theorems()
        terms: dict[str, float] = {
            "spread of the predictions": spread,
            "dual certificate, at any single point": own.anywhere,
            "dual certificate, in the kernel's norm": own.norm,
            "Theorem 1, worst case over the counts": worst,
            "Theorem 2, corrected": corrected,
            "Theorem 2, as printed": printed,
            "refit spread (an estimate, no bound)": estimate,
            "delta": self.delta,
        }
        if self.cells.even.p_value is not None:
            terms["p-value of even selection within cells"] = self.cells.even.p_value
        remarks = self._remarks(own, spread, printed)
        if fitted.classes is not None:
            more, said = kernel_flips(fitted, self.weights, own.anywhere, asked)
            terms, remarks = {**terms, **more}, [*remarks, said]
        if self.merged is not None:
            coarse = self._coarse(self.merged, spread)
            terms["on coarser cells"] = coarse
            remarks.append(coarse_remark(len(self.merged.cells.successes), coarse))
        if self.rejected is not None:
            remarks.append(rejected_remark(self.rejected))
        remarks.append(
            "As an estimate, not a bound: refits with weights drawn as the counts allow move the "
            f"predictions by {estimate:.3g}."
        )
        return Bound(
            value=own.on_average,
            terms=terms,
            assumptions=(*about_learner(fitted), *self.cells.assumptions),
            reference=f"strong convexity and the counts of {len(self.cells.successes)} cells; "
            f"{PAPER}, Theorems 1 and 2, beside it",
            statement=f"{self.cells.even.headline(self.likely)}, estimating the weights has moved "
            f"the {fitted.what} (root mean square over the weighted sample)",
            reason=why_vacuous(own.on_average, spread) if own.on_average > 0 else "",
            remarks=tuple(remarks),
        )

    def _remarks(self, own: _Moves, spread: float, printed: Bound) -> list[str]:
        return [
            self.cells.even.remark,
            relative_remark(own.on_average, spread),
            f"At any single point they have moved by at most {own.anywhere:.3g}; the bound of the "
            f"printed theorem is {printed.value:.3g}.",
            dominant_remark(self.cells, own.dominant),
        ]

    def _partition(self, cells: CountedCells) -> _Partition:
        fitted, rows = self.fitted, self.fitted.places
        fixed = fitted.coefficients * (cells.shift[rows] + cells.factor[rows] - 1)
        shared = csr_array(
            (fitted.coefficients * cells.factor[rows], (np.arange(len(rows)), cells.of_row[rows])),
            (len(rows), len(cells.successes)),
        )
        gram = np.asarray(shared.T @ (shared.T @ self.K).T)
        start = float(fixed @ self.K @ fixed) if fixed.any() else 0.0
        if not fitted.squared:  # the kernel K + 1
            sums: FloatArray = np.asarray(shared.sum(axis=0)).reshape(-1)
            gram += np.outer(sums, sums)
            start += float(fixed.sum()) ** 2
        return _Partition(cells, cells.errors(self.delta), fixed, shared, max(start, 0.0), gram)

    def _least_weights(self, partition: _Partition) -> FloatArray:
        ratios = partition.cells.ratios(self.fitted.places, partition.region.low)
        return self.fitted.weights * ratios

    def _dual(self, partition: _Partition) -> _Moves:
        fitted, region = self.fitted, partition.region
        worst, dominant = worst_norm(region, partition.gram)
        norm = worst + math.sqrt(partition.start) + abs(fitted.offset or 0.0)
        anywhere = math.sqrt(self.kappa) * norm
        n_rows, n_cells = partition.shared.shape
        if self.curvature is None or n_cells * FEW_ROWS > n_rows:
            return _Moves(norm, anywhere, anywhere, dominant)
        columns = np.column_stack([partition.fixed, partition.shared.toarray()])
        curved = self.curvature.gram(columns)
        worst, dominant = worst_norm(region, curved[1:, 1:])
        pull = worst + math.sqrt(max(float(curved[0, 0]), 0.0))
        # The factored curvature may be that of another region's least weights: A ⪰ share · A'.
        least = self._least_weights(partition)
        pull /= math.sqrt(min(1.0, float((least / self.base).min())))
        alpha = fitted.penalty
        norm = min(norm, math.sqrt(alpha) * pull)
        anywhere = math.sqrt(self.kappa) * norm
        lowest = float((least / fitted.weights).min())
        on_average = alpha * pull / math.sqrt(fitted.weights.sum() * lowest)
        return _Moves(norm, anywhere, min(anywhere, on_average), dominant)

    def _coarse(self, partition: _Partition, spread: float) -> Bound:
        moves, merged = self._dual(partition), partition.cells
        place = moves.dominant
        return Bound(
            value=moves.on_average,
            terms={
                "cells": len(merged.successes),
                "at any single point": moves.anywhere,
                "in the kernel's norm": moves.norm,
                "dominant cell": merged.names[place],
                "its sample count": merged.sample[place],
                "its population count": merged.population[place],
            },
            assumptions=(
                *about_learner(self.fitted),
                *merged.assumptions,
                "all leaves under one node of the pruned tree share one probability of selection",
            ),
            reference="strong convexity and the counts of the pruned tree",
            statement=f"{merged.even.headline(self.likely)}, estimating the weights has moved the "
            "predictions, on coarser cells",
            reason=why_vacuous(moves.on_average, spread),
        )

    def _theorems(self) -> tuple[Bound, Bound, Bound]:
        """Return Theorem 2 as printed, corrected, and Theorem 1 over the region, in predictions."""
        fitted, cells = self.fitted, self.cells
        rows = float(cells.sample.sum())
        # The paper's weights are n_C / (m m_C); the learner's are a multiple of them.
        ratio = (cells.population / cells.sample)[cells.of_row]
        unit = rows * float(np.median(self.weights / ratio))
        of_cell = sums_by(cells.of_row, self.weights * cells.factor, len(cells.successes))
        off = np.abs(cells.shift + cells.factor - 1) @ self.weights
        moved = worst_sum(self.own.region, of_cell) + float(off)
        bounded, free = self._lipschitz(float(self.weights.sum()) + moved)
        statement = f"{cells.even.headline(self.likely)}, the change of any prediction"

        def theorem_2(form: Form, sigma: float) -> Bound:
            bound = cluster_bound(
                population_counts=cells.population,
                sample_counts=cells.sample,
                kappa=self.kappa,
                lam=fitted.penalty / unit,
                lipschitz=sigma,
                delta=self.delta,
                form=form,
            )
            return replace(bound, value=bound.value / sigma, statement=statement)

        worst = Bound(
            # Theorem 1 before its last step: sup|Δh| ≤ κ^{1/2} ‖Δh‖_K ≤ σ κ l1 / (2 λ).
            value=free * self.kappa * moved / (2 * fitted.penalty),
            terms={"l1 distance of the weights, in the learner's units": moved, "lipschitz": free},
            assumptions=(*STABLE, *cells.assumptions),
            reference=f"{PAPER}, Theorem 1, with a joint region of the counts",
            statement=statement,
        )
        return theorem_2("paper", bounded), theorem_2("corrected", free), worst

    def _lipschitz(self, total: float) -> tuple[float, float]:
        """Return σ for predictions bounded as the labels are, as the paper assumes, and without."""
        fitted = self.fitted
        if not fitted.squared:
            return 1.0, 1.0
        labels = self.predictions + fitted.penalty * fitted.coefficients / fitted.weights
        largest = float(np.abs(labels).max()) or 1.0
        sigma = partial(lipschitz_constant, "squared", largest_label=largest)
        return sigma(), sigma(kappa=self.kappa, lam=fitted.penalty, total_weight=total)

    def _spread(self) -> float:
        if self.fitted.scores is not None:
            return weighted_spread(self.fitted.scores, self.weights)
        return weighted_spread(self.predictions, self.fitted.weights)


def about_learner(fitted: KernelModel) -> tuple[str, ...]:
    """Return what the certificate of a kernel model assumes of the learner."""
    converged = f"{fitted.name} has converged, and the perfect weights have the same scale"
    if fitted.squared:
        return (converged,)
    return (
        converged,
        "the offset of the perfectly weighted model is penalised (kernel K + 1), which "
        f"{fitted.name}'s own is not: no theorem covers that",
    )


def kernel_flips(
    fitted: KernelModel, weights: FloatArray, anywhere: float, asked: Asked
) -> tuple[dict[str, float], str]:
    """Return the shares of a kernel classifier's predictions that could flip, and a sentence."""
    scores = fitted.scores
    assert scores is not None

    def read(rows: Any) -> tuple[FloatArray, FloatArray]:
        return np.empty((0, 0)), np.asarray(fitted.score(rows))

    shares = {FLIPPED: float(np.average(np.abs(scores) <= anywhere, weights=weights))}
    if asked.has_rows:
        shares[FLIPPED_IN_POPULATION] = float(asked.flips(Anywhere(anywhere), read)[0])
    return shares, flipped_remark(shares)


def region_certificate(
    fitted: KernelModel, weights: FloatArray, region: Region, known: Known, asked: Asked
) -> Bound:
    """Return the certificate of a kernel model for all weights of a region."""
    of_all = fitted.scores is not None
    spread = weighted_spread(
        fitted.scores if fitted.scores is not None else fitted.predictions,
        weights if of_all else fitted.weights,
    )
    kappa = fitted.kappa + (not fitted.squared)
    pull, _ = region.pull(fitted.contributions)
    norm = pull + abs(fitted.offset or 0.0)
    on_average = math.inf
    if fitted.squared and (region.least > 0).all():
        alpha, least = fitted.penalty, fitted.weights * region.least
        curvature = RidgeCurvature(fitted.contributions.K, least, alpha)
        curved = CurvedContributions(curvature, fitted.coefficients)
        pull, _ = region.pull(curved)
        norm = min(norm, math.sqrt(alpha) * pull)
        on_average = alpha * pull / math.sqrt(fitted.weights.sum() * float(region.least.min()))
    anywhere = math.sqrt(kappa) * norm
    value = min(anywhere, on_average)
    terms: dict[str, float] = {
        "spread of the predictions": spread,
        "dual certificate, at any single point": anywhere,
        "dual certificate, in the kernel's norm": norm,
        **known.terms,
    }
    remarks = [*known.remarks, relative_remark(value, spread)]
    if fitted.classes is not None:
        more, said = kernel_flips(fitted, weights, anywhere, asked)
        terms, remarks = {**terms, **more}, [*remarks, said]
    return Bound(
        value=value,
        terms=terms,
        assumptions=(*about_learner(fitted), *known.assumptions),
        reference=f"strong convexity and {known.region}",
        statement=f"{known.headline} the {fitted.what} (root mean square over the weighted sample)",
        reason=why_vacuous(value, spread) if value > 0 else "",
        remarks=tuple(remarks),
    )


class CurvedContributions(GramContributions):
    """Vectors of a kernel's space in the inverse of the curvature of a ridge regression."""

    def __init__(self, curvature: RidgeCurvature, coefficients: FloatArray) -> None:
        self.curvature, self.coefficients = curvature, coefficients

    def gram(self, columns: Any) -> FloatArray:
        """Return the inner products of the sums of vectors, one for each column of factors."""
        dense = columns.toarray() if hasattr(columns, "toarray") else columns
        return self.curvature.gram(self.coefficients[:, None] * dense)
