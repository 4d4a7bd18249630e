"""Arrow tables as bytes, in Arrow's stream format, for saving."""

from __future__ import annotations

import pyarrow as pa

from unskew.errors import InputError


def bytes_of_table(table: pa.Table) -> bytes:
    """Return a table with its types as bytes.

    Examples
    --------
    >>> table_of_bytes(bytes_of_table(pa.table({"town": ["Ulm", None]})))["town"].to_pylist()
    ['Ulm', None]
    """
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def table_of_bytes(data: bytes) -> pa.Table:
    """Return the table, fully validated, because the bytes may come from an untrusted file."""
    try:
        with pa.ipc.open_stream(data) as reader:
            table = reader.read_all()
        table.validate(full=True)
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"A saved table cannot be read: {error}") from error
    return table
