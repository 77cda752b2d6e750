"""Watching topics that must not change during a run: the same topic by id, with all its partitions."""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient

from .topics import TopicError, recreated, topic_id

_SECONDS = 2.0
_ANSWER_SECONDS = 10.0
_TIMES_MISSED = 3
"""A broker that has just returned may not know a topic yet."""


class TopicWatch:
    """Polls the brokers every two seconds, without waiting for their answers.

    `ids` are the topics' ids by name; after `poll`, `partitions` are the current partitions of each. `gone`
    are missing topics that are allowed to be missing (`also`).
    """

    def __init__(self, client: AdminClient, ids: Mapping[str, str]) -> None:
        self._client = client
        self._ids = dict(ids)
        self._answers: dict[str, Future[Any]] = {}
        self._missed = dict.fromkeys(ids, 0)
        self._due = time.monotonic() + _SECONDS
        self.partitions: dict[str, int] = {}
        self.gone: set[str] = set()
        self._optional: set[str] = set()

    def also(self, ids: Mapping[str, str], needed: bool = True) -> None:
        """Watch more topics; unless `needed`, it is no error if they don't exist."""
        fresh = {topic: known_id for topic, known_id in ids.items() if not self._ids.get(topic)}
        self._missed |= dict.fromkeys(fresh.keys() - self._ids.keys(), 0)
        self._optional |= set() if needed else fresh.keys() - self._ids.keys()
        self._optional -= ids.keys() if needed else set()
        self._ids |= fresh

    def poll(self) -> None:
        """Process answers, and ask again when it is time.

        Raises `TopicError` for a topic that was deleted, or recreated.
        """
        for topic, answer in list(self._answers.items()):
            if answer.done():
                del self._answers[topic]
                self._judge(topic, answer)
        if not self._answers and time.monotonic() >= self._due:
            self._due = time.monotonic() + _SECONDS
            self._ask()

    def ask_and_wait(self) -> None:
        """Ask once more and wait for the answers: a deleted topic may have caused another error."""
        self._missed = dict.fromkeys(self._ids, _TIMES_MISSED)
        self._ask()
        for topic, answer in self._answers.items():
            self._judge(topic, answer)

    def _ask(self) -> None:
        topics = TopicCollection(list(self._ids))
        self._answers = self._client.describe_topics(topics, request_timeout=_ANSWER_SECONDS)

    def _judge(self, topic: str, answer: Future[Any]) -> None:
        try:
            description = answer.result(_ANSWER_SECONDS)
        except KafkaException as error:
            if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                self._missed[topic] += 1
                if self._missed[topic] >= _TIMES_MISSED and topic in self._optional:
                    self.gone.add(topic)
                elif self._missed[topic] >= _TIMES_MISSED:
                    raise TopicError(f"the topic {topic!r} was deleted while a run used it") from None
            return
        except TimeoutError:
            return
        self._missed[topic] = 0
        self.gone.discard(topic)
        self.partitions[topic] = len(description.partitions)
        if (now := topic_id(description)) != self._ids[topic] and now and self._ids[topic]:
            raise recreated(topic)
