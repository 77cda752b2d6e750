"""`streamgauge kafka topics`, `tail` and `replay` against a real broker, and what they say without one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from ...command import Ran

START = 1_767_225_600


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.slow
@pytest.mark.kafka
def test_a_recording_is_replayed_and_read_again(ran: Ran, kafka: Any, tmp_path: Path) -> None:
    servers = ["--bootstrap-servers", kafka.bootstrap_servers]
    topic = f"replayed-{uuid.uuid4().hex[:8]}"
    rows = [{"user": f"u{n % 3}", "at": START + n * 60, "n": n} for n in range(30)]
    (tmp_path / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    sent = lines(
        ran("replay", tmp_path / "rows.jsonl", "--topic", topic, "--speed", "100000x", "--key-field", "user",
            "--partitions", "2", "--json", *servers)
    )  # fmt: skip
    assert (sent[0]["sent"], sent[0]["time"], sent[0]["topic"]) == (30, "at", topic)

    (reported,) = lines(ran("kafka", "topics", topic, "--json", *servers))
    assert reported["messages"] == 30 and len(reported["partitions"]) == 2
    assert reported["newest"] == "2026-01-01T00:29:00.000Z"
    assert all(one["leader"] > 0 and one["in_sync"] == one["replicas"] for one in reported["partitions"])
    assert topic in ran("kafka", "topics", *servers) and "leader" in ran("kafka", "topics", topic, *servers)
    assert "__consumer_offsets" not in ran("kafka", "topics", *servers)

    result = lines(ran("kafka", "tail", topic, "--offset", "earliest", "--json", *servers))
    assert sorted((one["value"] for one in result), key=lambda row: row["n"]) == rows
    assert all(one["key"] == one["value"]["user"] for one in result)
    for partition in (0, 1):
        own = [one["value"]["n"] for one in result if one["partition"] == partition]
        assert own == sorted(own)
        only = lines(
            ran(
                "kafka",
                "tail",
                topic,
                "--offset",
                "2026-01-01T00:10",
                "--partition",
                str(partition),
                "--json",
                *servers,
            )
        )
        assert [one["value"]["n"] for one in only] == [n for n in own if n >= 10]
    last = lines(ran("kafka", "tail", topic, "-n", "4", "--json", *servers))
    assert [one["value"]["n"] for one in last] == [26, 27, 28, 29]
    assert len(lines(ran("kafka", "tail", topic, "--offset", "2", "-n", "5", "--json", *servers))) == 5
    assert ran("kafka", "tail", topic, "--offset", "latest", *servers) == ""
    shown = ran("kafka", "tail", topic, "-n", "1", *servers)
    assert shown.startswith("2026-01-01T00:29:00.000Z  ") and '{"user": "u2"' in shown

    # One that is followed shows what comes; who reads only a part of it ends it silently.
    code = "from streamgauge.apps.cli.commands import main; import sys; sys.argv[0] = 'streamgauge'; main()"
    command = [sys.executable, "-c", code, "kafka", "tail", topic, "--follow", "--json", "-n", "2", *servers]
    followed = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ})
    assert followed.stdout is not None and followed.stderr is not None
    seen = [json.loads(followed.stdout.readline())["value"]["n"] for _ in range(2)]
    assert seen == [28, 29]
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "enable.idempotence": True})
    producer.produce(topic, b"more")
    producer.flush(120)
    assert json.loads(followed.stdout.readline())["value"] == "more"
    followed.send_signal(2)
    assert followed.wait(120) == 0
    assert followed.stderr.read() == b""

    near = ran("kafka", "tail", topic[:-1], *servers, code=1)
    assert near.startswith("error: ") and f"did you mean '{topic}'?" in near
    assert "has no partition 7; it has 0 … 1" in ran(
        "kafka", "tail", topic, "--partition", "7", *servers, code=1
    )
    assert "is not a time" in ran("kafka", "tail", topic, "--offset", "noon", *servers, code=1)
    assert "doesn't exist" in ran("kafka", "topics", "nothing-like-it", *servers, code=1)


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments", [["kafka", "topics"], ["kafka", "tail", "posts"], ["replay", "FILE", "--topic", "posts"]]
)
def test_without_a_broker_one_line_says_so(
    ran: Ran, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    monkeypatch.setattr("streamgauge.apps.topics.known.SECONDS", 1.0)
    (tmp_path / "rows.jsonl").write_text('{"at": 1767225600}\n')
    places = {"FILE": str(tmp_path / "rows.jsonl")}
    given = [places.get(argument, argument) for argument in arguments]
    said = ran(*given, "--bootstrap-servers", "localhost:1", code=1)
    assert said.startswith("error: no broker answered at localhost:1") and len(said.splitlines()) == 1


def test_what_is_not_to_be_read_is_said_first(ran: Ran, tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text("no time here\n")
    for arguments, said in (
        (["replay", tmp_path / "nowhere", "--topic", "x"], "nowhere: there is no such file"),
        (["replay", tmp_path / "log.txt", "--topic", "x"], "name the field by --time, or send all at once"),
        (["replay", tmp_path / "log.txt", "--topic", "x", "--speed", "fast"], "write 1x, 10x"),
        (
            ["kafka", "tail", "x", "--schema", "a.avsc", "--registry", "http://localhost"],
            "pass only one of them",
        ),
        (["kafka", "tail", "x", "--config", "nonsense"], "setting 1 of --config"),
    ):
        reported = ran(*arguments, code=1)
        assert reported.startswith("error: ") and said in reported
