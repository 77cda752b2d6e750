"""The options of the Kafka source, named as in Spark's own source."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Literal

from ...operators.definition.stream import Stream
from ...operators.kafka.reader import Corrupt
from ...operators.kafka.settings import check_settings
from ...operators.secrets import Settings, is_secret
from .bounds import Place, check_bounded, ending, starting

Emit = Literal["messages", "rows", "sketches"]

EACH = "<topic>"
"""In the name of a topic for dead letters, the placeholder for the name of the message's own topic."""

_OWN = {
    "kafka.key.deserializer": "decode with from_json or a stream",
    "kafka.value.deserializer": "decode with from_json or a stream",
    "kafka.auto.offset.reset": "use startingOffsets, and failOnDataLoss for messages that are gone",
    "kafka.enable.auto.commit": "Spark's checkpoint holds the offsets",
    "kafka.enable.auto.offset.store": "Spark's checkpoint holds the offsets",
    "kafka.interceptor.classes": "librdkafka doesn't have Java's interceptors",
    "kafka.sasl.jaas.config": "librdkafka has no JAAS; set kafka.sasl.mechanism, "
    "kafka.sasl.username and kafka.sasl.password",
    "kafkaconsumer.polltimeoutms": "brokers that are away are waited for here; leave it out",
    "fetchoffset.numretries": "brokers that are away are waited for here; leave it out",
    "fetchoffset.retryintervalms": "brokers that are away are waited for here; leave it out",
}
_HIDDEN_BY_SPARK = re.compile("secret|password|token|access[.]?key|url", re.IGNORECASE)
"""Options whose values Spark redacts in plans by default."""

_KNOWN = (
    "subscribe",
    "subscribePattern",
    "assign",
    "startingOffsets",
    "endingOffsets",
    "startingTimestamp",
    "endingTimestamp",
    "startingOffsetsByTimestamp",
    "endingOffsetsByTimestamp",
    "startingOffsetsByTimestampStrategy",
    "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "minPartitions",
    "maxRecordsPerPartition",
    "failOnDataLoss",
    "includeHeaders",
    "groupIdPrefix",
    "emit",
    "deadLetterTopic",
    "lateTopic",
    "corruptBatches",
    "truncated",
    "idleTimeout",
    "closeAtEnd",
    "endFile",
)


