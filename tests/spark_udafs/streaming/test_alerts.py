"""Outlets to people on Spark: what waits is in the query's folder, and is sent once over micro-batches."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from streamgauge import SketchTable, Stream, StreamTester, last
from streamgauge import json as json_value
from streamgauge.rules import (
    Alerting,
    AlertsToAlertmanager,
    AlertsToEmail,
    AlertsToMqtt,
    AlertsToNtfy,
    AlertsToSlack,
    AlertsToWebhook,
    Threshold,
)

from ...agents.ingest.sources.mqtt_broker import MqttBroker
from ...operators.rules.outlets.servers import SmtpServer, WebServer
from ...operators.rules.outlets.test_outlet_queue import Outlet, complete
from ...operators.rules.plain import NOON, WINDOWS, row
from ...waiting import until

pytest.importorskip("pyspark")

from streamgauge.spark_udafs.streaming.alerts import AlertingSink
from streamgauge.spark_udafs.streaming.query_handle import Running
from streamgauge.spark_udafs.streaming.run import on_spark, write
from streamgauge.spark_udafs.streaming.sinks import Batch

RULES = [Threshold("hot", value="value", above=30)]


def windows(minute: int, key: str) -> SketchTable:
    tester = StreamTester(WINDOWS, start=NOON + timedelta(days=1))
    tester.feed([row(minute, key, 31.0)])
    return tester.finish().tables()


def test_what_waits_is_sent_once_over_micro_batches_and_runs(tmp_path: Path) -> None:
    outlet = Outlet(group_by=None)
    outlet.gate.clear()
    sink = AlertingSink(WINDOWS, Alerting(RULES, to=[outlet]), tmp_path)
    sink(windows(0, "a"), Batch(query="q", number=0))
    until(outlet.waits.is_set)
    outlet.gate.set()
    assert complete(outlet) == {"sent": 1}
    # The memory that this one begins with was written while the alert waited.
    outlet.gate.clear()
    sink(windows(1, "b"), Batch(query="q", number=1))
    outlet.gate.set()
    assert complete(outlet) == {"sent": 2} and outlet.keys == [["a"], ["b"]]
    outlet.gate.clear()
    sink(windows(2, "c"), Batch(query="q", number=2))
    second = Outlet(group_by=None)
    again = AlertingSink(WINDOWS, Alerting(RULES, to=[second]), tmp_path)
    again(windows(3, "d"), Batch(query="q", number=3))
    assert complete(second) == {"sent": 2}
    assert [key for keys in second.keys for key in keys] == ["c", "d"]
    outlet.gate.set()


@pytest.mark.parametrize("killed", [False, True])
def test_what_is_sent_when_a_query_ends_is_not_sent_by_the_next(tmp_path: Path, killed: bool) -> None:
    lost, first, second = Outlet(group_by=None), Outlet(group_by=None), Outlet(group_by=None)
    begun = windows(0, "a")
    if killed:
        # Its alert was still waiting, and is sent by a run in which no window closes.
        lost.gate.clear()
        AlertingSink(WINDOWS, Alerting(RULES, to=[lost]), tmp_path)(begun, Batch(query="q", number=0))
        begun = SketchTable(begun.to_arrow()[:0])
    sink = AlertingSink(WINDOWS, Alerting(RULES, to=[first]), tmp_path)
    query = Running(SimpleNamespace(stop=lambda: None), "checkpoint")
    sink.beside(query)
    first.gate.clear()
    sink(begun, Batch(query="q", number=int(killed)))
    until(first.waits.is_set)
    first.gate.set()
    query.stop()
    again = AlertingSink(WINDOWS, Alerting(RULES, to=[second]), tmp_path)
    again(windows(1, "b"), Batch(query="q", number=2))
    assert complete(second) == {"sent": 1}
    lost.gate.set()
    assert (first.keys, second.keys) == ([["a"]], [["b"]])


class Servers:
    """What outlets speak with, on loopback, and what has arrived there."""

    def __init__(self) -> None:
        self.web, self.mail, self.mqtt = WebServer(), SmtpServer(), MqttBroker()

    def outlets(self) -> list[Any]:
        """Those of one process; the next one has others, which remember nothing."""
        return [
            AlertsToWebhook(f"{self.web.url}/hook"),
            AlertsToSlack(f"{self.web.url}/slack"),
            AlertsToAlertmanager(self.web.url),
            AlertsToNtfy(f"{self.web.url}/ntfy/ops"),
            AlertsToMqtt(f"mqtt://127.0.0.1:{self.mqtt.port}/alerts"),
            AlertsToEmail(
                "127.0.0.1", port=self.mail.port, security="none", sender="g@x.test", to=["o@x.test"]
            ),
        ]

    def arrived(self, key: str) -> dict[str, int]:
        """How many messages say something of a key, by their way."""
        posted = [(one.path, json.dumps(one.body)) for one in self.web.requests]
        posted += [("mqtt", payload.decode()) for _, payload in self.mqtt.published]
        posted += [("mail", one.message.get_content()) for one in self.mail.mails]
        return {way: sum(key in text for at, text in posted if at == way) for way in WAYS}

    def close(self) -> None:
        for server in (self.web, self.mail, self.mqtt):
            server.close()


WAYS = ("/hook", "/slack", "/api/v2/alerts", "/ntfy/", "mqtt", "mail")


@pytest.fixture
def servers() -> Iterator[Servers]:
    made = Servers()
    yield made
    made.close()


@pytest.mark.kafka
@pytest.mark.spark
def test_what_a_query_reports_reaches_people_once_over_restarts(
    servers: Servers, spark: Any, kafka: Any, topic: Any, send: Callable[..., None], tmp_path: Path
) -> None:
    name = topic(1)
    columns = {"at": pl.Datetime("us"), "key": pl.String, "value": pl.Float64}
    rows = Stream.from_kafka(
        name, value=json_value(columns), time="at", bootstrap_servers=kafka.bootstrap_servers
    )
    stream = rows.group_by("key").tumbling("1m", delay="0s").agg(value=last("value"))

    def run(seconds: int = 900) -> None:
        """A query that ends by itself, with outlets that know of no other."""
        sink = AlertingSink(stream, Alerting(RULES, to=servers.outlets()), tmp_path / "rules")
        table = on_spark(stream, spark, close_at_end=False)
        query = write(table, tmp_path / "checkpoint", sink, available_now=True)
        assert query.awaitTermination(seconds)

    def feed(*given: tuple[int, str, float]) -> None:
        values = [
            {**row(minute, key, value), "at": row(minute)["at"].isoformat()} for minute, key, value in given
        ]
        send(name, [json.dumps(value).encode() for value in values])

    once, never = dict.fromkeys(WAYS, 1), dict.fromkeys(WAYS, 0)
    feed((0, "boiler", 31.0), (1, "cellar", 20.0))
    run()
    assert (servers.arrived("boiler"), servers.arrived("cellar")) == (once, never)
    run()  # with nothing new
    feed((2, "attic", 35.0), (3, "cellar", 20.0))
    run()
    assert (servers.arrived("boiler"), servers.arrived("attic"), servers.arrived("cellar")) == (
        once,
        once,
        never,
    )
