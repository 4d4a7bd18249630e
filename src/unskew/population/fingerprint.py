"""A short name for a question, by which a later process knows it again.

Pickled bytes would not do: they depend on which equal objects happen to be one and the same, and on
padding within records. So values are walked and only what they mean is hashed.
"""

from __future__ import annotations

import copyreg
import hashlib
from collections.abc import Callable, Iterable
from enum import Enum
from operator import itemgetter
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import numpy as np
import pyarrow as pa

from unskew.errors import ParameterError

__all__ = ["fingerprint"]


def fingerprint(value: Any) -> str:
    """Return the same short text for values that mean the same, in any process.

    Takes plain values, containers, arrays, Arrow data, and objects of which pickle could take a
    copy. Anything else, a lambda or an open file say, is refused.

    Examples
    --------
    >>> fingerprint({"a": np.arange(3)}) == fingerprint({"a": np.array([0, 1, 2])})
    True
    >>> fingerprint([1, 2]) == fingerprint([1, 3])
    False
    """
    hasher = hashlib.sha256()
    _walk(value, hasher.update, ())
    return hasher.hexdigest()


def _walk(value: Any, put: Callable[[bytes], object], above: tuple[int, ...]) -> None:
    if id(value) in above:
        put(b"cycle")
        return
    above = (*above, id(value))
    put(f"<{type(value).__module__}.{type(value).__qualname__}".encode())
    match value:
        case None | bool() | int() | float() | complex() | str() if not isinstance(value, Enum):
            put(repr(value).encode("utf-8", "surrogatepass"))
        case bytes() | bytearray():
            put(bytes(value))
        case np.ndarray():
            _walk_array(value, put, above)
        case np.generic():
            _walk_array(np.asarray(value), put, above)
        case np.dtype() | pa.DataType() | pa.Field() | pa.Schema() | Enum():
            put(str(value).encode())
        case pa.RecordBatch() | pa.Table():
            put(str(value.schema.remove_metadata()).encode())
            for column in value.columns:
                _walk_arrow(column, put, above)
        case pa.Array() | pa.ChunkedArray():
            _walk_arrow(value, put, above)
        case pa.Scalar():
            _walk(value.as_py(), put, above)
        case list() | tuple():
            _walk_all(value, put, above)
        case set() | frozenset():
            _walk_all(sorted(fingerprint(entry) for entry in value), put, above)
        case dict():
            in_order = all(isinstance(key, str) for key in value)
            for key, entry in (
                sorted(value.items(), key=itemgetter(0)) if in_order else value.items()
            ):
                _walk(key, put, above)
                _walk(entry, put, above)
        case type() | BuiltinFunctionType() | FunctionType() | np.ufunc():
            put(_global_name(value).encode())
        case MethodType():
            _walk_all([value.__self__, value.__name__], put, above)
        case _:
            _walk_object(value, put, above)
    put(b">")


def _walk_all(
    values: Iterable[Any], put: Callable[[bytes], object], above: tuple[int, ...]
) -> None:
    for value in values:
        _walk(value, put, above)


def _walk_array(
    array: np.ndarray[Any, Any], put: Callable[[bytes], object], above: tuple[int, ...]
) -> None:
    put(f"{array.dtype.str}{array.shape}".encode())
    if array.dtype.names:  # field by field: the bytes between fields mean nothing
        for name in array.dtype.names:
            put(name.encode())
            _walk_array(array[name], put, above)
    elif array.dtype.hasobject:
        _walk_all(array.ravel().tolist(), put, above)
    else:
        put(np.ascontiguousarray(array).tobytes())


def _walk_arrow(column: Any, put: Callable[[bytes], object], above: tuple[int, ...]) -> None:
    # By values: offsets, padding and what lies under a missing value mean nothing.
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    put(str(column.type).encode())
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind):
        _walk_array(column.is_valid().to_numpy(zero_copy_only=False), put, above)
        _walk_array(column.drop_null().to_numpy(zero_copy_only=False), put, above)
    else:
        for value in column.to_pylist():
            put(repr(value).encode("utf-8", "surrogatepass"))
            put(b",")


def _global_name(value: Any) -> str:
    name = f"{value.__module__}.{value.__qualname__}" if hasattr(value, "__qualname__") else ""
    if isinstance(value, np.ufunc):
        name = f"numpy.{value.__name__}"
    if not name or "<lambda>" in name or getattr(value, "__closure__", None):
        raise ParameterError(
            f"{value!r} has no name by which a later process could know it again; define it with "
            "def or class at the top of a module."
        )
    return name


def _walk_object(value: Any, put: Callable[[bytes], object], above: tuple[int, ...]) -> None:
    try:
        reducer = copyreg.dispatch_table.get(type(value))
        reduced = reducer(value) if reducer else value.__reduce_ex__(4)
    except (TypeError, AttributeError) as error:
        raise ParameterError(
            f"A {type(value).__name__} cannot be told from another one ({error})."
        ) from error
    if isinstance(reduced, str):
        put(reduced.encode())
        return
    maker, arguments, *rest = reduced
    _walk_all([maker, arguments], put, above)
    for position, entry in enumerate(rest):
        # The third and fourth are iterators over the entries of a list or a dict.
        _walk(list(entry) if position in (1, 2) and entry is not None else entry, put, above)
