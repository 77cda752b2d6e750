"""TLS and SASL against a real broker: both ways of reading, and whole runs, with the user's own settings."""

from __future__ import annotations

import base64
import json as plain_json
import logging
import shutil
import time
import uuid
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec
from prometheus_client import CollectorRegistry, generate_latest

from streamgauge.operators.consumer.group.reset import reset
from streamgauge.operators.consumer.options import RunOptions
from streamgauge.operators.consumer.runner import run, start
from streamgauge.operators.definition.aggregates import count
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.formats.json.decoder import json
from streamgauge.operators.kafka import reader as reader_module
from streamgauge.operators.kafka.client_config import LIBRARY_LOG
from streamgauge.operators.kafka.faults import Refused
from streamgauge.operators.kafka.raw_settings import raw_settings
from streamgauge.operators.kafka.raw_source import RawSource
from streamgauge.operators.kafka.reader import Reader, ReadError
from streamgauge.operators.sketching.account import Account
from streamgauge.operators.watermarks.position import Position
from streamgauge.spark_udafs.kafka.offsets import Known
from streamgauge.spark_udafs.kafka.options import KafkaOptions
from streamgauge.spark_udafs.kafka.tasks import Range, Task, read_task
from streamgauge.spark_udafs.streaming.run import on_spark

from ...waiting import until
from .secure_broker import KEY_PASSWORD, PASSWORD, USER, SecureKafka

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.skipif(
        shutil.which("openssl") is None, reason="openssl, which makes certificates, is missing"
    ),
]


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureKafka]:
    """A broker with a topic of one message."""
    with SecureKafka(data=tmp_path_factory.mktemp("secure")) as broker:
        broker.add_user()
        broker.create_topic("posts")
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "enable.idempotence": True})
        producer.produce("posts", b'{"n": 1}', timestamp=1_700_000_000_000)
        assert producer.flush(120) == 0
        yield broker


def token(_: str) -> tuple[str, float]:
    """An unsecured JSON web token, as the broker's own listener takes it."""

    def part(reported: dict[str, Any]) -> str:
        return base64.urlsafe_b64encode(plain_json.dumps(reported).encode()).decode().rstrip("=")

    claims = {"sub": USER, "iat": 1_700_000_000, "exp": 4_102_444_800}
    return f"{part({'alg': 'none'})}.{part(claims)}.", 4_102_444_800.0


def settings(secure: SecureKafka, how: str) -> dict[str, Any]:
    folder = secure.folder
    trust = {"ssl.ca.location": str(folder / "ca.pem")}
    if how in ("files", "texts"):
        files = {"certificate": "client.pem", "key": "client.key"}
        if how == "files":
            own = {f"ssl.{part}.location": str(folder / name) for part, name in files.items()}
        else:
            own = {f"ssl.{part}.pem": (folder / name).read_text() for part, name in files.items()}
            trust = {"ssl.ca.pem": (folder / "ca.pem").read_text()}
        return {
            "bootstrap.servers": secure.tls,
            "security.protocol": "ssl",
            **trust,
            **own,
            "ssl.key.password": KEY_PASSWORD,
        }
    login = {"sasl.username": USER, "sasl.password": PASSWORD}
    return {
        "bootstrap.servers": secure.sasl,
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": how,
        **trust,
        **({"oauth_cb": token} if how == "OAUTHBEARER" else login),
    }


WAYS = ["files", "texts", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]


@pytest.mark.slow
@pytest.mark.parametrize("how", WAYS)
def test_raw_batches_are_read_with_every_kind_of_security(secure: SecureKafka, how: str) -> None:
    with Reader(settings(secure, how), {("posts", 0): 0}) as reader:
        assert isinstance(reader._source, RawSource)
        (result,) = reader.read_to({("posts", 0): 1}, timeout=120)
        assert result.value.to_pylist() == [b'{"n": 1}']


