"""Tables of sketches moved from memory to temporary files (TMPDIR says where)."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import TypeVar

import pyarrow as pa

K = TypeVar("K", bound=Hashable)


def on_disk(tables: Mapping[K, pa.Table]) -> dict[K, pa.Table]:
    """The same tables, none of them empty, mapped from a file that is removed once none is used any more.

    Raises `OSError` where there is no room for it, with what helps.
    """
    if not tables:
        return {}
    try:
        handle, name = tempfile.mkstemp(prefix="streamgauge-windows-", suffix=".arrow")
        os.close(handle)
        try:
            _write(name, tables)
            mapped = pa.ipc.open_file(pa.memory_map(name))
        finally:
            Path(name).unlink()
    except OSError as error:
        raise OSError(
            f"windows that don't fit in memory can't be kept on disk: {error}. Make room there, or name "
            "another folder by TMPDIR; the next run of the group goes on with nothing lost"
        ) from None
    return {key: pa.Table.from_batches([mapped.get_batch(at)]) for at, key in enumerate(tables)}


def _write(name: str, tables: Mapping[K, pa.Table]) -> None:
    schema = next(iter(tables.values())).schema
    with pa.OSFile(name, "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
        for table in tables.values():
            writer.write_batch(table.combine_chunks().to_batches()[0])
