"""Measurements, each a command that anyone can run again: ``python -m benchmarks.NAME``."""
