"""The cluster's answers for planning: which partitions to read, from where, and up to where."""

from __future__ import annotations

import json
import logging
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException, TopicCollection, Uuid
from confluent_kafka import TopicPartition as Partition
from confluent_kafka.admin import OffsetSpec
from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_delay, stop_never, wait_fixed

from ...operators.consumer.group.co_partitioning import check_alike
from ...operators.consumer.group.input_topics import check_one_reader, readers_of
from ...operators.definition.stream import Stream
from ...operators.definition.topic_patterns import is_pattern, matches
from ...operators.kafka.client_config import member_config
from ...operators.kafka.faults import may_pass, passing
from ...operators.kafka.reader import LogPosition, Reader
from ...operators.kafka.topics import Admin
from ...operators.watching.terminal import write_line
from .bounds import ByPartition, Place, Since, by_place
from .offsets import Known, TopicPartition
from .options import KafkaOptions

T = TypeVar("T")
R = TypeVar("R")

_REQUEST_SECONDS = 10.0
_FIRST_CONTACT_SECONDS = 10.0
_PAUSE_SECONDS = 0.5
_SAY_AGAIN_SECONDS = 10.0
_NO_ID = str(Uuid(0, 0))


class Cluster:
    """A Kafka cluster, as planning sees it.

    If brokers become unreachable, calls wait for them and print a line on standard error. Only the first call
    raises `ConnectionError` after 10 s, because the address may be wrong.
    """

    def __init__(self, options: KafkaOptions) -> None:
        self._options = options
        self._address = options.config["bootstrap.servers"]
        self._admin = Admin(options.config)
        self._consumer: Any = None
        self.epochs: dict[TopicPartition, int] = {}
        """The leader epochs of the partitions when their ends were last fetched."""
        self._reached = False
        self._said_after = 0.0

    def partitions(self) -> list[TopicPartition]:
        """Return the partitions of the topics to read, including topics that match a pattern by now.

        Raises `LookupError` for a topic that doesn't exist, and if a stream's patterns match no topic;
        `TopicError` for a topic that matches the patterns of two merged streams, and for joined topics with
        different numbers of partitions.
        """
        options = self._options
        if options.pattern is not None:
            topics = [t for t in self._known() if re.fullmatch(options.pattern, t) and not t.startswith("__")]
        elif options.stream is not None and any(map(is_pattern, options.topics)):
            topics = self._matching(options.stream)
        else:
            topics = list(options.topics or dict.fromkeys(topic for topic, _ in options.assigned))
        partitions = [place for topic in sorted(topics) for place in self._of_topic(topic)]
        if options.stream is not None:
            check_alike(options.stream, Counter(topic for topic, _ in partitions))
        if options.assigned:
            missing = sorted(set(options.assigned) - set(partitions))
            if missing:
                raise LookupError(f"assign names partitions that don't exist at {self._address}: {missing}")
            partitions = sorted(options.assigned)
        return partitions

    def _known(self) -> list[str]:
        """Return all topics."""
        return list(self._patiently(lambda: self._admin.list_topics(timeout=_REQUEST_SECONDS)).topics)

    def _matching(self, stream: Stream) -> list[str]:
        """Return the topics that a stream names, and those that its patterns match."""
        names = self._options.topics
        named = [name for name in names if not is_pattern(name)]
        topics = [*named, *(topic for topic in self._known() if topic not in named and matches(names, topic))]
        for topic in topics:
            check_one_reader(readers_of(stream.reading.kafka_sources, topic), topic)
        if not topics:
            raise LookupError(
                f"no topic at {self._address} matches {', '.join(map(repr, names))} yet; create one, or "
                "check the pattern (topics of dead letters and table topics don't count)"
            )
        return topics

    def _of_topic(self, topic: str) -> list[TopicPartition]:
        def ask() -> Any:
            metadata = self._admin.list_topics(topic, timeout=_REQUEST_SECONDS).topics[topic]
            if metadata.error is not None and metadata.error.code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise KafkaException(metadata.error)
            return metadata

        partitions = self._patiently(ask)
        if partitions.error is not None or not partitions.partitions:
            raise LookupError(
                f"topic {topic!r} doesn't exist at {self._address}; create it, or correct its name"
            )
        return [(topic, partition) for partition in sorted(partitions.partitions)]

    def topic_ids(self, places: Iterable[TopicPartition]) -> dict[str, str]:
        """Return the topics' ids; a recreated topic has a new id.

        Deleted topics are left out, and all topics if the brokers are too old for ids (before 2.8).
        """
        topics = sorted({topic for topic, _ in places})

        def ask() -> dict[str, str]:
            futures = self._admin.describe_topics(TopicCollection(topics), request_timeout=_REQUEST_SECONDS)
            ids = {}
            for topic, answer in futures.items():
                try:
                    ids[topic] = str(answer.result().topic_id)
                except KafkaException as error:
                    if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                        raise
            return {topic: topic_id for topic, topic_id in ids.items() if topic_id != _NO_ID}

        return self._patiently(ask) if topics else {}

    def beginnings(self, places: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the first offset of each partition."""
        return self._offsets(dict.fromkeys(places, OffsetSpec.earliest()))

    def ends(self, places: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the next offset to be written (after committed transactions only, unless set otherwise)."""
        return self._offsets(dict.fromkeys(places, OffsetSpec.latest()))

    def truncated(
        self, positions: Mapping[TopicPartition, LogPosition]
    ) -> dict[TopicPartition, LogPosition | None]:
        """Return the partitions whose logs have lost messages that were read, and their ends, if known."""
        with Reader(self._options.config, {}) as reader:
            return reader.truncated(positions)

    def high_watermarks(self, places: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the next offset to be written, after the messages of open transactions as well."""
        return self._offsets(dict.fromkeys(places, OffsetSpec.latest()), IsolationLevel.READ_UNCOMMITTED)

    def resolve(
        self, places: list[TopicPartition], place: Place, option: str = "startingOffsets"
    ) -> dict[TopicPartition, int]:
        """Return offsets from the options; `option` may list them by partition.

        Raises `ValueError` if one is missing or out of range.
        """
        if place == "earliest":
            return self.beginnings(places)
        if place == "latest":
            return self.ends(places)
        if isinstance(place, Since):
            return self._since(places, place)
        assert not isinstance(place, str)
        return self._named(places, place, option)

    def _since(self, places: list[TopicPartition], since: Since) -> dict[TopicPartition, int]:
        """Return the first offsets at or after timestamps."""
        if isinstance(since.timestamp_ms, int):
            times = dict.fromkeys(places, since.timestamp_ms)
        else:
            times = _for_all(since.option, since.timestamp_ms, places)
        offsets = self._offsets({place: OffsetSpec.for_timestamp(ms) for place, ms in times.items()})
        none = [place for place, offset in offsets.items() if offset < 0]
        if none and not since.or_end:
            raise ValueError(
                f"{since.option}: {_listed(none)} has no message that late; name an earlier time, or "
                "set startingOffsetsByTimestampStrategy to latest to begin at the end"
            )
        return {**offsets, **self.ends(none)}

    def _named(
        self, places: list[TopicPartition], named: ByPartition, option: str
    ) -> dict[TopicPartition, int]:
        given = _for_all(option, named, places)
        first, last = self.beginnings(places), self.ends(places)
        offsets = {}
        for place, offset in given.items():
            offsets[place] = first[place] if offset == -2 else last[place] if offset == -1 else offset
            if not first[place] <= offsets[place] <= last[place]:
                if self._options.fail_on_data_loss:
                    raise ValueError(
                        f"{option}: offset {offset} of {place[0]}-{place[1]} is out of range: there are "
                        f"{first[place]} to {last[place]}; correct it, or set failOnDataLoss to false to "
                        "take the nearest"
                    )
                offsets[place] = min(max(offsets[place], first[place]), last[place])
        return offsets

    def reports(
        self, group: str, places: Iterable[TopicPartition], read: Callable[[str | None], R | None]
    ) -> dict[TopicPartition, R]:
        """Return what workers have reported to a group, for those partitions that have a report.

        `read` parses a report's text and returns None for anything else. Raises `PermissionError` if the
        user may not read the group.
        """
        if self._consumer is None:
            self._consumer = reporting_consumer(self._options.config, group)
        partitions = [Partition(topic, partition) for topic, partition in places]

        def ask() -> Any:
            try:
                return self._consumer.committed(partitions, timeout=_REQUEST_SECONDS)
            except KafkaException as error:
                if error.args[0].code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
                    raise group_refused(group) from None
                raise

        reports = {}
        for answer in self._patiently(ask):
            if answer.error is None and answer.offset >= 0 and (read_one := read(answer.metadata)):
                reports[(answer.topic, answer.partition)] = read_one
        return reports

    def close(self) -> None:
        """Close the connections."""
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None

    def _offsets(
        self, specs: Mapping[TopicPartition, Any], level: IsolationLevel | None = None
    ) -> dict[TopicPartition, int]:
        if level is None:
            loose = self._options.config.get("isolation.level") == "read_uncommitted"
            level = IsolationLevel.READ_UNCOMMITTED if loose else IsolationLevel.READ_COMMITTED

        latest = OffsetSpec.latest()

        def ask() -> dict[TopicPartition, int]:
            requests = {Partition(topic, partition): spec for (topic, partition), spec in specs.items()}
            futures = self._admin.list_offsets(
                requests, isolation_level=level, request_timeout=_REQUEST_SECONDS
            )
            answers = {(p.topic, p.partition): f.result() for p, f in futures.items()}
            for place, answer in answers.items():
                if specs[place] is latest and answer.leader_epoch is not None and answer.leader_epoch >= 0:
                    self.epochs[place] = answer.leader_epoch
            return {place: int(answer.offset) for place, answer in answers.items()}

        return self._patiently(ask) if specs else {}

    def _patiently(self, call: Callable[[], T]) -> T:
        """Repeat a call until the broker answers, however long it is unreachable."""
        trying = Retrying(
            retry=retry_if_exception(may_pass),
            wait=wait_fixed(_PAUSE_SECONDS),
            stop=stop_never if self._reached else stop_after_delay(_FIRST_CONTACT_SECONDS),
            before_sleep=self._say,
            reraise=True,
        )
        try:
            answer = trying(call)
        except KafkaException as problem:
            error = problem.args[0]
            if not passing(error):
                raise ConnectionError(f"{self._address} refuses: {error.str()}") from None
            raise ConnectionError(
                f"no Kafka broker answers at {self._address} ({error.str()}); start it, or correct the "
                "option kafka.bootstrap.servers"
            ) from None
        self._reached = True
        return answer

    def _say(self, tries: RetryCallState) -> None:
        """Print a line that a broker is unreachable: immediately, then every ten seconds."""
        waited = tries.seconds_since_start or 0.0
        if tries.attempt_number == 1 or waited - self._said_after > _SAY_AGAIN_SECONDS:
            self._said_after = waited
            error = tries.outcome.exception().args[0]  # type: ignore[union-attr]
            write_line(f"streamgauge: waiting for {self._address}: {error.str()}", sys.stderr)


def reporting_consumer(config: Mapping[str, str], group: str) -> Any:
    """Return a consumer that never reads: it commits and fetches what is known about partitions."""
    return Consumer(member_config(config, group), logger=logging.getLogger("streamgauge.kafka"))


def group_refused(group: str) -> PermissionError:
    """Return the error for a consumer group that this user may not use."""
    return PermissionError(
        f"this user needs the right READ on the consumer group {group!r}, in which workers store their "
        "state; or set groupIdPrefix to an allowed prefix, or kafka.group.id to an allowed group, another "
        "one for each query"
    )


class Report(NamedTuple):
    """What a query's worker knows about a partition."""

    query: str
    known: Known


def report(report_: Report) -> str:
    """Encode a report as the metadata of a committed offset (Kafka accepts 4,096 bytes)."""
    fields = {"streamgauge": 1, "query": report_.query, "known": report_.known.to_list()}
    return json.dumps(fields, separators=(",", ":"))


def read_report(text: str | None) -> Report | None:
    """Parse the text of `report`; None for anything else."""
    try:
        fields = json.loads(text or "")
        return Report(str(fields["query"]), Known.from_list(fields["known"]))
    except (ValueError, TypeError, KeyError):
        return None


def _for_all(option: str, named: ByPartition, places: list[TopicPartition]) -> dict[TopicPartition, int]:
    """Return an option's value for each partition. Raises `ValueError` if it lacks one."""
    given = by_place(named)
    if set(given) != set(places):
        raise ValueError(
            f"{option} must be given for exactly the partitions read, {_listed(places)}; got {_listed(given)}"
        )
    return given


def _listed(places: Iterable[TopicPartition]) -> str:
    return ", ".join(f"{topic}-{partition}" for topic, partition in sorted(places))
