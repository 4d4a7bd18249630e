"""The certificate of a kernel model whose weights lie in a region."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from unskew.numerics.joint_region import worst_sum
from unskew.numerics.typing import FloatArray
from unskew.theory.asked import Asked
from unskew.theory.bound import Bound, Form
from unskew.theory.cluster import cluster_bound
from unskew.theory.dual import RidgeCurvature
from unskew.theory.fitted import KernelModel
from unskew.theory.flips import Anywhere
from unskew.theory.mean_certificate import why_vacuous
from unskew.theory.partitions import sums_by
from unskew.theory.regions import CellRegion, GramContributions, Region
from unskew.theory.regularisation import lipschitz_constant
from unskew.theory.stability import PAPER, STABLE
from unskew.theory.wording import (
    FLIPPED,
    FLIPPED_IN_POPULATION,
    Known,
    dominant_remark,
    dominant_terms,
    flipped_remark,
    relative_remark,
    weighted_spread,
)

FEW_ROWS = 10
"""Where cells hold fewer rows than this on average, the curvature is not used: the certificate is
vacuous there either way, and would cost more than the fit. Not tuned."""


def paper_terms(
    fitted: KernelModel, weights: FloatArray, region: CellRegion, delta: float
) -> dict[str, Bound]:
    """Return what the paper's theorems say of any single prediction, where weights are counts."""
    cells, kappa = region.cells, _kappa_with_offset(fitted)
    rows = float(cells.sample.sum())
    # The paper's weights are n_C / (m m_C); the learner's are a multiple of them.
    ratio = (cells.population / cells.sample)[cells.of_row]
    unit = rows * float(np.median(weights / ratio))
    of_cell = sums_by(cells.of_row, weights * cells.factor, len(cells.successes))
    off = np.abs(cells.shift + cells.factor - 1) @ weights
    moved = worst_sum(region.errors, of_cell) + float(off)
    bounded, free = _lipschitz(fitted, float(weights.sum()) + moved)
    likely = f"With probability {100 * (1 - delta):.6g} %"
    statement = f"{cells.even.headline(likely)}, the change of any prediction"

    def theorem_2(form: Form, sigma: float) -> Bound:
        bound = cluster_bound(
            population_counts=cells.population,
            sample_counts=cells.sample,
            kappa=kappa,
            lam=fitted.penalty / unit,
            lipschitz=sigma,
            delta=delta,
            form=form,
        )
        return replace(bound, value=bound.value / sigma, statement=statement)

    worst = Bound(
        # Theorem 1 before its last step: sup|Δh| ≤ κ^{1/2} ‖Δh‖_K ≤ σ κ l1 / (2 λ).
        value=free * kappa * moved / (2 * fitted.penalty),
        terms={"l1 distance of the weights, in the learner's units": moved, "lipschitz": free},
        assumptions=(*STABLE, *cells.assumptions),
        reference=f"{PAPER}, Theorem 1, with a joint region of the counts",
        statement=statement,
    )
    return {
        "Theorem 1, worst case over the counts": worst,
        "Theorem 2, corrected": theorem_2("corrected", free),
        "Theorem 2, as printed": theorem_2("paper", bounded),
    }


def _kappa_with_offset(fitted: KernelModel) -> float:
    """Return κ; an offset is certified as if penalised, by the kernel K + 1."""
    return fitted.kappa + (not fitted.squared)


def _lipschitz(fitted: KernelModel, total: float) -> tuple[float, float]:
    """Return σ for predictions bounded as the labels are, as the paper assumes, and without."""
    if not fitted.squared:
        return 1.0, 1.0
    labels = fitted.predictions + fitted.penalty * fitted.coefficients / fitted.weights
    largest = float(np.abs(labels).max()) or 1.0
    sigma = partial(lipschitz_constant, "squared", largest_label=largest)
    kappa = _kappa_with_offset(fitted)
    return sigma(), sigma(kappa=kappa, lam=fitted.penalty, total_weight=total)


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
    kappa = _kappa_with_offset(fitted)
    pull, dominant = region.pull(fitted.contributions)
    norm = pull + abs(fitted.offset or 0.0)
    on_average = math.inf
    few = isinstance(region, CellRegion) and region.has_few_rows(FEW_ROWS)
    if fitted.squared and (region.least > 0).all() and not few:
        alpha, least = fitted.penalty, fitted.weights * region.least
        curved = CurvedContributions(fitted.curvature(least), fitted.coefficients)
        pull, dominant = region.pull(curved)
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
    if isinstance(region, CellRegion):
        terms |= dominant_terms(region.cells, dominant)
        remarks.append(dominant_remark(region.cells, dominant))
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
