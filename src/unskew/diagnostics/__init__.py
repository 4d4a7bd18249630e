"""Measure bias, overlap and the effect of weights: arrays in, frozen dataclasses out."""

from unskew.diagnostics.diagnose import diagnose
from unskew.diagnostics.diagnosis import Diagnosis
from unskew.overlap.overlap import Overlap, OverlapRule

__all__ = ["Diagnosis", "Overlap", "OverlapRule", "diagnose"]
