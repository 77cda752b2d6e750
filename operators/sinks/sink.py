"""What a sink is: something that takes the closed windows of a run, each once.

There are two kinds, by how a window that was handed over before a crash is known again:

- a `MessageSink` makes Kafka messages of a window. The merger sends them in one transaction with its place in
  the table topic, so that readers with ``isolation.level=read_committed`` see each window as often as it was
  handed over, and never half of it;
- a `WritingSink` writes a window elsewhere, under a name that follows from the window. After a crash the
  window comes again and replaces what was written.

A window that only silence has closed comes again in either case, whole, if rows followed for it
(`Stream.tumbling`); it is `final` when it can't.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol, runtime_checkable

import pyarrow as pa

from ..definition.stream import Stream
from ..kafka.outgoing import Outgoing
from ..table.schema import END, START, keys_of, to_ipc
from ..table.windows import windows_told


class SinkError(Exception):
    """A sink can't take a window; the message names both. The next run of the group hands it over again."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Whose windows they are: the run's group, its definition, and the keys of its table.

    `named` says whether the group's name was chosen by the user. `digest` tells streams apart that write to
    the same place. It is that of the group's name, or, for runs on their own, whose groups have no name that
    stays, that of all that the stream asks.
    """

    group_id: str
    fingerprint: str
    named: bool
    digest: str
    keys: tuple[str, ...] = ()

    @classmethod
    def of(cls, stream: Stream, group_id: str, named: bool) -> Origin:
        """That of a run of `stream`."""
        definition = {part: told for part, told in stream.definition().items() if part != "written_by"}
        told = group_id if named else json.dumps(definition, sort_keys=True)
        fingerprint = stream.fingerprint()
        digest = hashlib.sha256(f"{fingerprint}/{told}".encode()).hexdigest()[:16]
        return cls(group_id, fingerprint, named, digest, stream.keys)


@dataclass(frozen=True, slots=True)
class ClosedWindow:
    """What is handed over: a window's table of sketches, of the groups in one partition of the table topic.

    `final` says that it will not come again.
    """

    table: pa.Table
    partition: int
    final: bool
    origin: Origin

    @property
    def of_sessions(self) -> bool:
        """Whether it holds sessions, which have no edges in common."""
        windows = windows_told(self.table.schema)
        return windows is not None and windows.kind == "session"

    @property
    def may_grow(self) -> bool:
        """Whether it holds sessions that may come again, longer, in place of these."""
        return self.of_sessions and not self.final

    @property
    def digest(self) -> str:
        """Of its windows and groups, whatever is kept of them."""
        rows = to_ipc(self.table.select([START, END, *keys_of(self.table.schema)]), None)
        return hashlib.sha256(rows).hexdigest()[:16]

    @property
    def start_us(self) -> int:
        """The beginning of the earliest window in it (int64 microseconds since 1970)."""
        return int(self.table.column(START).cast(pa.int64()).to_numpy().min())

    @property
    def end_us(self) -> int:
        """The end of the latest window in it."""
        return int(self.table.column(END).cast(pa.int64()).to_numpy().max())


@dataclass(frozen=True, slots=True)
class TopicWanted:
    """A topic that a sink writes to, and how it is made if it isn't there; 0: as many as the table topic."""

    name: str
    partitions: int
    config: Mapping[str, str]


@runtime_checkable
class MessageSink(Protocol):
    """A sink whose messages are sent in the transaction that keeps the merger's place."""

    def topic(self, origin: Origin) -> TopicWanted:
        """The topic that it writes to. Raises `ValueError` for a run that can't have this sink."""

    def messages(self, window: ClosedWindow) -> Iterator[Outgoing]:
        """A window's messages; the same for the same window, as often as it is asked."""


@runtime_checkable
class WritingSink(Protocol):
    """A sink that writes a window itself, so that writing it again leaves it there once."""

    def begin(self, origin: Origin) -> None:
        """Called before the first window. Raises `ValueError` for a run that can't have this sink."""

    def write(self, window: ClosedWindow) -> None:
        """Write a window. An `OSError` is tried again for a while; anything else ends the run."""


Sink = MessageSink | WritingSink
"""What a run takes: `ToKafka`, `ToTable`, `ToParquet`, or an object of your own with `begin` and `write`."""


def is_sink(given: object) -> bool:
    """Whether a run can take it as a sink."""
    return not isinstance(given, type) and isinstance(given, MessageSink | WritingSink)


def topics_of(sinks: Iterable[Sink], origin: Origin) -> list[TopicWanted]:
    """The topics that sinks write to. Raises `ValueError` for a sink that the run can't have."""
    found = []
    for sink in sinks:
        if isinstance(sink, MessageSink):
            found.append(sink.topic(origin))
        if isinstance(sink, WritingSink):
            sink.begin(origin)
    return found


def told_of(window: ClosedWindow) -> str:
    """A window in words, for errors: its time in UTC, and its partition of the table topic."""
    start, end = (datetime.fromtimestamp(us / 1e6, UTC) for us in (window.start_us, window.end_us))
    told = f"{start:%Y-%m-%d %H:%M:%S} to {end:%Y-%m-%d %H:%M:%S} UTC"
    return f"the window {told} (table partition {window.partition})"
