"""What a summary has gathered, as plain data that a file can hold.

Nothing is ever executed to read it back: numbers, text and containers are JSON, arrays are NumPy's
own format without pickled objects, rows are Arrow's. The object into which the state is put comes
from the caller, who asks the same question again; only what the pass has gathered comes from the
file.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable
from enum import Enum
from types import BuiltinFunctionType, FunctionType
from typing import Any

import numpy as np
import pyarrow as pa

from unskew.errors import ParameterError
from unskew.population.summaries import Summary

__all__ = ["load_state", "save_state"]

_CONTAINERS = {kind.__name__: kind for kind in (list, tuple, set, frozenset)}
_MAPPINGS = {kind.__name__: kind for kind in (dict, Counter)}
_CONSTANTS = (type, Enum, BuiltinFunctionType, FunctionType, np.ufunc, np.dtype, pa.DataType)


def save_state(summary: Summary, empty: Summary) -> tuple[Any, dict[str, bytes]]:
    """Return what ``summary`` has gathered, as JSON and as files named in it.

    ``empty`` is the question as it was put. What cannot be kept is refused by name.
    """
    writer = _Writer(type(summary).__name__)
    return writer.encode(summary, empty, ""), writer.files


def load_state(summary: Summary, state: Any, files: dict[str, bytes]) -> None:
    """Put back into an empty ``summary`` what :func:`save_state` has returned of its like."""
    _Reader(files).decode(state, summary)


class _Writer:
    def __init__(self, name: str) -> None:
        self._name = name
        self.files: dict[str, bytes] = {}
        self._arrays: list[np.ndarray[Any, Any]] = []
        self._containers: dict[int, Any] = {}

    def encode(self, value: Any, empty: Any, where: str) -> Any:
        if isinstance(value, _CONSTANTS):
            if value is not empty and value != empty:
                raise self._refused(value, where)
            return {"constant": None}
        if value is None or type(value) in (bool, int, str):
            return value
        if type(value) is float:
            return {"float": value.hex()}
        if type(value) is complex:
            return {"complex": [value.real.hex(), value.imag.hex()]}
        if type(value) is bytes:
            return {"bytes": value.hex()}
        if isinstance(value, Summary):
            return self._encode_summary(value, empty, where)
        if type(value) is np.ndarray or isinstance(value, np.generic):
            return self._encode_array(value, where)
        if isinstance(value, pa.RecordBatch | pa.Table | pa.Array):
            return self._encode_rows(value)
        return self._encode_container(value, empty, where)

    def _encode_summary(self, value: Summary, empty: Any, where: str) -> Any:
        self._only_once(value, where)
        if type(value) is not type(empty) or not hasattr(value, "__dict__"):
            raise self._refused(value, where)
        return {
            "summary": {
                name: self.encode(entry, vars(empty).get(name), f"{where}.{name}")
                for name, entry in vars(value).items()
                if name not in value.shared
            }
        }

    def _encode_array(self, value: Any, where: str) -> Any:
        array = np.asarray(value)
        if array.dtype.hasobject:
            raise self._refused(value, where)
        if isinstance(value, np.ndarray):
            if any(np.may_share_memory(array, other) for other in self._arrays):
                raise self._shared(where)
            self._arrays.append(array)
        buffer = io.BytesIO()
        np.lib.format.write_array(buffer, array, allow_pickle=False)
        kind = "array" if isinstance(value, np.ndarray) else "scalar"
        return {kind: self._file(buffer.getvalue(), "npy")}

    def _encode_rows(self, value: Any) -> Any:
        table = value
        if isinstance(value, pa.RecordBatch):
            table = pa.Table.from_batches([value])
        elif isinstance(value, pa.Array):
            table = pa.table({"": value})
        sink = io.BytesIO()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        kind = {pa.RecordBatch: "batch", pa.Table: "table"}.get(type(value), "arrow")
        return {kind: self._file(sink.getvalue(), "arrow")}

    def _encode_container(self, value: Any, empty: Any, where: str) -> Any:
        if type(value) in _CONTAINERS.values():
            if not isinstance(value, tuple | frozenset):
                self._only_once(value, where)
            old = list(empty) if type(empty) is type(value) and isinstance(empty, list) else []
            old += [None] * (len(value) - len(old))
            entries = [
                self.encode(entry, was, f"{where}[{number}]")
                for number, (entry, was) in enumerate(zip(value, old, strict=False))
            ]
            return {type(value).__name__: entries}
        if type(value) in _MAPPINGS.values():
            self._only_once(value, where)
            old_entries = empty if type(empty) is type(value) else {}
            pairs = [
                [
                    self.encode(key, key, f"{where} (a key)"),
                    self.encode(entry, old_entries.get(key), f"{where}[{key!r}]"),
                ]
                for key, entry in value.items()
            ]
            return {type(value).__name__: pairs}
        raise self._refused(value, where)

    def _file(self, content: bytes, ending: str) -> str:
        name = f"{len(self.files)}.{ending}"
        self.files[name] = content
        return name

    def _only_once(self, value: Any, where: str) -> None:
        if id(value) in self._containers:
            raise self._shared(where)
        self._containers[id(value)] = value

    def _refused(self, value: Any, where: str) -> ParameterError:
        return ParameterError(
            f"{self._name} cannot be kept in a checkpoint: {self._name}{where} is a "
            f"{type(value).__name__}. Numbers, text, lists, dicts, NumPy arrays, Arrow rows and "
            "summaries that are there from the beginning can. Name what is only read in the "
            "class's `shared`, or do without checkpoint=."
        )

    def _shared(self, where: str) -> ParameterError:
        return ParameterError(
            f"{self._name} cannot be kept in a checkpoint: {self._name}{where} is held by another "
            "attribute too, and they would come back apart. Hold it once, or do without "
            "checkpoint=."
        )


class _Reader:
    def __init__(self, files: dict[str, bytes]) -> None:
        self._files = files

    def decode(self, state: Any, empty: Any) -> Any:
        if not isinstance(state, dict):
            return state
        ((kind, content),) = state.items()
        if kind in _CONTAINERS:
            old = list(empty) if isinstance(empty, list) else []
            old += [None] * (len(content) - len(old))
            entries = [self.decode(entry, was) for entry, was in zip(content, old, strict=False)]
            return _CONTAINERS[kind](entries)
        if kind in _MAPPINGS:
            old_entries = empty if isinstance(empty, dict) else {}
            entries_by_key = {}
            for key_state, entry in content:
                key = self.decode(key_state, None)
                entries_by_key[key] = self.decode(entry, old_entries.get(key))
            return _MAPPINGS[kind](entries_by_key)
        if kind == "summary":
            return self._fill(empty, content)
        return self._decode_leaf(kind, content, empty)

    def _fill(self, summary: Summary, content: dict[str, Any]) -> Summary:
        for name in set(vars(summary)) - set(content) - summary.shared:
            delattr(summary, name)
        for name, entry in content.items():
            setattr(summary, name, self.decode(entry, vars(summary).get(name)))
        return summary

    def _decode_leaf(self, kind: str, content: Any, empty: Any) -> Any:
        decoders: dict[str, Callable[[], Any]] = {
            "constant": lambda: empty,
            "float": lambda: float.fromhex(content),
            "complex": lambda: complex(*map(float.fromhex, content)),
            "bytes": lambda: bytes.fromhex(content),
            "array": lambda: self._array(content),
            "scalar": lambda: self._array(content)[()],
            "table": lambda: self._table(content),
            "batch": lambda: self._batch(content),
            "arrow": lambda: self._batch(content).column(0),
        }
        return decoders[kind]()

    def _array(self, name: str) -> Any:
        return np.lib.format.read_array(io.BytesIO(self._files[name]), allow_pickle=False)

    def _table(self, name: str) -> pa.Table:
        return pa.ipc.open_stream(self._files[name]).read_all()

    def _batch(self, name: str) -> pa.RecordBatch:
        table = self._table(name)
        batches = table.combine_chunks().to_batches()
        return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)
