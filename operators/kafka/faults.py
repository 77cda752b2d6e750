"""Classification of Kafka's errors: temporary, loss of membership, or final."""

from __future__ import annotations

from collections.abc import Iterable

from confluent_kafka import KafkaError, KafkaException

from ...sketches.core.errors import StreamgaugeError
from ..secrets import without_secrets

LOST = frozenset(
    {
        KafkaError.ILLEGAL_GENERATION,
        KafkaError.UNKNOWN_MEMBER_ID,
        KafkaError.REBALANCE_IN_PROGRESS,
        KafkaError.FENCED_MEMBER_EPOCH,
        KafkaError.STALE_MEMBER_EPOCH,
        KafkaError._ASSIGNMENT_LOST,
    }
)
"""Errors after which the group has moved on: this worker's results for its partitions are void."""

_RIGHTS = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "this user needs the right {right} on the topic {topic}",
    KafkaError.GROUP_AUTHORIZATION_FAILED: "this user needs the right READ on the consumer group {group!r}",
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: (
        "this user needs the right WRITE on the transactional ids that begin with {group!r}"
    ),
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: "this user needs the right IDEMPOTENT_WRITE on the cluster",
}

_ADVICE = {
    **_RIGHTS,
    KafkaError.SASL_AUTHENTICATION_FAILED: "check the user's name, the password and sasl.mechanisms",
    KafkaError._AUTHENTICATION: "check the security settings",
    KafkaError.UNSUPPORTED_VERSION: "these brokers are too old for it",
    KafkaError.MSG_SIZE_TOO_LARGE: "raise max.message.bytes of the topic {topic}",
    KafkaError.RECORD_LIST_TOO_LARGE: "raise max.message.bytes of the topic {topic}",
    KafkaError.UNKNOWN_TOPIC_OR_PART: "create the topic {topic}",
    KafkaError._UNKNOWN_TOPIC: "create the topic {topic}",
    KafkaError.INVALID_CONFIG: "correct the settings",
    KafkaError._INVALID_ARG: "correct the settings",
    KafkaError.INVALID_GROUP_ID: "choose another group_id than {group!r}",
    KafkaError.INVALID_SESSION_TIMEOUT: (
        "session.timeout.ms must lie between the brokers' group.min.session.timeout.ms and "
        "group.max.session.timeout.ms (6000 and 1800000 unless set otherwise)"
    ),
    KafkaError.INVALID_TRANSACTION_TIMEOUT: (
        "transaction.timeout.ms must not be more than the brokers' transaction.max.timeout.ms (900000 unless "
        "set otherwise)"
    ),
    KafkaError.INCONSISTENT_GROUP_PROTOCOL: (
        "give all members of the group {group!r} the same group.protocol and partition.assignment.strategy"
    ),
    KafkaError.FENCED_INSTANCE_ID: (
        "another process has the same group.instance.id in the group {group!r}; give each run one of its own"
    ),
    KafkaError.UNSUPPORTED_ASSIGNOR: "correct group.remote.assignor",
}

FINAL = frozenset(_ADVICE)
"""Errors that retrying can't fix."""


class Refused(StreamgaugeError, KafkaException):
    """A final refusal by Kafka; the message says what was refused, why, and what to do.

    >>> print(refused(KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED), "commit", group="g"))
    Kafka refuses to commit (Broker: Group authorization failed): this user needs the right READ on the \
consumer group 'g'
    """

    def __init__(self, code: int, text: str) -> None:
        super().__init__(KafkaError(code, text))

    def __str__(self) -> str:
        return str(self.args[0].str())

    def __reduce__(self) -> tuple[type, tuple[int, str]]:
        return type(self), (self.args[0].code(), str(self))


def passing(error: KafkaError) -> bool:
    """Whether a retry may help: unreachable brokers, loading coordinators, timeouts."""
    return error.code() not in FINAL


def may_pass(error: BaseException) -> bool:
    """Whether an exception is a Kafka error for which a retry may help."""
    return isinstance(error, KafkaException) and passing(error.args[0])


def refused(
    error: KafkaError, doing: str, *, topic: str | Iterable[str] = "", group: str = "", right: str = "READ"
) -> KafkaException:
    """Return a temporary error unchanged, and a final one as `Refused` with an explanation.

    `topic` (or several) and `group` are what it may concern, `right` is the permission needed on the topic.
    """
    if passing(error):
        return KafkaException(error)
    said = without_secrets(error.str())
    topics = " and ".join(map(repr, [topic] if isinstance(topic, str) else dict.fromkeys(topic)))
    advice = _ADVICE[error.code()].format(topic=topics, group=group, right=right)
    return Refused(error.code(), f"Kafka refuses to {doing} ({said}): {advice}")
