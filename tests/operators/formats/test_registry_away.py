"""A run whose schema registry goes away: it waits, says so, and continues with nothing lost or refused."""

from __future__ import annotations

import logging
import uuid
from typing import Any

import pytest
from confluent_kafka import Producer

from streamgauge.operators.consumer.options import RunOptions
from streamgauge.operators.consumer.runner import start
from streamgauge.operators.definition.aggregates import count
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.formats.avro.decoder import avro
from streamgauge.operators.formats.retryable_error import Unavailable
from streamgauge.operators.sketching.account import Account

from ...waiting import until
from .avro_records import written
from .schema_registry import SmallRegistry, framed

pytestmark = pytest.mark.kafka


@pytest.mark.slow
def test_a_run_waits_for_its_registry(kafka: Any, caplog: pytest.LogCaptureFixture) -> None:
    registry = SmallRegistry()
    with registry.served():
        numbers = [registry.add("names", "string"), registry.add("more", "string")]
        settings = {"url": registry.url, "max.retries": 0}
        value = avro("string", registry=settings)
    topic = f"away-{uuid.uuid4().hex[:8]}"
    kafka.create_topic(topic, 1)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "enable.idempotence": True})
    for name in ("ann", "bob", "cid"):
        producer.produce(topic, framed(numbers[0], written("string", name)))
    producer.flush()
    source = Stream.from_kafka(topic, value=value, bootstrap_servers=kafka.bootstrap_servers)
    stream = source.tumbling("1m").agg(names=count())

    def logged() -> str:
        return "\n".join(record.getMessage() for record in caplog.records)

    with caplog.at_level(logging.WARNING):
        run = start(stream, RunOptions(checkpoint_seconds=0.2))
        until(lambda: "waiting to decode messages: the schema registry" in logged())
        assert run.summary().account == Account()
        with registry.served():
            until(lambda: run.summary().account == Account(read=3, counted=3))
        assert "managed to decode messages; continuing" in logged()
        # A schema that is known needs no registry; a run that waits for one can be stopped.
        producer.produce(topic, framed(numbers[0], written("string", "dee")))
        producer.flush()
        until(lambda: run.summary().account.counted == 4)
        caplog.clear()
        producer.produce(topic, framed(numbers[1], written("string", "eve")))
        producer.flush()
        until(lambda: "waiting to decode messages" in logged())
        run.stop()
        assert run.wait().account == Account(read=4, counted=4)


def test_a_registry_that_refuses_ends_the_run_with_what_to_do(kafka: Any, registry: SmallRegistry) -> None:
    registry.login = "me:tr0ut"
    number = registry.add("names", "string")
    topic = f"refused-{uuid.uuid4().hex[:8]}"
    kafka.create_topic(topic, 1)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "enable.idempotence": True})
    producer.produce(topic, framed(number, written("string", "ann")))
    producer.flush()
    value = avro("string", registry={"url": registry.url, "basic.auth.user.info": "me:c4rp"})
    source = Stream.from_kafka(topic, value=value, bootstrap_servers=kafka.bootstrap_servers)
    run = start(source.tumbling("1m").agg(names=count()), RunOptions(until="latest"))
    with pytest.raises(Unavailable, match=r"it answers 401: who are you\?; look at its settings"):
        run.wait()
