"""The topics that a stream reads: those it names, and those that currently match its patterns."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaException

from ...definition.sources import KafkaSource
from ...definition.topic_patterns import is_pattern, matches
from ...kafka.topics import CHECK, Admin, TopicError, id_of, partitions_of

log = logging.getLogger("streamgauge.kafka")

_SECONDS = 30.0
_AGAIN_SECONDS = 5.0
_ANSWER_SECONDS = 2.0
_REFRESH = "topic.metadata.refresh.interval.ms"


@dataclass(frozen=True)
class InputTopics:
    """The number of partitions of each input topic, and the topics' ids, empty if brokers have none."""

    partitions: Mapping[str, int]
    ids: Mapping[str, str]


def input_topics(
    client: Admin, sources: Sequence[KafkaSource], others: Collection[str | None] = ()
) -> InputTopics:
    """The topics that these sources read now; `others` are the run's own, which patterns never match.

    Raises `TopicError` for a topic that doesn't exist or that two sources read, and if there is no topic.
    """
    names = list(dict.fromkeys(topic for source in sources for topic in source.topics))
    partition_counts = {topic: partitions_of(client, topic) for topic in names if not is_pattern(topic)}
    if any(map(is_pattern, names)):
        known = _known(client, _SECONDS)
        partition_counts |= {t: n for t, n in known.items() if t not in others and readers_of(sources, t)}
    for topic in partition_counts:
        check_one_reader(readers_of(sources, topic), topic)
    if not partition_counts:
        raise TopicError(
            f"no topic at {client.address} matches {', '.join(map(repr, names))} yet; create one, or check "
            "the pattern (topics of dead letters and table topics don't count)"
        )
    return InputTopics(partition_counts, {topic: id_of(client, topic) for topic in partition_counts})


def check_apart(sources: Sequence[KafkaSource], written: Iterable[str | None]) -> None:
    """Raise `ValueError` for a topic that a run would both write to and read from, in a loop."""
    for topic in written:
        if topic and (takers := readers_of(sources, topic)):
            raise ValueError(
                f"this run writes to the topic {topic!r} and reads {takers[0].topic}: it would read its "
                "own output; write to another topic, or read fewer"
            )


class TopicSearch:
    """Look for topics that begin to match, every five seconds or as `config` says; `known` are read already.

    `sources` are the sources of all streams that read here. Without patterns, it does nothing.
    """

    def __init__(
        self,
        client: Callable[[], Admin],
        sources: Sequence[Sequence[KafkaSource]],
        config: Mapping[str, Any],
        known: Collection[str],
        others: Collection[str | None] = (),
    ) -> None:
        self._client, self._sources = client, sources
        self._known, self._others = set(known), others
        self._every = float(config.get(_REFRESH, _AGAIN_SECONDS * 1000)) / 1000
        self._due = time.monotonic() + self._every
        names = [topic for own in sources for source in own for topic in source.topics]
        self._has_patterns = any(map(is_pattern, names))

    def poll(self) -> InputTopics | None:
        """Return the topics that began to match since the last call, if it is time to look and there are any.

        Returns None while brokers are unreachable. Raises `TopicError` for a topic that two sources match.
        """
        if not self._has_patterns or time.monotonic() < self._due:
            return None
        self._due = time.monotonic() + self._every
        try:
            there = _known(self._client(), _ANSWER_SECONDS)
            mine = {topic: n for topic, n in there.items() if topic not in {*self._known, *self._others}}
            fresh = {t: n for t, n in mine.items() if any(readers_of(own, t) for own in self._sources)}
            ids = {topic: id_of(self._client(), topic) for topic in fresh}
        except TopicError as error:
            log.debug("new topics were not looked for: %s", error)
            return None
        self._known |= fresh.keys()
        for topic in fresh:
            for own in self._sources:
                check_one_reader(readers_of(own, topic), topic)
            log.info("the topic %s is read from now on", topic)
        return InputTopics(fresh, ids) if fresh else None


def readers_of(sources: Sequence[KafkaSource], topic: str) -> list[KafkaSource]:
    """The sources that read a topic: those that name it, or else those whose patterns match."""
    naming = [source for source in sources if topic in source.topics]
    return naming or [source for source in sources if matches(source.topics, topic)]


def check_one_reader(takers: Sequence[KafkaSource], topic: str) -> None:
    """Raise `TopicError` for a topic that the patterns of two sources match."""
    if len(takers) > 1:
        raise TopicError(
            f"the topic {topic!r} matches the patterns of two of the merged streams, {takers[0].topic} and "
            f"{takers[1].topic}; make them match different topics"
        )


def _known(client: Admin, seconds: float) -> dict[str, int]:
    """All existing topics, with their numbers of partitions."""
    try:
        topics = client.list_topics(timeout=seconds).topics
    except KafkaException as error:
        raise TopicError(
            f"no broker answered at {client.address} when its topics were requested: {error.args[0].str()}; "
            f"{CHECK}"
        ) from None
    return {name: len(one.partitions) for name, one in topics.items() if one.error is None and one.partitions}
