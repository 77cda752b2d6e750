"""Syslog by UDP and TCP, in both framings, whole or in pieces."""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from streamgauge.agents.ingest.batch import Batch, IngestError
from streamgauge.agents.ingest.component import STOPPED
from streamgauge.agents.ingest.pump import Pump
from streamgauge.agents.ingest.sources import syslog as syslog_source
from streamgauge.agents.ingest.sources.syslog import Framing, SyslogServer, SyslogSource
from streamgauge.operators.formats.messages import Messages
from streamgauge.operators.formats.text.syslog import syslog
from streamgauge.operators.kafka.retry import Stopped

from ....cases import each
from ..collected import Collected

OLD = b"<34>Oct 11 22:14:15 mymachine su: 'su root' failed for lonvick on /dev/pts/8"
NEW = b'<165>1 2003-10-11T22:14:15.003Z mymachine.example.com evntslog - ID47 [x@1 a="3"] An application'


@pytest.fixture
def opened() -> Iterator[Any]:
    sources: list[SyslogSource] = []

    def make(**settings: Any) -> SyslogSource:
        sources.append(SyslogServer(**{"port": 0, **settings}).open(None, {}))
        return sources[-1]

    yield make
    for source in sources:
        source.close()


def read(source: SyslogSource, count: int) -> list[Batch]:
    batches: list[Batch] = []
    while sum(batch.read for batch in batches) < count:
        if (batch := source.read(30)) is not None:
            batches.append(batch)
    return batches


def values(batches: list[Batch]) -> list[bytes]:
    return [value for batch in batches for value in batch.values()]


def test_udp(opened: Any) -> None:
    source = opened(protocol="udp")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for value in (OLD, NEW + b"\n", b"no priority", b"<192>too high"):
            sender.sendto(value, ("127.0.0.1", source.port))
    batches = read(source, 4)
    assert values(batches) == [OLD, NEW]
    assert [line.value for batch in batches for line in batch.dead] == [b"no priority", b"<192>too high"]


def test_tcp_in_both_framings(opened: Any) -> None:
    source = opened(protocol="tcp")
    counted = b"<13>with\na newline"
    stream = OLD + b"\n" + b"%d " % len(counted) + counted + NEW + b"\n<14>without an end"
    with socket.create_connection(("127.0.0.1", source.port)) as sender:
        for at in range(0, len(stream), 7):
            sender.sendall(stream[at : at + 7])
    assert values(read(source, 4)) == [OLD, counted, NEW, b"<14>without an end"]


def test_both_on_one_port(opened: Any) -> None:
    source = opened()
    with socket.create_connection(("127.0.0.1", source.port)) as sender:
        sender.sendall(OLD + b"\n")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendto(NEW, ("127.0.0.1", source.port))
    assert sorted(values(read(source, 2))) == sorted([OLD, NEW])


def test_what_is_sent_is_what_the_format_decodes() -> None:
    decoded = syslog().decode(Messages.of([OLD, NEW], timestamps=[1_767_225_602_000] * 2))
    assert decoded.reasons == [] and len(decoded.frame) == 2


