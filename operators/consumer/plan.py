"""What the workers of one run are to do, as a value that travels to other processes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..definition.sources import KafkaSource
from ..definition.stream import Stream
from ..kafka.secrets import Settings
from .merge.merger import DeliveryName


@dataclass(frozen=True)
class Plan:
    """One run of a stream on Kafka.

    `ends` are the offsets to read up to, by input partition, or None to go on for ever. `partitions` is the
    number of input partitions at the start, `starts` where those of them go on that are known to the group;
    others are read from their first message. `source_id` and `table_id` are the topics' ids, empty where
    brokers have none. A partition counts as idle `idle_seconds` after its last
    row with an event time if there is certainly nothing to read.
    """

    stream: Stream
    group_id: str
    table_topic: str
    partitions: int
    table_partitions: int = 1
    delivery: DeliveryName = "exactly_once"
    dead_letter_topic: str | None = None
    ends: Mapping[int, int] | None = None
    starts: Mapping[int, int] = field(default_factory=dict)
    checkpoint_seconds: float = 1.0
    idle_seconds: float = 5.0
    batch_messages: int = 200_000
    source_id: str = ""
    table_id: str = ""

    @property
    def source(self) -> KafkaSource:
        """The stream's Kafka source. Raises `TypeError` if it reads something else."""
        if not isinstance(self.stream.source, KafkaSource):
            raise TypeError("this stream's rows come from frames; only Stream.from_kafka(...) can be run")
        return self.stream.source

    @property
    def config(self) -> dict[str, Any]:
        """librdkafka's settings for every client of the run."""
        return Settings({"bootstrap.servers": self.source.bootstrap_servers, **self.source.config})

    @property
    def merger_group(self) -> str:
        """The consumer group of those who read the table topic."""
        return f"{self.group_id}.merger"
