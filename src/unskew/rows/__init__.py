"""Rows of a sample or of a batch: their columns, codes, labels and features."""
