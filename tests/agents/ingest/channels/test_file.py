"""What a write-ahead log holds survives; what it doesn't hold was not answered.

Cases restated from Flume's TestFileChannelRestart, TestFileChannel and TestLog.
"""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streamgauge.agents.ingest.batch import Batch, DeadLine, IngestError
from streamgauge.agents.ingest.channels import file as file_channel
from streamgauge.agents.ingest.channels.file import FileChannel, WriteAheadLog
from streamgauge.agents.ingest.component import Place

OWNER = "agent/in"


class Log:
    """A channel that is opened again and again; `positions` are what the sink has committed."""

    def __init__(self, folder: Path) -> None:
        self.place, self.positions = Place("agent", "in", folder), {}
        self.folder = folder / "agent" / "channels" / "c"
        self.channel: FileChannel = self.open()

    def open(self, **settings: Any) -> FileChannel:
        self.channel = WriteAheadLog(**settings).open("c", self.place)
        self.entrance = self.channel.sink(self.place)
        self.source = self.channel.source(self.place, self.positions)
        return self.channel

    def restart(self, **settings: Any) -> None:
        self.channel.close()
        self.open(**settings)

    def put(self, *values: bytes, **fields: Any) -> None:
        batch = Batch.of(values, **fields)
        self.entrance.write(batch)
        self.entrance.commit([batch])

    def take(self, commit: bool = True) -> list[bytes]:
        values: list[bytes] = []
        while (batch := self.source.read(0)) is not None:
            values += batch.values()
            if commit:
                self.positions.update(batch.positions)
                batch.acknowledged()
        return values

    def segments(self) -> list[Path]:
        return sorted(self.folder.glob("*.wal"))


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    log = Log(tmp_path)
    yield log
    log.channel.close()


def test_all_of_a_batch_survives(log: Log) -> None:
    batch = Batch.of(
        [b"one", b"", b"\xff"],
        stream="s",
        keys=[b"k", None, b""],
        headers=[("h", b"\xfe"), ("none", None)],
        own_headers=[[], [("o", b"1")], []],
        timestamp_ms=np.array([1, 2, 3]),
        nulls=np.array([False, True, False]),
        dead=[DeadLine("why", b"dead")],
        dropped={"filter": 5},
    )
    log.entrance.write(batch)
    log.entrance.commit([batch])
    log.restart()
    result = log.source.read(0)
    assert result.values() == batch.values() and result.keys == batch.keys and result.stream == "s"
    assert list(result.headers) == list(batch.headers)
    assert [list(own) for own in result.own_headers] == batch.own_headers
    assert result.timestamp_ms.tolist() == [1, 2, 3] and result.nulls.tolist() == [False, True, False]
    assert result.dead == batch.dead and result.dropped == {}


# testRestart, testTakeTransactionCrossingCheckpoint


def test_a_restart_goes_on_where_the_sink_was(log: Log) -> None:
    log.put(b"1", b"2")
    log.put(b"3")
    assert log.take() == [b"1", b"2", b"3"]
    log.put(b"4")
    log.restart()
    assert (log.channel.held, log.channel.held_before) == (1, 1)
    assert log.take(commit=False) == [b"4"]
    log.restart()
    assert log.take() == [b"4"] and log.channel.held == 0


def test_positions_of_sources_survive_with_their_messages(log: Log) -> None:
    log.put(b"1", positions={"file": {"offset": 1}, "other": {"offset": 5}})
    log.put(b"2", positions={"file": {"offset": 2}, "other": None})
    log.restart()
    assert log.entrance.positions == {"file": {"offset": 2}}
    assert log.channel.sink(Place("agent", "another", log.folder)).positions == {}


# testBadCheckpointVersion and its like: here nothing but the log itself is read


