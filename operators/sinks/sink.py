"""What a sink is: something that takes the closed windows of a run, each once.

There are three kinds, by how a window that was handed over before a crash is known again:

- a `MessageSink` makes Kafka messages of a window. The merger sends them in one transaction with its place in
  the table topic, so that readers with ``isolation.level=read_committed`` see each window as often as it was
  handed over, and never half of it;
- a `WritingSink` writes a window elsewhere, under a name that follows from the window. After a crash the
  window comes again and replaces what was written;
- a `StatefulSink` remembers what it was given. Its memory goes to the table topic with the merger's position,
  and so do the messages it makes of a window, as a `MessageSink`'s do.

A log that is caught up with closes windows by the thousand. A sink that sends or remembers gets all that
closed together in one call if it says so (`takes_several`).

A window that only silence has closed comes again in either case, whole, if rows followed for it
(`Stream.tumbling`); it is `final` when it can't.
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
    """A sink can't take a window; the message names both. The next run of the group hands it over again."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Whose windows they are: the run's group, its definition, and the keys of its table.

    `named` says whether the group's name was chosen by the user. `digest` tells streams apart that write to
    the same place. It is that of the group's name, or, for runs on their own, whose groups have no name that
    stays, that of the stream's whole definition. `schema` is that of the stream's table of sketches.
    """

    group_id: str
    fingerprint: str
    named: bool
    digest: str
    keys: tuple[str, ...] = ()
    schema: pa.Schema | None = field(default=None, compare=False)

    @classmethod
    def of(cls, stream: Stream, group_id: str, named: bool) -> Origin:
        """That of a run of `stream`."""
        definition = {part: value for part, value in stream.definition().items() if part != "written_by"}
        value = group_id if named else json.dumps(definition, sort_keys=True)
        fingerprint = stream.fingerprint()
        digest = hashlib.sha256(f"{fingerprint}/{value}".encode()).hexdigest()[:16]
        return cls(group_id, fingerprint, named, digest, stream.keys, schema_of(stream))


@dataclass(frozen=True, slots=True)
class ClosedWindow:
    """What is handed over: a window's groups, of those in one partition of the table topic.

    `table` is a `SketchTable`, and `answers` what it answers, of live sketches. `final` says that it will not
    come again.
    """

    groups: WindowGroups
    partition: int
    final: bool
    origin: Origin

    @property
    def table(self) -> SketchTable:
        """The table of sketches, whose bytes are made once somebody wants them."""
        return SketchTable.of_groups(self.groups)

    def answers(self, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """The answers of some columns, or of all, behind times and keys, as `query` has them of the table."""
        return self.groups.answers(columns)

    @property
    def without_edges(self) -> bool:
        """Whether it holds windows that have no edges in common: sessions, or windows by count."""
        windows = declared_windows(self.groups.schema)
        return windows is not None and not windows.common_edges

    @property
    def may_grow(self) -> bool:
        """Whether it holds windows without common edges that may come again, longer, in place of these."""
        return self.without_edges and not self.final

    @property
    def digest(self) -> str:
        """Of its windows and groups, whatever is kept of them."""
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
    """A topic that a sink writes to, and how it is made if it isn't there; 0: as many as the table topic."""

    name: str
    partitions: int
    config: Mapping[str, str]


@runtime_checkable
class MessageSink(Protocol):
    """A sink whose messages are sent in the transaction that keeps the merger's place."""

    def topic(self, origin: Origin) -> SinkTopic:
        """The topic that it writes to. Raises `ValueError` for a run that can't have this sink."""

    def messages(self, window: ClosedWindow) -> Iterator[Outgoing]:
        """A window's messages; the same for the same window, as often as it is called."""


@runtime_checkable
class WritingSink(Protocol):
    """A sink that writes a window itself, so that writing it again leaves it there once."""

    def begin(self, origin: Origin) -> None:
        """Called before the first window. Raises `ValueError` for a run that can't have this sink."""

    def write(self, window: ClosedWindow) -> None:
        """Write a window. An `OSError` is tried again for a while; anything else ends the run."""


