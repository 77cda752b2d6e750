"""Each feed against a server on loopback that speaks its protocol, and into the format of its app."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from streamgauge.agents.ingest.agent import Agent
from streamgauge.agents.ingest.batch import IngestError
from streamgauge.agents.ingest.document import FieldLines, plan_of
from streamgauge.agents.ingest.presets import PRESETS, preset_sources
from streamgauge.agents.ingest.settings import build
from streamgauge.agents.ingest.sources import websocket
from streamgauge.operators.formats.messages import Messages
from streamgauge.operators.formats.text.syslog import syslog

from .agents import fresh, messages, values
from .exchanges import EXCHANGES, Exchange
from .sources.feed_server import FeedServer
from .sources.mqtt_broker import MqttBroker
from .sources.tailing import write


def started(
    kafka: Any, folder: Path, preset: str, topic: str, given: Mapping[str, str]
) -> tuple[Agent, Callable[[], None]]:
    """An agent of a preset at work, and what stops it."""
    sink = {"type": "kafka", "topic": topic, "bootstrap_servers": kafka.bootstrap_servers}
    document = {"sources": preset_sources(preset, given, topic), "sinks": {"kafka": sink}}
    agent = Agent(plan_of(document, FieldLines(preset), topic, folder))
    thread = threading.Thread(target=agent.run, daemon=True)
    thread.start()

    def stop() -> None:
        agent.stop()
        thread.join(120)
        assert not thread.is_alive()

    return agent, stop


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def frames(path: Path, wanted: Callable[[dict[str, Any]], bool]) -> list[bytes]:
    """What a recording of a WebSocket received, as far as it is wanted."""
    received = []
    for line in path.read_bytes().splitlines():
        rest = line.partition(b" <- ")[2] or line
        frame = rest.partition(b": ")[2]
        if frame.startswith(b"{") and b'"type":"subscribe"' not in frame and wanted(json.loads(frame)):
            received.append(frame)
    return received


@pytest.mark.kafka
def test_jetstream_goes_on_at_its_cursor(kafka: Any, tmp_path: Path, recordings: Path) -> None:
    lines = (recordings / "social" / "jetstream_expected_v1.jsonl").read_bytes().splitlines()
    events = [line for _, line in sorted({json.loads(line)["time_us"]: line for line in lines}.items())]
    server, topic = FeedServer(events[:100], each=40), fresh("jetstream")
    given = {"url": server.url}
    agent, stop = started(kafka, tmp_path, "jetstream", topic, given)
    until(lambda: agent.account.sent == 100)
    stop()
    server.messages = events
    agent, stop = started(kafka, tmp_path, "jetstream", topic, given)
    until(lambda: agent.account.sent == len(events) - 100)
    stop()
    server.close()
    sent = messages(kafka, topic)
    assert [one.value() for one in sent] == events
    assert sent[0].key() == json.loads(events[0])["did"].encode()
    assert "wantedCollections=app.bsky.feed.post" in server.requests[0]


@pytest.mark.kafka
def test_coinbase_sends_trades_alone(kafka: Any, tmp_path: Path, recordings: Path) -> None:
    every = frames(recordings / "stocks" / "coinbase_websocket_capture.txt", lambda frame: True)
    trades = [frame for frame in every if json.loads(frame).get("type") in ("match", "last_match")]
    server, topic = FeedServer(every, subscribed=1), fresh("coinbase")
    agent, stop = started(
        kafka, tmp_path, "coinbase", topic, {"url": server.url, "products": "SKL-USD, NMR-EUR"}
    )
    until(lambda: agent.account.read == len(every))
    stop()
    server.close()
    assert trades and values(kafka, topic) == trades
    assert agent.account.dropped == {"filter": len(every) - len(trades)}
    assert json.loads(server.texts[0]) == {
        "type": "subscribe",
        "product_ids": ["SKL-USD", "NMR-EUR"],
        "channels": ["matches"],
    }


@pytest.mark.kafka
def test_binance(kafka: Any, tmp_path: Path, recordings: Path) -> None:
    trades = frames(
        recordings / "stocks" / "binance_websocket_capture.txt",
        lambda frame: "trade" in frame.get("stream", "").lower(),
    )
    server, topic = FeedServer(trades), fresh("binance")
    agent, stop = started(kafka, tmp_path, "binance", topic, {"url": server.url, "symbols": "NKNUSDT"})
    until(lambda: agent.account.sent == len(trades))
    stop()
    server.close()
    assert trades and values(kafka, topic) == trades
    assert server.requests[0].endswith("?streams=nknusdt@trade")


@pytest.mark.slow
@pytest.mark.kafka
@pytest.mark.parametrize("exchange", EXCHANGES, ids=[one.preset for one in EXCHANGES])
def test_an_exchange_hears_what_it_documents(kafka: Any, tmp_path: Path, exchange: Exchange) -> None:
    sent = [*exchange.others, *exchange.trades]
    frames = [one if isinstance(one, str) else json.dumps(one) for one in (*exchange.dropped, *sent)]
    server = FeedServer([one.encode() for one in frames], subscribed=len(exchange.requests))
    topic = fresh(exchange.preset)
    agent, stop = started(kafka, tmp_path, exchange.preset, topic, {**exchange.given, "url": server.url})
    until(lambda: agent.account.read == len(frames))
    stop()
    server.close()
    assert [json.loads(text) for text in server.texts] == exchange.requests
    collected = values(kafka, topic)
    assert [json.loads(one or b"") for one in collected] == sent
    if exchange.preset == "bybit":
        assert server.requests == ["/subscribe/inverse"]


@pytest.mark.parametrize("exchange", EXCHANGES, ids=[one.preset for one in EXCHANGES])
def test_an_exchange_that_limits_breaks_refuses_and_skips(
    exchange: Exchange, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It refuses the first connection, breaks the second after half of its trades, and skips some."""
    monkeypatch.setattr(websocket, "_FIRST_SECONDS", 0.01)
    sent = [json.dumps(one).encode() for one in (exchange.error, *exchange.numbered)]
    count = len(exchange.requests)
    limit = [(429, {"Retry-After": "0.2"})]
    server = FeedServer(sent, each=3, subscribed=count, live=True, refusals=limit)
    [settings] = preset_sources(exchange.preset, {**exchange.given, "url": server.url}, "t").values()
    interceptors = [build("interceptors", one).open(None) for one in settings.pop("interceptors", ())]
    source = build("sources", settings).open(None, {})
    collected: list[bytes] = []
    while len(collected) < len(sent):
        batch = source.read(60)
        for interceptor in interceptors:
            batch = interceptor.apply(batch)
        collected += batch.values()
    source.close()
    server.close()
    assert collected == sent
    assert server.times[1] - server.times[0] >= 0.2
    assert [json.loads(text) for text in server.texts[: 2 * count]] == exchange.requests * 2
    warnings = [record.getMessage() for record in caplog.records]
    assert any("429" in text and "reconnecting in 0.2 s" in text for text in warnings)
    assert any(text.endswith(f"reports: {sent[0].decode()[:300]}") for text in warnings)
    assert any("was unreachable for" in text for text in warnings)
    assert [text.partition(": ")[2] for text in warnings if "are missing" in text] == [*exchange.missing]


