"""Benchmarks of density ratios on a kernel basis."""
