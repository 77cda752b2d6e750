"""A feed over a WebSocket, whose connections break."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest

from streamgauge.agents.ingest.batch import Batch, IngestError
from streamgauge.agents.ingest.pump import Pump
from streamgauge.agents.ingest.sources.websocket import Websocket, WebsocketSource

from ....waiting import until
from ..collected import Collected
from .feed_server import FeedServer

EVENTS = [b'{"time_us": %d, "did": "d%d"}' % (1_000 + number, number % 2) for number in range(20)]


def opened(url: str, positions: Any = None, **settings: Any) -> WebsocketSource:
    return Websocket(url=url, **settings).open(None, positions or {})


def read(source: WebsocketSource, count: int) -> list[Batch]:
    """Batches until there are so many messages to send."""
    batches: list[Batch] = []
    while sum(map(len, batches)) < count:
        if (batch := source.read(60)) is not None:
            batches.append(batch)
    return batches


def values(batches: list[Batch]) -> list[bytes]:
    return [value for batch in batches for value in batch.values()]


def test_each_message_once_whatever_breaks() -> None:
    server = FeedServer(EVENTS, each=7)
    source = opened(server.url + "?wanted=a", cursor="time_us", key="did")
    batches = read(source, 20)
    assert values(batches) == EVENTS
    assert [key for batch in batches for key in batch.keys or ()] == [b"d0", b"d1"] * 10
    assert batches[-1].positions == {"cursor": {"cursor": 1_019}}
    assert server.requests[:2] == ["/subscribe?wanted=a", "/subscribe?wanted=a&cursor=1006"]
    source.close()
    server.close()


def test_a_restart_goes_on_behind_its_position() -> None:
    server = FeedServer(EVENTS)
    source = opened(server.url, {"cursor": {"cursor": 1_015}}, cursor="time_us")
    batches = read(source, 4)
    assert (
        values(batches) == EVENTS[16:] and sum(batch.dropped.get("seen before", 0) for batch in batches) == 1
    )
    assert server.requests == ["/subscribe?cursor=1015"]
    source.close()
    server.close()


def test_a_feed_hears_a_heartbeat_though_it_sends_nothing() -> None:
    server = FeedServer(EVENTS[:2], subscribed=1)
    source = opened(server.url, subscribe=["hello"], heartbeat="ping", heartbeat_seconds=0.05)
    assert values(read(source, 2)) == EVENTS[:2]
    until(lambda: len(server.texts) >= 4)
    assert set(server.texts[1:]) == {"ping"} and len(server.requests) == 1
    source.close()
    server.close()
    with pytest.raises(ValueError, match="heartbeat_seconds must be above 0, got 0"):
        Websocket(url="ws://localhost", heartbeat_seconds=0)


def test_a_subscription_is_sent_again(caplog: pytest.LogCaptureFixture) -> None:
    server = FeedServer(EVENTS, each=3, subscribed=1)
    source = opened(server.url, subscribe=['{"type": "subscribe"}'])
    assert values(read(source, 6))[:6] == EVENTS[:3] * 2
    assert server.texts[:2] == ['{"type": "subscribe"}'] * 2
    assert "its messages of that time are lost" in caplog.text
    source.close()
    server.close()


def test_messages_that_are_no_json_have_no_cursor() -> None:
    server = FeedServer([b"text", b"[1]", b'{"time_us": "x"}', EVENTS[0]])
    source = opened(server.url, cursor="time_us")
    batches = read(source, 4)
    assert values(batches) == [b"text", b"[1]", b'{"time_us": "x"}', EVENTS[0]]
    source.close()
    server.close()


def test_what_is_no_feed_is_named() -> None:
    with pytest.raises(ValueError, match="url must begin with ws:// or wss://"):
        Websocket(url="http://box")
    listening = socket.create_server(("127.0.0.1", 0))
    source = opened(f"ws://user:secret@127.0.0.1:{listening.getsockname()[1]}/feed?token=secret")
    connection, _ = listening.accept()
    connection.recv(4_096)
    connection.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
    with pytest.raises(IngestError, match=r"^ws://127.0.0.1:\d+/feed can't be followed: .*404"):
        for _ in range(60):
            source.read(1)
    source.close()


def test_recorded_jetstream_events(recordings: Path) -> None:
    lines = (recordings / "social" / "jetstream_expected_v1.jsonl").read_bytes().splitlines()
    lines = sorted({json.loads(line)["time_us"]: line for line in lines}.items())
    events = [line for _, line in lines]
    server = FeedServer(events, each=50)
    source = opened(server.url, cursor="time_us", key="did")
    assert values(read(source, len(events))) == events
    source.close()
    server.close()


def test_a_stop_delivers_what_a_feed_without_a_cursor_has_sent() -> None:
    server = FeedServer(EVENTS)
    source = opened(server.url)
    until(lambda: source.inbox.count == 20)
    sink = Collected()
    pump = Pump(source, sink, stopping=lambda: True)
    pump.run()
    assert [value for commit in sink.commits for value in commit] == EVENTS
    assert pump.state.account.sent == 20 and pump.state.account.unaccounted == 0
    source.close()
    server.close()


def test_missing_numbers_are_reported(caplog: pytest.LogCaptureFixture) -> None:
    numbers = [("A", 7), ("B", 1), ("A", 8), ("A", 8), ("A", 11), ("B", 2), ("A", 9), ("B", 4), ("A", 12)]
    events = [b'{"data": {"s": "%s", "t": %d}}' % (name.encode(), number) for name, number in numbers]
    server = FeedServer([*events, b'{"data": 7}', b"no JSON"])
    source = opened(server.url, sequence="data.t", sequence_by="data.s")
    assert len(values(read(source, 11))) == 11
    source.close()
    server.close()
    missing = [
        message.partition(": ")[2]
        for record in caplog.records
        if "missing" in (message := record.getMessage())
    ]
    assert missing == [
        "2 messages of A are missing (data.t 9 to 10)",
        "1 messages of B are missing (data.t 3 to 3)",
    ]


def test_numbers_that_a_break_has_skipped_are_reported(caplog: pytest.LogCaptureFixture) -> None:
    server = FeedServer([b'{"n": 1}', b'{"n": 2}'], each=2)
    source = opened(server.url, sequence="n")
    read(source, 2)
    server.messages = [b'{"n": 6}', b'{"n": 7}']
    batches = read(source, 2)
    while values(batches)[-1:] != [b'{"n": 7}']:
        batches += read(source, 1)
    source.close()
    server.close()
    assert "3 messages are missing (n 3 to 5)" in caplog.text
