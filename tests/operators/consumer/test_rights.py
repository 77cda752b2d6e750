"""Under a broker's access control: the rights that a run needs, and what it says where one is missing.

All is derived from the user's own topic and group, so that rights on what begins with them are enough.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import polars as pl
import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    OffsetSpec,
    ResourcePatternType,
    ResourceType,
)

from streamgauge.apps.dev.kafka.broker import EmbeddedKafka
from streamgauge.operators.consumer.options import RunOptions
from streamgauge.operators.consumer.runner import run
from streamgauge.operators.definition.aggregates import count
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.formats.json.decoder import json
from streamgauge.operators.kafka.faults import Refused
from streamgauge.operators.kafka.topics import TopicError
from streamgauge.operators.sketching.account import Account

pytestmark = [pytest.mark.kafka, pytest.mark.apart]

LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
GUARDED = {
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "listener.name.plaintext.plain.sasl.jaas.config": (
        f'{LOGIN} username="admin" password="admin" user_admin="admin" user_me="me";'
    ),
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:admin;User:ANONYMOUS",
}
"""A broker that authenticates its users, and lets them do what they were given a right to."""

TOPIC, GROUP, ID = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID
READ, WRITE, CREATE = AclOperation.READ, AclOperation.WRITE, AclOperation.CREATE
Right = tuple[ResourceType, str, AclOperation]


def login(user: str) -> dict[str, Any]:
    """The settings of a client that is this user."""
    secret = {"sasl.username": user, "sasl.password": user}
    return {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanisms": "PLAIN", **secret}


@pytest.fixture(scope="module")
def guarded() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka(settings=GUARDED) as broker:
        yield broker


class Ground:
    """A topic of three messages, one of them garbage, and a user of few rights."""

    def __init__(self, broker: EmbeddedKafka) -> None:
        self.topic = f"in-{uuid.uuid4().hex[:8]}"
        self.group = f"team-{uuid.uuid4().hex[:8]}"
        own = {"bootstrap.servers": broker.bootstrap_servers, **login("admin"), "log_level": 0}
        self._admin = AdminClient(own)
        self._admin.create_topics([NewTopic(self.topic, 1)])[self.topic].result(120)
        producer = Producer(own)
        for value in (b'{"a": 1}', b"oops", b'{"a": 2}'):
            producer.produce(self.topic, value)
        assert producer.flush(120) == 0
        source = Stream.from_kafka(
            self.topic,
            value=json({"a": pl.Int64}),
            bootstrap_servers=broker.bootstrap_servers,
            config={**login("me"), "session.timeout.ms": 6_000},
        )
        self.stream = source.tumbling("1m").agg(posts=count())

    def make(self, topic: str) -> None:
        self._admin.create_topics([NewTopic(topic, 1)])[topic].result(120)

    def written(self, topic: str) -> int:
        """Messages on the only partition of a topic that nobody wrote to in transactions."""
        place = TopicPartition(topic, 0)
        return self._admin.list_offsets({place: OffsetSpec.latest()})[place].result(120).offset

    @property
    def rights(self) -> list[Right]:
        """What is enough: to read the input, and to do as one likes under one's own names."""
        return [
            (TOPIC, self.topic, READ),
            *[(TOPIC, f"{self.topic}.", op) for op in (READ, WRITE, CREATE)],
            *[(TOPIC, self.group, op) for op in (READ, WRITE, CREATE)],
            *[(GROUP, name, READ) for name in (self.group, f"{self.topic}.")],
            *[(ID, name, WRITE) for name in (self.group, f"{self.topic}.")],
        ]

    def give(self, rights: list[Right]) -> None:
        """Exactly these rights to the user, each on all that begins with its name."""
        prefixed, allow = ResourcePatternType.PREFIXED, AclPermissionType.ALLOW
        every = AclBindingFilter(
            ResourceType.ANY,
            None,
            ResourcePatternType.ANY,
            None,
            None,
            AclOperation.ANY,
            AclPermissionType.ANY,
        )
        for done in self._admin.delete_acls([every]).values():
            done.result(120)
        wanted = [AclBinding(kind, name, prefixed, "User:me", "*", op, allow) for kind, name, op in rights]
        for done in self._admin.create_acls(wanted).values():
            done.result(120)
        deadline = time.monotonic() + 300
        while len(self._admin.describe_acls(every).result(120)) != len(wanted):
            assert time.monotonic() < deadline


