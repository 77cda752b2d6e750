"""A feed over a WebSocket, whose connections break."""

from __future__ import annotations

import itertools
import json
import socket
import time
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest
from websockets.utils import accept_key

from streamgauge.agents.ingest.batch import Batch, IngestError
from streamgauge.agents.ingest.pump import Pump
from streamgauge.agents.ingest.sources import websocket
from streamgauge.agents.ingest.sources.websocket import Websocket, WebsocketSource

from ....waiting import until
from ..collected import Collected
from .feed_server import FeedServer

EVENTS = [b'{"time_us": %d, "did": "d%d"}' % (1_000 + number, number % 2) for number in range(20)]


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(websocket, "_FIRST_SECONDS", 0.01)


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
    assert "messages sent in that time are lost" in caplog.text
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


def test_a_list_of_numbered_messages(caplog: pytest.LogCaptureFixture) -> None:
    trades = [[("A", 1), ("A", 2), ("B", 7)], [("B", 8)], [("A", 5), ("B", 9), ("A", 6)], []]
    events = [json.dumps({"d": [{"s": s, "n": n} for s, n in some]}).encode() for some in trades]
    server = FeedServer(events)
    source = opened(server.url, sequence="d.n", sequence_by="d.s")
    assert values(read(source, 4)) == events
    source.close()
    server.close()
    missing = [record.getMessage() for record in caplog.records if "missing" in record.getMessage()]
    assert [text.partition(": ")[2] for text in missing] == ["2 messages of A are missing (d.n 3 to 4)"]


def test_a_feed_that_limits_connections_is_asked_when_it_says() -> None:
    later = formatdate(time.time() + 1.6, usegmt=True)  # whole seconds
    limits = [(429, {"Retry-After": "0.3"}), (503, {"Retry-After": later}), (429, {"Retry-After": "?"})]
    server = FeedServer(EVENTS[:1], refusals=limits)
    source = opened(server.url)
    assert values(read(source, 1)) == EVENTS[:1]
    first, second, third, _ = server.times
    assert second - first >= 0.3 and third - second >= 0.3
    source.close()
    server.close()


def test_connections_that_are_short_become_rarer(caplog: pytest.LogCaptureFixture) -> None:
    server = FeedServer(EVENTS, each=4, live=True)
    source = opened(server.url)
    assert values(read(source, 20)) == EVENTS
    source.close()
    server.close()
    waits = [record.args[-1] for record in caplog.records if "reconnecting" in record.getMessage()]
    assert len(waits) >= 4 and all(b > 1.5 * a for a, b in itertools.pairwise(waits))


def test_an_error_of_the_feed_is_quoted(caplog: pytest.LogCaptureFixture) -> None:
    sent = [b'{"type": "error", "message": "no such product"}', *EVENTS[:2]]
    server = FeedServer(sent)
    source = opened(server.url, errors=r'"type"\s*:\s*"error"')
    assert values(read(source, 3)) == sent
    source.close()
    server.close()
    [warning] = [record.getMessage() for record in caplog.records if "reports" in record.getMessage()]
    assert warning.endswith('reports: {"type": "error", "message": "no such product"}')
    with pytest.raises(ValueError, match="errors must be a regular expression, got '\\('"):
        Websocket(url="ws://localhost", errors="(")


def test_a_live_message_with_an_old_cursor_is_kept(caplog: pytest.LogCaptureFixture) -> None:
    numbers = [1_000, 1_002, 1_001, 1_002, 1_003]
    events = [b'{"time_us": %d, "n": %d}' % pair for pair in zip(numbers, range(5))]
    server = FeedServer([*events, b'{"time_us": true}'])
    source = opened(server.url, cursor="time_us")
    batches = read(source, 6)
    assert values(batches) == [*events, b'{"time_us": true}']
    stored = [batch.positions["cursor"] for batch in batches if batch.positions]
    assert stored[-1] == {"cursor": 1_003}
    source.close()
    server.close()
    assert "whose time_us is not an integer; a reconnect may lose or repeat such messages" in caplog.text


@pytest.mark.slow
def test_a_connection_that_no_longer_answers_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(websocket, "_PING_SECONDS", 0.2)
    listening = socket.create_server(("127.0.0.1", 0))
    source = opened(f"ws://127.0.0.1:{listening.getsockname()[1]}/")
    for _ in range(2):  # both are accepted, and then nothing is said
        connection, _ = listening.accept()
        key = connection.recv(4_096).partition(b"Sec-WebSocket-Key: ")[2].partition(b"\r\n")[0].decode()
        upgrade = f"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept_key(key)}"
        connection.sendall(f"HTTP/1.1 101 Switching Protocols\r\n{upgrade}\r\n\r\n".encode())
    source.close()


def test_while_there_is_no_room_the_feed_waits() -> None:
    events = [b"%d" % number for number in range(400)]
    server = FeedServer(events, live=True)
    source = opened(server.url, capacity=5)
    until(lambda: source.inbox.count == 5 and server._sent == 400)
    assert values(read(source, 400)) == events and source.inbox.empty
    source.close()
    server.close()


def test_a_thread_that_fails_is_no_feed_without_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("unexpected")

    monkeypatch.setattr(websocket, "connect", fail)
    source = opened("ws://127.0.0.1:1/")
    with pytest.raises(IngestError, match="can't be followed: unexpected"):
        for _ in range(600):
            source.read(0.1)
    source.close()
