"""Where the sample does not cover the population, and how that is reported."""

from unskew.overlap.measure import bounded, measure_overlap
from unskew.overlap.overlap import LIMIT, Overlap, OverlapRule
from unskew.overlap.rounding import align
from unskew.overlap.scales import ScaleCheck
from unskew.overlap.search import OverlapSearch
from unskew.overlap.words import warn_of_unseen

__all__ = [
    "LIMIT",
    "Overlap",
    "OverlapRule",
    "OverlapSearch",
    "ScaleCheck",
    "align",
    "bounded",
    "measure_overlap",
    "warn_of_unseen",
]
