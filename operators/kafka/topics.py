"""Looking up, creating and deleting topics, with errors that say what is missing."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import Future
from typing import Any, TypeVar

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicCollection
from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.admin import AdminClient, ClusterMetadata, NewTopic, OffsetSpec, TopicMetadata
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from ...sketches.core.errors import StreamgaugeError
from .client_config import LIBRARY_LOG, admin_config
from .faults import Refused, passing, refused
from .security import refused_settings, security_refusal
from .source import TopicPartition

log = logging.getLogger("streamgauge.kafka")

CHECK = "check the address, that a broker runs there, and the security settings"
"""What to do if no broker answers, in Python and on the command line."""

_SECONDS = 30.0
_REACH_SECONDS = 10.0
_SOON = 3.0
"""Seconds of waiting after which it is logged."""
_PATIENCE = 0.5
"""Seconds after which it is first checked why brokers don't answer."""
_TRY_SECONDS = 5.0
"""Seconds until a partition's leader is looked up again: the library asks one that is gone until the end."""
_PAUSE = 0.1
"""Seconds until brokers are asked again after a lost connection."""
_COORDINATOR_SECONDS = 3600.0
"""How long the library waits for a group's coordinator: the longest that it allows. If it gives up a
request, it still sends that once the coordinator is back, from freed memory, and an assertion ends the
process
(librdkafka 2.16). So callers must stop waiting by themselves."""

_NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"
"""An id of sixteen zero bytes, as brokers without ids report it."""


Where = TypeVar("Where", bound=TopicPartition)
Answer = TypeVar("Answer")


class TopicError(StreamgaugeError, LookupError):
    """A topic that doesn't exist, or can't be created; the message names it and what to do."""


def recreated(topic: str) -> TopicError:
    """The error for a topic whose id has changed."""
    return TopicError(
        f"the topic {topic!r} was deleted and recreated since this group began with it: offsets and counts "
        "of the old one mean nothing in the new; to begin with the new one, give the run a new group_id, or "
        "run: streamgauge kafka groups reset GROUP --offset earliest"
    )


class Admin(AdminClient):
    """An administration client that knows its brokers' addresses, and why they refuse it, for messages.

    Raises `Refused` for security settings with which no client can be created.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._config = admin_config(config)
        self._faults: list[KafkaError] = []
        self._reached = False
        try:
            settings: Any = {**self._config, "error_cb": self._note_fault}
            super().__init__(settings, logger=LIBRARY_LOG)
        except KafkaException as error:
            raise refused_settings(error, config) from None
        self.address = str(config.get("bootstrap.servers", "no address"))

    def _note_fault(self, error: KafkaError) -> None:
        if not self._reached:
            self._faults.append(error)
        if (on_error := self._config.get("error_cb")) is not None:
            on_error(error)

    def list_topics(self, topic: str | None = None, timeout: float = _SECONDS) -> ClusterMetadata:
        """The library's metadata of topics, within `timeout` seconds.

        The request is repeated after a lost connection, on which the library gives up at once. Raises
        `KafkaException` without an answer, and `Refused` early if brokers that never answered refuse the
        client: the library itself would keep trying.
        """
        ask, named = super().list_topics, {} if topic is None else {"topic": topic}
        deadline, patience = time.monotonic() + timeout, _PATIENCE
        while True:
            left = deadline - time.monotonic()
            patience = left if self._reached else min(patience, left)
            try:
                answer = _retry_if_lost(lambda left: ask(timeout=max(left, _PAUSE), **named), patience)
            except KafkaException as error:
                if not self._reached:
                    self.poll(0)  # delivers the library's errors to callbacks
                    if (refusal := security_refusal(self._faults, self._config)) is not None:
                        raise refusal from None
                if time.monotonic() >= deadline or not (_lost(error) or _timed_out(error)):
                    raise
                # A slow broker gets more time with each attempt.
                patience *= 2
            else:
                self._reached = True
                self._faults.clear()
                return answer

    def reach(self, seconds: float = _REACH_SECONDS) -> None:
        """Wait for the first answer.

        Raises `Refused` if brokers refuse the client, and `TopicError` if none answers within `seconds`.
        """
        if self._reached:
            return
        try:
            self.list_topics(timeout=seconds)
        except Refused:
            raise
        except KafkaException as error:
            raise TopicError(
                f"no broker answered at {self.address} within {seconds:g} s: {error.args[0].str()}; {CHECK}"
            ) from None


_clients: dict[tuple[tuple[str, str], ...], Admin] = {}


def admin(config: Mapping[str, Any]) -> Admin:
    """The client for the functions here, from a stream's Kafka settings; one per process and settings.

    It is never closed: the library may crash if a client is closed before an answer has arrived.
    """
    key = tuple(sorted((name, str(value)) for name, value in config.items()))
    if key not in _clients:
        _clients[key] = Admin(config)
    return _clients[key]


def partitions_of(client: Admin, topic: str, seconds: float = _SECONDS) -> int:
    """The number of a topic's partitions. Raises `TopicError` if it doesn't exist or no broker answers."""
    metadata = _topic_metadata(client, topic, seconds)
    if metadata.error is not None:
        if metadata.error.code() in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC):
            raise TopicError(
                f"there is no topic {topic!r} at {client.address}; "
                "create it, or check its name and the address"
            )
        raise _unreadable(metadata.error, topic)
    if not metadata.partitions:
        raise TopicError(f"the topic {topic!r} has no partitions yet; try again")
    return len(metadata.partitions)


def _topic_metadata(client: Admin, topic: str, seconds: float) -> TopicMetadata:
    """The brokers' metadata of a topic; logs it when the answer takes long."""
    patience = min(_SOON, seconds)
    try:
        return client.list_topics(topic, timeout=patience).topics[topic]
    except Refused:
        raise
    except KafkaException:
        log.warning("waiting for an answer from Kafka at %s, for %.0f s", client.address, seconds)
    try:
        return client.list_topics(topic, timeout=max(seconds - patience, 0.1)).topics[topic]
    except Refused:
        raise
    except KafkaException as error:
        raise TopicError(
            f"no broker answered at {client.address} about the topic {topic!r}: "
            f"{error.args[0].str()}; {CHECK}"
        ) from None


