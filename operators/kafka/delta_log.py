"""The log of partial tables: deltas as the messages of a stream's table topic.

A delta is one message for each partition of the topic. Value: the rows of its groups, by the hash of their
keys, as a compressed Arrow IPC stream, or nothing where there are none. Headers, in decimal digits or plain
text:

| header | what |
|---|---|
| `fingerprint` | the definition's |
| `topic`, `partition` | the input's |
| `first`, `next` | the offsets covered, from the first up to, not including, the next |
| `watermark`, `seen`, `resting` | event time in microseconds: the watermark, the latest row, the idle clock |
| `idle` | 1 where there was nothing to read |
| `account` | read, counted, filtered, late and dead-lettered messages |
| `messages` | JSON: messages counted by the start of their pane |
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import astuple
from typing import Any

import numpy as np
import pyarrow as pa

from ...sketches.protocol import SketchError
from ..accounting import Account
from ..delta import Delta, DeltaError
from ..grouping import hash_keys
from ..lateness import PartitionTime
from ..table import from_ipc, keys_of, to_ipc
from .outgoing import Outgoing

LARGEST = 64 * 1024 * 1024
"""Bytes that one delta's message may have; the table topic is made for messages of this size."""

TOPIC_CONFIG = {"max.message.bytes": str(LARGEST + 4096), "cleanup.policy": "delete"}


def table_topic(group_id: str, fingerprint: str) -> str:
    """The name of a stream's table topic: a changed definition gets another."""
    return f"{group_id}.table.{fingerprint}"


def split(table: pa.Table, partitions: int) -> list[pa.Table]:
    """The table's rows by the hash of their keys, one table for each partition, in order.

    All windows of a group go to the same partition.
    """
    if partitions == 1:
        return [table]
    keys = [table.column(key).combine_chunks() for key in keys_of(table.schema)]
    chosen = hash_keys(keys, table.num_rows)[1] % np.uint64(partitions)
    return [table.filter(pa.array(chosen == partition)) for partition in range(partitions)]


def encode(delta: Delta, topic: str, partitions: int) -> list[Outgoing]:
    """A delta's messages. Raises `DeltaError` for one that is too large to send."""
    headers = [
        ("fingerprint", delta.fingerprint.encode()),
        ("topic", delta.topic.encode()),
        ("account", " ".join(map(str, astuple(delta.account))).encode()),
        ("messages", json.dumps({str(k): v for k, v in delta.messages.items()}).encode()),
    ]
    headers += [(name, str(value).encode()) for name, value in _numbers(delta).items()]
    found = []
    tables = [None] * partitions if delta.table is None else split(delta.table, partitions)
    for partition, table in enumerate(tables):
        value = to_ipc(table) if table is not None and table.num_rows else b""
        if len(value) > LARGEST:
            raise DeltaError(
                f"the delta {delta.told} takes {len(value):,} bytes, more than the {LARGEST:,} of a message; "
                "use more table partitions or shorter checkpoints"
            )
        found.append(Outgoing(topic, partition, value, headers))
    return found


def decode(value: bytes | None, headers: Any) -> Delta:
    """The delta of a message: its value, its headers as (name, bytes). Raises `DeltaError` if it is none."""
    told: dict[str, bytes] = dict(headers or [])
    try:
        numbers = {name: int(told[name]) for name in _NUMBERS}
        messages: Mapping[str, int] = json.loads(told["messages"])
        return Delta(
            fingerprint=told["fingerprint"].decode(),
            topic=told["topic"].decode(),
            partition=numbers["partition"],
            first=numbers["first"],
            next=numbers["next"],
            table=from_ipc(value) if value else None,
            watermark_us=numbers["watermark"],
            time=PartitionTime(numbers["seen"], numbers["resting"]),
            idle=bool(numbers["idle"]),
            account=Account(*map(int, told["account"].split())),
            messages={int(pane): count for pane, count in messages.items()},
        )
    except KeyError as error:
        raise DeltaError(
            f"no delta: the header {error} is missing among {', '.join(told) or 'none'}"
        ) from None
    except (ValueError, TypeError, AttributeError, SketchError) as error:
        raise DeltaError(f"a damaged delta: {error}") from None


_NUMBERS = ("partition", "first", "next", "watermark", "seen", "resting", "idle")


def _numbers(delta: Delta) -> dict[str, int]:
    time = delta.time
    values = (delta.partition, delta.first, delta.next, delta.watermark_us, time.seen_us, time.idle_us)
    return dict(zip(_NUMBERS, (*values, int(delta.idle))))
