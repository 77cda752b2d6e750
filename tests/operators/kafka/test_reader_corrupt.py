"""Bytes that broke on a broker's disk: named or skipped, and nothing is lost silently."""

from __future__ import annotations

import struct
import threading
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from streamgauge.apps.dev.kafka.broker import EmbeddedKafka
from streamgauge.operators.consumer.options import RunOptions
from streamgauge.operators.consumer.runner import run
from streamgauge.operators.definition.aggregates import count, sum
from streamgauge.operators.definition.stream import Stream
from streamgauge.operators.formats.json.decoder import json
from streamgauge.operators.kafka import confluent_source
from streamgauge.operators.kafka.confluent_source import PlainSource
from streamgauge.operators.kafka.reader import CorruptError, Reader
from streamgauge.operators.sketching.account import Account

from .broken_log import CHECKSUM, BrokenLog

pytestmark = pytest.mark.kafka


@pytest.fixture
def config(kafka: EmbeddedKafka) -> dict[str, Any]:
    return {"bootstrap.servers": kafka.bootstrap_servers}


@pytest.mark.parametrize(
    ("at", "new", "why"),
    [
        (70, b"\xff", "its checksum is wrong"),
        (8, struct.pack(">i", 154), "its checksum is wrong"),
        (0, struct.pack(">q", 1 << 40), "have no place there"),
        (0, bytes(161), "the broker itself says so"),
    ],
)
def test_broken_bytes_on_a_broker_are_named_or_skipped_and_nothing_is_lost_without_a_word(
    kafka: EmbeddedKafka, config: dict[str, Any], at: int, new: bytes, why: str
) -> None:
    topic = BrokenLog(kafka).damage(at, new).topic
    with Reader(config, {(topic, 0): 0}) as reader:
        result = reader.read_to({(topic, 0): 60})
        assert next(result).value.to_pylist() == [b'{"n": %d}' % number for number in range(20)]
        with pytest.raises(
            CorruptError, match=rf"{topic}\[0\] .* the record batch at offset 20 is damaged: .*{why}"
        ):
            next(result)
        assert reader.positions() == {(topic, 0): 20}
    with Reader(config, {(topic, 0): 0}, corrupt="skip") as reader:
        by_key: dict[int, bytes | None] = {}
        for end in (3, 21, 22, 60):  # some within what is broken
            for batch in reader.read_to({(topic, 0): end}):
                by_key |= dict(zip(batch.offset.tolist(), batch.value.to_pylist()))
                if (broken := batch.broken) is not None:
                    by_key |= dict.fromkeys(range(broken.first, broken.next))
            assert sorted(by_key) == list(range(end)) and reader.positions() == {(topic, 0): end}
    assert all(by_key[n] is None for n in range(20, 30))
    assert all(by_key[n] in (None, b'{"n": %d}' % n) for n in range(60))


def test_reading_message_by_message_ends_at_a_wrong_checksum(
    kafka: EmbeddedKafka, config: dict[str, Any]
) -> None:
    topic = BrokenLog(kafka).damage(*CHECKSUM).topic
    with (
        Reader(config, {(topic, 0): 0}, source="plain") as reader,
        pytest.raises(CorruptError, match=rf"{topic}\[0\] .*offset 20"),
    ):
        list(reader.read_to({(topic, 0): 60}))


def test_a_run_ends_there_or_counts_what_it_skips_among_the_dead_letters(
    kafka: EmbeddedKafka, config: dict[str, Any]
) -> None:
    topic = BrokenLog(kafka).damage(*CHECKSUM).topic

    def posts(corrupt: Any) -> Stream:
        at, value = kafka.bootstrap_servers, json({"n": pl.Int64})
        result = Stream.from_kafka(topic, value=value, corrupt=corrupt, bootstrap_servers=at)
        return result.tumbling("1h").agg(posts=count(), total=sum("n"))

    with pytest.raises(CorruptError, match="the record batch at offset 20 is damaged"):
        run(posts("stop"), RunOptions(until="latest"))
    done = run(posts("skip"), RunOptions(until="latest"))
    assert done.account == Account(read=60, counted=50, dead_lettered=10) and done.account.balanced
    assert done.windows()["total"].to_list() == [sum_of(60) - sum_of(30) + sum_of(20)]
    letters = (f"{topic}.dead-letters", 0)
    with Reader(config, {letters: 0}, headers=True) as reader:
        (batch,) = reader.read_to(reader.end_offsets())
    (letter,) = batch.to_arrow().to_pylist()
    said = {header["key"]: header["value"].decode() for header in letter["headers"]}
    assert said["reason"] == "its record batch is broken: its checksum is wrong (CRC-32C)"
    assert (said["topic"], said["partition"], said["offset"], said["last_offset"]) == (topic, "0", "20", "29")
    assert struct.unpack_from(">q", letter["value"])[0] == 20  # the batch itself


def sum_of(n: int) -> int:
    return n * (n - 1) // 2


def test_a_client_that_does_not_close_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    source = PlainSource({"bootstrap.servers": "127.0.0.1:1", "group.id": "g"})
    closed, library = threading.Event(), source._consumer
    monkeypatch.setattr(confluent_source, "_CLOSE_SECONDS", 0.05)
    source._consumer = SimpleNamespace(close=closed.wait)  # type: ignore[assignment]
    source.close()
    closed.set()
    library.close()
