"""Requests to the brokers through an administration client, and for how long."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import OFFSET_INVALID, KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient

from streamgauge.operators.kafka.topics import (
    Admin,
    TopicError,
    described_group,
    end_offsets,
    ensure_topic,
    id_of,
    remove,
)


class NobodyAnswers:
    """Brokers that are away: topics are given up by the library, groups' coordinators never answer."""

    def __init__(self) -> None:
        self.patience: list[float] = []

    def delete_topics(self, topics: list[str], operation_timeout: float) -> dict[str, Future[Any]]:
        gone: Future[Any] = Future()
        gone.set_exception(KafkaException(KafkaError(KafkaError._TIMED_OUT)))
        return dict.fromkeys(topics, gone)

    def _of_groups(self, groups: list[str], request_timeout: float) -> dict[str, Future[Any]]:
        self.patience.append(request_timeout)
        return {group: Future() for group in groups}

    describe_consumer_groups = delete_consumer_groups = _of_groups


def test_the_library_never_gives_up_a_question_to_a_coordinator(monkeypatch: pytest.MonkeyPatch) -> None:
    # It would end the process when the coordinator comes back.
    monkeypatch.setattr("streamgauge.operators.kafka.topics._SECONDS", 0.0)
    brokers: Any = NobodyAnswers()
    assert not described_group(brokers, "one").done()
    remove(brokers, ["table"], ["one", "two"])
    assert brokers.patience == [3600.0, 3600.0]


class LosesConnections:
    """Brokers that end so many requests with an error before they answer."""

    def __init__(self, lost: int, code: int = KafkaError._TRANSPORT) -> None:
        self.left, self.code, self.looked_up = lost, code, 0

    def list_topics(self, topic: str, timeout: float) -> Any:
        self.looked_up += 1
        return SimpleNamespace(topics={topic: SimpleNamespace(partitions={3: None})})

    def describe_topics(self, topics: TopicCollection, request_timeout: float) -> dict[str, Future[Any]]:
        answer: Future[Any] = Future()
        self.left -= 1
        if self.left >= 0:
            answer.set_exception(KafkaException(KafkaError(self.code)))
        else:
            answer.set_result(SimpleNamespace(topic_id="Zm9v"))
        return {"posts": answer}

    def list_offsets(self, requested: dict[Any, Any], **_: Any) -> dict[Any, Future[Any]]:
        answer: Future[Any] = Future()
        self.left -= 1
        if self.left >= 0:
            answer.set_exception(KafkaException(KafkaError(self.code)))
        else:
            answer.set_result(SimpleNamespace(offset=7))
        return dict.fromkeys(requested, answer)


def test_a_topic_is_asked_for_again_where_a_connection_was_lost() -> None:
    brokers: Any = LosesConnections(2)
    assert id_of(brokers, "posts") == "Zm9v"
    brokers = LosesConnections(2, KafkaError.UNKNOWN_TOPIC_OR_PART)
    with pytest.raises(TopicError, match="'posts' can't be described"):
        id_of(brokers, "posts")
    assert brokers.left == 1


class MakesTopics(LosesConnections):
    """Brokers that lose connections while they make a topic, or make it and lose the answer."""

    def __init__(self, lost: int, code: int = KafkaError._TRANSPORT) -> None:
        super().__init__(lost, code)
        self.address, self.made = "nowhere", False

    def list_topics(self, topic: str, timeout: float) -> Any:
        code = None if self.made else KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)
        reported = SimpleNamespace(error=code, partitions=dict.fromkeys(range(2 * self.made)))
        return SimpleNamespace(topics={topic: reported})

    def create_topics(self, wanted: list[Any], **_: Any) -> dict[str, Future[Any]]:
        answer: Future[Any] = Future()
        self.left -= 1
        if self.left >= 0:
            answer.set_exception(KafkaException(KafkaError(self.code)))
        elif self.made:
            answer.set_exception(KafkaException(KafkaError(KafkaError.TOPIC_ALREADY_EXISTS)))
        else:
            answer.set_result(None)
        self.made = True
        return {wanted[0].topic: answer}


def test_a_topic_is_made_once_where_a_connection_was_lost() -> None:
    brokers: Any = MakesTopics(2)
    assert ensure_topic(brokers, "posts", 2) == 2 and brokers.left == -1
    refusing: Any = MakesTopics(2, KafkaError.TOPIC_AUTHORIZATION_FAILED)
    with pytest.raises(TopicError, match="needs the right CREATE on the topic 'posts'"):
        ensure_topic(refusing, "posts", 2)


