"""Whole agents: each kind of channel, on the shared broker, with the account of it."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client import generate_latest

from streamgauge.agents.ingest.agent import Agent
from streamgauge.agents.ingest.batch import IngestError
from streamgauge.agents.ingest.config import parse_config
from streamgauge.agents.ingest.document import FieldLines, plan_of
from streamgauge.agents.ingest.metrics import progress_text, registry_of

from .agents import agent, fresh, values
from .sources.tailing import numbered, write

pytestmark = pytest.mark.kafka

CHANNELS = [None, {"type": "memory"}, {"type": "memory", "capacity": 10}, {"type": "file"}]


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


class Running:
    """An agent in a thread; `stop` gives the error that ended it."""

    def __init__(self, agent: Agent) -> None:
        self.agent, self.error = agent, None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.agent.run()
        except BaseException as error:
            self.error = error

    def stop(self) -> BaseException | None:
        self.agent.stop()
        return self.join()

    def join(self) -> BaseException | None:
        self._thread.join(120)
        assert not self._thread.is_alive()
        return self.error


@pytest.mark.slow
@pytest.mark.parametrize("channel", CHANNELS, ids=["none", "memory", "small memory", "file"])
def test_lines_equal_messages_by_each_channel(kafka: Any, tmp_path: Path, channel: Any) -> None:
    topic, log = fresh(), tmp_path / "logs" / "a.log"
    log.parent.mkdir()
    source = {"type": "tail", "files": [f"{log}*"]}
    for part in range(2):
        write(log, *numbered(range(part * 1_000, part * 1_000 + 1_000)))
        one = agent(kafka, tmp_path, dict(source), topic, channel=channel)
        one.run()
        account = one.describe()
        assert account["read"] == account["sent"] > 0 and account["held"] == 0
    arrived = values(kafka, topic)
    if channel and channel["type"] == "memory":
        # A channel that forgets has nowhere to keep how far its source was.
        assert arrived == numbered(range(1_000)) + numbered(range(2_000))
    else:
        assert arrived == numbered(range(2_000))


def test_numbers_without_an_end_until_a_stop(kafka: Any, tmp_path: Path) -> None:
    topic = fresh("numbers")
    channel = {"type": "memory", "capacity": 1_000}
    running = Running(agent(kafka, tmp_path, {"type": "sequence"}, topic, channel=channel, once=False))
    until(lambda: running.agent.account.sent >= 3_000)
    assert running.stop() is None
    arrived = values(kafka, topic)
    assert arrived == [b"%d" % number for number in range(len(arrived))]
    account = running.agent.account
    assert account.sent == len(arrived) and account.unaccounted == 0


@pytest.mark.slow
def test_what_a_file_channel_holds_goes_on_after_a_restart(kafka: Any, tmp_path: Path) -> None:
    topic = fresh()
    plan = {
        "sources": {"in": {"type": "http", "port": 0, "channel": "wal"}},
        "channels": {"wal": {"type": "file", "folder": str(tmp_path / "wal")}},
        "sinks": {"out": {"type": "kafka", "topic": topic, "bootstrap_servers": kafka.proxied}},
    }
    plan["sinks"]["out"]["config"] = {"transaction.timeout.ms": 10_000}
    running = Running(Agent(plan_of(plan, FieldLines("test"), topic, tmp_path)))
    until(lambda: running.agent.health().ready)
    url = f"http://127.0.0.1:{running.agent._feeds['in'].source.port}"
    assert httpx.post(url, content=b"1\n2\n", timeout=60).status_code == 200
    until(lambda: running.agent.account.sent == 2)
    kafka.proxy.away = True
    kafka.proxy.reset()
    # The broker is away, and the answer is given all the same: it is on the disk.
    assert httpx.post(url, content=b"3\n4\n5\n", timeout=60).status_code == 200
    running.stop()
    kafka.proxy.mend()
    assert running.agent.describe()["held"] == 3
    again = Agent(plan_of(plan, FieldLines("test"), topic, tmp_path), once=True)
    again.run()
    assert again.describe()["held_before"] == 3 and again.account.sent == 3
    assert values(kafka, topic) == [b"1", b"2", b"3", b"4", b"5"]


@pytest.mark.slow
def test_while_the_broker_is_away_clients_are_refused_and_memory_is_bounded(
    kafka: Any, tmp_path: Path
) -> None:
    topic = fresh()
    source = {"type": "http", "port": 0, "capacity": 10, "seconds": 1.0}
    one = agent(kafka, tmp_path, source, topic, once=False, config={"transaction.timeout.ms": 10_000})
    one.plan.sinks["out"].__dict__["bootstrap_servers"] = kafka.proxied
    running = Running(one)
    until(lambda: running.agent.health().ready)
    kafka.proxy.away = True
    kafka.proxy.reset()
    url = f"http://127.0.0.1:{running.agent._feeds['in'].source.port}"
    answers = [httpx.post(url, content=b"x\n" * 10, timeout=60).status_code for _ in range(4)]
    assert set(answers) == {503}
    assert running.agent._feeds["in"].state.under_way <= 10
    kafka.proxy.mend()
    until(lambda: httpx.post(url, content=b"last", timeout=60).status_code == 200)
    assert running.stop() is None
    # Refused ones may have arrived all the same; what was answered has.
    assert values(kafka, topic)[-1] == b"last"


@pytest.mark.slow
def test_an_agent_is_fenced_by_the_next_one_of_its_name(kafka: Any, tmp_path: Path) -> None:
    topic, log = fresh(), tmp_path / "a.log"
    write(log, "1")
    source = {"type": "tail", "files": [str(log)]}
    older = Running(agent(kafka, tmp_path, dict(source), topic, once=False))
    until(lambda: older.agent.account.sent == 1)
    newer = Running(agent(kafka, tmp_path, dict(source), topic, once=False))
    until(lambda: newer.agent.health().ready)
    write(log, "2")
    error = older.join()
    assert isinstance(error, IngestError) and "has taken over" in str(error)
    until(lambda: newer.agent.account.sent == 1)
    assert newer.stop() is None and values(kafka, topic) == [b"1", b"2"]


def test_two_sources_by_one_channel_and_interceptors(kafka: Any, tmp_path: Path) -> None:
    topic = fresh()
    text = f"""
        [sources.a]
        type = "sequence"
        total = 100
        channel = "c"
        interceptors = [{{ type = "filter", regex = "7" }}]
        [sources.b]
        type = "sequence"
        total = 50
        channel = "c"
        [channels.c]
        type = "memory"
        [sinks.k]
        type = "kafka"
        topic = "{topic}"
        bootstrap_servers = "{kafka.bootstrap_servers}"
    """
    one = Agent(parse_config(text, "agent.toml", topic, tmp_path))
    one.run()
    assert one.account.as_dict() == {
        "read": 150,
        "sent": 69,
        "dead_lettered": 0,
        "dropped": 81,
        "dropped_by_reason": {"filter": 81},
    }
    assert sorted(values(kafka, topic)) == sorted(
        [b"%d" % number for number in range(100) if "7" in str(number)]
        + [b"%d" % number for number in range(50)]
    )


def test_metrics_health_and_the_line(kafka: Any, tmp_path: Path) -> None:
    topic = fresh()
    one = agent(kafka, tmp_path, {"type": "sequence", "total": 20}, topic, dead_letters=f"{topic}-dead")
    assert not one.health().ready
    one.run()
    text = generate_latest(registry_of(one)).decode()
    assert f'streamgauge_ingest_messages_read_total{{agent="{topic}",source="in"}} 20.0' in text
    sent = f'agent="{topic}",outcome="sent",reason="",source="in"'
    assert f"streamgauge_ingest_messages_total{{{sent}}} 20.0" in text
    assert f'streamgauge_ingest_healthy{{agent="{topic}"}} 1.0' in text
    assert progress_text(one)(100).startswith(f"{topic}  20 read")
    assert json.dumps(one.describe())


def test_a_part_that_fails_ends_the_agent(kafka: Any, tmp_path: Path) -> None:
    topic = fresh()
    one = agent(kafka, tmp_path, {"type": "spool", "folder": str(tmp_path / "missing")}, topic, once=False)
    with pytest.raises(IngestError, match="there is no folder"):
        one.run()
    assert not one.health().healthy and "there is no folder" in one.health().why