@dataclass(frozen=True)
class KafkaOptions:
    """What to read and how, validated.

    Exactly one of `topics`, `pattern` and `assigned` is set. `topics` are names, and a stream's patterns
    (`operators.definition.topic_patterns`). `config` goes to librdkafka unchanged. When the file `end_file`
    appears, a stream reads the messages that exist by then and closes its windows, as with ``availableNow``.
    """

    config: Mapping[str, Any]
    topics: tuple[str, ...] = ()
    pattern: str | None = None
    assigned: tuple[tuple[str, int], ...] = ()
    starting: Place | None = None
    ending: Place | None = None
    max_per_trigger: int | None = None
    min_per_trigger: int | None = None
    max_delay_seconds: float = 900.0
    min_partitions: int | None = None
    max_records: int | None = None
    fail_on_data_loss: bool = True
    headers: bool = False
    group_prefix: str = "streamgauge"
    stream: Stream | None = None
    emit: Emit = "messages"
    idle_timeout_ms: int = 10_000
    close_at_end: bool = False
    end_file: str | None = None
    dead_letter_topic: str | None = None
    late_topic: str | None = None
    corrupt: Corrupt = "stop"
    truncated: Literal["stop", "continue"] = "stop"

    @classmethod
    def parse(
        cls, options: Mapping[str, str], stream: Stream | None = None, settings: Mapping[str, Any] = {}
    ) -> KafkaOptions:
        """Read the options of ``spark.read`` and ``spark.readStream``.

        `stream` is the stream of a bound source (`kafka.source.bound`): its topics are read, unless it has
        only one and the options name others. `settings` are the stream's librdkafka settings. Raises
        `ValueError` with the option, what is wrong with it and what it may be.
        """
        given = {key.lower(): str(value) for key, value in options.items()}
        _refuse(given)
        for name in settings:
            if (key := f"kafka.{name}") in _OWN:
                raise ValueError(f"the stream's config sets {name!r}, which Spark can't take: {_OWN[key]}")
        config = client_settings(given, settings)
        topics, pattern, assigned = _subscription(given, stream)
        emit = given.get("emit", "messages" if stream is None else "sketches")
        if emit not in ("messages", "rows", "sketches"):
            raise ValueError(f"emit must be messages, rows or sketches, got {emit!r}")
        if emit != "messages" and stream is None:
            raise ValueError(
                f'emit "{emit}" needs the stream whose {emit} are to be emitted; see run.source_of'
            )
        return cls(
            config=config,
            topics=topics,
            pattern=pattern,
            assigned=assigned,
            starting=starting(given),
            ending=ending(given),
            max_per_trigger=_whole(given, "maxOffsetsPerTrigger", 1),
            min_per_trigger=_whole(given, "minOffsetsPerTrigger", 1),
            max_delay_seconds=_seconds(given, "maxTriggerDelay", cls.max_delay_seconds),
            min_partitions=_whole(given, "minPartitions", 1),
            max_records=_whole(given, "maxRecordsPerPartition", 1),
            fail_on_data_loss=_truth(given, "failOnDataLoss", True),
            headers=_truth(given, "includeHeaders", False),
            group_prefix=given.get("groupidprefix", cls.group_prefix),
            stream=stream,
            emit=emit,  # type: ignore[arg-type]
            idle_timeout_ms=_idle(given),
            close_at_end=_truth(given, "closeAtEnd", False),
            end_file=given.get("endfile"),
            dead_letter_topic=given.get("deadlettertopic"),
            late_topic=given.get("latetopic"),
            corrupt=_corrupt(given, stream),
            truncated=_truncated(given),
        )

    @property
    def reads_headers(self) -> bool:
        """Whether to read headers: if requested, or if the stream's rows need them."""
        sources = () if self.stream is None else self.stream.reading.kafka_sources
        return self.headers or any(source.reads_headers for source in sources)

    @property
    def archive(self) -> str | None:
        """The archive to read in place of brokers, if any."""
        return None if self.stream is None else self.stream.reading.kafka_sources[0].archive

    def letters_of(self, topic: str) -> str | None:
        """Return the topic for a topic's messages that can't be counted, if any."""
        return _of_topic(self.dead_letter_topic, topic)

    def late_messages_of(self, topic: str) -> str | None:
        """Return the topic for a topic's late messages, if any."""
        return _of_topic(self.late_topic, topic)

    def bounded(self) -> KafkaOptions:
        """Validate the options for ``spark.read``. Raises `ValueError` if they don't fit."""
        check_bounded(self.starting, self.ending)
        return self._consistent()

    def unbounded(self) -> KafkaOptions:
        """Validate the options for ``spark.readStream``. Raises `ValueError` if they don't fit."""
        if self.ending is not None:
            raise ValueError(
                "endingOffsets, endingTimestamp and endingOffsetsByTimestamp are for spark.read; end a "
                "stream by its trigger or stop()"
            )
        most, least = self.max_per_trigger, self.min_per_trigger
        if most is not None and least is not None and least > most:
            raise ValueError(
                f"minOffsetsPerTrigger is {least}, more than maxOffsetsPerTrigger, which is {most}; lower it"
            )
        return self._consistent()

    def _consistent(self) -> KafkaOptions:
        check_settings(self.config, obeyed=("group.id",))
        return self


def _of_topic(name: str | None, topic: str) -> str | None:
    return None if name is None else name.replace(EACH, topic)


def _refuse(given: Mapping[str, str]) -> None:
    for key in given:
        if key in _OWN:
            raise ValueError(f"{key} can't be set: {_OWN[key]}")
    check_known(given, _KNOWN)


def check_known(given: Collection[str], names: Collection[str], purpose: str = "") -> None:
    """Raise `ValueError` for an option that is neither one of `names` nor Kafka's, and for a shown secret.

    `given` are in lower case; `purpose` follows the unknown option in the message.
    """
    known = {name.lower(): name for name in names}
    for key in given:
        if key not in known and not key.startswith("kafka."):
            close = get_close_matches(key, known, 1)
            meant = f"did you mean {known[close[0]]}? It" if close else "it"
            raise ValueError(
                f"streamgauge-kafka has no option {key!r}{purpose}; {meant} has {', '.join(names)} "
                "and kafka.*"
            )
    _check_shown(given, known)


