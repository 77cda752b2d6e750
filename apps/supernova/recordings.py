"""Recorded alerts as the messages that a broker would send: one per alert, keyed by object, in time order."""

from __future__ import annotations

import base64
import json
import tarfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

from ..app import Message
from ..recordings.compressed_files import opened
from .flat_tables import flat_table_of, packets_of
from .packets.decoder import CONTAINER, Packets

_ROWS = 1_000
_TIMES = {"candidate": "jd", "diaSource": "midpointMjdTai"}
"""The time's field in a table of packets, by the column that contains it."""


def messages(path: Path, packets: Packets) -> Iterator[Message]:
    """Read the alerts of a file: a container, a tar of them, Parquet, lines of JSON, or a single packet.

    ZTF's archive has a tar for each night, and Fink writes Parquet; `flat_tables` has tables with one row per
    detection. The alerts of a table are sent in the order of time. Unreadable data are sent unchanged.
    """
    with opened(path) as file:
        begin = file.read(5)
    if begin[:4] == b"PAR1":
        rows = _parquet(path)
    elif tarfile.is_tarfile(path):
        rows = (value for data in archived(path) for value in _container(data))
    elif begin[:4] == CONTAINER:
        rows = _container(_whole(path))
    elif begin.lstrip()[:1] == b"{":
        rows = _lines(path)
    else:
        rows = iter([_whole(path)])
    for value in rows:
        try:
            packet = packets.one(value)
        except Exception:
            # In the run, it becomes a dead letter with the reason.
            yield Message(value)
            continue
        yield Message(value, packet["object"].encode(), packet["at"])


def _whole(path: Path) -> bytes:
    with opened(path) as file:
        return file.read()


def archived(path: Path) -> Iterator[bytes]:
    """Yield the files in a tar, compressed or not."""
    with tarfile.open(path, "r|*") as archive:
        for member in archive:
            if (file := archive.extractfile(member)) is not None:
                yield file.read()


def _lines(path: Path) -> Iterator[bytes]:
    with opened(path) as file:
        for line in file:
            if value := line.strip():
                yield value


def _container(data: bytes) -> Iterator[bytes]:
    """Split a container into one per alert, with the same schema."""
    import fastavro

    try:
        reader = fastavro.reader(BytesIO(data))
        records = list(reader)
    except Exception:
        yield data
        return
    if len(records) == 1:
        yield data
        return
    for record in records:
        file = BytesIO()
        assert reader.writer_schema is not None
        fastavro.writer(file, reader.writer_schema, [record])
        yield file.getvalue()


def _parquet(path: Path) -> Iterator[bytes]:
    """Convert rows to JSON, with cutouts in base64, in the order of time."""
    import pyarrow.compute as pc
    import pyarrow.parquet as parquet

    table = parquet.read_table(path)
    if (kind := flat_table_of(table.schema.names)) is not None:
        for packet in packets_of(table, kind):
            yield json.dumps(packet, default=_plain).encode()
        return
    for name, time in _TIMES.items():
        if name in table.schema.names:
            table = table.take(pc.sort_indices(pc.struct_field(table[name], time)))
    for batch in table.to_batches(_ROWS):
        for row in batch.to_pylist():
            yield json.dumps(row, default=_plain).encode()


def _plain(value: Any) -> Any:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)
