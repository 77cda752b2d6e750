"""`streamgauge kafka start`, `status` and `stop`."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from typer.testing import CliRunner, Result

from streamgauge.apps.cli.kafka.command import app
from streamgauge.apps.dev.kafka import status
from streamgauge.apps.dev.kafka.cluster import kept_brokers
from streamgauge.apps.dev.kafka.jars import kafka_jars
from streamgauge.apps.dev.kafka.running_clusters import Running, RunningBroker, find_running, remember
from streamgauge.apps.environment.cache import cache_folder

from ....waiting import until

pytestmark = [pytest.mark.kafka, pytest.mark.apart]


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments, env={"COLUMNS": "200"})


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache folder that holds nothing but Kafka's jars and the archives of classes."""
    jars = kafka_jars()
    (tmp_path / "kafka").mkdir()
    (tmp_path / "kafka" / jars.name).symlink_to(jars)
    (tmp_path / "classes").symlink_to(cache_folder() / "classes")
    monkeypatch.setenv("STREAMGAUGE_CACHE", str(tmp_path))
    yield tmp_path
    for running in find_running():
        run("stop", "--name", running.name)


def send(address: str, count: int, partitions: int = 2) -> None:
    """Messages on a new topic."""
    admin = AdminClient({"bootstrap.servers": address})
    admin.create_topics([NewTopic("posts", partitions)])["posts"].result(120)
    producer = Producer({"bootstrap.servers": address, "enable.idempotence": True})
    for _ in range(count):
        producer.produce("posts", b"x")
    assert producer.flush(120) == 0


def test_a_broker_is_started_shown_and_stopped(cache: Path, tmp_path: Path) -> None:
    assert run("status").exit_code == 1
    data = tmp_path / "data"
    started = run("start", "--data", str(data))
    assert started.exit_code == 0, started.output
    address = re.search(r"127\.0\.0\.1:\d+", started.output)[0]
    assert "already running" in run("start").output
    assert run("start", "--port", "9").exit_code == 1

    send(address, 1234)

    shown = run("status")
    assert shown.exit_code == 0
    assert address in shown.output
    assert str(data) in shown.output.replace("\n", "").replace(" ", "")  # a long path takes several lines
    assert re.search(r"posts\W+2\W+1,234", shown.output)

    assert address in run("stop").output
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", int(address.split(":")[1]))) != 0
    assert run("status").exit_code == 1
    assert (data / "log" / "posts-0").is_dir()


def test_a_state_file_whose_broker_is_gone_is_cleared(cache: Path) -> None:
    state = cache / "kafka" / "running" / "kafka.json"
    state.parent.mkdir()
    broker = {"pid": 1, "port": 9, "folder": "/nonexistent/kafka"}
    gone = {"brokers": [broker], "folder": "/nonexistent/kafka", "keep": False, "started": 0.0}
    for content in (json.dumps(gone), "{broken"):
        state.write_text(content)
        assert run("status").exit_code == 1
        assert "no broker is running" in run("stop").output
    assert find_running() == []


def test_a_taken_port_is_an_error_without_a_traceback(cache: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        failed = run("start", "--port", str(other.getsockname()[1]))
    assert failed.exit_code == 1
    assert "is in use by another program" in failed.output
    assert "Traceback" not in failed.output


def fake(name: str) -> Running:
    """A process that looks like the broker of a folder of its own, until it is ended."""
    folder = f"/nonexistent/{name}"
    code = f"import time  # kafka.Kafka {folder}/broker.properties\ntime.sleep(600)"
    process = subprocess.Popen([sys.executable, "-c", code])
    threading.Thread(target=process.wait, daemon=True).start()
    return Running((RunningBroker(process.pid, 9, folder),), folder, False, time.time(), name)


def test_of_several_brokers_the_one_that_is_named_is_stopped(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(status, "_topics", lambda address: [])
    for name in ("kafka", "shop"):
        remember(fake(name))
    shown = run("status")
    assert (
        shown.exit_code == 0 and "/nonexistent/kafka" in shown.output and "/nonexistent/shop" in shown.output
    )
    unnamed = run("stop")
    assert unnamed.exit_code == 1 and "several brokers are running: kafka, shop" in unnamed.output
    assert "there are: kafka, shop" in run("stop", "--name", "other").output
    assert "already running" in run("start", "--name", "shop").output
    accepted = run("start", "--name", "third", "--data", "/nonexistent/shop")
    assert accepted.exit_code == 1 and "'shop'" in accepted.output
    assert "--name starts another one beside it" in run("start", "--port", "10").output
    assert run("stop", "--name", "shop").exit_code == 0
    assert [running.name for running in find_running()] == ["kafka"]
    assert run("stop").exit_code == 0
    assert find_running() == []


def test_a_name_that_would_be_no_file_is_refused(cache: Path) -> None:
    assert run("start", "--name", "../x").exit_code == 2


@pytest.mark.soak
def test_a_cluster_says_which_broker_is_dead_and_gets_it_back(cache: Path, tmp_path: Path) -> None:
    data = tmp_path / "shop"
    started = run("start", "--name", "shop", "--brokers", "3", "--data", str(data))
    assert started.exit_code == 0, started.output
    [shop] = find_running()
    assert shop.address in started.output and len(shop.brokers) == 3
    send(shop.address, 100, partitions=3)  # each broker leads one of them
    os.kill(shop.brokers[1].pid, signal.SIGKILL)
    until(lambda: not shop.brokers[1].alive)
    shown = run("status", "--name", "shop")
    assert shown.exit_code == 1
    assert f"broker 2 at {shop.brokers[1].address} is dead" in shown.output
    # The new leader of the dead one's partition knows only later which of its messages all have.
    assert re.search(r"posts\W+3\W+\d+", shown.output)
    assert "`streamgauge kafka start --name shop` starts it again" in shown.output
    refused = run("start", "--name", "shop", "--brokers", "2")
    assert refused.exit_code == 1 and "a cluster of 3 brokers is already running" in refused.output
    again = run("start", "--name", "shop")
    assert f"broker 2 serves again at {shop.brokers[1].address}" in again.output
    shown = run("status")
    assert shown.exit_code == 0 and re.search(r"posts\W+3\W+100", shown.output)
    assert run("stop", "--name", "shop").exit_code == 0 and find_running() == []
    fewer = run("start", "--brokers", "1", "--data", str(data))
    assert fewer.exit_code == 1 and "keeps the data of 3 brokers, not of 1" in fewer.output
    assert kept_brokers(data) == 3


def test_no_broker_of_a_cluster_runs_where_a_port_is_taken(cache: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        failed = run("start", "--brokers", "3", "--port", str(port))
    assert failed.exit_code == 1 and f"port {port} on 127.0.0.1 is in use" in failed.output
    assert find_running() == []
