"""`streamgauge ingest` as a user types it."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from streamgauge.apps.dev.kafka.node import free_port

from ...agents.ingest.agents import fresh, values
from ...agents.ingest.sources.tailing import write

pytestmark = pytest.mark.kafka

PROGRAM = [sys.executable, "-c", "from streamgauge.apps.cli.program import main; main()", "ingest"]


def ran(*options: str, check: bool = True, text: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([*PROGRAM, *options], capture_output=True, input=text, check=check, timeout=300)


@pytest.mark.slow
def test_files_once_with_their_account(kafka: Any, tmp_path: Path) -> None:
    topic, log = fresh(), tmp_path / "a.log"
    write(log, "one", "two", end=b"\n")
    write(log, "part", end=b"")
    options = [
        "tail",
        str(log),
        "--topic",
        topic,
        "--bootstrap-servers",
        kafka.bootstrap_servers,
        "--name",
        topic,
    ]
    account = json.loads(ran(*options, "--once", "--json").stdout)
    assert {name: account[name] for name in ("agent", "read", "sent", "dead_lettered", "dropped")} == {
        "agent": topic,
        "read": 2,
        "sent": 2,
        "dead_lettered": 0,
        "dropped": 0,
    }
    assert account["unfinished_bytes"] == {str(log): 4}
    write(log, "ial")
    again = ran(*options, "--once")
    assert again.stderr.decode().strip() == f"{topic}: 1 read = 1 sent + 0 dead-lettered + 0 dropped"
    assert values(kafka, topic) == [b"one", b"two", b"partial"]


@pytest.mark.slow
def test_a_configuration_with_metrics_until_it_is_stopped(kafka: Any, tmp_path: Path) -> None:
    topic, log, config = fresh(), tmp_path / "a.log", tmp_path / "agent.toml"
    write(log, "ERROR one", "fine")
    config.write_text(
        f"""
        name = "{topic}"
        [sources.app]
        type = "tail"
        files = ["{log}*"]
        interceptors = [{{ type = "filter", regex = "ERROR" }}, {{ type = "host" }}]
        [sinks.kafka]
        type = "kafka"
        topic = "{topic}"
        bootstrap_servers = "{kafka.bootstrap_servers}"
        """
    )
    agent = subprocess.Popen(
        [*PROGRAM, str(config), "--json", "--metrics", "0", "--state", str(tmp_path / "state")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert agent.stderr is not None and agent.stdout is not None
    address = agent.stderr.readline().split()[-1]
    deadline = time.monotonic() + 300
    wanted = 'outcome="sent",reason="",source="app"} 1.0'
    while wanted not in (text := httpx.get(address, timeout=60).text):
        assert time.monotonic() < deadline, text
        time.sleep(0.2)
    assert httpx.get(address.replace("metrics", "ready"), timeout=60).status_code == 200
    agent.send_signal(signal.SIGTERM)
    out, _ = agent.communicate(timeout=120)
    assert agent.returncode == 0 and json.loads(out)["dropped_by_reason"] == {"filter": 1}
    assert values(kafka, topic) == [b"ERROR one"]


@pytest.mark.slow
def test_a_stop_delivers_all_that_was_received_by_tcp(kafka: Any, tmp_path: Path) -> None:
    topic, port, config = fresh(), free_port(), tmp_path / "agent.toml"
    config.write_text(
        f"""
        name = "{topic}"
        [sources.s]
        type = "syslog"
        port = {port}
        [sinks.kafka]
        type = "kafka"
        topic = "{topic}"
        bootstrap_servers = "{kafka.bootstrap_servers}"
        """
    )
    agent = subprocess.Popen(
        [*PROGRAM, str(config), "--json", "--metrics", "0", "--state", str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert agent.stderr is not None
    ready = agent.stderr.readline().split()[-1].replace("metrics", "ready")
    deadline = time.monotonic() + 120
    while httpx.get(ready, timeout=60).status_code != 200:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    with socket.create_connection(("127.0.0.1", port)) as sender:
        sender.sendall(b"".join(b"<13>line %d\n" % number for number in range(20_000)))
        agent.send_signal(signal.SIGINT)
        out, _ = agent.communicate(timeout=120)
    account = json.loads(out)
    assert (account["read"], account["sent"], account["dropped"]) == (20_000, 20_000, 0)
    assert values(kafka, topic) == [b"<13>line %d" % number for number in range(20_000)]


def test_standard_input_to_standard_output(tmp_path: Path) -> None:
    config = tmp_path / "agent.toml"
    config.write_text('[sources.a]\ntype = "stdin"\n[sinks.b]\ntype = "console"\n')
    done = ran(str(config), "--state", str(tmp_path), "--name", "n", text=b"one\ntwo")
    assert done.stdout == b"one\ntwo\n" and b"n: 2 read = 2 sent" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "text"),
    [
        ([], 'pass a configuration file, "tail" with files, or --preset NAME'),
        (["tail", "a.log"], "--topic is missing"),
        (["tail", "--topic", "t"], "tail: name at least one file or pattern"),
        (["tail", "/no/such/folder/a.log", "--topic", "t"], "there is no folder /no/such/folder"),
        (["--preset", "nope", "--topic", "t"], "preset must be one of"),
        (["missing.toml"], "No such file or directory"),
        (["missing.toml", "--topic", "t"], "a configuration names its files and topics"),
        (["tail", "a.log", "--topic", "t", "--multiline", "("], "start must be a regular expression"),
    ],
)
def test_what_is_wrong_is_one_line(kafka: Any, options: list[str], text: str) -> None:
    done = ran(*options, "--bootstrap-servers", kafka.bootstrap_servers, check=False)
    assert done.returncode == 1 and text in done.stderr.decode() and done.stderr.count(b"\n") == 1


def test_presets_are_listed() -> None:
    text = ran("--preset", "list").stdout.decode()
    assert "jetstream" in text and "--set url=wss://" in text
