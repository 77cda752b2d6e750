"""What planning and workers try again, for how long, and what they say; brokers are stood in for."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from streamgauge.operators.watermarks.position import Position
from streamgauge.spark_udafs.kafka import cluster as planning
from streamgauge.spark_udafs.kafka import workers
from streamgauge.spark_udafs.kafka.cluster import Cluster, Report, report
from streamgauge.spark_udafs.kafka.offsets import Known
from streamgauge.spark_udafs.kafka.options import KafkaOptions

AWAY = KafkaError._TRANSPORT
FORBIDDEN = KafkaError.GROUP_AUTHORIZATION_FAILED


class Failing:
    """A call that fails with each of these codes in turn, and then works."""

    def __init__(self, *codes: int) -> None:
        self._codes, self.calls = list(codes), 0

    def __call__(self, **_: Any) -> str:
        self.calls += 1
        if self._codes:
            raise KafkaException(KafkaError(self._codes.pop(0)))
        return "answer"


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    monkeypatch.setattr(planning, "_PAUSE_SECONDS", 0.0)
    return Cluster(KafkaOptions.parse({"kafka.bootstrap.servers": "nowhere:1", "subscribe": "posts"}))


def test_brokers_that_are_away_are_asked_again_and_it_is_said_once(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    call = Failing(*[AWAY] * 5)
    assert cluster._patiently(call) == "answer" and call.calls == 6
    assert capsys.readouterr().err.count("streamgauge: waiting for nowhere:1") == 1


def test_an_address_where_nobody_ever_answered_is_given_up_and_one_that_did_never(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "_FIRST_CONTACT_SECONDS", 0.0)
    with pytest.raises(
        ConnectionError, match=r"no Kafka broker answers at nowhere:1 .*kafka\.bootstrap\.servers"
    ):
        cluster._patiently(Failing(*[AWAY] * 5))
    assert cluster._patiently(Failing()) == "answer"
    assert cluster._patiently(Failing(*[AWAY] * 5)) == "answer"


def test_what_waiting_does_not_mend_is_not_tried_again(cluster: Cluster) -> None:
    call = Failing(KafkaError.TOPIC_AUTHORIZATION_FAILED)
    with pytest.raises(ConnectionError, match="nowhere:1 refuses"):
        cluster._patiently(call)
    assert call.calls == 1


class Reporter:
    def __init__(self, *codes: int) -> None:
        self.commit = Failing(*codes)


def report_to(reporter: Reporter) -> None:
    workers._report(reporter, "group", ("posts", 0), 7, report(Report("query", Known(Position(7)))))


def test_a_report_is_tried_again_for_a_while_and_then_left(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    reporter = Reporter(AWAY)
    report_to(reporter)
    assert reporter.commit.calls == 2 and not caplog.text
    monkeypatch.setattr(workers, "_REPORT_SECONDS", 0.0)
    with caplog.at_level(logging.WARNING):
        report_to(Reporter(*[AWAY] * 100))
    assert "progress was not committed to the consumer group group" in caplog.text
    with pytest.raises(PermissionError, match="READ on the consumer group 'group'"):
        report_to(Reporter(FORBIDDEN))
    with pytest.raises(RuntimeError, match="can't be committed"):
        report_to(Reporter(KafkaError.INVALID_CONFIG))
