"""The protocols of sinks, which get the closed windows of a run, each once.

There are three kinds, which differ in how they recognise a window delivered before a crash:

- a `MessageSink` makes Kafka messages of a window. The merger sends them in one transaction with its position
  in the table topic, so readers with ``isolation.level=read_committed`` see each window as often as it was
  delivered, and never half of it;
- a `WritingSink` writes a window elsewhere, under a name derived from the window. After a crash the window is
  delivered again and replaces the written one;
- a `StatefulSink` has a state. The state is stored in the table topic with the merger's position, and so are
  the messages that it makes of a window, like a `MessageSink`'s.

A merger that catches up with a log closes windows by the thousand. A sink that sends or has a state gets all
windows that closed together in one call if it supports this (`takes_several`).

A window that only silence has closed is always delivered again, complete, if rows followed for it
(`Stream.tumbling`); it is `final` if this can't happen.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol, runtime_checkable

import pyarrow as pa

from ...sketches.core.errors import StreamgaugeError
from ...sketches.core.lazy import pl
from ..definition.stream import Stream
from ..kafka.outgoing_message import Outgoing
from ..table.schema import END, START, keys_of, schema_of, to_ipc
from ..table.sketch_table import SketchTable
from ..table.window_groups import WindowGroups
from ..table.windows import declared_windows
from ..windows.window import EARLIEST


class SinkError(StreamgaugeError):
    """A sink can't accept a window; the message names both. The next run of the group delivers it again."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The origin of windows: the run's group, its definition, and the keys of its table.

    `named` is true if the user chose the group's name. `digest` distinguishes streams that write to the same
    place: it is a digest of the group's name, or, for runs without a `group_id`, of the stream's whole
    definition. `schema` is that of the stream's table of sketches. `keep_late` says that late rows count in
    later windows.
    """

    group_id: str
    fingerprint: str
    named: bool
    digest: str
    keys: tuple[str, ...] = ()
    schema: pa.Schema | None = field(default=None, compare=False)
    keep_late: bool = False

    @classmethod
    def of(cls, stream: Stream, group_id: str, named: bool) -> Origin:
        """The origin of a run of `stream`."""
        definition = {part: value for part, value in stream.definition().items() if part != "written_by"}
        value = group_id if named else json.dumps(definition, sort_keys=True)
        fingerprint = stream.fingerprint()
        digest = hashlib.sha256(f"{fingerprint}/{value}".encode()).hexdigest()[:16]
        return cls(
            group_id, fingerprint, named, digest, stream.keys, schema_of(stream), keep_late=stream.keep_late
        )


@dataclass(frozen=True, slots=True)
class ClosedWindow:
    """A closed window: its groups in one partition of the table topic.

    `table` is a `SketchTable`, and `answers` are its answers. `final` is true if it will not be delivered
    again.
    """

    groups: WindowGroups
    partition: int
    final: bool
    origin: Origin

    @property
    def table(self) -> SketchTable:
        """The table of sketches, which are serialised only on request."""
        return SketchTable.of_groups(self.groups)

    def answers(self, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """The answers of some columns, or of all, after times and keys, as `query` returns them."""
        return self.groups.answers(columns)

    @property
    def without_edges(self) -> bool:
        """Whether it contains windows without common edges: sessions or count windows."""
        windows = declared_windows(self.groups.schema)
        return windows is not None and not windows.common_edges

    @property
    def may_grow(self) -> bool:
        """Whether it contains windows without common edges that may later be replaced by longer ones."""
        return self.without_edges and not self.final

    @property
    def digest(self) -> str:
        """A digest of its windows and groups, whatever their aggregates."""
        table = self.groups.table
        rows = to_ipc(table.select([START, END, *keys_of(table.schema)]), None)
        return hashlib.sha256(rows).hexdigest()[:16]

    @property
    def start_us(self) -> int:
        """The beginning of the earliest window in it (int64 microseconds since 1970)."""
        return int(self.groups.starts.min())

    @property
    def end_us(self) -> int:
        """The end of the latest window in it."""
        return int(self.groups.ends.max())


@dataclass(frozen=True, slots=True)
class SinkTopic:
    """A topic that a sink writes to, and its partitions if it has to be created; 0: as many as the table
    topic.
    """

    name: str
    partitions: int
    config: Mapping[str, str]


@runtime_checkable
class MessageSink(Protocol):
    """A sink whose messages are sent in the transaction that stores the merger's position."""

    def topic(self, origin: Origin) -> SinkTopic:
        """The topic that it writes to. Raises `ValueError` for a run that can't have this sink."""

    def messages(self, window: ClosedWindow) -> Iterator[Outgoing]:
        """A window's messages, always the same for the same window."""


