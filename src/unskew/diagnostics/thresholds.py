"""The limits by which a verdict is reached."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields

from unskew.overlap import LIMIT

__all__ = ["THRESHOLDS", "Thresholds"]


def _threshold(value: float, label: str, *, is_share: bool) -> float:
    found: float = field(default=value, metadata={"label": label, "is_share": is_share})
    return found


@dataclass(frozen=True)
class Thresholds:
    """The limits of a verdict, each with the label that a report shows beside it."""

    significance_level: float = _threshold(
        0.05, "Significance level of the two tests together", is_share=True
    )
    max_uncovered: float = _threshold(
        LIMIT, "Uncovered share above which weights cannot correct the bias", is_share=True
    )
    balanced_difference: float = _threshold(
        0.1, "Standardised difference up to which a feature counts as balanced", is_share=False
    )
    balanced_auc: float = _threshold(
        0.55, "AUC up to which sample and population count as balanced", is_share=False
    )
    min_effective_share: float = _threshold(
        0.5, "Effective share of the sample below which weights are costly", is_share=True
    )

    def described(self) -> Iterator[tuple[str, float, bool]]:
        """Yield the label and the value of each limit, and whether it is a share of one."""
        for limit in fields(self):
            yield limit.metadata["label"], getattr(self, limit.name), limit.metadata["is_share"]


THRESHOLDS = Thresholds()
