"""What is asked of the brokers through an administration client, and for how long."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from streamgauge.operators.kafka.topics import described_group, remove


class NobodyAnswers:
    """Brokers that are away: topics are given up by the library, groups' coordinators never answer."""

    def __init__(self) -> None:
        self.patience: list[float] = []

    def delete_topics(self, topics: list[str], operation_timeout: float) -> dict[str, Future[Any]]:
        gone: Future[Any] = Future()
        gone.set_exception(KafkaException(KafkaError(KafkaError._TIMED_OUT)))
        return dict.fromkeys(topics, gone)

    def _of_groups(self, groups: list[str], request_timeout: float) -> dict[str, Future[Any]]:
        self.patience.append(request_timeout)
        return {group: Future() for group in groups}

    describe_consumer_groups = delete_consumer_groups = _of_groups


def test_the_library_never_gives_up_a_question_to_a_coordinator(monkeypatch: pytest.MonkeyPatch) -> None:
    # It would end the process when the coordinator comes back.
    monkeypatch.setattr("streamgauge.operators.kafka.topics._SECONDS", 0.0)
    brokers: Any = NobodyAnswers()
    assert not described_group(brokers, "one").done()
    remove(brokers, ["table"], ["one", "two"])
    assert brokers.patience == [3600.0, 3600.0]
