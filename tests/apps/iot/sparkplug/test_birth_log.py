"""Births read from a real broker: from a topic of their own, whichever partitions they are in."""

from __future__ import annotations

import uuid
import zlib
from typing import Any

import pytest
from confluent_kafka import Producer

from streamgauge.apps.app import Feed
from streamgauge.apps.iot.app import APP
from streamgauge.apps.iot.sparkplug.birth_log import BirthLog, birth_log
from streamgauge.apps.jobs.job import Job
from streamgauge.operators.consumer.options import RunOptions
from streamgauge.operators.consumer.runner import run as run_to_end
from streamgauge.operators.consumer.runner import start
from streamgauge.operators.formats.retryable_error import Unavailable
from streamgauge.operators.kafka.topics import admin, ensure_topic

from ....waiting import until
from .made import Sent, lively


@pytest.mark.kafka
def test_aliases_are_known_through_a_restart_and_from_a_topic_of_births(kafka: Any) -> None:
    plant, name = lively(5, 200), f"plant-{uuid.uuid4().hex[:8]}"
    config = {"bootstrap.servers": kafka.bootstrap_servers}
    ensure_topic(admin(config), name, 3)
    ensure_topic(admin(config), f"{name}.births", 2)
    producer = Producer({**config, "log_level": 0})

    def send(some: list[Sent]) -> None:
        for one in some:
            place, more = zlib.crc32(one.key), {"key": one.key, "timestamp": one.arrived}
            producer.produce(name, one.value, partition=place % 3, **more)
            if b"BIRTH" in one.key:
                producer.produce(f"{name}.births", one.value, partition=place % 2, **more)
        assert producer.flush(120) == 0

    job = Job.of(APP, "sparkplug", {"births": f"{name}.births"})
    half = next(n for n in range(150, 200) if b"DATA" in plant.sent[n].key)
    # Two runs; the second goes on where the first was stopped; births with other aliases follow.
    days = job.streams(Feed(name, kafka.bootstrap_servers))["days"]
    send(plant.sent[:half])
    first = start(days, RunOptions(group_id=name, idle_seconds=3600.0, checkpoint_seconds=0.2))
    until(lambda: first.summary().account.read == half)
    first.stop()
    first.wait()
    send(plant.sent[half:])
    again = job.streams(Feed(name, kafka.bootstrap_servers))["days"]
    run = run_to_end(again, RunOptions(group_id=name, idle_seconds=3600.0, until="latest"))
    windows = {row["sensor"]: (row["readings"], row["low"], row["high"]) for row in run.windows().to_dicts()}
    values: dict[str, list[float]] = {}
    for unit, metric, _, value in plant.readings:
        values.setdefault(f"{unit}/{metric}", []).append(value)
    assert windows == {sensor: (len(one), min(one), max(one)) for sensor, one in values.items()}
    assert not run.account.dead_lettered

    assert birth_log(f"{name}.births", config) is birth_log(f"{name}.births", dict(config))
    with pytest.raises(
        Unavailable, match=r"births of Sparkplug in the topic none\.at\.all: there is no topic"
    ) as no:
        BirthLog("none.at.all", config).births()
    assert not no.value.passing
