"""Topics for `curves` and `sizing`: synthetic events in a format, of a size, under a compression."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import fastavro
import numpy as np
import polars as pl
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from streamgauge.operators.formats.protobuf.files import files_of, message_class

BEGIN_MS = 1_767_225_600_000
SECONDS = 600
"""Event time of a topic."""
LATE_MS = 300_000
FEW_KEYS = 16
"""Fewer keys than these are spread over all partitions."""
GROUPS = 1_000
"""How many values the column has by which joined events are aggregated."""
SCHEMA = {"k": pl.Int64, "u": pl.String, "v": pl.Float64, "ts": pl.Int64}
AVRO: dict[str, Any] = {
    "type": "record",
    "name": "Event",
    "fields": [
        {"name": name, "type": kind}
        for name, kind in zip([*SCHEMA, "pad"], ["long", "string", "double", "long", "string"])
    ],
}
PROTOBUF = {"k": "INT64", "u": "STRING", "v": "DOUBLE", "ts": "INT64", "pad": "STRING"}
Format = Literal["json", "csv", "avro", "protobuf"]


@dataclass(frozen=True)
class Events:
    """The messages of a topic."""

    messages: int = 1_000_000
    keys: int = 1_000
    zipf: bool = False
    partitions: int = 4
    size: int = 70
    """Bytes of a message, at least; a field that nobody reads makes up for what is missing."""
    format: Format = "json"
    compression: str = "lz4"
    late: int = 0
    """How many of a hundred messages are five minutes late."""
    twice: bool = False
    """Whether every tenth message repeats the one of another user before."""

    def frame(self) -> pl.DataFrame:
        """Rows in the order of their times, whatever the format."""
        random = np.random.default_rng(1)
        n = self.messages
        keys = (
            np.minimum(random.zipf(1.1, n) - 1, self.keys - 1)
            if self.zipf
            else random.integers(0, self.keys, n)
        )
        times = BEGIN_MS + np.arange(n) * SECONDS * 1000 // n
        if self.late:
            times = np.where(random.integers(0, 100, n) < self.late, times - LATE_MS, times)
        frame = pl.DataFrame(
            {
                "k": keys.astype(np.int64),
                "u": pl.select(pl.format("u{}", pl.Series(random.integers(100_000, 600_000, n)))).to_series(),
                "v": np.round(random.lognormal(3, 1, n), 2),
                "ts": times.astype(np.int64),
            }
        )
        if self.twice:
            at = np.arange(n)
            frame = frame[np.where((at % 10 == 9), at - 1, at)]
        return frame

    def values(self) -> Iterator[bytes]:
        """The messages' bytes."""
        frame = self.frame()
        if self.format == "avro":
            parsed, buffer = fastavro.parse_schema(AVRO), io.BytesIO()
            pad = "x" * max(self.size - 30, 0)
            for row in frame.iter_rows(named=True):
                buffer.seek(0)
                buffer.truncate()
                fastavro.schemaless_writer(buffer, parsed, {**row, "pad": pad})
                yield buffer.getvalue()
            return
        if self.format == "protobuf":
            pad = "x" * max(self.size - 33, 0)
            kind = message_class(files_of(protobuf_files()), "Event")
            yield from (kind(**row, pad=pad).SerializeToString() for row in frame.iter_rows(named=True))
            return
        text = _csv_lines(frame) if self.format == "csv" else _json_lines(frame)
        for line in text:
            missing = self.size - len(line)
            if self.format == "csv":
                yield line + b"," + b"x" * max(missing - 1, 1)
            elif missing <= 0:
                yield line
            else:
                yield line[:-1] + b',"pad":"' + b"x" * max(missing - 9, 0) + b'"}'

    def partition_of(self, keys: np.ndarray) -> np.ndarray:
        """By key, as a producer would have it; by turns if there are few."""
        return (keys if self.keys >= FEW_KEYS else np.arange(len(keys))) % self.partitions


def protobuf_files() -> FileDescriptorSet:
    """The description of a message ``Event``, whose fields are numbered from 1."""
    files = FileDescriptorSet()
    file = files.file.add(name="event.proto", syntax="proto3")
    event = file.message_type.add(name="Event")
    for number, (name, kind) in enumerate(PROTOBUF.items(), 1):
        event.field.add(name=name, number=number, type=f"TYPE_{kind}", label="LABEL_OPTIONAL")
    return files


def _json_lines(frame: pl.DataFrame) -> Iterable[bytes]:
    parts = ['{"k":', "k", ',"u":"', "u", '","v":', "v", ',"ts":', "ts", "}"]
    text = pl.concat_str([pl.col(part) if part in SCHEMA else pl.lit(part) for part in parts])
    return (line.encode() for line in frame.select(text).to_series().to_list())


def _csv_lines(frame: pl.DataFrame) -> Iterable[bytes]:
    return (line.encode() for line in frame.select(pl.format("{},{},{},{}", *SCHEMA)).to_series().to_list())


def fill(bootstrap: str, topic: str, events: Events) -> None:
    """Create a topic of these events."""
    partitions = events.partition_of(events.frame()["k"].to_numpy()).tolist()
    produced(bootstrap, topic, events.values(), events.partitions, events.compression, partitions)


def fill_joined(bootstrap: str, topic: str, joined: str, events: Events) -> None:
    """Create the topic that events are joined with: a compacted one of all keys, or the same events again."""
    if joined == "events":
        return fill(bootstrap, topic, events)
    keys = range(events.keys)
    values = (b'{"k":%d,"g":%d}' % (key, key % GROUPS) for key in keys)
    chosen = events.partition_of(np.arange(events.keys)).tolist()
    produced(
        bootstrap, topic, values, events.partitions, events.compression, chosen, [b"%d" % key for key in keys]
    )


def produced(
    bootstrap: str,
    topic: str,
    values: Iterable[bytes],
    partitions: int,
    compression: str,
    chosen: list[int] | None = None,
    keys: list[bytes] | None = None,
) -> None:
    """Create a topic, and send each value to the chosen partition, or to all by turns.

    If there are `keys`, one for each value, the topic is compacted.
    """
    settings = {"cleanup.policy": "compact"} if keys else {}
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for created in admin.create_topics([NewTopic(topic, partitions, 1, config=settings)]).values():
        created.result(60)
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "linger.ms": 50,
            "batch.size": 1_000_000,
            "batch.num.messages": 100_000,
            "queue.buffering.max.messages": 1_000_000,
            "queue.buffering.max.kbytes": 262_144,
            "compression.type": compression,
            "enable.idempotence": True,
            "log_level": 3,  # a new broker lets a producer wait, which it would warn of
        }
    )
    for number, value in enumerate(values):
        while True:
            try:
                partition = chosen[number] if chosen else number % partitions
                producer.produce(topic, value, keys[number] if keys else None, partition)
                break
            except BufferError:
                producer.poll(0.05)
    if producer.flush(300):
        raise RuntimeError(f"{topic}: not all messages could be sent in 300 s")
