"""Folding a log message into a merger: assemble it from its chunks, then decode it."""

from __future__ import annotations

from typing import Any

from ...kafka.chunked_records import ChunkAssembler
from ...sketching.delta import Delta
from ..log.messages import decode
from ..log.snapshots import is_snapshot
from .merger import Merger


def merge_message(
    merger: Merger, gather: ChunkAssembler, offset: int, value: bytes | None, headers: Any
) -> tuple[Delta, bool] | None:
    """Fold in the next message of the partition of the log that `merger` and `gather` follow.

    Returns the delta that it completed, and whether it was accepted; None for a snapshot, and for an
    incomplete delta. Raises `DeltaError` for damaged or out-of-order messages.
    """
    name, record = gather.add(value, headers, offset)
    if record is None:
        if not is_snapshot(gather.pending[name].headers):
            merger.mark(name, offset)
        return None
    if is_snapshot(record.headers):
        return None
    delta = decode(record)
    accepted = merger.offer(delta, offset, name)
    for overtaken in gather.drop_overtaken(delta.input, delta.next_offset):
        merger.unmark(overtaken)
    return delta, accepted