def test_full_udp_drops_and_counts(opened: Any) -> None:
    source = opened(protocol="udp", capacity=1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for _ in range(20):
            sender.sendto(OLD, ("127.0.0.1", source.port))
            time.sleep(0.01)
    batches = read(source, 20)
    assert sum(batch.dropped.get("source full", 0) for batch in batches) == 20 - len(values(batches)) > 0


def test_full_tcp_lets_the_sender_wait(opened: Any) -> None:
    source = opened(protocol="tcp", capacity=1)
    with socket.create_connection(("127.0.0.1", source.port)) as sender:
        sender.settimeout(60)
        for number in range(50):
            sender.sendall(b"<13>%d\n" % number)
    assert values(read(source, 50)) == [b"<13>%d" % number for number in range(50)]


def test_a_message_that_is_too_long(opened: Any) -> None:
    source = opened(protocol="tcp", max_size=100)
    with socket.create_connection(("127.0.0.1", source.port)) as sender:
        sender.sendall(b"<13>" + b"x" * 500 + b"\n" + OLD + b"\n")
    batches = read(source, 2)
    assert values(batches) == [OLD] and sum(len(batch.dead) for batch in batches) == 1


@each("cut", range(40))
def test_frames_wherever_they_are_cut(cut: int) -> None:
    stream = b"6 <1>abc<2>line\n13 <3>a\nb\nc d e\n<4>x\n"
    framing = Framing(100)
    first, second = framing.take(stream[:cut]), framing.take(stream[cut:])
    assert first[0] + second[0] == [b"<1>abc", b"<2>line", b"<3>a\nb\nc d e\n"[:13], b"<4>x"]
    assert (first[1] + second[1], framing.rest) == ([], b"")


LONG = b"<9>" + b"x" * 20 + b"<13>y"


@each(
    ("stream", "good", "dead"),
    [
        (
            b"28 " + LONG + b"5 <1>ab<2>c\n",
            [b"<1>ab", b"<2>c"],
            [(LONG[:10], "28 bytes, above the limit of 10")],
        ),
        (LONG + b"\n<2>c\n", [b"<2>c"], [(LONG[:10], "more than 10 bytes")]),
        (LONG, [], [(LONG[:10], "more than 10 bytes")]),
        (b"9 <1>abc", [], [(b"<1>abc", "only 6 of 9 bytes arrived")]),
        (b"28 <1>abc", [], [(b"<1>abc", "only 6 of 28 bytes arrived")]),
        (b"40 4 x\n<2>c\n", [b"40 4 x", b"<2>c"], []),
        (b"<2>6789_10\n<3>", [b"<2>6789_10", b"<3>"], []),
    ],
)
def test_what_is_too_long_or_incomplete_is_a_dead_letter(stream: bytes, good: Any, dead: Any) -> None:
    for cut in range(len(stream) + 1):
        framing = Framing(10)
        parts = [framing.take(stream[:cut]), framing.take(stream[cut:]), framing.take(b"", ended=True)]
        assert [value for values, _ in parts for value in values] == good, cut
        letters = [line for _, lines in parts for line in lines]
        assert [line.value for line in letters] == [value for value, _ in dead], cut
        assert all(line.reason.startswith(reason) for line, (_, reason) in zip(letters, dead)), cut


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts them")
def test_datagrams_that_the_system_has_no_room_for_are_counted(
    opened: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(syslog_source, "_RECEIVE_BUFFER", 4_096)
    source = opened(protocol="udp")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender, source.inbox._changed:
        # Nothing is received while the inbox is locked.
        for number in range(500):
            sender.sendto(b"<13>%d" % number, ("127.0.0.1", source.port))
    source.drain()
    batches: list[Batch] = []
    while not source.ended:
        if (batch := source.read(0.1)) is not None:
            batches.append(batch)
    assert sum(batch.read for batch in batches) == 500 > len(values(batches)) > 0
    assert {name for batch in batches for name in batch.dropped} == {"system's buffer full"}


def test_a_port_that_is_taken_is_named(opened: Any) -> None:
    source = opened()
    with pytest.raises(IngestError, match=f"can't listen on 127.0.0.1:{source.port}"):
        opened(port=source.port)


def test_a_stop_delivers_what_was_received_and_counts_the_rest(opened: Any) -> None:
    source = opened(capacity=1_000)
    connections = [socket.create_connection(("127.0.0.1", source.port)) for _ in range(3)]
    for number, sender in enumerate(connections):
        sender.sendall(b"".join(b"<13>%d %d\n" % (number, line) for line in range(2_000)) + b"<13>half of")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        for number in range(5):
            udp.sendto(b"<13>udp %d" % number, ("127.0.0.1", source.port))
    sink, stops = Collected(), iter([False])
    pump = Pump(source, sink, stopping=lambda: next(stops, True))
    pump.run()
    for sender in connections:
        assert sender.recv(1) == b""  # the end of what the agent says
        sender.close()
    received = [value for commit in sink.commits for value in commit]
    for number in range(3):
        own = [value for value in received if value.startswith(b"<13>%d " % number)]
        assert own == [b"<13>%d %d" % (number, line) for line in range(2_000)]
    account = pump.state.account
    assert account.read == 6_008 and account.dropped[STOPPED] >= 3 and account.unaccounted == 0


def test_what_a_failing_sink_can_not_take_is_counted(opened: Any) -> None:
    source = opened(protocol="tcp")
    with socket.create_connection(("127.0.0.1", source.port)) as sender:
        sender.sendall(b"".join(b"<13>%d\n" % line for line in range(100)))
        pump = Pump(source, Collected(Stopped("away")), stopping=lambda: False)
        with pytest.raises(Stopped):
            pump.run()
    account = pump.state.account
    assert account.dropped == {STOPPED: account.read} and account.read == 100
