"""A whole run that logs in with tokens: members, readers, producers and administration alike."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl
import pytest
from confluent_kafka import Producer

from streamgauge.operators.consumer.options import RunOptions
from streamgauge.operators.consumer.runner import run
from streamgauge.operators.definition.aggregates import count
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.formats.json.decoder import json
from streamgauge.operators.sinks.answers_to_kafka import AnswersToKafka

from ..kafka.secure_broker import USER, SecureKafka
from ..kafka.test_reader_security import settings

pytestmark = pytest.mark.kafka


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureKafka]:
    with SecureKafka(tmp_path_factory.mktemp("secure") / "data") as kafka:
        yield kafka


@pytest.mark.slow
@pytest.mark.parametrize("tokens", ["of a function", "of the library"])
def test_a_run_logs_in_with_tokens(secure: SecureKafka, tokens: str) -> None:
    topic = "posts-of-a-function" if tokens == "of a function" else "posts-of-the-library"
    secure.create_topic(topic)
    producer = Producer({"bootstrap.servers": secure.bootstrap_servers, "enable.idempotence": True})
    for number in range(100):
        producer.produce(topic, b'{"n": %d}' % number, partition=0)
    assert producer.flush(120) == 0
    config = settings(secure, "OAUTHBEARER")
    address = config.pop("bootstrap.servers")
    if tokens == "of the library":
        del config["oauth_cb"]
        config |= {
            "enable.sasl.oauthbearer.unsecure.jwt": True,
            "sasl.oauthbearer.config": f"principal={USER}",
        }
    source: Any = Stream.from_kafka(
        topic,
        value=json({"n": pl.Int64}),
        time=pl.from_epoch("n"),
        bootstrap_servers=address,
        config=config,
    )
    stream = source.tumbling("10s").agg(posts=count())
    options: Any = {"group_id": topic, "until": "latest", "sinks": (AnswersToKafka(f"{topic}-answers"),)}
    assert run(stream, RunOptions(**options)).account.counted == 100
    assert run(stream, RunOptions(**options, workers=2)).account.counted == 100