@runtime_checkable
class WritingSink(Protocol):
    """A sink that writes a window itself, idempotently."""

    def begin(self, origin: Origin) -> None:
        """Called before the first window. Raises `ValueError` for a run that can't have this sink."""

    def write(self, window: ClosedWindow) -> None:
        """Write a window. It is retried for a while on `OSError`; any other error ends the run."""


@dataclass(frozen=True, slots=True)
class RunProgress:
    """The progress of a run, for sinks with a state, while no window closes.

    Windows that end at or before `final_us` were delivered for good, those up to `due_us` provisionally
    (event times in microseconds). `read` is the number of messages that the whole group has read by `now`,
    the wall-clock time. While nothing arrives, `clock_us` is the event time by that clock.
    """

    final_us: int
    due_us: int
    read: int
    now: float
    clock_us: int = EARLIEST


class PartitionSink(Protocol):
    """The state of a `StatefulSink` for one partition of the table topic."""

    def update(self, window: ClosedWindow) -> list[Outgoing]:
        """Process a window; returns the resulting messages."""

    def advance(self, progress: RunProgress) -> list[Outgoing]:
        """Process the run's progress; returns the resulting messages."""

    def state(self) -> str:
        """The whole state, as JSON, for `restore`."""

    def restore(self, memory: str) -> None:
        """Restore a state."""


@runtime_checkable
class StatefulSink(Protocol):
    """A sink whose state is stored with the merger's position, under its `name`."""

    @property
    def name(self) -> str:
        """The name of its state, unique among the sinks of a run."""

    def topics(self, origin: Origin, table_partitions: int) -> list[SinkTopic]:
        """The topics it writes to. Raises `ValueError` for a run that can't have this sink."""

    def for_partition(self, origin: Origin, partition: int) -> PartitionSink:
        """An empty state for one partition of the table topic."""


Sink = MessageSink | WritingSink | StatefulSink
"""What a run takes: `AnswersToKafka`, `SketchesToKafka`, `SketchesToParquet`, `Alerting`, or an object of
your own with `begin` and `write`."""


def takes_several(sink: MessageSink | StatefulSink) -> bool:
    """Whether it accepts several windows that closed together as one `ClosedWindow`, in their order.

    Such a sink has an attribute ``several_windows = True``; others get each window separately.
    """
    return bool(getattr(sink, "several_windows", False))


def keys_together(sinks: Iterable[Sink], origin: Origin) -> tuple[str, ...] | None:
    """The keys by which a run partitions groups over its table topic; None: by all keys.

    A sink with a state that must see all groups with the same values of some keys together has a method
    ``together(origin)``, which returns these keys; an empty tuple if it must see all groups.
    """
    asking = (sink.together(origin) for sink in sinks if hasattr(sink, "together"))
    keys = common_keys(asking)
    return None if keys is None else tuple(key for key in origin.keys if key in keys)


def common_keys(choices: Iterable[Sequence[str] | None]) -> tuple[str, ...] | None:
    """The keys that all choices have in common; None if each is None, which stands for all keys.

    >>> common_keys([None, ("symbol", "venue"), ("symbol",)]), common_keys([None]), common_keys([(), ("a",)])
    (('symbol',), None, ())
    """
    narrowed = [tuple(keys) for keys in choices if keys is not None]
    if not narrowed:
        return None
    return tuple(key for key in narrowed[0] if all(key in keys for keys in narrowed))


def is_sink(given: object) -> bool:
    """Whether a run accepts it as a sink."""
    return not isinstance(given, type) and isinstance(given, MessageSink | WritingSink | StatefulSink)


def topics_of(sinks: Iterable[Sink], origin: Origin, table_partitions: int = 1) -> list[SinkTopic]:
    """The topics that sinks write to. Raises `ValueError` for a sink that the run can't have."""
    topics = []
    names = [sink.name for sink in sinks if isinstance(sink, StatefulSink)]
    if double := {name for name in names if names.count(name) > 1}:
        raise ValueError(f"sinks must have different names, got two {min(double)!r}; rename one")
    for sink in sinks:
        if isinstance(sink, StatefulSink):
            topics += sink.topics(origin, table_partitions)
        if isinstance(sink, MessageSink):
            topics.append(sink.topic(origin))
        if isinstance(sink, WritingSink):
            sink.begin(origin)
    return topics


def describe_window(window: ClosedWindow) -> str:
    """A window in words, for errors: its time in UTC, and its partition of the table topic."""
    start, end = (datetime.fromtimestamp(us / 1e6, UTC) for us in (window.start_us, window.end_us))
    span = f"{start:%Y-%m-%d %H:%M:%S} to {end:%Y-%m-%d %H:%M:%S} UTC"
    return f"the window {span} (table partition {window.partition})"