def test_offsets_are_asked_for_again_where_another_broker_leads_by_now() -> None:
    """The library would go on asking whom it knows for minutes."""
    for code in (
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.OFFSET_NOT_AVAILABLE,  # by a new leader, until its followers have confirmed where it is
        KafkaError._NOENT,
    ):
        brokers: Any = LosesConnections(2, code)
        assert end_offsets(brokers, [("posts", 3)], 60.0) == {("posts", 3): 7}
        assert brokers.looked_up == 2
    missing: Any = LosesConnections(2, KafkaError._NOENT)
    with pytest.raises(TopicError, match=r"returned the offsets of posts\[4\]"):
        end_offsets(missing, [("posts", 4)], 60.0)


class AnswersWithoutOffset(LosesConnections):
    """Brokers whose first answers have no offset, and no error either."""

    def list_offsets(self, requested: dict[Any, Any], **_: Any) -> dict[Any, Future[Any]]:
        answer: Future[Any] = Future()
        self.left -= 1
        answer.set_result(SimpleNamespace(offset=OFFSET_INVALID if self.left >= 0 else 7))
        return dict.fromkeys(requested, answer)


def test_an_answer_without_an_offset_is_none() -> None:
    """A bounded run, or an archiver, would take the partition for empty."""
    brokers: Any = AnswersWithoutOffset(2)
    assert end_offsets(brokers, [("posts", 3)], 60.0) == {("posts", 3): 7}
    never: Any = AnswersWithoutOffset(9)
    with pytest.raises(TopicError, match=r"no broker returned the offsets of posts\[3\]"):
        end_offsets(never, [("posts", 3)], 0.0)


class AsksTheDead(LosesConnections):
    """A client that asks a broker that is gone, until it has looked up who leads by now."""

    def list_topics(self, topic: str, timeout: float) -> Any:
        if self.left > 0:
            self.left -= 1
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))
        return super().list_topics(topic, timeout)

    def list_offsets(self, requested: dict[Any, Any], **options: Any) -> dict[Any, Future[Any]]:
        answer: Future[Any] = Future()
        if self.looked_up:
            answer.set_result(SimpleNamespace(offset=7))
        else:
            assert options["request_timeout"] <= 10, "no time would be left for the next try"
            answer.set_exception(KafkaException(KafkaError(self.code)))
        return dict.fromkeys(requested, answer)


@pytest.mark.parametrize("code", [KafkaError._TIMED_OUT, KafkaError.FENCED_LEADER_EPOCH])
def test_a_leader_that_was_killed_is_replaced_while_offsets_are_asked_for(code: int) -> None:
    brokers: Any = AsksTheDead(1, code)
    assert end_offsets(brokers, [("posts", 3)], 60.0) == {("posts", 3): 7}
    assert brokers.looked_up == 1


def test_offsets_are_asked_for_again_where_a_connection_was_lost() -> None:
    brokers: Any = LosesConnections(2)
    place = ("posts", 3)
    assert end_offsets(brokers, [place], 60.0) == {place: 7}
    refusing: Any = LosesConnections(2, KafkaError.TOPIC_AUTHORIZATION_FAILED)
    with pytest.raises(TopicError, match=r"returned the offsets of posts\[3\]"):
        end_offsets(refusing, [place], 60.0)
    assert refusing.left == 1
    brokers_away: Any = LosesConnections(9)
    with pytest.raises(TopicError, match=r"returned the offsets of posts\[3\]"):
        end_offsets(brokers_away, [place], 0.0)


def test_topics_are_listed_again_where_a_connection_was_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    codes, timeouts = [], []

    def list_topics(_: AdminClient, timeout: float, **named: str) -> str:
        timeouts.append(timeout)
        if codes:
            raise KafkaException(KafkaError(codes.pop()))
        return f"the topics {named}"

    monkeypatch.setattr(AdminClient, "list_topics", list_topics)
    brokers = Admin({"bootstrap.servers": "127.0.0.1:1"})
    codes += [KafkaError._TRANSPORT] * 2
    assert brokers.list_topics("posts", timeout=60.0) == "the topics {'topic': 'posts'}"
    assert len(timeouts) == 3 and timeouts == sorted(timeouts, reverse=True)
    for code, timeout in ((KafkaError._TRANSPORT, 0.0), (KafkaError._AUTHENTICATION, 60.0)):
        codes += [code] * 2
        with pytest.raises(KafkaException):
            brokers.list_topics(timeout=timeout)
        codes.pop()
    assert not codes