@dataclass(frozen=True, slots=True)
class RunProgress:
    """How far a run has come, for sinks that remember: what passes while no window closes.

    Windows that end at or before `final_us` were handed over for good, those up to `due_us` for now (event
    times in microseconds). `read` is how many messages the whole group has read by `now`, the wall clock's
    time. While nothing comes, `clock_us` is the event time that it is by that clock.
    """

    final_us: int
    due_us: int
    read: int
    now: float
    clock_us: int = EARLIEST


class PartitionSink(Protocol):
    """What a `StatefulSink` remembers of one partition of the table topic."""

    def update(self, window: ClosedWindow) -> list[Outgoing]:
        """Take a window in; gives the messages that it makes of it."""

    def advance(self, progress: RunProgress) -> list[Outgoing]:
        """Learn how far the run has come; gives the messages that follow from that."""

    def state(self) -> str:
        """All it remembers, as JSON, for `resume`."""

    def restore(self, memory: str) -> None:
        """Take up a memory."""


@runtime_checkable
class StatefulSink(Protocol):
    """A sink whose memory is kept with the merger's place, under its `name`."""

    @property
    def name(self) -> str:
        """What its memory is kept under: no two sinks of a run have the same."""

    def topics(self, origin: Origin, table_partitions: int) -> list[SinkTopic]:
        """The topics it writes to. Raises `ValueError` for a run that can't have this sink."""

    def for_partition(self, origin: Origin, partition: int) -> PartitionSink:
        """An empty memory for one partition of the table topic."""


Sink = MessageSink | WritingSink | StatefulSink
"""What a run takes: `AnswersToKafka`, `SketchesToKafka`, `SketchesToParquet`, `Alerting`, or an object of
your own with `begin` and `write`."""


def takes_several(sink: MessageSink | StatefulSink) -> bool:
    """Whether it takes several windows that closed together as one `ClosedWindow`, in their order.

    One that does says so by an attribute ``several_windows = True``; others get each window by itself.
    """
    return bool(getattr(sink, "several_windows", False))


def keys_together(sinks: Iterable[Sink], origin: Origin) -> tuple[str, ...] | None:
    """The keys by which a run spreads groups over the partitions of its table topic; None: by all keys.

    A sink that remembers, and must see groups together that agree in some keys only, says so by a method
    ``together(origin)``, which gives these keys; none of them if it must see all groups.
    """
    asking = (sink.together(origin) for sink in sinks if hasattr(sink, "together"))
    keys = common_keys(asking)
    return None if keys is None else tuple(key for key in origin.keys if key in keys)


def common_keys(choices: Iterable[Sequence[str] | None]) -> tuple[str, ...] | None:
    """The keys that are in all choices; None where each is None, which stands for all keys.

    >>> common_keys([None, ("symbol", "venue"), ("symbol",)]), common_keys([None]), common_keys([(), ("a",)])
    (('symbol',), None, ())
    """
    narrowed = [tuple(keys) for keys in choices if keys is not None]
    if not narrowed:
        return None
    return tuple(key for key in narrowed[0] if all(key in keys for keys in narrowed))


def is_sink(given: object) -> bool:
    """Whether a run can take it as a sink."""
    return not isinstance(given, type) and isinstance(given, MessageSink | WritingSink | StatefulSink)


def topics_of(sinks: Iterable[Sink], origin: Origin, table_partitions: int = 1) -> list[SinkTopic]:
    """The topics that sinks write to. Raises `ValueError` for a sink that the run can't have."""
    topics = []
    names = [sink.name for sink in sinks if isinstance(sink, StatefulSink)]
    if double := {name for name in names if names.count(name) > 1}:
        raise ValueError(f"two sinks keep their memory under the name {min(double)!r}; give one another name")
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
