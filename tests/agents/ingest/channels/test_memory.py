"""In memory: bounded, and what is lost is counted."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from streamgauge.agents.ingest.batch import Batch, DeadLine
from streamgauge.agents.ingest.channels.memory import FULL, LOST, MemoryBuffer, MemoryChannel
from streamgauge.agents.ingest.component import Place


def opened(tmp_path: Path, stopping: bool = False, **settings: object) -> MemoryChannel:
    place = Place("agent", "channel", tmp_path, stopping=lambda: stopping)
    return MemoryBuffer(**settings).open("channel", place)


def test_batches_come_out_as_they_went_in(tmp_path: Path) -> None:
    channel = opened(tmp_path)
    entrance, source = channel.sink(None), channel.source(None, {})
    batch = Batch.of(
        [b"a", b"b"], stream="s", keys=[b"k", None], dead=[DeadLine("why", b"x")], dropped={"f": 9}
    )
    entrance.write(batch)
    assert entrance.commit([batch]).sent == 2 and channel.held == 3
    result = source.read(0)
    assert (result.values(), result.keys, result.stream, result.read) == ([b"a", b"b"], [b"k", None], "s", 3)
    assert source.ended and channel.held == 3
    result.acknowledged()
    assert channel.held == 0 and source.read(0) is None


def test_full_it_drops_and_counts(tmp_path: Path) -> None:
    channel = opened(tmp_path, capacity=3, when_full="drop")
    entrance = channel.sink(None)
    for _ in range(5):
        entrance.write(Batch.of([b"a", b"b"]))
    assert channel.held == 4 and channel.lost == {FULL: 6}


def test_full_it_lets_the_source_wait(tmp_path: Path) -> None:
    channel = opened(tmp_path, capacity=1)
    entrance, source = channel.sink(None), channel.source(None, {})
    entrance.write(Batch.of([b"a"]))
    writing = threading.Thread(target=lambda: entrance.write(Batch.of([b"b"])))
    writing.start()
    first = source.read(10)
    time.sleep(0.2)
    assert writing.is_alive()
    first.acknowledged()
    writing.join(30)
    assert source.read(10).values() == [b"b"] and channel.lost == {}


def test_a_stop_ends_the_waiting(tmp_path: Path) -> None:
    channel = opened(tmp_path, stopping=True, capacity=1)
    entrance = channel.sink(None)
    entrance.write(Batch.of([b"a"]))
    entrance.write(Batch.of([b"b"]))
    assert channel.held == 2


def test_what_is_left_at_the_end_is_lost_and_counted(tmp_path: Path) -> None:
    channel = opened(tmp_path)
    channel.sink(None).write(Batch.of([b"a", b"b"]))
    channel.close()
    assert channel.held == 0 and channel.lost == {LOST: 2}


def test_wrong_settings_are_refused() -> None:
    with pytest.raises(ValueError, match="capacity must be an integer ≥ 1, got 0"):
        MemoryBuffer(capacity=0)
