"""Every setting that is accepted reaches a client as it was given; others say what to write instead."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from streamgauge.apps.cli.settings import kafka_settings
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.formats.json.decoder import json
from streamgauge.operators.kafka import settings
from streamgauge.operators.kafka.client_config import (
    admin_config,
    member_config,
    producer_config,
    reader_config,
)
from streamgauge.operators.kafka.fixed_settings import FIXED
from streamgauge.operators.kafka.settings import check_settings
from streamgauge.spark_udafs.kafka.options import KafkaOptions

from ...cases import each

WRONG = {
    "auto.offset.reset": "latest",
    "auto.commit.interval.ms": 1_000,
    "offset.store.method": "file",
    "offset.store.path": "/tmp",
    "offset.store.sync.interval.ms": 5,
    "consume.callback.max.messages": 7,
    "acks": 1,
    "request.required.acks": 1,
    "message.max.bytes": 10_000_000,
}
"""A value that librdkafka takes and we don't; of those not named here, one that is neither true nor false."""


def wrong(name: str) -> Any:
    if name in WRONG:
        return WRONG[name]
    return {("true",): False, ("true", "1"): False, ("false",): True}.get(FIXED[name].allowed, "mine")


@each("name", FIXED)
def test_a_setting_that_a_stream_decides_says_what_to_write_instead(name: str) -> None:
    config, instead = {name: wrong(name)}, FIXED[name].instead
    for given in (
        lambda: Stream.from_kafka("posts", value=json({"x": pl.Int64}), config=config),
        lambda: kafka_settings("box:9092", [f"{name}={wrong(name)}".replace("=True", "=true")], None),
    ):
        with pytest.raises(ValueError) as raised:
            given()
        assert f'the Kafka setting "{name}"' in str(raised.value) and instead in str(raised.value)
    for value in FIXED[name].allowed:
        check_settings({name: value})


def test_every_other_setting_reaches_the_clients_as_it_is() -> None:
    """Sentinels in every setting that librdkafka has: none is overridden, and none reaches nobody."""
    names = set(settings._names())
    assert len(names) > 100 and names > FIXED.keys()
    # Of these the reading client takes its own, and the log's clients what the log needs.
    partly = {"isolation.level", "group.instance.id"}
    for name in names - FIXED.keys() - partly:
        config = {"bootstrap.servers": "box:9092", name: "mine"}
        made = [reader_config(config), member_config(config, "group"), admin_config(config)]
        made += [producer_config(config, 1_000)]
        result = {one[name] for one in made if name in one}
        assert result == {"mine"}, name


def test_a_worker_that_is_to_poll_too_often_is_refused_with_what_must_hold() -> None:
    with pytest.raises(ValueError, match=r"must be at least 10000 here, got 1000: .*, which is 10000"):
        check_settings({"max.poll.interval.ms": 1_000})
    with pytest.raises(ValueError, match="must be at least 60000 here, got 50000"):
        check_settings({"max.poll.interval.ms": "50000", "session.timeout.ms": "60000"})
    check_settings({"max.poll.interval.ms": 60_000, "session.timeout.ms": 60_000})


def test_spark_obeys_the_group_and_refuses_the_others() -> None:
    options = {"kafka.bootstrap.servers": "box:9092", "subscribe": "posts"}
    result = KafkaOptions.parse({**options, "kafka.group.id": "mine"}).bounded()
    assert result.config["group.id"] == "mine"
    for name in FIXED.keys() - {"group.id"}:
        with pytest.raises(ValueError, match=name.replace(".", r"\.")):
            KafkaOptions.parse({**options, f"kafka.{name}": str(wrong(name)).lower()}).bounded()


def test_the_page_lists_them_all() -> None:
    page = (Path(__file__).parents[3] / "docs" / "operations.md").read_text()
    for name in FIXED:
        assert f"`{name}`" in page, name
