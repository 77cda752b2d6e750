"""The interfaces between the parts of an agent.

Each kind of part is a frozen dataclass of its settings, which `registry` lists by its name in configurations,
with a method `open` that returns the running part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, runtime_checkable

from .batch import Batch, Positions


@dataclass(frozen=True, slots=True)
class Place:
    """The context of a part: the agent's name, the source's name, and the folder for files.

    `once` says that the agent ends after the existing data, `stopping` whether its end was requested.
    """

    agent: str
    source: str
    folder: Path
    once: bool = False
    stopping: Callable[[], bool] = field(default=lambda: False)

    @property
    def owner(self) -> str:
        """Both names, under which positions are stored and producers are fenced."""
        return f"{self.agent}/{self.source}"


class Source(Protocol):
    """A running source of messages.

    `waited_for` says that senders wait for each commit, so it must not be delayed; `finite` that nothing can
    follow once the source has `ended`; `ended` that everything that existed when it was opened, or has come
    since, has been read.
    """

    waited_for: bool
    finite: bool

    @property
    def ended(self) -> bool:
        """See above."""

    def read(self, seconds: float) -> Batch | None:
        """Return the next messages, after at most `seconds`; None if none came.

        Raises `IngestError` if waiting won't help.
        """

    def close(self) -> None:
        """Close files and connections."""


STOPPED = "lost at the stop"
"""The reason in an account for messages that a source received and a stop left undelivered."""


@runtime_checkable
class DrainedSource(Protocol):
    """A source of a kind whose messages may not be sent again.

    If this source is `volatile`, they aren't: at a stop, received messages are still delivered, or else
    counted.
    """

    volatile: bool

    def drain(self) -> None:
        """Receive nothing new; the source has `ended` once all received messages are read."""

    def discard(self) -> int:
        """Receive and return nothing more; return how many received messages this loses."""


class SourceSettings(Protocol):
    """A kind of source."""

    def open(self, place: Place, positions: Positions) -> Source:
        """Begin after `positions`, which batches of an earlier agent of this name carried."""


@dataclass(frozen=True, slots=True)
class Delivered:
    """The result of a commit: messages sent, and dead letters."""

    sent: int
    dead_lettered: int


class Sink(Protocol):
    """A running sink for messages of a single source."""

    positions: Positions

    def write(self, batch: Batch) -> None:
        """Accept a batch, which others don't see before `commit`. May wait for room."""

    def commit(self, batches: Sequence[Batch]) -> Delivered:
        """Make everything written since the last commit, `batches`, durable together with its positions.

        Retries while that may help; otherwise raises `IngestError`, `Stopped` or `KafkaException`. Then
        nothing is committed, or everything is and the positions say so.
        """

    def close(self) -> None:
        """Close the sink; written but uncommitted messages stay invisible."""


class SinkSettings(Protocol):
    """A kind of sink."""

    def open(self, place: Place) -> Sink:
        """Open the sink; `Sink.positions` are the source's positions."""


class Channel(Protocol):
    """Buffers messages between a source and a sink: it is a sink on one side, a source on the other.

    `durable` says that messages survive the agent's end, `held` how many it has now, `held_before` how many
    it had when it was opened, `lost` how many it has lost, by reason.
    """

    durable: bool

    @property
    def held(self) -> int:
        """See above."""

    @property
    def held_before(self) -> int:
        """See above."""

    @property
    def lost(self) -> Mapping[str, int]:
        """See above."""

    def sink(self, place: Place) -> Sink:
        """Return the side to which sources write; each source has its own."""

    def source(self, place: Place, positions: Positions) -> Source:
        """Return the side from which a sink reads."""

    def close(self) -> None:
        """Close files."""


class ChannelSettings(Protocol):
    """A kind of channel."""

    def open(self, name: str, place: Place) -> Channel:
        """Open the channel with the messages that an earlier agent of this name left in it."""


class Interceptor(Protocol):
    """Transforms batches between source and sink."""

    def apply(self, batch: Batch) -> Batch:
        """Return the transformed batch."""


class InterceptorSettings(Protocol):
    """A kind of interceptor."""

    def open(self, place: Place) -> Interceptor:
        """Open the interceptor."""
