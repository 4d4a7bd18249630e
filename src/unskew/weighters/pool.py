"""A pool of candidates' density ratios, and whether it finds any difference at all."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from unskew.numerics.ratio_loss import RatioLoss, Sided, pool_exponents, ratio_loss, separation
from unskew.numerics.typing import FloatArray
from unskew.weighters.two_samples import TwoSamples

LIMIT = 8.0
"""The logarithm of a candidate's ratio is kept within plus and minus this."""
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
    def of(cls, candidates: list[Sided], rows: TwoSamples, dealt: Sided, n_folds: int) -> Pool:
        """Pool held-out log ratios; the reported loss is that of exponents from other folds.

        Exponents from few effective rows differ between folds, and their loss is uncertain. Where
        such a pool detects nothing and its best candidate alone does, the pool is that candidate.
        """
        limited = [limit(one) for one in candidates]
        losses = [ratio_loss(one, rows.shares) for one in limited]
        exponents = pool_exponents(limited, rows.shares)
        pooled = product(limited, exponents)
        for number in range(n_folds if n_folds > 1 else 0):
            others = [side != number for side in dealt]
            if not all(other.any() for other in others):
                continue
            part = [_only(one, others) for one in limited]
            shares = Sided(*(side / side.sum() for side in _only(rows.shares, others)))
            own = product(limited, pool_exponents(part, shares))
            for side, new, other in zip(pooled, own, others, strict=True):
                side[~other] = new[~other]
        pool = cls(
            exponents,
            ratio_loss(pooled, rows.shares),
            losses,
            separation(pooled, rows.shares),
        )
        best = int(np.argmin([loss.value for loss in losses]))
        apart = separation(limited[best], rows.shares)
        alone = cls(np.eye(len(losses))[best], losses[best], losses, apart)
        return alone if alone.detected and not pool.detected else pool


def limit(log_ratios: Sided) -> Sided:
    """Return log ratios kept within the limits."""
    return Sided(*(np.clip(side, -LIMIT, LIMIT) for side in log_ratios))


def product(candidates: list[Sided], exponents: FloatArray) -> Sided:
    """Return the logarithm of the product of powers of ratios."""
    sides = zip(*candidates, strict=True)
    return Sided(*(np.tensordot(exponents, np.array(side), 1) for side in sides))


def _only(values: Sided, kept: list[FloatArray]) -> Sided:
    return Sided(*(side[one] for side, one in zip(values, kept, strict=True)))
