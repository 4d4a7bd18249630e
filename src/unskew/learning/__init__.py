"""Training and judging learners with weights."""
