"""Arrays in, frozen dataclasses out: is there bias, is there overlap, did the weights help."""

from unskew.diagnostics.diagnose import diagnose
from unskew.diagnostics.diagnosis import Diagnosis
from unskew.overlap import Overlap, OverlapRule

__all__ = ["Diagnosis", "Overlap", "OverlapRule", "diagnose"]