def topic_id(described: Any) -> str:
    """A described topic's id, which a recreated one does not share; empty if brokers have no ids."""
    uuid = getattr(described, "topic_id", None)
    return "" if uuid is None or str(uuid) == _NO_ID else str(uuid)


def id_of(client: Admin, topic: str) -> str:
    """A topic's id, empty if brokers have none. Raises `TopicError` if it can't be read."""

    def described(left: float) -> Any:
        answers = client.describe_topics(TopicCollection([topic]), request_timeout=_SECONDS)
        return answers[topic].result(left)

    try:
        return topic_id(_retry_if_lost(described))
    except (KafkaException, TimeoutError) as error:
        raise TopicError(f"the topic {topic!r} can't be described: {_reason(error, topic)}") from None


def _retry_if_lost(
    ask: Callable[[float], Answer],
    seconds: float = _SECONDS,
    helps: Callable[[KafkaException], bool] = lambda error: False,
) -> Answer:
    """The answer to a request, which is called with the seconds that are left.

    It is repeated after a lost connection, which the library doesn't do, and after errors for which `helps`
    returns true. Raises what the request raises.
    """
    deadline = time.monotonic() + seconds
    while True:
        try:
            return ask(max(deadline - time.monotonic(), 0.0))
        except KafkaException as error:
            if time.monotonic() >= deadline or not (_lost(error) or helps(error)):
                raise
        time.sleep(_PAUSE)


def _timed_out(error: KafkaException) -> bool:
    return error.args[0].code() == KafkaError._TIMED_OUT


def _lost(error: BaseException) -> bool:
    """Whether an error is a lost connection."""
    return isinstance(error, KafkaException) and error.args[0].code() == KafkaError._TRANSPORT


_MOVED = frozenset(
    {
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.OFFSET_NOT_AVAILABLE,
        KafkaError._NOENT,
        KafkaError._TIMED_OUT,
    }
)
"""Errors for a partition that another broker leads by now, or that has no leader at the moment, or a leader
so new that it doesn't know yet up to where its followers have the log."""


def _moved(client: Admin, places: Collection[Where], error: KafkaException, seconds: float) -> bool:
    """Whether a retry may help because a leader has changed; the client then knows the current leaders.

    Otherwise it would use its cached metadata until its next refresh.
    """
    if error.args[0].code() not in _MOVED:
        return False
    try:
        partitions = {
            topic: client.list_topics(topic, timeout=max(seconds, _PAUSE)).topics[topic].partitions
            for topic in dict.fromkeys(topic for topic, _ in places)
        }
    except KafkaException:
        return True  # while a broker is missing, nobody else may know the topic
    return all(partition in partitions[topic] for topic, partition in places)


def begin_offsets(client: Admin, places: Iterable[Where], seconds: float = _SECONDS) -> dict[Where, int]:
    """The first offset of these partitions. Raises `TopicError` without an answer."""
    return _offsets(client, places, OffsetSpec.earliest(), IsolationLevel.READ_COMMITTED, seconds)


