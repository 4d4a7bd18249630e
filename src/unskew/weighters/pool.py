"""A pool of candidates' density ratios, and whether it finds any difference at all."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from unskew.numerics.ratio_loss import RatioLoss, Sided, pool_exponents, ratio_loss
from unskew.numerics.typing import FloatArray
from unskew.weighters.two_samples import TwoSamples

LIMIT = 8.0
"""The logarithm of a candidate's ratio is kept within plus and minus this."""
DETECTED = 2.0
"""Standard errors by which the held-out gain must exceed zero."""
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
    """

    exponents: FloatArray
    loss: RatioLoss
    losses: list[RatioLoss]

    @property
    def detected(self) -> bool:
        """Whether sample and population differ, by the held-out rows."""
        return self.loss.gain > max(DETECTED * self.loss.error, LEAST_GAIN)

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
        pool = cls(exponents, ratio_loss(pooled, rows.shares), losses)
        best = int(np.argmin([loss.value for loss in losses]))
        alone = cls(np.eye(len(losses))[best], losses[best], losses)
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