def client_settings(given: Mapping[str, str], settings: Mapping[str, Any] = {}) -> Settings:
    """Return librdkafka's settings: a stream's own, overridden by the options that begin with ``kafka.``.

    Raises `ValueError` if they name no brokers.
    """
    own = {key.removeprefix("kafka."): value for key, value in given.items() if key.startswith("kafka.")}
    config = Settings({**settings, **own})
    if not config.get("bootstrap.servers"):
        raise ValueError('streamgauge-kafka needs .option("kafka.bootstrap.servers", "host:port")')
    return config


def _check_shown(given: Collection[str], known: Collection[str]) -> None:
    """Raise `ValueError` for an option with a secret that Spark would display."""
    for key in given:
        if key not in known and is_secret(key) and not _HIDDEN_BY_SPARK.search(key):
            raise ValueError(
                f"Spark would show the value of {key} in its plans; name a file instead, such as "
                "kafka.ssl.key.location, or run a stream by on_spark, whose settings are not shown"
            )


def _subscription(
    given: Mapping[str, str], stream: Stream | None
) -> tuple[tuple[str, ...], str | None, tuple[tuple[str, int], ...]]:
    chosen = [name for name in ("subscribe", "subscribepattern", "assign") if name in given]
    if stream is not None and stream.reading.reads_several and chosen:
        raise ValueError(
            f"{chosen[0]} can't be given for a stream that names its topics, {stream.reading.in_words()}"
        )
    if stream is not None and not chosen:
        return tuple(topic for source in stream.reading.kafka_sources for topic in source.topics), None, ()
    if len(chosen) != 1:
        raise ValueError("exactly one of subscribe, subscribePattern and assign must be given")
    text = given[chosen[0]].strip()
    if chosen == ["subscribe"]:
        topics = tuple(dict.fromkeys(topic.strip() for topic in text.split(",") if topic.strip()))
        if not topics:
            raise ValueError('subscribe names no topic; give it as "posts" or "posts,likes"')
        return topics, None, ()
    if chosen == ["subscribepattern"]:
        if not text:
            raise ValueError('subscribePattern is empty, which no topic matches; give it as "posts-.*"')
        try:
            re.compile(text)
        except re.error as error:
            raise ValueError(f"subscribePattern {text!r} is not a regular expression: {error}") from None
        return (), text, ()
    try:
        parts = [(str(topic), int(p)) for topic, ps in json.loads(text).items() for p in ps]
    except (ValueError, TypeError, AttributeError):
        parts = []
    if not parts or min(partition for _, partition in parts) < 0:
        raise ValueError(f'assign must name partitions, like {{"posts":[0,1]}}, got {text!r}')
    return (), None, tuple(parts)


def _whole(given: Mapping[str, str], name: str, least: int) -> int | None:
    text = given.get(name.lower())
    if text is None:
        return None
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if number < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {text!r}")
    return number


def _seconds(given: Mapping[str, str], name: str, default: float) -> float:
    """Parse a duration as in Spark's options: a number with a unit, or in milliseconds without one."""
    text = given.get(name.lower())
    if text is None:
        return default
    match = re.fullmatch(r"(\d+)\s*(us|ms|s|m|min|h|d)?", text.strip().lower())
    if match is None:
        raise ValueError(f"{name} must be a length of time such as 30s or 15m, got {text!r}")
    return int(match[1]) * _UNIT_SECONDS[match[2] or "ms"]


_UNIT_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}


def _truth(given: Mapping[str, str], name: str, default: bool) -> bool:
    text = given.get(name.lower(), str(default)).lower()
    if text not in ("true", "false"):
        raise ValueError(f"{name} must be true or false, got {text!r}")
    return text == "true"


def _corrupt(given: Mapping[str, str], stream: Stream | None) -> Corrupt:
    usual = "stop" if stream is None else stream.reading.kafka_sources[0].corrupt
    policy = given.get("corruptbatches", usual).lower()
    if policy not in ("stop", "skip"):
        raise ValueError(f"corruptBatches must be stop or skip, got {policy!r}")
    return policy  # type: ignore[return-value]


def _truncated(given: Mapping[str, str]) -> Literal["stop", "continue"]:
    choice = given.get("truncated", "stop").lower()
    if choice not in ("stop", "continue"):
        raise ValueError(f"truncated must be stop or continue, got {choice!r}")
    return choice  # type: ignore[return-value]


def _idle(given: Mapping[str, str]) -> int:
    timeout_ms = _whole(given, "idleTimeout", 0)
    return 10_000 if timeout_ms is None else timeout_ms
