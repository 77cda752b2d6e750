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

    `group_id` is the group's name, a generated one for a run on its own. `partitions` is how many partitions
    each input topic has at the start, `ends` the offsets to read up to, or None to go on for ever. `starts`
    says where partitions that the group knows go on; others are read from their first message. `counted` are
    the offsets that the group had committed with its deltas when the run began: the table topic must hold
    them up to there.
    `table_partitions` is the number of the table topic's partitions, `split_keys` the keys by which groups
    are spread over them (None: all keys). `topic_ids`, by input topic, and
    `table_id` are the topics' ids, empty if brokers have none. `member` tells the run's workers apart.
    `sent_partitions` is how many partitions the topic has that rows are sent on to.

    Streams that run together have a plan each, with a `name`, and `together` are the names of all of them.
    Group, topics and ends are the same for all, as far as they read the same.
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
    sent_partitions: int = 0
    name: str = LONE
    together: tuple[str, ...] = ()
    split_keys: tuple[str, ...] | None = None

    @property
    def sources(self) -> tuple[KafkaSource, ...]:
        """The stream's Kafka sources. Raises `TypeError` if its rows come from frames."""
        return self.stream.kafka_sources

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
        return settings if self.stream.joined is None else Settings({**settings, **RANGES})

    @property
    def split(self) -> str:
        """By which keys groups are spread over the table topic's partitions, as JSON; empty if by all."""
        return split_text(self.table_partitions, self.split_keys)

    def letters(self, topic: str) -> str | None:
        """Where messages of a topic go that can't be counted, if anywhere."""
        return self.options.dead_letter_topic(topic)

    def late_topic(self, topic: str) -> str | None:
        """Where late messages of a topic go, if anywhere."""
        return self.options.late_topic(topic)

    def of_worker(self, number: int) -> Plan:
        """That of one of the workers: without what is of the run's process alone, which may not pickle."""
        options = replace(self.options, on_window=None, sinks=(), metrics=None, registry=None)
        return replace(self, options=options, member=str(number))

    @property
    def log_group(self) -> str:
        """The group by whose name others know this stream's table topic: its own among several streams."""
        return log_group(self.group_id, self.name)

    @property
    def merger_group(self) -> str:
        """The consumer group of those who read the table topic."""
        return f"{self.log_group}.merger"


@dataclass(frozen=True)
class Plans:
    """The plans of the streams that share one reading, by their names: what a worker does.

    They are of one group on one cluster, with the same options but for what is of one stream; each input
    partition is read by those streams that take its topic.
    """

    by_name: Mapping[str, Plan]

    @classmethod
    def of(cls, plans: Iterable[Plan]) -> Plans:
        """These plans."""
        return cls({plan.name: plan for plan in plans})

    @property
    def first(self) -> Plan:
        """One of the plans, for what is the same in all."""
        return next(iter(self.by_name.values()))

    @property
    def config(self) -> Settings:
        """librdkafka's settings for every client of the run, those that joins need among them."""
        joined = [plan for plan in self.by_name.values() if plan.stream.joined is not None]
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
        """How many partitions each input topic has at the start."""
        return {topic: n for plan in self.by_name.values() for topic, n in plan.partitions.items()}

    @property
    def topic_ids(self) -> dict[str, str]:
        """The ids of the input topics."""
        return {
            topic: topic_id for plan in self.by_name.values() for topic, topic_id in plan.topic_ids.items()
        }

    def of_worker(self, number: int) -> Plans:
        """That of one of the workers."""
        return Plans.of(plan.of_worker(number) for plan in self.by_name.values())
