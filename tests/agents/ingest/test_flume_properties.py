"""Flume's configurations, unmodified."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamgauge.agents.ingest.channels.file import WriteAheadLog
from streamgauge.agents.ingest.channels.memory import MemoryBuffer
from streamgauge.agents.ingest.document import ConfigError
from streamgauge.agents.ingest.flume_properties import parse_properties
from streamgauge.agents.ingest.interceptors.filter import Filter
from streamgauge.agents.ingest.interceptors.headers import Host, Static, Timestamp
from streamgauge.agents.ingest.sinks.console import Console
from streamgauge.agents.ingest.sinks.kafka import KafkaTopic
from streamgauge.agents.ingest.sources.http import Http
from streamgauge.agents.ingest.sources.sequence import Sequence
from streamgauge.agents.ingest.sources.spool import Spool
from streamgauge.agents.ingest.sources.syslog import SyslogServer
from streamgauge.agents.ingest.sources.tail import FileTail

from ...cases import each

LECTURE = """# a generator of numbers, by way of memory, to Kafka
a1.sources = r1
a1.channels = c1
a1.sinks = k1

a1.sources.r1.type = seq

a1.channels.c1.type = memory
a1.channels.c1.capacity = 1000
a1.channels.c1.transactionCapacity = 100

a1.sinks.k1.type = org.apache.flume.sink.kafka.KafkaSink
a1.sinks.k1.kafka.topic = numbers
a1.sinks.k1.kafka.bootstrap.servers = localhost:9092
a1.sinks.k1.kafka.flumeBatchSize = 20
a1.sinks.k1.kafka.producer.acks = 1
a1.sinks.k1.kafka.producer.linger.ms = 1
a1.sinks.k1.kafka.producer.compression.type = snappy

a1.sources.r1.channels = c1
a1.sinks.k1.channel = c1
"""


def test_the_lectures_file(caplog: pytest.LogCaptureFixture) -> None:
    plan = parse_properties(LECTURE, "flume.properties", Path("state"))
    route = plan.routes["r1"]
    assert (plan.name, route.source, route.channel) == ("a1", Sequence(), "c1")
    assert plan.channels == {"c1": MemoryBuffer(capacity=1000)} and plan.channel_sinks == {"c1": "k1"}
    config = {"linger.ms": "1", "compression.type": "snappy"}
    assert plan.sinks == {
        "k1": KafkaTopic(topic="numbers", bootstrap_servers="localhost:9092", config=config)
    }
    assert "flume.properties, line 10: a1.channels.c1.transactionCapacity has no effect here" in caplog.text


def test_as_flume_1_6_wrote_it() -> None:
    text = LECTURE.replace("kafka.topic", "topic").replace("kafka.bootstrap.servers", "brokerList")
    assert parse_properties(text, "f", Path()).sinks["k1"].bootstrap_servers == "localhost:9092"


SOURCES = r"""
agent.sources = t s h u i
agent.channels = c
agent.sinks = k
agent.channels.c.type = FILE
agent.channels.c.dataDirs = /var/flume/data
agent.channels.c.checkpointDir = /var/flume/checkpoint
agent.sinks.k.type = logger
agent.sinks.k.channel = c
agent.sources.t.type = TAILDIR
agent.sources.t.channels = c
agent.sources.t.positionFile = /var/flume/taildir.json
agent.sources.t.filegroups = f1 f2
agent.sources.t.filegroups.f1 = /var/log/test1/example.log
agent.sources.t.filegroups.f2 = /var/log/test2/.*log.*
agent.sources.t.headers.f1.headerKey1 = value1
agent.sources.s.type = spooldir
agent.sources.s.channels = c
agent.sources.s.spoolDir = /var/log/\
    apache/flumeSpool
agent.sources.h.type = org.apache.flume.source.http.HTTPSource
agent.sources.h.channels = c
agent.sources.h.port = 5140
agent.sources.h.bind = 127.0.0.1
agent.sources.u.type = syslogudp
agent.sources.u.channels = c
agent.sources.u.port = 5141
agent.sources.u.host = localhost
agent.sources.i.type = seq
agent.sources.i.totalEvents = 7
agent.sources.i.channels = c
agent.sources.i.interceptors = a b c d
agent.sources.i.interceptors.a.type = timestamp
agent.sources.i.interceptors.b.type = host
agent.sources.i.interceptors.b.hostHeader = machine
agent.sources.i.interceptors.c.type = static
agent.sources.i.interceptors.c.key = datacenter
agent.sources.i.interceptors.c.value = NEW_YORK
agent.sources.i.interceptors.d.type = regex_filter
agent.sources.i.interceptors.d.regex = ^1
agent.sources.i.interceptors.d.excludeEvents = true
"""


def test_each_of_the_subset() -> None:
    plan = parse_properties(
        SOURCES.replace("agent.sources.t.headers.f1.headerKey1 = value1\n", ""), "f", Path()
    )
    assert {name: route.source for name, route in plan.routes.items()} == {
        "t": FileTail(files=["/var/log/test1/example.log", "/var/log/test2/*log*"]),
        "s": Spool(folder="/var/log/apache/flumeSpool"),
        "h": Http(port=5140, format="flume"),
        "u": SyslogServer(port=5141, host="localhost", protocol="udp"),
        "i": Sequence(total=7),
    }
    assert plan.channels == {"c": WriteAheadLog(folder="/var/flume/data")} and plan.sinks == {"k": Console()}
    assert list(plan.routes["i"].interceptors) == [
        Timestamp(),
        Host(header="machine"),
        Static(headers={"datacenter": "NEW_YORK"}),
        Filter(regex="^1", exclude=True),
    ]


@each(
    ("change", "text"),
    [
        (("type = seq", "type = avro"), r"line 6: a1.sources.r1.type: there is no 'avro' here; there are"),
        (
            ("capacity = 1000", "capacity = many"),
            r"line 9: a1.channels.c1.capacity: must be a number, got 'many'",
        ),
        (("capacity = 1000", "capacity = 0"), r"line 9: channels.c1: capacity must be an integer ≥ 1, got 0"),
        (("capacity = 1000", "capacities = 1"), r"line 9: a1.channels.c1.capacities means nothing here"),
        (
            ("k1.channel = c1", "k1.channel = c2"),
            r"line 21: a1.sinks.k1.channel: must be one of c1, got 'c2'",
        ),
        (
            ("r1.channels = c1", "r1.channels ="),
            r"line 20: a1.sources.r1.channels: must be one channel, got 0",
        ),
        (("producer.linger.ms", "producer.lingr.ms"), r"line 18: sinks.k1: .*lingr.ms"),
        (("a1.sinks = k1", "a2.sinks = k1"), r": must be of one agent, got a1, a2"),
        (("a1.sources.r1.type = seq", "a1"), r"line 6: must be NAME = VALUE, got 'a1'"),
        (("a1.sources.r1.type = seq", ""), r": a1.sources.r1.type is missing"),
    ],
)
def test_errors_name_the_line_and_the_property(change: tuple[str, str], text: str) -> None:
    before, after = change
    assert before in LECTURE
    with pytest.raises(ConfigError, match=rf"^flume.properties.*{text}"):
        parse_properties(LECTURE.replace(before, after, 1), "flume.properties", Path())


def test_headers_of_file_groups_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"agent.sources.t.headers.f1.headerKey1 means nothing here"):
        parse_properties(SOURCES, "flume.properties", Path())