@pytest.mark.parametrize("how", ["files", "texts"])
def test_nobody_is_trusted_but_the_authority_that_is_named(secure: SecureKafka, how: str) -> None:
    context = raw_settings(settings(secure, how))["ssl_context"]
    assert [dict(one["subject"][0])["commonName"] for one in context.get_ca_certs()] == ["authority"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "wrong"),
    [
        ("files", {"ssl.ca.location": "other.pem"}),
        ("PLAIN", {"ssl.ca.location": "other.pem"}),
        ("PLAIN", {"ssl.ca.location": None}),  # the system's authorities did not sign it
        ("PLAIN", {"sasl.password": "wr0ng-in-the-rapids"}),
        ("SCRAM-SHA-256", {"sasl.password": "wr0ng-in-the-rapids"}),
    ],
)
def test_who_is_not_trusted_is_not_read_from_and_no_secret_is_shown(
    secure: SecureKafka,
    how: str,
    wrong: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(reader_module, "_ANSWER_SECONDS", 1.0)
    config = settings(secure, how) | wrong
    if config["ssl.ca.location"] is None:
        del config["ssl.ca.location"]
    elif "ssl.ca.location" in wrong:
        config["ssl.ca.location"] = str(secure.folder / wrong["ssl.ca.location"])
    with caplog.at_level(logging.DEBUG), pytest.raises(ReadError) as raised:
        Reader(config, {("posts", 0): 0}, source="raw")
    for secret in (PASSWORD, KEY_PASSWORD, "wr0ng-in-the-rapids"):
        assert secret not in str(raised.value) + caplog.text


def test_a_run_and_a_task_of_sparks_read_with_them_too(secure: SecureKafka, tmp_path: Path) -> None:
    config = settings(secure, "SCRAM-SHA-512")
    at = config.pop("bootstrap.servers")
    stream = (
        Stream.from_kafka("posts", value=json({"n": pl.Int64}), bootstrap_servers=at, config=config)
        .tumbling("1h")
        .agg(posts=count())
    )
    assert run(stream, RunOptions(until="latest")).windows()["posts"].to_list() == [1]
    options = KafkaOptions.parse({"kafka.bootstrap.servers": at}, stream, config)
    task = Task((Range(("posts", 0), 0, 1, Known(Position(0))),), 0, 1_700_000_000_000_000)
    assert sum(batch.num_rows for batch in read_task(options, task)) >= 1


def counted(secure: SecureKafka, how: str) -> Stream:
    """A stream that such a client reads, of a topic of its own: a message to count, and one that can't be."""
    topic = f"{how.lower()}-{uuid.uuid4().hex[:8]}"
    secure.create_topic(topic)
    producer = Producer({"bootstrap.servers": secure.bootstrap_servers, "enable.idempotence": True})
    for value in (b'{"n": 1}', b"oops"):
        producer.produce(topic, value, timestamp=1_700_000_000_000)
    assert producer.flush(120) == 0
    config = settings(secure, how)
    at = config.pop("bootstrap.servers")
    source = Stream.from_kafka(topic, value=json({"n": pl.Int64}), bootstrap_servers=at, config=config)
    return source.tumbling("1h").agg(posts=count())


@pytest.mark.slow
def test_who_is_refused_hears_why_and_which_setting_to_look_at(secure: SecureKafka) -> None:
    folder, tls, login = secure.folder, settings(secure, "files"), settings(secure, "PLAIN")
    plain = {"bootstrap.servers": secure.bootstrap_servers}
    own = {name: value for name, value in tls.items() if not name.startswith(("ssl.cert", "ssl.key"))}
    cases: dict[str, tuple[dict[str, Any], str, str]] = {
        "password": (login | {"sasl.password": "wr0ng"}, "Invalid username or password", "sasl.password"),
        "authority": (login | {"ssl.ca.location": str(folder / "other.pem")}, "verif", "ssl.ca.location"),
        "plain text to TLS": ({"bootstrap.servers": secure.tls}, "SSL listener", "security.protocol"),
        "TLS to plain text": (tls | plain, "PLAINTEXT broker listener", "security.protocol"),
        "no login": (own | {"bootstrap.servers": secure.sasl}, "a login by OAUTHB", "security.protocol"),
        "no certificate": (own, "alert", "ssl.certificate.location"),
        "key's password": (tls | {"ssl.key.password": "wr0ng"}, "ssl.key.location", "ssl.key.password"),
        "no such file": (tls | {"ssl.ca.location": "/none.pem"}, "ssl.ca.location failed", "ssl.ca.location"),
    }
    wrong: list[tuple[str, str, str, float]] = []
    for name, (config, said, setting) in cases.items():
        config = dict(config)
        at = config.pop("bootstrap.servers")
        source = Stream.from_kafka("posts", value=json({"n": pl.Int64}), bootstrap_servers=at, config=config)
        stream = source.tumbling("1h").agg(posts=count())
        # Each with a client of its own, which has not heard anything yet.
        other = config | {"client.id": "other"}
        for what, tried in (
            ("run", partial(run, stream, RunOptions(until="latest"))),
            ("reset", partial(reset, "g", "latest", bootstrap_servers=at, config=other)),
        ):
            began, error = time.monotonic(), ""
            try:
                tried()
            except Refused as refused:
                error = str(refused)
            seconds = time.monotonic() - began
            advised = error.rpartition(": check ")[2]
            if said not in error or setting not in advised or seconds > 5 or "wr0ng" in error:
                wrong.append((name, what, error, seconds))
    assert not wrong


def test_the_reading_clients_own_log_shows_no_password(
    secure: SecureKafka, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, "kafka"):
        for how in ("PLAIN", "OAUTHBEARER"):
            with Reader(settings(secure, how), {("posts", 0): 0}) as reader:
                next(reader.read_to({("posts", 0): 1}, timeout=120))
    assert "SaslAuthenticateRequest" in caplog.text
    for secret in (PASSWORD, token("")[0]):
        assert secret not in caplog.text


def often(*ways: str) -> list[Any]:
    """These ways in every run of the tests, the others in long ones."""
    return [pytest.param(how, marks=[] if how in ways else pytest.mark.soak) for how in WAYS]


@pytest.mark.slow
@pytest.mark.parametrize("how", often("files", "SCRAM-SHA-512", "OAUTHBEARER"))
def test_a_whole_run_goes_by_them_and_shows_none(
    secure: SecureKafka, how: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """Reading, the group, transactions, deltas, dead letters, administration and metrics."""
    stream, registry = counted(secure, how), CollectorRegistry()
    group = stream.reading.kafka_source.topic
    with caplog.at_level(logging.DEBUG), caplog.at_level(logging.DEBUG, LIBRARY_LOG.name):
        running = start(stream, RunOptions(group_id=group, registry=registry, checkpoint_seconds=0.1))
        until(lambda: running.figures().account.read == 2 and running.figures().lag == 0)
        until(lambda: running.health().ready)
        metrics = generate_latest(registry).decode()
        running.stop()
        summary = running.wait(120)
    assert summary.account == Account(2, counted=1, dead_lettered=1)
    letters = TopicPartition(f"{group}.dead-letters", 0)
    client = AdminClient({"bootstrap.servers": secure.bootstrap_servers})
    ends = client.list_offsets({letters: OffsetSpec.latest()})
    assert ends[letters].result(120).offset == 2  # the letter, and its transaction's marker
    printed = capfd.readouterr()
    output = caplog.text + metrics + printed.out + printed.err + repr(running) + repr(summary) + repr(stream)
    for secret in (PASSWORD, KEY_PASSWORD, "BEGIN ENCRYPTED"):
        assert secret not in output


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("how", often("SCRAM-SHA-512", "OAUTHBEARER"))
def test_spark_reads_and_writes_dead_letters_with_them(secure: SecureKafka, spark: Any, how: str) -> None:
    stream = counted(secure, how)
    frame = on_spark(stream, spark, streaming=False)
    assert [row["posts"] for row in frame.collect()] == [1]
    plan = frame._jdf.queryExecution().toString()
    assert PASSWORD not in plan and KEY_PASSWORD not in plan
