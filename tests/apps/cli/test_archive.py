"""A topic that is archived and replayed is the same topic again."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from typer.testing import CliRunner

from streamgauge.apps.cli.commands import app
from streamgauge.operators.archive.segment import SegmentWriter
from streamgauge.operators.archive.store import LocalStore
from streamgauge.operators.formats.messages import Messages

from ...waiting import until

pytestmark = pytest.mark.kafka


def messages_of(servers: str, topic: str, partition: int, count: int, first: int = 0) -> list[Any]:
    """The first messages of a partition from an offset on: key, value, headers, timestamp."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": uuid.uuid4().hex})
    consumer.assign([TopicPartition(topic, partition, first)])
    read: list[Any] = []
    while len(read) < count:
        for message in consumer.consume(count - len(read), 5):
            assert message.error() is None
            read.append((message.key(), message.value(), message.headers(), message.timestamp()))
    consumer.close()
    return read


def invoke(*arguments: str) -> dict[str, Any]:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == 0, result.output + str(result.exception)
    return json.loads(result.stdout.splitlines()[-1])


def test_an_archive_is_replayed_to_an_equal_topic(kafka: Any, tmp_path: Path) -> None:
    topic, copy = f"posts-{uuid.uuid4().hex[:8]}", f"copy-{uuid.uuid4().hex[:8]}"
    servers = kafka.bootstrap_servers
    kafka.create_topic(topic, 3)
    producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True})
    counts = [0, 0, 0]
    for number in range(500):
        partition = number * 7 % 3
        counts[partition] += 1
        producer.produce(
            topic,
            None if number % 50 == 1 else b"\xff%d" % number,
            b"" if number % 5 == 0 else b"k%d" % number,
            partition,
            timestamp=1_767_225_600_000 + (number if number % 9 else 3),
            headers=[("n", b"%d" % number), ("n", None)] if number % 2 else None,
        )
    assert producer.flush(120) == 0
    to = str(tmp_path / "archive")
    archived = invoke(
        "archive", topic, "--output", to, "--once", "--json", "--bootstrap-servers", servers, "--size", "300B"
    )
    assert archived["messages"] == 500 and archived["files"] > 6
    sent = invoke("replay", to, "--topic", copy, "--speed", "max", "--json", "--bootstrap-servers", servers)
    assert sent["sent"] == 500
    for partition, count in enumerate(counts):
        assert messages_of(servers, copy, partition, count) == messages_of(servers, topic, partition, count)
    again = CliRunner().invoke(
        app, ["archive", topic, "--output", to, "--once", "--bootstrap-servers", servers]
    )
    assert again.exit_code == 0 and "0 messages in 0 files" in again.output


def test_a_topic_of_everything_is_archived_and_replayed_exactly(kafka: Any, tmp_path: Path) -> None:
    """Transactions, some of them aborted; tombstones, headers without a value, the timestamps 0 and −1; a log
    whose first messages are gone.
    """
    topic, copy = f"all-{uuid.uuid4().hex[:8]}", f"copy-{uuid.uuid4().hex[:8]}"
    servers = kafka.bootstrap_servers
    kafka.create_topic(topic, 1, {"cleanup.policy": "compact,delete"})
    producer = Producer({"bootstrap.servers": servers, "transactional.id": topic})
    producer.init_transactions(120)
    sent = []
    for number in range(60):
        producer.begin_transaction()
        message: dict[str, Any] = {
            "value": None if number % 7 == 2 else b"\xff%d" % number,
            "key": b"k%d" % number,
            "timestamp": (-1, 1_767_225_600_000 + number)[number % 2],
            "headers": [("n", b"%d" % number), ("n", None)] if number % 3 else None,
        }
        producer.produce(topic, partition=0, **message)
        assert producer.flush(120) == 0
        if number % 5 == 3:
            producer.abort_transaction(120)
        else:
            producer.commit_transaction(120)
            sent.append(message)
    import kafka as kafka_python

    old = kafka_python.KafkaProducer(bootstrap_servers=servers)
    for number in range(3):
        old.send(topic, b"old", b"o%d" % number, [("n", b"")], partition=0, timestamp_ms=0).get(120)
        sent.append({"timestamp": 0})
    old.close()
    admin, gone = AdminClient({"bootstrap.servers": servers}), TopicPartition(topic, 0, 10)
    admin.delete_records([gone])[gone].result(120)
    to = str(tmp_path / "archive")
    options = ["--output", to, "--once", "--json", "--bootstrap-servers", servers, "--size", "100B"]
    archived = invoke("archive", topic, *options)
    replayed = invoke(
        "replay", to, "--topic", copy, "--speed", "max", "--json", "--bootstrap-servers", servers
    )
    # Each transaction takes two offsets.
    kept = len(sent) - 4
    assert archived["messages"] == replayed["sent"] == kept
    messages = messages_of(servers, copy, 0, kept)
    assert messages == messages_of(servers, topic, 0, kept, first=10)
    assert [stamp for *_, (_, stamp) in messages[-3:]] == [0, 0, 0]
    assert {stamp for *_, (_, stamp) in messages} >= {-1, 0}
    check = invoke("archive", "verify", to, "--json")
    assert (check["messages"], check["problems"]) == (kept, []) and check["partitions"][0]["unhashed"] == 0