@pytest.mark.kafka
def test_an_mqtt_brokers_sensors(kafka: Any, tmp_path: Path) -> None:
    broker, topic = MqttBroker(), fresh("mqtt")
    agent, stop = started(
        kafka, tmp_path, "mqtt", topic, {"broker": f"127.0.0.1:{broker.port}", "topics": "sensors/#"}
    )
    until(lambda: agent.health().ready)
    for number in range(10):
        broker.publish("sensors/a", b'{"t": %d}' % number)
    until(lambda: broker.unacknowledged() == 0 and agent.account.sent == 10)
    stop()
    broker.close()
    assert [(one.key(), one.value()) for one in messages(kafka, topic)] == [
        (b"sensors/a", b'{"t": %d}' % number) for number in range(10)
    ]


@pytest.mark.kafka
def test_nginx_and_its_rotated_logs(kafka: Any, tmp_path: Path, recordings: Path) -> None:
    lines = (recordings / "logs" / "apache_combined_10k.log").read_bytes().splitlines()
    topic, log = fresh("nginx"), tmp_path / "access.log"
    write(log.with_name("access.log.1"), *lines[:4_000])
    write(log, *lines[4_000:])
    agent, stop = started(kafka, tmp_path, "nginx", topic, {"files": f"{log}*"})
    until(lambda: agent.account.sent == len(lines))
    stop()
    assert values(kafka, topic) == lines


