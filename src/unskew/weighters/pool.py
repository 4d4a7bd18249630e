r"""A pool of density ratios: whether it finds any difference, what it consists of, and why.

The pool of candidates' ratios is :math:`\prod_j r_j^{\theta_j}` with the exponents θ ≥ 0 of the
least held-out loss. Its own loss is judged on rows that have not contributed to the exponents. If
that is not surely below the loss log 2 of equal weights, no difference was detected.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from html import escape
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from unskew.numerics.ratio_loss import (
    RatioLoss,
    Sided,
    pool_exponents,
    pool_ratios,
    ratio_loss,
    separation,
    without_own_fold,
)
from unskew.numerics.typing import FloatArray
from unskew.numerics.weight_vectors import effective_sample_size
from unskew.population.feature_rules import FeatureRules
from unskew.rows.feature_space import MAX_CATEGORIES
from unskew.rows.features import FeatureSet
from unskew.rows.sample import Sample

DETECTED = 2.0
"""Standard errors by which the held-out gain must exceed zero."""
SEPARATED = 3.5
"""Standard errors by which its log ratios must separate held-out rows, if the gain is less: of 60
even samples that has detected one, and the gain another. Parameters were chosen on these rows."""
LEAST_GAIN = 1e-5
"""Below it, in nats, a ratio differs from one by less than a hundredth, or by rounding alone."""


class Pool(NamedTuple):
    """Exponents of the candidates' ratios, whose product is the pool's ratio.

    Attributes
    ----------
    exponents : ndarray of shape (n_candidates,)
        Those with the least held-out loss.
    loss : RatioLoss
        Of the pool on rows that have not contributed to the exponents either.
    losses : list of RatioLoss
        Of the candidates.
    separation : tuple of float
        By how much the pool's log ratio differs between such rows of either side, and its error.
    """

    exponents: FloatArray
    loss: RatioLoss
    losses: list[RatioLoss]
    separation: tuple[float, float]

    @property
    def detected(self) -> bool:
        """Whether sample and population differ, by the held-out rows."""
        difference, error = self.separation
        sure = difference > SEPARATED * error
        return self.loss.gain > max(0.0 if sure else DETECTED * self.loss.error, LEAST_GAIN)

    @classmethod
    def from_held_out(cls, candidates: list[Sided], shares: Sided, folds: Sided) -> Pool:
        """Pool held-out log ratios; the reported loss is that of exponents from other folds.

        Exponents from few effective rows differ between folds, and their loss is uncertain. Where
        such a pool detects nothing and its best candidate alone does, the pool is that candidate.
        """
        losses = [ratio_loss(one, shares) for one in candidates]
        pooled = without_own_fold(learn_pool, candidates, shares, folds)
        pool = cls(
            pool_exponents(candidates, shares),
            ratio_loss(pooled, shares),
            losses,
            separation(pooled, shares),
        )
        best = int(np.argmin([loss.value for loss in losses]))
        apart = separation(candidates[best], shares)
        alone = cls(np.eye(len(losses))[best], losses[best], losses, apart)
        return alone if alone.detected and not pool.detected else pool


def learn_pool(scores: list[Sided], shares: Sided) -> partial[Sided]:
    """Return the pool with the least loss on rows with these log ratios."""
    return partial(pool_ratios, exponents=pool_exponents(scores, shares))


@dataclass(frozen=True)
class Candidate:
    """One way of weighing the sample.

    Attributes
    ----------
    name : str
    held_out_loss : float
        The balanced log loss of its ratio on rows that it has not seen; 0.693 for equal weights.
    effective_share : float
        The effective sample size over the number of rows.
    imbalance : float
        The largest difference that its weights leave between a mean of the sample and of the
        population, in standard deviations of the population.
    most_imbalanced : str
        What has that difference.
    exponent : float
        Its power in the pool.
    """

    name: str
    held_out_loss: float
    effective_share: float
    imbalance: float
    most_imbalanced: str
    exponent: float


@dataclass(frozen=True)
class Choice:
    """What :class:`unskew.AutoWeights` has chosen; it prints as an explanation.

    Attributes
    ----------
    candidates : tuple of Candidate
        Equal weights first.
    gain, gain_error : float
        How far the pool's held-out loss is below that of equal weights, and its standard error.
    detected : bool
        Whether the gain exceeds two standard errors, or held-out rows are separated by three and a
        half; if not, the pool's weights are equal.
    chosen : Candidate
        The weights themselves.
    n_capped : int
        Sample rows whose weight ``max_weight`` has cut.
    calibrated_to : str or None
    """

    candidates: tuple[Candidate, ...]
    gain: float
    gain_error: float
    detected: bool
    chosen: Candidate
    n_capped: int
    calibrated_to: str | None

    @property
    def sentence(self) -> str:
        """The choice in words."""
        gain = f"held-out gain {self.gain:.3f} ± {self.gain_error:.3f} nats"
        if self.detected:
            parts = [c for c in self.candidates if c.exponent > 0.005]
            pool = " and ".join(f"{c.name} ({c.exponent:.1f})" for c in parts) or "nothing"
            text = f"Selection was detected: {gain}. Weights pool {pool}"
        else:
            text = f"No selection was detected: {gain}. The weights are equal"
        if self.calibrated_to:
            text += f", then match the population's {self.calibrated_to}"
        kept = f"they keep {self.chosen.effective_share:.0%} of the effective sample"
        left = f"largest imbalance left {self.chosen.imbalance:.2f} sd"
        left += f" ({self.chosen.most_imbalanced})" if self.chosen.most_imbalanced else ""
        text += f"; {kept}; {left}."
        if self.n_capped:
            text += f" {self.n_capped} weights were cut at max_weight."
        return text

    @property
    def _lines(self) -> Iterator[tuple[str, ...]]:
        yield ("candidate", "held-out loss", "effective", "imbalance left", "exponent")
        for one in (*self.candidates, self.chosen):
            loss = "" if np.isnan(one.held_out_loss) else f"{one.held_out_loss:.4f}"
            power = "" if np.isnan(one.exponent) else f"{one.exponent:.2f}"
            left = f"{one.imbalance:.3f} {one.most_imbalanced}".strip()
            yield (one.name, loss, f"{one.effective_share:.0%}", left, power)

    def __str__(self) -> str:
        lines = list(self._lines)
        widths = [max(len(line[place]) for line in lines) for place in range(5)]
        table = "\n".join(
            "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()
            for line in lines
        )
        return f"{self.sentence}\n\n{table}"

    def _repr_html_(self) -> str:
        head, *body = self._lines
        rows = [f"<tr>{''.join(f'<th>{escape(text)}</th>' for text in head)}</tr>"]
        rows += [
            f"<tr>{''.join(f'<td>{escape(text)}</td>' for text in line)}</tr>" for line in body
        ]
        return f"<p>{escape(self.sentence)}</p><table>{''.join(rows)}</table>"


class Imbalance:
    """The difference of weighted means of the sample from those of the whole population.

    Parameters
    ----------
    sample : Sample
        All of it: a category of rows without weight has a share of zero, and is left as it is.
    values, batch, weight : ndarray, pyarrow.RecordBatch and ndarray
        The codes, the rows and the weights of the population.
    """

    def __init__(
        self, sample: Sample, values: FloatArray, batch: pa.RecordBatch, weight: FloatArray
    ) -> None:
        terms = FeatureRules(sample.with_design(np.ones(len(sample)))).means(MAX_CATEGORIES)
        features = FeatureSet(sample.codes, terms)
        self.names, self.n_rows = features.names, np.count_nonzero(sample.design)
        share = weight / weight.sum()
        with np.errstate(over="ignore", invalid="ignore"):
            self.sample = features.of_rows(sample.values, sample.batch)
            rows = features.of_rows(values, batch)  # a row with another level has none of these
            numbers, present = rows.matrix, ~np.isnan(rows.matrix)
            numbers[~present] = 0.0
            known = share @ present
            self.means = rows.sums(share)
            variance = self.means * (1 - self.means)  # of an indicator
            means = self.means[rows.columns] = self.means[rows.columns] / known
            squares = np.where(present, numbers - means, 0.0) ** 2
            variance[rows.columns] = share @ squares / known
        self.spread = np.sqrt(np.where(variance > 0, variance, np.nan))

    def candidate(
        self, name: str, weights: FloatArray, loss: float = np.nan, exponent: float = np.nan
    ) -> Candidate:
        """Describe weights of the sample's rows."""
        with np.errstate(over="ignore", invalid="ignore"):
            share = weights / weights.sum()
            left = np.abs(self.sample.sums(share) - self.means) / self.spread
        place = int(np.nanargmax(left)) if np.isfinite(left).any() else None
        return Candidate(
            name,
            loss,
            effective_sample_size(weights) / self.n_rows,
            0.0 if place is None else float(left[place]),
            "" if place is None else self.names[place],
            exponent,
        )