def _unreadable(error: KafkaError, topic: str) -> TopicError:
    # A client that may read or write a topic may also describe it.
    return TopicError(str(refused(error, f"describe the topic {topic!r}", topic=topic)))


def _reason(error: Exception, topic: str) -> str:
    fault = error.args[0] if isinstance(error, KafkaException) else None
    if fault is None:
        return str(error) or "no answer in time"
    return str(error) if passing(fault) else str(_unreadable(fault, topic))


def end_offsets(client: Admin, places: Iterable[Where], seconds: float = _SECONDS) -> dict[Where, int]:
    """The offset after each partition's last committed message. Raises `TopicError` without an answer."""
    return _offsets(client, places, OffsetSpec.latest(), IsolationLevel.READ_COMMITTED, seconds)


def high_watermarks(client: Admin, places: Iterable[Where], seconds: float = _SECONDS) -> dict[Where, int]:
    """The offset after each partition's last message, those of open transactions included.

    Raises `TopicError` without an answer.
    """
    return _offsets(client, places, OffsetSpec.latest(), IsolationLevel.READ_UNCOMMITTED, seconds)


def _offsets(
    client: Admin,
    places: Iterable[Where],
    spec: OffsetSpec,
    level: IsolationLevel,
    seconds: float,
) -> dict[Where, int]:
    wanted = {where: KafkaPartition(*where) for where in places}
    if not wanted:
        return {}
    requests = dict.fromkeys(wanted.values(), spec)
    offsets: dict[Where, int] = {}

    def ask(left: float) -> dict[Where, int]:
        answers = client.list_offsets(
            requests, isolation_level=level, request_timeout=min(seconds, _TRY_SECONDS)
        )
        offsets.clear()
        for where, place in wanted.items():
            offset = answers[place].result(left).offset
            if offset < 0:  # of a leader that has just changed, the library may give none, and no error
                raise KafkaException(KafkaError(KafkaError.OFFSET_NOT_AVAILABLE))
            offsets[where] = offset
        return offsets

    try:
        return _retry_if_lost(ask, seconds, lambda error: _moved(client, wanted, error, min(_SOON, seconds)))
    except (KafkaException, TimeoutError) as error:
        topic, partition = next(where for where in wanted if where not in offsets)
        why = _reason(error, topic)
        raise TopicError(f"no broker returned the offsets of {topic}[{partition}]: {why}") from None


def ensure_topic(client: Admin, topic: str, partitions: int, config: Mapping[str, str] | None = None) -> int:
    """Create a topic if missing, and return its number of partitions. Raises `TopicError` if that fails.

    For an existing topic, no permission to create topics is needed.
    """
    metadata = _topic_metadata(client, topic, _SECONDS)
    if metadata.error is None and metadata.partitions:
        return len(metadata.partitions)
    wanted = NewTopic(topic, num_partitions=partitions, config=dict(config or {}))

    def made(left: float) -> None:
        client.create_topics([wanted], operation_timeout=_SECONDS)[topic].result(left)

    try:
        _retry_if_lost(made)
    except TimeoutError:
        raise TopicError(
            f"no broker at {client.address} created the topic {topic!r} in time; try again"
        ) from None
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            settings = "".join(f", {name}={value}" for name, value in (config or {}).items())
            raise TopicError(
                f"the topic {topic!r} can't be created ({error.args[0].str()}): this user needs the right "
                f"CREATE on the topic {topic!r}, or an administrator must create it, with {partitions} "
                f"partition{'s' * (partitions > 1)}{settings}"
            ) from None
    # Not all brokers may know a new topic yet.
    known = Retrying(
        retry=retry_if_exception_type(TopicError),
        wait=wait_fixed(0.05),
        stop=stop_after_delay(_SECONDS),
        reraise=True,
    )
    return known(partitions_of, client, topic)


def described_group(client: AdminClient, group: str) -> Future[Any]:
    """Request a description of a consumer group. Wait for it with a timeout: it may never come."""
    return client.describe_consumer_groups([group], request_timeout=_COORDINATOR_SECONDS)[group]


def remove(client: AdminClient, topics: Iterable[str], groups: Iterable[str]) -> None:
    """Delete topics and consumer groups; those already gone, or still in use, are ignored."""
    waiting: list[Future[Any]] = []
    if topics := list(topics):
        waiting += client.delete_topics(topics, operation_timeout=_SECONDS).values()
    if groups := list(groups):
        waiting += client.delete_consumer_groups(groups, request_timeout=_COORDINATOR_SECONDS).values()
    deadline = time.monotonic() + _SECONDS
    for done in waiting:
        try:
            done.result(max(deadline - time.monotonic(), 0.0))
        except (KafkaException, TimeoutError):
            continue
