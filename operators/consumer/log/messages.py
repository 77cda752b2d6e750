"""The log of partial tables: deltas as messages of a stream's table topic.

A delta is one message for each partition of the topic, or several chunks if it is too large for one message
(`chunked_records`). Headers, in decimal digits or plain text:

| header | content |
|---|---|
| `fingerprint` | the definition's fingerprint |
| `topic`, `source`, `partition` | the input's name, id and partition |
| `first`, `next` | the offset range covered, excluding `next`; or the range taken back |
| `time` | the partition's event time: the numbers of a `PartitionTime` |
| `rest` | its silence, if it is silent: the numbers of a `Rest` |
| `more` | 1 if another delta follows that was sent together with this one |
| `epoch` | the number of the sender's claim, if it made one |
| `provisional` | 1 if its rows count only where the log ends (see `Delta`) |
| `form` | the version of this form, unless it is 1 |
| `split` | the keys that determine its rows' partition, as JSON, unless all do |
| `account` | read, counted, filtered, late and dead-lettered messages |
| `skipped`, `truncated` | offsets skipped on request, and messages that the log has lost, if any |
| `leader` | the epoch of the leader whose log was read, if known |

The value consists of the length of a JSON text in four bytes, little-endian; that text, with the number of
messages by the start of their pane; and the rows of its groups as an Arrow IPC stream, compressed by lz4, or
nothing if there are none. Earlier versions compressed them by zstd; both are read. The hash of a group's
keys, or of the keys in `split`, determines its partition.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import astuple

import numpy as np
import pyarrow as pa

from ....sketches.core.protocol import SketchError
from ...grouping.group_index import hash_keys
from ...kafka.chunked_records import LARGEST_PART, Record, split_value
from ...kafka.log_faults import DeltaError
from ...kafka.outgoing_message import Outgoing
from ...kept_form import form_of
from ...sketching.account import Account
from ...sketching.delta import Delta
from ...table.schema import from_ipc, keys_of, to_ipc
from ...watermarks.idle_timer import Rest
from ...watermarks.partition_watermark import PartitionTime

LARGEST = 64 * 1024 * 1024
"""The largest message of a stream's producers: a dead letter can be as large as its input message."""

FORM = 1
"""The version in which deltas are written."""

_COMPRESSION = "lz4"
"""zstd would save a quarter to a third of the bytes, but takes two to three times as long, and deltas are
read once and trimmed soon."""

TOPIC_CONFIG = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}
"""The table topic is the state: only mergers may trim it, behind their oldest open windows."""


def log_group(group_id: str, name: str) -> str:
    """The group name that a stream's log goes by; `name` is the stream's, if several run together.

    >>> log_group("trends", "tags"), log_group("trends", "")
    ('trends.tags', 'trends')
    """
    return f"{group_id}.{name}" if name else group_id


def table_topic(group_id: str, fingerprint: str) -> str:
    """The name of a stream's table topic; a changed definition gets another one."""
    return f"{group_id}.table.{fingerprint}"


def split(table: pa.Table, partitions: int, by: Sequence[str] | None = None) -> list[pa.Table]:
    """Split a table by the hash of its rows' keys into one table for each partition, in order.

    All windows of a group go to the same partition. With `by`, only these keys are hashed, so groups that
    have the same values in them stay together.
    """
    if partitions == 1:
        return [table]
    names = keys_of(table.schema) if by is None else by
    keys = [table.column(key).combine_chunks() for key in names]
    chosen = hash_keys(keys, table.num_rows)[1] % np.uint64(partitions)
    return [table.filter(pa.array(chosen == partition)) for partition in range(partitions)]


