"""Serialise code and partial summaries for other machines.

Code is pickled *by value*: functions and classes of unskew are sent completely, so that the
executors need not have unskew, and only what a task calls is imported there. Partial summaries are
sent without what all copies of a summary share (the encoder, the tree, the sample's points) and
without their classes: both ends already have these.
"""

from __future__ import annotations

import functools
import io
import pickle
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

from unskew.population.summaries import Summary

__all__ = ["by_value", "nested_summaries", "pack", "unpack"]


def by_value(task: Any) -> bytes:
    """Return ``task`` pickled so that it can be loaded on machines without unskew."""
    from pyspark import cloudpickle

    import unskew

    class Pickler(cloudpickle.CloudPickler):
        def reducer_override(self, obj: Any) -> Any:
            # cloudpickle cannot pickle these two by value.
            if isinstance(obj, functools.cached_property):
                return functools.cached_property, (obj.func,), {"attrname": obj.attrname}
            if isinstance(obj, functools._lru_cache_wrapper):
                return functools.cache, (obj.__wrapped__,)
            # Expressions are built only on the driver, so executors do not need narwhals.
            if isinstance(obj, ModuleType) and obj.__name__.partition(".")[0] == "narwhals":
                return SimpleNamespace, ()
            return super().reducer_override(obj)

    buffer = io.BytesIO()
    registered = unskew.__name__ in cloudpickle.list_registry_pickle_by_value()
    cloudpickle.register_pickle_by_value(unskew)
    try:
        Pickler(buffer).dump(task)
    finally:
        if not registered:
            cloudpickle.unregister_pickle_by_value(unskew)
    return buffer.getvalue()


def nested_summaries(summary: Summary) -> Iterator[Summary]:
    """Yield a summary and the summaries within it."""
    yield summary
    for name, value in vars(summary).items():
        if name in summary.shared:
            continue
        for inner in value if isinstance(value, list) else [value]:
            if isinstance(inner, Summary):
                yield from nested_summaries(inner)


def _known_to_both_ends(empty: Summary) -> list[Any]:
    return [
        part
        for summary in nested_summaries(empty)
        for part in (type(summary), *(vars(summary).get(n) for n in sorted(summary.shared)))
    ]


def pack(partial: Summary, empty: Summary) -> bytes:
    """Serialise ``partial``, a filled copy of ``empty``, without what ``empty`` contains."""
    from pyspark.cloudpickle import CloudPickler

    places = {id(part): place for place, part in enumerate(_known_to_both_ends(empty))}

    class Packer(CloudPickler):
        def persistent_id(self, obj: Any) -> int | None:
            return places.get(id(obj))

    buffer = io.BytesIO()
    Packer(buffer).dump(partial)
    return buffer.getvalue()


def unpack(data: bytes, empty: Summary) -> Any:
    """Return the summary that :func:`pack` serialised."""
    known = _known_to_both_ends(empty)

    class Unpacker(pickle.Unpickler):
        def persistent_load(self, pid: Any) -> Any:
            return known[pid]

    return Unpacker(io.BytesIO(data)).load()
