"""Waiting for Kafka to return: logged once, with pauses between attempts, given up only on a requested stop.

A call that is simply repeated is left to `tenacity` (`topics`, `spark_udafs.kafka`). Here the wait is not a
single call: a delivery consists of several, some are waited for without failing (`still`), it resumes
elsewhere than where it failed, and a requested stop ends it whatever it does.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from confluent_kafka import KafkaException

from ...sketches.core.errors import StreamgaugeError
from ..secrets import without_secrets
from .faults import passing

log = logging.getLogger("streamgauge.kafka")

_PAUSE_SECONDS = 0.2
_LAST_SECONDS = 5.0
"""How long a stopping worker still tries to deliver what it holds."""


class Stopped(StreamgaugeError):
    """Stopped before everything was delivered; nothing of it is committed, and it will be reread."""


class Retry:
    """One wait, for `what`: call `failed` before each new attempt, `done` after the successful one."""

    def __init__(self, what: str, stopping: Callable[[], bool]) -> None:
        self._what = what
        self._stopping = stopping
        self._reason: str | None = None
        self._stop_seen: float | None = None

    def failed(self, error: KafkaException) -> None:
        """Pause. Raises `error` again if it can't be retried, and `Stopped` on a requested stop."""
        if not passing(error.args[0]):
            raise error
        self.still(error.args[0].str())
        time.sleep(_PAUSE_SECONDS)

    def still(self, why: str) -> None:
        """Report that it isn't done yet. Raises `Stopped` some seconds after a stop was requested."""
        why = without_secrets(why)
        if self._reason is None:
            log.warning("waiting to %s: %s", self._what, why)
            self._reason = why
        if self._stopping():
            now = time.monotonic()
            self._stop_seen = self._stop_seen or now
            if now - self._stop_seen > _LAST_SECONDS:
                raise Stopped(f"stopped while waiting to {self._what}: {why}")

    def done(self) -> None:
        """Report success."""
        if self._reason is not None:
            log.warning("managed to %s; continuing", self._what)
            self._reason = None
