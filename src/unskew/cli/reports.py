"""Reports that commands write."""

from __future__ import annotations


def write_report(*args, **kwargs):
    raise NotImplementedError
