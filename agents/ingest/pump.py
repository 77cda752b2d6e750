"""Move messages from one source through interceptors to one sink: read, write, commit, acknowledge, count."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from .account import IngestAccount
from .batch import Batch
from .component import STOPPED, DrainedSource, Interceptor, Sink, Source

log = logging.getLogger("streamgauge.ingest")

COMMIT_SECONDS = 1.0
COMMIT_BYTES = 32 * 1024 * 1024
"""A transaction of this size is committed immediately, because its bytes are kept for a retry until then."""
COMMIT_MESSAGES = 400_000
DRAIN_SECONDS = 10.0
"""The longest time that a stop reads messages that a source has received."""
_IDLE_SECONDS = 0.25
_SOON_SECONDS = 0.005
"""How long to wait for more messages if senders wait for the commit."""


@dataclass(slots=True)
class PumpState:
    """A pump's state as seen by other threads; `account` counts committed messages."""

    account: IngestAccount = field(default_factory=IngestAccount)
    commits: int = 0
    under_way: int = 0
    under_way_since: float = 0.0
    last_commit: float = 0.0


class Pump:
    """Moves messages until its end is requested, or with `once` until the existing messages were moved.

    `stopping` says that the end was requested, `feeding` that the source is a channel to which others still
    write. `run` raises what its parts raise; then nothing is lost that the source can return again.
    """

    def __init__(
        self,
        source: Source,
        sink: Sink,
        interceptors: Sequence[Interceptor] = (),
        *,
        once: bool = False,
        stopping: Callable[[], bool] = lambda: False,
        feeding: Callable[[], bool] = lambda: False,
        commit_seconds: float = COMMIT_SECONDS,
    ) -> None:
        self.source, self._sink, self._interceptors = source, sink, interceptors
        self._once, self._stopping, self._feeding = once, stopping, feeding
        self._commit_seconds = commit_seconds
        self._pending: list[Batch] = []
        self._bytes = self._messages = 0
        self.state = PumpState()

    def run(self) -> None:
        """Move messages."""
        try:
            while not self._stopping():
                feeding = self._feeding()
                batch = self.source.read(self._patience())
                if batch is not None:
                    self._take(batch)
                if self._pending and self._is_due(batch):
                    self._commit()
                elif batch is None and self._ends() and not feeding:
                    break
            else:
                self._drain()
            if self._pending:
                self._commit()
        except BaseException as error:
            for batch in self._pending:
                batch.refused(str(error))
            raise
        finally:
            self._discard()

    def _drain(self) -> None:
        """Read the messages that a source has received, if they won't be sent again."""
        if not isinstance(self.source, DrainedSource) or not self.source.volatile:
            return
        self.source.drain()
        deadline = time.monotonic() + DRAIN_SECONDS
        while not self.source.ended and time.monotonic() < deadline:
            batch = self.source.read(_SOON_SECONDS)
            if batch is not None:
                self._take(batch)
            if self._pending and self._is_due(batch):
                self._commit()

    def _discard(self) -> None:
        """Count received messages that can't be delivered."""
        if isinstance(self.source, DrainedSource) and self.source.volatile:
            lost = self.source.discard() + sum(batch.read for batch in self._pending)
            if lost:
                self.state.account += IngestAccount(lost, dropped={STOPPED: lost})

    def _ends(self) -> bool:
        """Whether the existing data has been read and the pump should end."""
        return self.source.ended and (self._once or self.source.finite)

    def _patience(self) -> float:
        if not self._pending:
            return _IDLE_SECONDS
        if self.source.waited_for:
            return _SOON_SECONDS
        left = self.state.under_way_since + self._commit_seconds - time.monotonic()
        return min(max(left, 0.0), _IDLE_SECONDS)

    def _take(self, batch: Batch) -> None:
        for interceptor in self._interceptors:
            batch = interceptor.apply(batch)
        if not self._pending:
            self.state.under_way_since = time.monotonic()
        self._sink.write(batch)
        self._pending.append(batch)
        self._bytes += batch.nbytes
        self._messages += batch.read
        self.state.under_way = self._messages

    def _is_due(self, batch: Batch | None) -> bool:
        if batch is None and (self.source.waited_for or self._ends()):
            return True
        return (
            self._bytes >= COMMIT_BYTES
            or self._messages >= COMMIT_MESSAGES
            or time.monotonic() - self.state.under_way_since >= self._commit_seconds
        )

    def _commit(self) -> None:
        pending = self._pending
        delivered = self._sink.commit(pending)
        self._pending, self._bytes, self._messages = [], 0, 0
        for batch in pending:
            batch.acknowledged()
        dropped = IngestAccount()
        for batch in pending:
            dropped += IngestAccount(dropped=batch.dropped)
        read = sum(batch.read for batch in pending)
        self.state.account += IngestAccount(read, delivered.sent, delivered.dead_lettered) + dropped
        self.state.commits += 1
        self.state.under_way, self.state.last_commit = 0, time.monotonic()
