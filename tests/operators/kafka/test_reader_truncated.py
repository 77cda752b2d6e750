"""Logs that lost messages which had been read: found by the leader's epoch, running and on a restart."""

from __future__ import annotations

from typing import Any

import pytest

from streamgauge.apps.dev.kafka.broker import EmbeddedKafka
from streamgauge.operators.kafka.reader import LogPosition, LogTruncated, Reader

from .lost_tail import lose_tail, send_numbers
from .reading import read_all

pytestmark = pytest.mark.kafka

PLACE = ("posts", 0)


@pytest.mark.slow
def test_a_reader_says_where_a_log_was_truncated(own_broker: EmbeddedKafka, source: Any) -> None:
    config = {"bootstrap.servers": own_broker.bootstrap_servers, "auto.offset.reset": "earliest"}
    own_broker.create_topic("posts")
    send_numbers(own_broker, "posts", range(150))
    with Reader(config, {PLACE: 0}, source=source) as reader:
        read_all(reader, 150)
        before = reader.epochs()[PLACE]
        lose_tail(own_broker, "posts", 100)
        send_numbers(own_broker, "posts", range(1000, 1200))
        with pytest.raises(LogTruncated) as running:
            read_all(reader, 1)
    with Reader(config, {PLACE: 0}, source=source) as reader:
        with pytest.raises(LogTruncated) as restarted:
            reader.assign({PLACE: 150}, {PLACE: LogPosition(150, before)})
        for start, known in ((40, 150), (100, 100), (60, 60)):
            try:
                reader.assign({PLACE: start}, {PLACE: LogPosition(known, before)})
                assert known <= 100
                read_all(reader, 300 - start)
                assert reader.epochs()[PLACE] > before
            except LogTruncated as error:
                assert (known, error.offset, error.end) == (150, 150, 100)
    for error in (running.value, restarted.value):
        assert (error.where, error.offset, error.end) == (PLACE, 150, 100)
        assert "posts[0]" in str(error) and "offset 150" in str(error) and "offset 100" in str(error)
