"""Populations of any size: this machine, and Spark."""
