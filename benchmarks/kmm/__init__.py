"""Kernel mean matching beside its peers."""