AUTH = [
    b"Oct 11 22:14:15 web sshd[1234]: Accepted publickey for ann from 10.0.0.1 port 58456 ssh2",
    b"Oct 11 22:14:16 web CRON[99]: pam_unix(cron:session): session opened for user root",
    b"Oct 11 22:14:17 web sshd-session[1235]: Failed password for root from 10.0.0.2 port 22 ssh2",
    b"Oct 11 22:14:18 web su[7]: about sshd",
]


@pytest.mark.kafka
def test_sshd_alone_of_a_systems_log(kafka: Any, tmp_path: Path) -> None:
    topic, log = fresh("sshd"), tmp_path / "auth.log"
    write(log, *AUTH)
    agent, stop = started(kafka, tmp_path, "sshd", topic, {"files": str(log)})
    until(lambda: agent.account.read == 4)
    stop()
    assert values(kafka, topic) == [AUTH[0], AUTH[2]]
    decoded = syslog().decode(Messages.of([AUTH[0], AUTH[2]], timestamps=[1_767_225_602_000] * 2))
    assert decoded.reasons == [] and decoded.frame["program"].to_list() == ["sshd", "sshd-session"]


@pytest.mark.kafka
def test_journald(kafka: Any, tmp_path: Path) -> None:
    topic, script = fresh("journald"), tmp_path / "journalctl"
    script.write_text("import time\nprint('__CURSOR=s=1\\nMESSAGE=hello\\n', flush=True)\ntime.sleep(600)\n")
    agent, stop = started(kafka, tmp_path, "journald", topic, {"command": f"{sys.executable} {script}"})
    until(lambda: agent.account.sent == 1)
    stop()
    assert [json.loads(value or b"") for value in values(kafka, topic)] == [
        {"__CURSOR": "s=1", "MESSAGE": "hello"}
    ]


@pytest.mark.kafka
@pytest.mark.parametrize(
    ("preset", "pattern"), [("ztf", "astronomy/ztf/*.avro"), ("rubin", "astronomy/rubin_kafka_packet*.avro")]
)
def test_astronomys_alerts_by_mirror(
    kafka: Any, tmp_path: Path, recordings: Path, preset: str, pattern: str
) -> None:
    packets = [path.read_bytes() for path in sorted(recordings.glob(pattern))]
    upstream, topic = fresh(f"{preset}-upstream"), fresh(preset)
    kafka.create_topic(upstream, partitions=1)
    producer = Producer(
        {
            "bootstrap.servers": kafka.bootstrap_servers,
            "enable.idempotence": True,
            "message.max.bytes": 4_000_000,
        }
    )
    for packet in packets:
        producer.produce(upstream, packet)
    producer.flush()
    given = {"brokers": kafka.bootstrap_servers, "topics": upstream}
    agent, stop = started(kafka, tmp_path, preset, topic, given)
    until(lambda: agent.account.sent == len(packets))
    stop()
    assert packets and values(kafka, topic) == packets


def test_each_preset_makes_a_source_that_can_be_built() -> None:
    for name, preset in PRESETS.items():
        given = {key: "x" for key, value in preset.settings.items() if not value}
        sink = {"type": "kafka", "topic": "t"}
        plan_of(
            {"sources": preset_sources(name, given, "t"), "sinks": {"k": sink}},
            FieldLines(name),
            "agent",
            Path(),
        )
    login = preset_sources("ztf", {"brokers": "b:9092", "topics": "a,b", "user": "u", "password": "p"}, "t")
    assert login["ztf-t"]["config"]["sasl.password"] == "p" and login["ztf-t"]["topics"] == ["a", "b"]


@pytest.mark.parametrize(
    ("name", "given", "text"),
    [
        ("ztff", {}, "preset must be one of jetstream, .*, got 'ztff'"),
        ("ztf", {}, "the preset ztf needs --set brokers="),
        ("ztf", {"broker": "x"}, "the preset ztf has no setting 'broker'; it has brokers, topics"),
    ],
)
def test_what_there_is_not_is_named(name: str, given: dict[str, str], text: str) -> None:
    with pytest.raises(IngestError, match=text):
        preset_sources(name, given, "t")
