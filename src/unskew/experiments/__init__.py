"""Experiments on selection bias, written against the public interface alone."""