@pytest.mark.parametrize("lost", [1, 10, 20])
def test_a_record_that_was_half_written_was_not_there(log: Log, lost: int) -> None:
    log.put(b"1", positions={"file": {"offset": 1}})
    log.put(b"a longer message", positions={"file": {"offset": 2}})
    (path,) = log.segments()
    os.truncate(path, path.stat().st_size - lost)
    log.restart()
    assert log.entrance.positions == {"file": {"offset": 1}}
    assert log.take() == [b"1"]
    log.put(b"2")
    log.restart()
    assert log.take() == [b"2"]


def test_pages_that_never_reached_the_disk_are_zeros(log: Log) -> None:
    log.put(b"1")
    (path,) = log.segments()
    with path.open("ab") as file:
        file.write(b"\0" * 5_000)
    log.restart()
    assert log.take() == [b"1"]


# TestLog: testReplaySucceedsWithUnusedEmptyLogMetaDataNormalReplay


def test_a_segment_that_was_just_begun(log: Log) -> None:
    log.put(b"1", positions={"file": {"offset": 1}})
    log.channel.close()
    (log.folder / f"{int(log.segments()[0].stem) + 1:012}.wal").write_bytes(b"")
    log.open()
    assert log.entrance.positions == {"file": {"offset": 1}} and log.take() == [b"1"]


# testCorruptInflightPuts and testCompressFile: damage is named, never skipped


def test_damage_in_the_middle_is_named(log: Log) -> None:
    log.put(b"x" * 1_000)
    log.put(b"y" * 1_000)
    (path,) = log.segments()
    data = bytearray(path.read_bytes())
    data[700] ^= 1
    path.write_bytes(data)
    log.channel.close()
    with pytest.raises(IngestError, match=r"\d{12}.wal is damaged at byte \d+: restore it"):
        log.open()
    path.unlink()
    log.open()


def test_segments_are_deleted_when_they_were_delivered(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_channel, "_SEGMENT_BYTES", 500)
    values = [b"%03d" % number * 50 for number in range(40)]
    for number, value in enumerate(values):
        log.put(value, positions={"file": {"offset": number}})
    assert len(log.segments()) > 5
    log.restart()
    assert log.entrance.positions == {"file": {"offset": 39}}
    assert log.take() == values
    assert len(log.segments()) == 1
    log.restart()
    assert log.entrance.positions == {"file": {"offset": 39}} and log.take() == []


# TestFileChannel: testCapacity, testFailAfterTakeBeforeCommit


def test_full_it_lets_the_source_wait(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_channel, "_SEGMENT_BYTES", 100)
    log.restart(max_bytes=3_000)
    for _ in range(2):
        log.put(b"x" * 1_000)
    held = log.channel.held
    writing = threading.Thread(target=log.put, args=(b"y" * 1_000,))
    writing.start()
    time.sleep(0.3)
    assert writing.is_alive() and log.channel.held == held
    values = log.take()
    writing.join(30)
    values += log.take()
    assert values == [b"x" * 1_000] * 2 + [b"y" * 1_000]


def test_a_full_disk_is_waited_for(
    log: Log, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    real, left = os.write, 3

    def write(descriptor: int, data: Any) -> int:
        nonlocal left
        if left:
            left -= 1
            if left == 1:
                return real(descriptor, bytes(data)[:7])
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(descriptor, data)

    monkeypatch.setattr(os, "write", write)
    log.put(b"kept", positions={"file": {"offset": 4}})
    monkeypatch.undo()
    assert "waits: No space left on device" in caplog.text
    log.restart()
    assert log.take() == [b"kept"]


def test_two_agents_do_not_share_a_folder(log: Log) -> None:
    with pytest.raises(IngestError, match="another agent uses the channel's folder"):
        WriteAheadLog().open("c", log.place)


def test_an_older_copy_of_a_channel_is_refused(log: Log) -> None:
    log.put(b"1")
    log.take()
    log.positions = {"log": {"segment": int(log.segments()[0].stem), "offset": 10_000}}
    log.channel.close()
    with pytest.raises(IngestError, match="ends before the position already delivered from it"):
        log.open()
