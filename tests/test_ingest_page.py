"""What docs/ingest.md shows runs."""

from __future__ import annotations

import json
import os
import re
import shlex
import socket
import subprocess
import sys
import threading
import tomllib
from contextlib import ExitStack
from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx
import pytest
from confluent_kafka import Producer

from streamgauge.agents.ingest.agent import Agent
from streamgauge.agents.ingest.config import parse_config
from streamgauge.agents.ingest.document import FieldLines, plan_of
from streamgauge.agents.ingest.presets import PRESETS
from streamgauge.agents.ingest.registry import CHANNELS, INTERCEPTORS, SINKS, SOURCES, load_kind
from streamgauge.apps.dev.kafka.node import free_port

from .agents.ingest.agents import fresh, values
from .agents.ingest.sources.feed_server import FeedServer
from .agents.ingest.sources.mqtt_broker import MqttBroker
from .agents.ingest.sources.postgres_server import PostgresServer, find_programs
from .waiting import until

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "ingest.md").read_text()


MISSING = set() if find_spec("psycopg") else {"postgres"}
"""Sources whose extra isn't installed."""


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.M | re.S)


PAGE_BLOCKS = re.findall(r"^```toml\n(.*?)^```", PAGE.partition("## Each source")[2], re.M | re.S)


@pytest.mark.parametrize("text", blocks("toml"))
def test_configurations_can_be_read(text: str, tmp_path: Path) -> None:
    if any(f'type = "{kind}"' in text for kind in MISSING):
        pytest.skip("its extra isn't installed")
    assert parse_config(text, "docs", "agent", tmp_path).routes


def test_all_kinds_fields_and_presets_are_named() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \|[^|]*\| (.*?) \|$", PAGE, re.M))
    for kind in SOURCES.keys() - MISSING:
        names = {field.name for field in fields(load_kind("sources", kind))}
        assert {name for name in names if f"`{name}`" not in rows[kind]} == set(), kind
    for name in (*CHANNELS, *SINKS, *INTERCEPTORS, *PRESETS):
        assert f"`{name}`" in PAGE, name


SHOWN = {tomllib.loads(text)["sources"].popitem()[1]["type"]: text for text in PAGE_BLOCKS}


def test_each_source_has_a_configuration() -> None:
    assert SHOWN.keys() == SOURCES.keys()


@pytest.mark.slow
@pytest.mark.kafka
@pytest.mark.parametrize("kind", SHOWN)
def test_each_sources_configuration_runs(
    kafka: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """As it stands on the page, but for addresses, the name of the topic, and the program `journalctl`."""
    if kind in MISSING or (kind == "postgres" and find_programs() is None):
        pytest.skip("psycopg or PostgreSQL isn't installed")
    document = tomllib.loads(SHOWN[kind])
    [source], [sink] = document["sources"].values(), document["sinks"].values()
    sink |= {"topic": fresh(sink["topic"]), "bootstrap_servers": kafka.bootstrap_servers}
    monkeypatch.chdir(tmp_path)
    with Senders(kafka, source) as senders:
        plan = plan_of(document, FieldLines("docs"), sink["topic"], tmp_path)
        running = Agent(plan, once=False)
        thread = threading.Thread(target=running.run)
        thread.start()
        try:
            until(lambda: running.health().ready or not thread.is_alive())
            senders.send()
            count = 10_000 if kind == "sequence" else 1
            until(lambda: running.account.sent >= count or not thread.is_alive())
        finally:
            running.stop()
            thread.join(60)
    assert len(values(kafka, sink["topic"])) == running.account.sent == count


class Senders:
    """What a source's messages come from, at the addresses that are written to its settings."""

    def __init__(self, kafka: Any, source: dict[str, Any]) -> None:
        self._kafka, self._source = kafka, source
        self._stack = ExitStack()

    def __enter__(self) -> Senders:
        source, kind = self._source, self._source["type"]
        if "port" in source:
            source["port"] = free_port()
        if kind == "mqtt":
            self._broker = MqttBroker()
            self._stack.callback(self._broker.close)
            source["port"] = self._broker.port
        elif kind == "websocket":
            server = FeedServer([b'{"time_us": 1}'])
            self._stack.callback(server.close)
            source["url"] = server.url
        elif kind == "kafka":
            source |= {"topics": [fresh("alerts")], "bootstrap_servers": self._kafka.bootstrap_servers}
            self._kafka.create_topic(source["topics"][0])
        elif kind == "journal":
            entry = "__CURSOR=s=1\\nMESSAGE=one\\n\\n"
            source["command"] = [
                sys.executable,
                "-c",
                f"import time; print('{entry}', flush=True); time.sleep(600)",
            ]
        elif kind == "stdin":
            read, write = os.pipe()
            os.write(write, b"one\n")
            os.close(write)
            before = os.dup(0)
            os.dup2(read, 0)
            self._stack.callback(os.dup2, before, 0)
        elif kind == "postgres":
            self._database = PostgresServer()
            self._stack.callback(self._database.close)
            source["dsn"] = self._database.dsn
            publication = re.sub("FOR TABLE .*", "FOR ALL TABLES", blocks("sql")[0])
            self._database.execute("CREATE TABLE orders (id int PRIMARY KEY)", publication)
        elif kind == "spool":
            Path(source["folder"]).mkdir()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def send(self) -> None:
        source, kind = self._source, self._source["type"]
        if kind == "tail":
            Path("logs").mkdir()
            Path("logs/access.log").write_text("one\n")
        elif kind == "spool":
            Path(source["folder"], "a.csv").write_text("one\n")
        elif kind == "http":
            httpx.post(f"http://127.0.0.1:{source['port']}", content=b"one\n", timeout=60).raise_for_status()
        elif kind == "syslog":
            with socket.create_connection(("127.0.0.1", source["port"])) as sender:
                sender.sendall(b"<13>one\n")
        elif kind == "mqtt":
            self._broker.publish("sensors/1", b"one")
        elif kind == "postgres":
            self._database.execute("INSERT INTO orders VALUES (1)")
        elif kind == "kafka":
            producer = Producer(
                {"bootstrap.servers": self._kafka.bootstrap_servers, "enable.idempotence": True}
            )
            producer.produce(source["topics"][0], b"one")
            assert producer.flush(120) == 0


@pytest.mark.kafka
def test_commands_on_files(kafka: Any, tmp_path: Path) -> None:
    (tmp_path / "access.log").write_text("one\ntwo\n")
    (tmp_path / "app.log").write_text("2026-01-01 error\n  trace\n2026-01-02 fine\n")
    commands = [line for block in blocks("bash") for line in block.splitlines() if "--once" in line]
    program = [sys.executable, "-c", "from streamgauge.apps.cli.program import main; main()"]
    accounts = []
    for command in commands:
        words = shlex.split(command)[1:]
        words += ["--bootstrap-servers", kafka.bootstrap_servers, "--name", f"docs-{tmp_path.name}"]
        words += [] if "--json" in words else ["--json"]
        done = subprocess.run([*program, *words], cwd=tmp_path, capture_output=True, check=True, timeout=300)
        accounts.append(json.loads(done.stdout)["sent"])
    assert accounts == [2, 2]
