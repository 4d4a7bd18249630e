"""Measurements of the bounds and certificates."""
