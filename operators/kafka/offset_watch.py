"""The first and last offsets of partitions, polled without waiting for answers."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from concurrent.futures import Future
from typing import Any, Generic

from confluent_kafka import IsolationLevel, KafkaException
from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from .topics import Where

_SECONDS = 2.0
_ANSWER_SECONDS = 10.0


class OffsetWatch(Generic[Where]):
    """Requests the offset after each partition's last committed message every two seconds.

    `begins` and `ends` are the latest answers; a partition without an answer is missing. `high_watermarks`
    are the offsets after the last messages, those of open transactions included.
    """

    def __init__(self, client: AdminClient, clock: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._clock = clock
        self._requests: list[tuple[dict[Where, int], dict[Where, Future[Any]]]] = []
        self._due = 0.0
        self.begins: dict[Where, int] = {}
        self.ends: dict[Where, int] = {}
        self.high_watermarks: dict[Where, int] = {}

    def poll(self, places: Collection[Where]) -> None:
        """Process answers, and request the offsets of these partitions when it is time."""
        for known, answers in self._requests:
            for where in [where for where, answer in answers.items() if answer.done()]:
                try:
                    known[where] = answers.pop(where).result().offset
                except KafkaException:
                    known.pop(where, None)
        self._requests = [(known, answers) for known, answers in self._requests if answers]
        if not self._requests and self._clock() >= self._due:
            self._due = self._clock() + _SECONDS
            self._ask(self.ends, places, OffsetSpec.latest())
            all_messages = IsolationLevel.READ_UNCOMMITTED
            self._ask(self.high_watermarks, places, OffsetSpec.latest(), all_messages)
            self._ask(
                self.begins, [where for where in places if where not in self.begins], OffsetSpec.earliest()
            )

    def _ask(
        self,
        known: dict[Where, int],
        places: Collection[Where],
        spec: OffsetSpec,
        level: IsolationLevel = IsolationLevel.READ_COMMITTED,
    ) -> None:
        wanted = {where: KafkaPartition(*where) for where in places}
        if not wanted:
            return
        answers = self._client.list_offsets(
            dict.fromkeys(wanted.values(), spec),
            isolation_level=level,
            request_timeout=_ANSWER_SECONDS,
        )
        self._requests.append((known, {where: answers[place] for where, place in wanted.items()}))
