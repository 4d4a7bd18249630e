"""How code and partial answers travel between machines.

Code travels *by value*: functions and classes of unskew are sent in full, so that the receiving
machines need not have unskew installed, and import only what a task calls. Partial answers travel
without what all copies of a summary share (the encoder, the tree, the sample's points) and without
their classes, which both ends already have.
"""

from __future__ import annotations

import functools
import io
import pickle
from collections.abc import Iterator
from typing import Any

from unskew.population.summaries import Summary


def by_value(task: Any) -> bytes:
    """Return ``task`` pickled so that it can be loaded where unskew is not installed."""
    from pyspark import cloudpickle

    import unskew

    class Pickler(cloudpickle.CloudPickler):
        def reducer_override(self, obj: Any) -> Any:
            # cloudpickle cannot pickle these two by value.
            if isinstance(obj, functools.cached_property):
                return functools.cached_property, (obj.func,), {"attrname": obj.attrname}
            if isinstance(obj, functools._lru_cache_wrapper):
                return functools.cache, (obj.__wrapped__,)
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
    for part in summary.nested():
        yield from nested_summaries(part)


def _known_to_both_ends(empty: Summary) -> list[Any]:
    return [
        part
        for summary in nested_summaries(empty)
        for part in (type(summary), *(vars(summary).get(n) for n in sorted(summary.shared)))
    ]


def pack(partial: Summary, empty: Summary) -> bytes:
    """Return ``partial``, a filled copy of ``empty``, pickled without what the two share."""
    from pyspark.cloudpickle import CloudPickler

    places = {id(part): place for place, part in enumerate(_known_to_both_ends(empty))}

    class Packer(CloudPickler):
        def persistent_id(self, obj: Any) -> int | None:
            return places.get(id(obj))

    buffer = io.BytesIO()
    Packer(buffer).dump(partial)
    return buffer.getvalue()


def unpack(data: bytes, empty: Summary) -> Any:
    """Return the summary that :func:`pack` was given."""
    known = _known_to_both_ends(empty)

    class Unpacker(pickle.Unpickler):
        def persistent_load(self, pid: Any) -> Any:
            return known[pid]

    return Unpacker(io.BytesIO(data)).load()
