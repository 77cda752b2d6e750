"""What the parts of an agent are to each other.

Each kind is a frozen dataclass of its settings, which `registry` lists by its name in configurations, with a
method `open` that gives the part at work.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, runtime_checkable

from .batch import Batch, Positions


@dataclass(frozen=True, slots=True)
class Place:
    """Whose part is opened: the agent's name, the source's, and where what must be kept on disk is.

    `once` says that the agent ends at the end of what is there, `stopping` whether its end was requested.
    """

    agent: str
    source: str
    folder: Path
    once: bool = False
    stopping: Callable[[], bool] = field(default=lambda: False)

    @property
    def owner(self) -> str:
        """Both names: under which positions are kept and producers fenced."""
        return f"{self.agent}/{self.source}"


class Source(Protocol):
    """Messages of one kind, at work.

    `waited_for` says that somebody waits for each commit, so that one must not be put off; `finite` that
    nothing can come any more once it has `ended`; `ended` that what
    was there when it was opened, or has come since, is read to its end.
    """

    waited_for: bool
    finite: bool

    @property
    def ended(self) -> bool:
        """See above."""

    def read(self, seconds: float) -> Batch | None:
        """The next messages, at the latest after so many seconds; None if none came.

        Raises `IngestError` for what waiting won't mend.
        """

    def close(self) -> None:
        """Let go of files and connections."""


STOPPED = "lost at the stop"
"""The reason in an account for messages that a source received and a stop left undelivered."""


@runtime_checkable
class DrainedSource(Protocol):
    """A source of a kind whose messages nobody may send again.

    If this one is `volatile`, nobody does: at a stop, what was received is still delivered, or else counted.
    """

    volatile: bool

    def drain(self) -> None:
        """Receive nothing but what is here already; the source has `ended` once that is read."""

    def discard(self) -> int:
        """Receive and give nothing more; how many received messages are lost by that."""


class SourceSettings(Protocol):
    """A kind of source."""

    def open(self, place: Place, positions: Positions) -> Source:
        """Begin behind `positions`, which batches of an earlier agent of this name carried."""


@dataclass(frozen=True, slots=True)
class Delivered:
    """What a commit has delivered: messages sent, and dead letters."""

    sent: int
    dead_lettered: int


class Sink(Protocol):
    """A place for messages, at work, of one source alone."""

    positions: Positions

    def write(self, batch: Batch) -> None:
        """Take a batch, which is not there for others before `commit`. May wait for room."""

    def commit(self, batches: Sequence[Batch]) -> Delivered:
        """Make all that was written since the last commit, which is `batches`, durable with its positions.

        Tries again while that may help. Raises `IngestError`, `Stopped` or `KafkaException` where it
        doesn't; nothing of it is there then, or all of it is and the positions say so.
        """

    def close(self) -> None:
        """Let go; what was written and not committed is not there for anybody."""


class SinkSettings(Protocol):
    """A kind of sink."""

    def open(self, place: Place) -> Sink:
        """Begin; `Sink.positions` are how far the source was."""


class Channel(Protocol):
    """Keeps messages between a source and a sink: a sink on one side, a source on the other.

    `durable` says that it keeps them beyond the agent's end, `held` how many it has now, `held_before` how
    many it had when it was opened, `lost` how many it has lost, by the reason.
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
        """The side that sources write to, each by its own."""

    def source(self, place: Place, positions: Positions) -> Source:
        """The side that a sink reads from."""

    def close(self) -> None:
        """Let go of files."""


class ChannelSettings(Protocol):
    """A kind of channel."""

    def open(self, name: str, place: Place) -> Channel:
        """Begin with what an earlier agent of this name has left in it."""


class Interceptor(Protocol):
    """Changes batches on their way."""

    def apply(self, batch: Batch) -> Batch:
        """The batch to go on with."""


class InterceptorSettings(Protocol):
    """A kind of interceptor."""

    def open(self, place: Place) -> Interceptor:
        """Begin."""
