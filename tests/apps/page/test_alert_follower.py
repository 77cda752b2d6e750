"""A live run's tables and alerts are found by a server that knows the app and the group alone."""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import Producer

from streamgauge.apps.app import Feed
from streamgauge.apps.jobs.job import Job, Live
from streamgauge.apps.jobs.outlets import alerts_topic_of, outlets
from streamgauge.apps.page.alert_follower import AlertFollower
from streamgauge.apps.page.alert_log import AlertLog
from streamgauge.apps.page.changes import state_of
from streamgauge.apps.page.serving import pages
from streamgauge.apps.registry import app_of
from streamgauge.apps.running.local import live
from streamgauge.operators.kafka.topics import admin, ensure_topic
from streamgauge.queries.server.http.service import Service
from streamgauge.queries.views.live import LiveTable
from streamgauge.queries.views.table_follower import TableFollower

from ...waiting import until


@pytest.mark.slow
@pytest.mark.kafka
def test_a_live_run_is_found_by_its_app_and_group(kafka: Any, caplog: pytest.LogCaptureFixture) -> None:
    servers = kafka.bootstrap_servers
    topic, group = f"page-{uuid4().hex[:8]}", f"group-{uuid4().hex[:8]}"
    ensure_topic(admin({"bootstrap.servers": servers}), topic, 1)
    producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True})
    for number, value in enumerate([20, 35, 36, 20, 20]):
        at = f"2026-01-01T00:{10 * number:02}:00Z"
        producer.produce(topic, json.dumps({"time": at, "sensor": "a", "value": value}))
    # Not an alert, on the topic where alerts are looked for.
    ensure_topic(admin({"bootstrap.servers": servers}), alerts_topic_of(group), 1)
    producer.produce(alerts_topic_of(group), b"hello")
    assert producer.flush(120) == 0
    job = Job.of(app_of("iot"), "json", {"limit": "30", "jump": "100"})
    to = outlets(alerts_topic_of(group), None, None)
    result = pages(["iot"], [group], [], {"limit": "30"})
    config = {"bootstrap.servers": servers}
    with ExitStack() as stack:
        going = live(Live(job, Feed(topic, servers), group, to=to))
        stack.callback(going.stop)
        tables = {name: LiveTable(name) for name in result.groups}
        for name, table in tables.items():
            stack.callback(TableFollower(name, config, table).close)
        result.follow(config, stack)
        (served,) = result.apps
        assert served.alerts is not None
        log, service = served.alerts, Service(tables)
        until(lambda: len(log.describe()["events"]) == 1 and log.describe()["events"][0]["cleared"])
        until(lambda: (state_of(service, served)["parts"]["days"].get("account") or {}).get("read") == 5)
        assert [event["rule"] for event in log.describe()["events"]] == ["limit"] and log.stale is None
        assert "is not an alert" in caplog.text


@pytest.mark.kafka
def test_a_topic_that_is_not_there_yet_is_waited_for(kafka: Any) -> None:
    log, topic = AlertLog("iot"), f"later-{uuid4().hex[:8]}"
    follower = AlertFollower(topic, {"bootstrap.servers": kafka.bootstrap_servers}, [log])
    try:
        until(lambda: log.stale is not None and f"there is no topic '{topic}'" in log.stale)
        ensure_topic(admin({"bootstrap.servers": kafka.bootstrap_servers}), topic, 1)
        until(lambda: log.stale is None)
    finally:
        follower.close()
