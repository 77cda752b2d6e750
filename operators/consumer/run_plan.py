"""The task of the members of one run, as a value that can be sent to other processes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from ..definition.sources import KafkaSource
from ..definition.stream import Stream
from ..secrets import Settings
from ..watermarks.position import Input, inputs_of
from .group.co_partitioning import RANGES
from .group.committed import LONE
from .log.messages import log_group, split_text
from .options import RunOptions


@dataclass(frozen=True)
class Plan:
    """One run of a stream on Kafka: what was requested, and the state at its start.

    `group_id` is the group's name, generated for a run without a group. `partitions` is the number of each
    input topic's partitions at the start, `ends` are the offsets to read up to, or None to run for ever.
    `starts` has the offsets from which partitions that the group knows resume; others are read from their
    first message. `counted` are the offsets that the group had committed with its deltas when the run began:
    the table topic must reach them. `table_partitions` is the number of the table topic's partitions,
    `split_keys` the keys by which groups are spread over them (None: all keys). `topic_ids`, by input topic,
    and `table_id` are the topics' ids, empty if brokers have none. `member` distinguishes the run's workers,
    and `transactional_id` is for a worker's transactions: its replacement uses the same. `sent_partitions` is
    the number of partitions of the topic that rows are forwarded to.

    Streams that run together have a plan each, with a `name`, and `together` are the names of all of them. As
    far as they read the same topics, group, topics and ends are the same for all.
    """

    stream: Stream
    group_id: str
    table_topic: str
    partitions: Mapping[str, int]
    table_partitions: int = 1
    options: RunOptions = field(default_factory=RunOptions)
    ends: Mapping[Input, int] | None = None
    starts: Mapping[Input, int] = field(default_factory=dict)
    counted: Mapping[Input, int] = field(default_factory=dict)
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    table_id: str = ""
    member: str = ""
    transactional_id: str = ""
    sent_partitions: int = 0
    name: str = LONE
    together: tuple[str, ...] = ()
    split_keys: tuple[str, ...] | None = None

    @property
    def sources(self) -> tuple[KafkaSource, ...]:
        """The stream's Kafka sources. Raises `TypeError` if its rows come from frames."""
        return self.stream.reading.kafka_sources

    @property
    def topic(self) -> str:
        """What it reads, in words."""
        return " and ".join(source.topic for source in self.sources)

    @property
    def inputs(self) -> list[Input]:
        """The input partitions at the start."""
        return inputs_of(self.partitions)

    @property
    def config(self) -> Settings:
        """librdkafka's settings for every client of the run."""
        settings = self.sources[0].settings
        return settings if self.stream.reading.joined is None else Settings({**settings, **RANGES})

    @property
    def split(self) -> str:
        """The keys that spread groups over the table topic's partitions, as JSON; empty for all keys."""
        return split_text(self.table_partitions, self.split_keys)

    def letters(self, topic: str) -> str | None:
        """The topic for a topic's messages that can't be counted, if any."""
        return self.options.dead_letter_topic(topic)

    def late_topic(self, topic: str) -> str | None:
        """The topic for a topic's late messages, if any."""
        return self.options.late_topic(topic)

    def of_worker(self, number: int, transactional_id: str) -> Plan:
        """The plan of one worker, without what only the run's process needs and may be unable to pickle."""
        options = replace(self.options, on_window=None, sinks=(), metrics=None, registry=None)
        return replace(self, options=options, member=str(number), transactional_id=transactional_id)

    @property
    def log_group(self) -> str:
        """The group name that this stream's table topic goes by; each of several streams has its own."""
        return log_group(self.group_id, self.name)

    @property
    def merger_group(self) -> str:
        """The consumer group of the processes that read the table topic."""
        return f"{self.log_group}.merger"


@dataclass(frozen=True)
class Plans:
    """The plans of the streams that share a consumer, by name: what a worker does.

    They belong to one group on one cluster, with the same options except those of a single stream. Each input
    partition is read for the streams that read its topic.
    """

    by_name: Mapping[str, Plan]

    @classmethod
    def of(cls, plans: Iterable[Plan]) -> Plans:
        """Collect plans by name."""
        return cls({plan.name: plan for plan in plans})

    @property
    def first(self) -> Plan:
        """One of the plans, for what is the same in all."""
        return next(iter(self.by_name.values()))

    @property
    def config(self) -> Settings:
        """librdkafka's settings for every client of the run, including those that joins need."""
        joined = [plan for plan in self.by_name.values() if plan.stream.reading.joined is not None]
        return (joined or [self.first])[0].config

    @property
    def topic(self) -> str:
        """What it reads, in words."""
        return " and ".join(dict.fromkeys(source.topic for source in self.sources))

    @property
    def sources(self) -> tuple[KafkaSource, ...]:
        """The sources of all streams."""
        return tuple(source for plan in self.by_name.values() for source in plan.sources)

    @property
    def partitions(self) -> dict[str, int]:
        """The number of partitions of each input topic at the start."""
        return {topic: n for plan in self.by_name.values() for topic, n in plan.partitions.items()}

    @property
    def topic_ids(self) -> dict[str, str]:
        """The ids of the input topics."""
        return {
            topic: topic_id for plan in self.by_name.values() for topic, topic_id in plan.topic_ids.items()
        }

    def of_worker(self, number: int, transactional_id: str) -> Plans:
        """The plans for one of the workers."""
        return Plans.of(plan.of_worker(number, transactional_id) for plan in self.by_name.values())
