"""The certificate of a fitted model: by how much estimating the weights can have changed it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from unskew.errors import ParameterError
from unskew.numerics.joint_region import RelativeErrors, worst_norm, worst_sum
from unskew.numerics.typing import FloatArray
from unskew.theory.bound import Bound, Form
from unskew.theory.checks import check_probability
from unskew.theory.cluster import cluster_bound
from unskew.theory.dual import RidgeCurvature
from unskew.theory.fitted import KernelModel, read_model
from unskew.theory.mean_certificate import mean_certificate, why_vacuous
from unskew.theory.partitions import CountedCells, coarser, read_cells, sums_by
from unskew.theory.refit_spread import refit_spread
from unskew.theory.regularisation import lipschitz_constant
from unskew.theory.stability import PAPER, STABLE

FEW_ROWS = 10
"""Where cells hold fewer rows than this on average, the curvature is not used: the certificate is
vacuous there either way, and would cost more than the fit. Not tuned."""


def certificate(
    reweighted_model: Any,
    delta: float = 0.05,
    *,
    population: Any = None,
    coarse_cells: int = 60,
    refits: int = 10,
    random_state: Any = 0,
) -> Bound:
    r"""Bound by how much estimating the weights can have changed a fitted model.

    Compares the model with the one that the same learner would have given with the perfect
    weights, in the same scale. The value bounds by how much the predictions differ, as a root mean
    square over the weighted sample, with probability at least 1 − δ, if selection is even within
    cells. That is tested at level 0.05 on the rows that the weighter examined; unless the test lets
    it stand, the statement says so first. The bound is vacuous where it is no smaller than the
    spread of the predictions themselves.

    The value is the dual certificate (:mod:`unskew.theory.dual`) maximised over all probabilities
    of selection that the counts of the cells allow (:mod:`unskew.numerics.joint_region`). The
    terms also hold, in the same units, the printed and the corrected Theorem 2, and Theorem 1 with
    the worst distance that the counts allow.

    Parameters
    ----------
    reweighted_model : Reweighted
        Fitted; its learner is KernelRidge or SVR, by itself or as the last step of a pipeline, with
        a kernel that has a bound. Its weighter counts cells (``TreeWeights``, ``ClusterWeights``,
        ``HistogramWeights``, ``FrequencyWeights``) or is ``KernelMeanMatching``. Anything else is
        a ``LearnerError`` whose message begins with "not covered" and gives the reason.
    delta : float, default=0.05
        The probability with which the bound may fail.
    population : Population, or anything that :class:`unskew.Population` takes, optional
        Only for kernel mean matching: the population, to compare the means in the learner's kernel.
    coarse_cells : int, default=60
        For trees with smaller leaves: the least number of rows in the cells of a pruned tree. A
        second certificate uses these cells; it assumes more, and its bound is smaller. It is left
        out where the same test finds that selection differs within them.
    refits : int, default=10
        How many draws of the weights estimate what a refit would change; this is not a bound.
    random_state : int, RandomState instance or None, default=0
        For those draws.

    Returns
    -------
    Bound

    Notes
    -----
    With kernel mean matching, whose single weights are not determined, the value bounds how far the
    weighted sample's mean prediction is from the population's.

    Where cells hold fewer than ten rows on average, the curvature of the squared loss is not used:
    the certificate is vacuous there either way, and would cost more than the fit.

    SVR does not penalise its offset, which Theorem 1 does not allow. It is compared with the
    perfectly weighted model of the kernel K + 1, whose offset is penalised; the fitted offset's
    size is part of the bound.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.kernel_ridge import KernelRidge
    >>> from unskew import HistogramWeights, Reweighted
    >>> from unskew.theory import certificate
    >>> random = np.random.default_rng(0)
    >>> population = random.integers(0, 5, size=(4000, 1)).astype(float)
    >>> selected = random.uniform(size=4000) < 0.2 + 0.15 * population[:, 0]
    >>> sample = population[selected]
    >>> labels = np.sin(sample[:, 0]) + 0.1 * random.normal(size=len(sample))
    >>> model = Reweighted(KernelRidge(kernel="rbf", gamma=1.0),
    ...                    HistogramWeights(buckets={0: [0.5, 1.5, 2.5, 3.5]}))
    >>> bound = certificate(model.fit(sample, labels, population=population))
    >>> bound.vacuous, bound < 0.1 * bound.terms["spread of the predictions"]
    (False, True)
    """
    delta = check_probability(delta, name="delta")
    for name, number in (("coarse_cells", coarse_cells), ("refits", refits)):
        if not isinstance(number, Integral) or number < 1:
            raise ParameterError(f"{name} must be a whole number of at least 1; got {number!r}.")
    fitted = read_model(reweighted_model)
    weighter = reweighted_model.weighter_
    if getattr(weighter, "_matches_kernel_means", False):
        return mean_certificate(reweighted_model, fitted, delta, population)
    if population is not None:
        raise ParameterError(
            "population is only for kernel mean matching; the cells of "
            f"{type(weighter).__name__} have been counted already."
        )
    weights = reweighted_model.weights_
    cells = read_cells(weighter, weights)
    merged = coarser(cells, weighter, int(coarse_cells))
    return _Certifier(fitted, weights, cells, merged, delta).answer(int(refits), random_state)


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


class _Certifier:
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

    def answer(self, refits: int, random_state: Any) -> Bound:
        """Return the certificate with all its terms."""
        own = self._dual(self.own)
        spread = self._spread()
        estimate = refit_spread(
            self.fitted,
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
        even = self.cells.even
        if even.p_value is not None:
            terms["p-value of even selection within cells"] = even.p_value
        value, place = own.on_average, own.dominant
        counts = self.cells.sample[place], self.cells.population[place]
        remarks = [
            even.remark,
            f"That is {value / spread:.2g} times the spread of the predictions, {spread:.3g}."
            if spread
            else "All predictions are equal.",
            f"At any single point they have moved by at most {own.anywhere:.3g}; the bound of the "
            f"printed theorem is {printed.value:.3g}.",
            f"The largest part comes from cell {self.cells.names[place]}, of which {counts[0]:.0f} "
            f"of {counts[1]:.0f} rows are in the sample.",
        ]
        if self.merged is not None:
            coarse = self._coarse(self.merged, spread)
            terms["on coarser cells"] = coarse
            remarks.append(
                f"On {len(self.merged.cells.successes)} coarser cells, if each has one probability "
                f"of selection: at most {coarse.value:.3g}."
            )
        if self.rejected is not None:
            remarks.append(
                f"No bound on {len(self.rejected.successes)} coarser cells is given: selection "
                f"differs within them (p = {self.rejected.even.p_value:.2g})."
            )
        remarks.append(
            "As an estimate, not a bound: refits with weights drawn as the counts allow move the "
            f"predictions by {estimate:.3g}."
        )
        return Bound(
            value=value,
            terms=terms,
            assumptions=(*self._about_learner(), *self.cells.assumptions),
            reference=f"strong convexity and the counts of {len(self.cells.successes)} cells; "
            f"{PAPER}, Theorems 1 and 2, beside it",
            statement=f"{even.headline(self.likely)}, estimating the weights has moved the "
            "predictions (root mean square over the weighted sample)",
            reason=why_vacuous(value, spread) if value > 0 else "",
            remarks=tuple(remarks),
        )

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
                *self._about_learner(),
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
        weights = self.fitted.weights
        mean = np.average(self.predictions, weights=weights)
        return float(np.sqrt(np.average((self.predictions - mean) ** 2, weights=weights)))

    def _about_learner(self) -> tuple[str, ...]:
        converged = f"{self.fitted.name} has converged, and the perfect weights have the same scale"
        if self.fitted.squared:
            return (converged,)
        return (
            converged,
            "the offset of the perfectly weighted model is penalised (kernel K + 1), which SVR's "
            "own is not: no theorem covers that",
        )
