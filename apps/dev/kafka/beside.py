"""An embedded broker that starts while the program loads its other modules."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Self

from confluent_kafka import Producer

from ...ending import in_order
from .broker import EmbeddedKafka
from .first_requests import send_first_requests


class KafkaBeside:
    """A broker that a thread starts and sends its first requests; as a context manager, it stops the broker.

    The constructor does what is done once per machine, such as fetching jars, and may raise `JarsError`,
    `JavaError` or `CacheError`. `started` raises what `EmbeddedKafka.start` raises.
    """

    def __init__(self) -> None:
        self._kafka = EmbeddedKafka()
        self._error: BaseException | None = None
        with in_order():
            self._kafka.prepare()
        self._serves = threading.Event()
        self._producer: Producer | None = None
        threading.Thread(target=self._start, name="start of Kafka", daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def started(self) -> EmbeddedKafka:
        """Wait until the broker is ready, and return it."""
        self._serves.wait()
        if self._error is not None:
            raise self._error
        return self._kafka

    def producer(self) -> Producer | None:
        """Return a producer for `send` that has had time to connect; only once."""
        producer, self._producer = self._producer, None
        return producer

    def stop(self) -> None:
        """Stop the broker, even if it has not started yet; does nothing if it is stopped."""
        if not self._serves.is_set():
            self._kafka.kill()
            self._serves.wait()
        self._kafka.stop()

    def _start(self) -> None:
        try:
            self._kafka.start()
        except BaseException as error:
            self._error = error
            return
        finally:
            self._serves.set()
        from ..replay.sender import producer_for  # imported here, because it loads more than the start needs

        self._producer = producer_for(self._kafka.bootstrap_servers)
        send_first_requests(self._kafka.bootstrap_servers)
