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
    """The same tables, none of them empty, mapped from a file that is removed once none is used any more."""
    if not tables:
        return {}
    handle, name = tempfile.mkstemp(prefix="streamgauge-windows-", suffix=".arrow")
    os.close(handle)
    schema = next(iter(tables.values())).schema
    try:
        with pa.OSFile(name, "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
            for table in tables.values():
                writer.write_batch(table.combine_chunks().to_batches()[0])
        mapped = pa.ipc.open_file(pa.memory_map(name))
        return {key: pa.Table.from_batches([mapped.get_batch(at)]) for at, key in enumerate(tables)}
    finally:
        Path(name).unlink()
