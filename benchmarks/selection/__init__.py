"""Weights by the odds of selection: how near the truth they come, and what they cost."""
