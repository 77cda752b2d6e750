"""The embedded broker: serves, keeps what it should, and never outlives who started it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from streamgauge.apps.dev.kafka import broker as broker_module
from streamgauge.apps.dev.kafka.broker import BrokerError, EmbeddedKafka

pytestmark = [pytest.mark.kafka, pytest.mark.apart]


def eventually(holds, seconds: float = 300.0) -> bool:
    deadline = time.monotonic() + seconds
    while not (held := holds()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return held


def is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def read_all(address: str, topic: str, count: int) -> list[bytes]:
    consumer = Consumer(
        {"bootstrap.servers": address, "group.id": "test", "auto.offset.reset": "earliest"}
        | {"enable.auto.commit": False, "isolation.level": "read_committed"}
    )
    consumer.subscribe([topic])
    values: list[bytes] = []
    deadline = time.monotonic() + 300
    while len(values) < count and time.monotonic() < deadline:
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            values.append(message.value())
    consumer.close()
    return values


@pytest.mark.slow
def test_data_and_port_are_kept_across_a_restart(tmp_path: Path) -> None:
    with EmbeddedKafka(data=tmp_path / "data") as broker:
        address = broker.bootstrap_servers
        broker.create_topic("posts", partitions=3)
        producer = Producer({"bootstrap.servers": address, "transactional.id": "one"})
        producer.init_transactions(120)
        for values, end in (
            ([b"no"], producer.abort_transaction),
            ([b"a", b"b"], producer.commit_transaction),
        ):
            producer.begin_transaction()
            for value in values:
                producer.produce("posts", value)
            end(20)
        assert sorted(read_all(address, "posts", 2)) == [b"a", b"b"]
    assert not is_open(broker.port)
    again = EmbeddedKafka(data=tmp_path / "data")
    with again:
        assert again.bootstrap_servers == address
        assert sorted(read_all(address, "posts", 2)) == [b"a", b"b"]
        with pytest.raises(BrokerError, match="topic 'posts' exists already"):
            again.create_topic("posts")


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        broker = EmbeddedKafka(port=port, data=tmp_path)
        with pytest.raises(BrokerError, match=f"port {port} on 127.0.0.1 is in use"):
            broker.start()
        assert not broker.running


@pytest.mark.slow
def test_a_free_port_taken_at_the_last_moment_is_exchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        accepted = other.getsockname()[1]
        result = broker_module.free_port
        # The first choice is the broker's own port; it looks free and isn't.
        choices = iter([accepted])
        monkeypatch.setattr(broker_module, "free_port", lambda but=None: next(choices, None) or result(but))
        with EmbeddedKafka() as broker:
            assert broker.port != accepted
            assert is_open(broker.port)


def test_a_broker_that_fails_to_start_says_its_last_words(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "meta.properties").write_text(
        "version=1\nnode.id=7\ncluster.id=AAAAAAAAAAAAAAAAAAAAAA\n"
    )
    broker = EmbeddedKafka(data=tmp_path)
    with pytest.raises(BrokerError, match=r"(?s)ended while starting.*node.id"):
        broker.start()
    assert not broker.running


def test_before_start_it_says_what_to_do() -> None:
    with pytest.raises(BrokerError, match=r"call start\(\)"):
        _ = EmbeddedKafka().bootstrap_servers


PROGRAM = """
import time
from streamgauge.apps.dev.kafka.broker import EmbeddedKafka

with EmbeddedKafka() as broker:
    print(broker.port, broker.folder, flush=True)
    time.sleep(120)
"""


@pytest.fixture
def program() -> Iterator[subprocess.Popen[str]]:
    """Another program that has started a broker, in a process group of its own as a terminal gives it."""
    child = subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    )
    yield child
    if child.poll() is None:
        child.kill()
    child.communicate()


@pytest.mark.slow
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_it_ends_with_the_program_that_started_it(
    program: subprocess.Popen[str], end: signal.Signals
) -> None:
    assert program.stdout is not None
    port, folder = program.stdout.readline().split()
    assert is_open(int(port))
    os.killpg(program.pid, end)
    program.wait(120)
    assert eventually(lambda: not is_open(int(port)))
    assert eventually(lambda: not Path(folder).exists())