def encode(
    delta: Delta,
    topic: str,
    partitions: int,
    largest: int = LARGEST_PART,
    split_keys: Sequence[str] | None = None,
) -> list[Outgoing]:
    """A delta's messages, each with a value of at most `largest` bytes."""
    counts = delta.account.to_dict()
    beside = {name: counts.pop(name, 0) for name in _BESIDE}
    headers = [
        ("fingerprint", delta.fingerprint.encode()),
        ("topic", delta.topic.encode()),
        ("source", delta.source.encode()),
        ("account", " ".join(map(str, counts.values())).encode()),
        ("time", _spaced(delta.time)),
        ("rest", b"" if delta.rest is None else _spaced(delta.rest)),
    ]
    headers += [(name, str(value).encode()) for name, value in _numbers(delta).items()]
    headers += [("epoch", str(delta.epoch).encode())] if delta.epoch else []
    headers += [("provisional", b"1")] if delta.provisional else []
    headers += [("leader", str(delta.leader_epoch).encode())] if delta.leader_epoch >= 0 else []
    headers += [(name, str(count).encode()) for name, count in beside.items() if count]
    split_by = split_text(partitions, split_keys).encode()
    headers += [("split", split_by)] if split_by else []
    messages = json.dumps({str(k): v for k, v in delta.messages.items()}).encode()
    head = len(messages).to_bytes(4, "little") + messages
    tables = [None] * partitions if delta.table is None else split(delta.table, partitions, split_keys)
    outgoing = []
    for partition, table in enumerate(tables):
        value = head + (to_ipc(table, _COMPRESSION) if table is not None and table.num_rows else b"")
        outgoing += [Outgoing(topic, partition, *part) for part in split_value(value, headers, largest)]
    return outgoing


def split_text(partitions: int, split_keys: Sequence[str] | None) -> str:
    """The keys that spread groups over the partitions, as JSON; empty for all keys.

    >>> split_text(3, ("symbol",)), split_text(3, None), split_text(1, ("symbol",))
    ('["symbol"]', '', '')
    """
    return "" if partitions == 1 or split_keys is None else json.dumps(list(split_keys))


def check_split(here: str, log: str, what: str) -> None:
    """Raise `DeltaError` if `log` spreads groups by other keys than this run (`split_text`)."""
    if here != log:
        raise DeltaError(
            f"{what} distributed groups over the table topic's partitions by {_keys_text(log)}, but the "
            f"rules of this run need {_keys_text(here)}, so a group would be counted in two partitions. "
            "Give all runs of the group the same rules, or give the run a new group_id"
        )


def _keys_text(split_by: str) -> str:
    if not split_by:
        return "all keys"
    return " and ".join(map(repr, json.loads(split_by))) or "none of its keys"


def decode(record: Record, rows: bool = True) -> Delta:
    """Decode the delta in a record, without its table unless `rows`.

    Raises `DeltaError` for anything else, `WrittenByNewer` for a newer version.
    """
    headers = record.headers
    try:
        form_of({"form": int(headers.get("form", b"1"))}, FORM, "a delta of the table topic")
        numbers = {name: int(headers[name]) for name in _NUMBERS}
        start = 4 + int.from_bytes(record.value[:4], "little")
        messages: Mapping[str, int] = json.loads(record.value[4:start])
        table = record.value[start:] if rows else b""
        return Delta(
            fingerprint=headers["fingerprint"].decode(),
            topic=headers["topic"].decode(),
            partition=numbers["partition"],
            first_offset=numbers["first"],
            next_offset=numbers["next"],
            table=from_ipc(table) if table else None,
            time=PartitionTime(*map(int, headers["time"].split())),
            rest=Rest(*map(int, headers["rest"].split())) if headers["rest"] else None,
            more=bool(numbers["more"]),
            account=Account(*map(int, headers["account"].split()))
            + Account(**{name: int(headers.get(name, b"0")) for name in _BESIDE}),
            messages={int(pane): count for pane, count in messages.items()},
            source=headers["source"].decode(),
            epoch=int(headers.get("epoch", b"0")),
            provisional=headers.get("provisional") == b"1",
            leader_epoch=int(headers.get("leader", b"-1")),
        )
    except KeyError as error:
        raise DeltaError(
            f"not a delta: the header {error} is missing among {', '.join(headers) or 'none'}"
        ) from None
    except (ValueError, TypeError, AttributeError, SketchError) as error:
        raise DeltaError(f"a damaged delta: {error}") from None


_BESIDE = ("skipped", "truncated")
"""Counts of an account that most deltas don't have."""
_NUMBERS = ("partition", "first", "next", "more")


def _numbers(delta: Delta) -> dict[str, int]:
    return dict(zip(_NUMBERS, (delta.partition, delta.first_offset, delta.next_offset, int(delta.more))))


def _spaced(numbers: PartitionTime | Rest) -> bytes:
    return " ".join(map(str, astuple(numbers))).encode()