@pytest.mark.slow
def test_a_stop_writes_what_was_read(kafka: Any, tmp_path: Path) -> None:
    topic, servers = f"stop-{uuid.uuid4().hex[:8]}", kafka.bootstrap_servers
    kafka.create_topic(topic, 1)
    producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True, "linger.ms": 200})
    for number in range(10):
        producer.produce(topic, b"value %d" % number, partition=0)
    assert producer.flush(120) == 0
    arguments = [
        "archive",
        topic,
        "--output",
        str(tmp_path),
        "--bootstrap-servers",
        servers,
        "--size",
        "60B",
        "--json",
    ]
    code = "from streamgauge.apps.cli.program import main; main()"
    archiver = subprocess.Popen([sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE)
    # The first file is whole, the rest of the same batch is held.
    until(lambda: any(tmp_path.rglob("*.parquet")) or archiver.poll() is not None)
    archiver.send_signal(signal.SIGINT)
    out, _ = archiver.communicate(timeout=300)
    account = json.loads(out)
    assert (account["messages"], account["files"]) == (10, 2) and archiver.returncode == 0
    assert invoke("archive", "verify", str(tmp_path), "--json")["messages"] == 10


@pytest.mark.slow
def test_a_bucket_is_archived_to_verified_and_replayed(
    kafka: Any, s3: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, servers = f"bucket-{uuid.uuid4().hex[:8]}", kafka.bootstrap_servers
    for name, value in (
        ("ENDPOINT_URL", s3["endpoint_url"]),
        ("ACCESS_KEY_ID", s3["key"]),
        ("SECRET_ACCESS_KEY", s3["secret"]),
    ):
        monkeypatch.setenv(f"AWS_{name}", value)
    kafka.create_topic(topic, 2)
    producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True})
    for number in range(40):
        producer.produce(topic, b"%d" % number, partition=number % 2)
    assert producer.flush(120) == 0
    to = f"s3://streams/{topic}"
    options = ["--once", "--json", "--bootstrap-servers", servers]
    assert invoke("archive", topic, "--output", to, *options, "--size", "10B")["messages"] == 40
    assert invoke("archive", topic, "--output", to, *options)["files"] == 0
    check = invoke("archive", "verify", to, "--json")
    assert (check["messages"], check["problems"]) == (40, [])
    assert invoke("replay", to, "--topic", f"{topic}-copy", "--speed", "max", *options[1:])["sent"] == 40
    for partition in range(2):
        copied = messages_of(servers, f"{topic}-copy", partition, 20)
        assert copied == messages_of(servers, topic, partition, 20)


def test_verify_names_what_is_damaged(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    writer = SegmentWriter("t", 2, 5)
    writer.add(Messages.of([b"a", b"b"], first_offset=5))
    segment, data = writer.finish()
    assert store.create(segment.path, data)
    for place in (str(tmp_path), f"{tmp_path}/topic=t"):
        whole = CliRunner().invoke(app, ["archive", "verify", place])
        assert whole.exit_code == 0 and whole.stdout == "t[2] 5 to 6: 2 messages in 1 file, whole\n"
    (tmp_path / segment.path).write_bytes(data.to_pybytes()[:-1])
    broken = CliRunner().invoke(app, ["archive", "verify", str(tmp_path), "--json"])
    assert broken.exit_code == 1
    [problem] = json.loads(broken.stdout)["problems"]
    assert problem.startswith(f"{segment.path} is damaged")
    for arguments in (["posts"], ["verify"], ["verify", "a", "b"]):
        result = CliRunner().invoke(app, ["archive", *arguments])
        assert isinstance(result.exception, ValueError) and "--output is missing" in str(result.exception)


def test_a_topic_with_fewer_partitions_is_refused(kafka: Any, tmp_path: Path) -> None:
    topic, one = f"posts-{uuid.uuid4().hex[:8]}", f"one-{uuid.uuid4().hex[:8]}"
    for name, partitions in ((topic, 2), (one, 1)):
        kafka.create_topic(name, partitions)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "enable.idempotence": True})
    producer.produce(topic, b"x", partition=1)
    assert producer.flush(120) == 0
    servers, to = kafka.bootstrap_servers, str(tmp_path / "archive")
    invoke("archive", topic, "--output", to, "--once", "--json", "--bootstrap-servers", servers)
    result = CliRunner().invoke(app, ["replay", to, "--topic", one, "--bootstrap-servers", servers])
    assert isinstance(result.exception, ValueError) and "had 2 partitions" in str(result.exception)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--size", "much"], "--size must be a number of bytes"),
        (["--interval", "soon"], "--interval must be a duration"),
        (["--keep", "0s"], "--keep must be a duration"),
        (["--offset", "now"], "--offset must be earliest or latest"),
    ],
)
def test_wrong_options_are_refused_before_anything_is_read(arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(
        app, ["archive", "posts", "--output", "x", "--bootstrap-servers", "nowhere:1", *arguments]
    )
    assert isinstance(result.exception, ValueError) and message in str(result.exception)
