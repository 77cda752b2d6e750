"""Tables of sketches, moved from memory to temporary files (in TMPDIR)."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import pyarrow as pa

K = TypeVar("K", bound=Hashable)

_BATCH_BYTES = 2 * 1024 * 1024


def on_disk(tables: Mapping[K, pa.Table]) -> dict[K, pa.Table]:
    """The same tables, which must not be empty, mapped from a file that is removed after its last use.

    Raises `OSError` if there is no space for the file, with advice.
    """
    if not tables:
        return {}
    batches = (table.combine_chunks().to_batches()[0] for table in tables.values())
    with _written(next(iter(tables.values())).schema, batches) as name:
        mapped = pa.ipc.open_file(pa.memory_map(name))
    return {key: pa.Table.from_batches([mapped.get_batch(at)]) for at, key in enumerate(tables)}


class TableFile:
    """A table in a file that is removed together with this object.

    Each read takes memory of its own that is freed after use, whereas the pages of a mapped file count as the
    process's memory while it is mapped. Raises `OSError` if there is no space for the file, with advice.

    >>> stored = TableFile(pa.table({"a": range(10), "b": range(10, 20)}))
    >>> stored.rows, stored.read(3, 5).to_pydict(), stored.columns(["b"]).num_rows
    (10, {'a': [3, 4], 'b': [13, 14]}, 10)
    """

    def __init__(self, table: pa.Table) -> None:
        self.rows = table.num_rows
        self.nbytes = table.nbytes
        self._schema = table.schema
        self._each = max(1, self.rows * _BATCH_BYTES // max(1, self.nbytes))
        whole = table.combine_chunks()
        with _written(table.schema, whole.to_batches(max_chunksize=self._each)) as name:
            self._file = pa.OSFile(name)

    def columns(self, names: Sequence[str]) -> pa.Table:
        """Some of its columns, with all rows."""
        fields = [self._schema.get_field_index(name) for name in names]
        reader = pa.ipc.open_file(self._file, options=pa.ipc.IpcReadOptions(included_fields=fields))
        return reader.read_all().select(names)

    def read(self, low: int, high: int) -> pa.Table:
        """The rows from `low` up to, not including, `high`."""
        if low >= high:
            return self._schema.empty_table()
        reader, first = pa.ipc.open_file(self._file), low // self._each
        batches = [reader.get_batch(at) for at in range(first, -(-high // self._each))]
        return pa.Table.from_batches(batches).slice(low - first * self._each, high - low)


@contextmanager
def _written(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[str]:
    """The name of a file with these batches; open it within the block, before it is removed."""
    try:
        handle, name = tempfile.mkstemp(prefix="streamgauge-windows-", suffix=".arrow")
        os.close(handle)
        try:
            with pa.OSFile(name, "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
                for batch in batches:
                    writer.write_batch(batch)
            yield name
        finally:
            Path(name).unlink()
    except OSError as error:
        raise OSError(
            f"windows that don't fit in memory can't be stored on disk: {error}. Make room there, or name "
            "another folder by TMPDIR; the next run of the group resumes without loss"
        ) from None