@pytest.fixture
def ground(guarded: EmbeddedKafka) -> Callable[[], Ground]:
    return lambda: Ground(guarded)


@pytest.mark.slow
@pytest.mark.parametrize("delivery", ["exactly_once", "at_least_once"])
def test_rights_under_ones_own_names_are_enough(ground: Callable[[], Ground], delivery: str) -> None:
    here = ground()
    here.give(here.rights)
    for group in (None, here.group, here.group):
        summary = run(here.stream, RunOptions(until="latest", group_id=group, delivery=delivery))
        assert summary.account == Account(3, counted=2, dead_lettered=1)


def test_topics_that_are_there_need_no_right_to_be_created(ground: Callable[[], Ground]) -> None:
    here = ground()
    here.give([right for right in here.rights if right[2] is not CREATE])
    with pytest.raises(TopicError, match=rf"right CREATE on the topic '{here.group}\.table\.\w+', or "):
        run(here.stream, RunOptions(until="latest", group_id=here.group))
    here.make(f"{here.group}.table.{here.stream.fingerprint()}")
    here.make(f"{here.topic}.dead-letters")
    summary = run(here.stream, RunOptions(until="latest", group_id=here.group))
    assert summary.account == Account(3, counted=2, dead_lettered=1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("missing", "delivery", "reported"),
    [
        ((TOPIC, "topic", READ), "exactly_once", "READ on the topic '{topic}'"),
        ((GROUP, "group", READ), "exactly_once", "READ on the consumer group '{group}"),
        ((TOPIC, "group", WRITE), "exactly_once", "WRITE on the topic '{group}.table."),
        ((TOPIC, "group", WRITE), "at_least_once", "WRITE on the topic '{group}.table."),
        ((TOPIC, "group", READ), "exactly_once", "READ on the topic '{group}.table."),
        ((ID, "group", WRITE), "exactly_once", "WRITE on the transactional ids that begin with '{group}'"),
    ],
)
def test_a_missing_right_is_named(
    ground: Callable[[], Ground], missing: tuple[Any, str, Any], delivery: str, reported: str
) -> None:
    here = ground()
    kind, name, operation = missing
    names = {"topic": here.topic, "group": here.group}
    here.give([right for right in here.rights if right != (kind, names[name], operation)])
    with pytest.raises((Refused, TopicError)) as refused:
        run(here.stream, RunOptions(until="latest", group_id=here.group, delivery=delivery))
    assert reported.format(**names) in str(refused.value)


@pytest.mark.slow
@pytest.mark.parametrize("delivery", ["exactly_once", "at_least_once"])
def test_a_dead_letter_that_may_not_be_sent_is_sent_when_it_may(
    ground: Callable[[], Ground], delivery: str
) -> None:
    here = ground()
    letters = f"{here.group}.letters"
    here.make(f"other-{letters}")
    options = {"group_id": here.group, "delivery": delivery, "dead_letters": f"other-{letters}"}
    describe = (TOPIC, "other-", AclOperation.DESCRIBE)
    here.give([*here.rights, describe])
    with pytest.raises(Refused, match=f"WRITE on the topic .*'other-{letters}'"):
        run(here.stream, RunOptions(until="latest", **options))
    here.give([*here.rights, describe, (TOPIC, "other-", WRITE)])
    summary = run(here.stream, RunOptions(until="latest", **options))
    assert summary.account == Account(3, counted=2, dead_lettered=1)
    markers = 1 if delivery == "exactly_once" else 0
    assert here.written(f"other-{letters}") == 1 + markers
